"""How many secrets are found, and how much that is none is taken for one; see `credentials`.

Other scripts of this folder that mean the standard library's `secrets` find this file first: they get that.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    import credentials

    credentials.main()
else:
    _standard = os.path.join(os.path.dirname(os.__file__), "secrets.py")  # noqa: PTH118, PTH120
    with open(_standard, encoding="utf-8") as _source:  # noqa: PTH123
        exec(compile(_source.read(), _standard, "exec"), sys.modules[__name__].__dict__)
