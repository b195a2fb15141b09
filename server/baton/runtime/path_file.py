"""A path file of a Python environment: by it a folder's modules are found, whatever the folder is called.

Run as `python -I -S path_file.py FOLDER`; prints what belongs into the file.
"""

from __future__ import annotations

import os
import sys


def path_file(folder: str) -> str:
    """The text of a path file that names `folder`, in ASCII alone.

    A path file is read in the encoding of the locale, and what cannot be read there keeps Python from
    starting at all. So a name that is more than plain text is spelt out, byte for byte.
    """
    if folder.isascii() and folder.isprintable():
        return folder + "\n"
    return f"import os, sys; sys.path.append(os.fsdecode({os.fsencode(folder)!a}))\n"


if __name__ == "__main__":
    sys.stdout.write(path_file(sys.argv[1]))
