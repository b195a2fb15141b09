"""How an error names the arguments of a call: as the tool spells them, or as a person types them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from baton.contract.errors import InvalidInput

_HEAD = re.compile(r"(\w+(?:, \w+)*)((?:\[\d+\]|\.\w+)*)(?=:| ')")


def renamed(fault: InvalidInput, names: Mapping[str, str], call: str) -> InvalidInput:
    """The same error, with the arguments that it is about by other names.

    They are what it begins with (`moreRounds: …`, `diffRef 'x': …`, `context, contextPaths: …`), below `call`
    where the call itself could not be read. Everything else, a person's words above all, stays as it is.
    """
    message = fault.message.removeprefix(f"{call}.")
    head = _HEAD.match(message)
    if head is None or not all(name in names for name in head[1].split(", ")):
        return fault
    told = ", ".join(names[name] for name in head[1].split(", "))
    # `bindings.review` is told as `--bind review`; a number says nothing to who typed no list.
    part = "" if "[" in head[2] else head[2].replace(".", " ")
    return InvalidInput(told + part + message[head.end() :])
