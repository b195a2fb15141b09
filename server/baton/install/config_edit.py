"""The server's entry in config.toml: put in, brought up to date, taken out; nothing else is ever changed.

Every edit is tried in the ways that keep most of the file as it is, and each try is parsed again: it counts
only when all but our entry says the same as before, in the same order.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from baton.contract.errors import BatonError, InvalidInput
from baton.install.config_lines import SERVER, TABLE, one_line, remarks, without_lines
from baton.install.config_text import ConfigText, read_text, with_text
from baton.install.owned import ConfigEntry
from baton.policy.person import line_ends

_ITEMS_IN_LINE = 6


@dataclass(frozen=True)
class Edit:
    """What an edit makes of the file."""

    content: bytes | None
    """The new bytes; None when there is to be no file."""
    entry: ConfigEntry | None
    """What is owned from now on."""
    notes: tuple[str, ...] = ()


def server_in(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry of our name in a parsed config.toml."""
    servers = data.get(TABLE)
    found = servers.get(SERVER) if isinstance(servers, dict) else None
    return found if isinstance(found, dict) else None


def is_familiar(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of our name that nobody recorded starts a server of ours."""
    words = " ".join(map(str, [entry.get("command", ""), *(entry.get("args") or ())]))
    return re.search(r"\b(serve\.sh|serve\.py|baton-server)\b", words) is not None


def put_server(
    content: bytes | None,
    values: Mapping[str, Any],
    record: ConfigEntry | None,
    file: Path,
    *,
    adopt: bool = False,
    restore: bool = False,
) -> Edit:
    """Have the entry say `values`, except where the person has changed a key since it was `record`ed.

    Raises `InvalidInput` when the file cannot be read or edited safely, and for an entry of our name that is
    not ours.
    """
    old = read_text(content or b"", file)
    servers = old.data.get(TABLE)
    if servers is not None and not isinstance(servers, dict):
        raise InvalidInput(f"{file}: {TABLE} must be a table; nothing was changed")
    current = servers.get(SERVER) if servers else None
    if current is None:
        if record is not None and not restore:
            note = f"[{TABLE}.{SERVER}] was deleted by you; --restore puts it back"
            return Edit(content, record, (note,))
        return _insert(old, values, file, made_file=content is None)
    if not isinstance(current, dict):
        raise InvalidInput(f"{file}: {TABLE}.{SERVER} must be a table; nothing was changed")
    if record is None:
        if not (adopt and is_familiar(current)):
            hint = "; --adopt takes it over" if is_familiar(current) else "; rename or remove it"
            raise InvalidInput(f"{file}: [{TABLE}.{SERVER}] is there already and not Baton's{hint}")
        record = ConfigEntry(values=current, text="")
    return _update(old, current, values, record, file)


def drop_server(content: bytes | None, record: ConfigEntry | None, file: Path) -> Edit:
    """Take the entry out, whatever the person has added to it: without it there is no server to configure."""
    if content is None:
        return Edit(None, None)
    old = read_text(content, file)
    current = server_in(old.data)
    if current is None or record is None:
        return Edit(content, None)
    extra = [key for key, value in current.items() if record.values.get(key) != value]
    notes = (f"[{TABLE}.{SERVER}] is removed with your {', '.join(extra)}",) if extra else ()
    new = _first_that_holds(old, None, _ways_out(old, record), file)
    if record.made_file and not new.text.strip():
        return Edit(None, None, notes)
    return Edit(new.encoded(), None, notes)


def merged(
    ours: Mapping[str, Any], before: Mapping[str, Any], current: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The three-way merge of the entry's keys, and the keys in which the person's word stands."""
    result = dict(current)
    theirs = []
    for key in dict.fromkeys([*ours, *before]):
        here, was, will = current.get(key), before.get(key), ours.get(key)
        if here == will:
            continue
        if (here == was and key in current) or (key not in before and key not in current):
            if will is None:
                del result[key]
            else:
                result[key] = will
        elif _lists(here, was, will):
            result[key] = _merged_list(will, was, here)
        elif key in ours and will != was:
            theirs.append(key)
    return result, tuple(theirs)


def _lists(*values: object) -> bool:
    return all(isinstance(value, list) for value in values)


def _merged_list(ours: Any, before: Any, current: Any) -> list[Any]:
    """Ours without what the person took out, with what they added."""
    kept = [item for item in ours if item in current or item not in before]
    return kept + [item for item in current if item not in before and item not in ours]


def _insert(old: ConfigText, values: Mapping[str, Any], file: Path, made_file: bool) -> Edit:
    block = _block(old, values)
    line = one_line(old.text)
    longer = _edited(line, values) if line else ""
    ways = [lambda: old.text + block, *_swaps(old.text, line, longer), lambda: _with_key(old, values)]
    new = _first_that_holds(old, values, ways, file)
    if new.text == old.text + block:
        text, instead_of = block, ""
    else:
        text, instead_of = (longer, line) if longer and longer in new.text else ("", "")
    entry = ConfigEntry(
        values=dict(values),
        text=text,
        instead_of=instead_of,
        made_file=made_file,
        made_table=TABLE not in old.data,
    )
    return Edit(new.encoded(), entry)


def _update(
    old: ConfigText, current: Mapping[str, Any], values: Mapping[str, Any], record: ConfigEntry, file: Path
) -> Edit:
    wanted, theirs = merged(values, record.values, current)
    notes = (f"[{TABLE}.{SERVER}] keeps your {', '.join(theirs)}",) if theirs else ()
    if wanted == dict(current):
        return Edit(old.encoded(), record.model_copy(update={"values": dict(values)}), notes)
    table = _table_text(wanted, old.line_end)
    fresh = _edited(record.text, wanted) if record.instead_of else _same_frame(record.text, table)
    line = one_line(old.text)
    ways = [
        *_swaps(old.text, record.text, fresh),
        lambda: without_lines(old.text, table),
        *_swaps(old.text, line, _edited(line, wanted) if line else ""),
        lambda: _with_key(old, wanted),
    ]
    new = _first_that_holds(old, wanted, ways, file)
    text = fresh if fresh and fresh in new.text else ""
    return Edit(new.encoded(), record.model_copy(update={"values": dict(values), "text": text}), notes)


def _block(old: ConfigText, values: Mapping[str, Any]) -> str:
    """What is added at the end; the file then ends as it did, with or without a line end."""
    end = old.line_end
    table = _table_text(values, end)
    if not old.text:
        return table
    if old.text.endswith("\n"):
        return end + table
    return end + end + table.removesuffix(end)


def _same_frame(before: str, table: str) -> str:
    """A table's text with the blank lines before and the line end after it that the earlier text had."""
    if not before:
        return ""
    lead = before[: len(before) - len(before.lstrip("\r\n"))]
    return lead + (table if before.endswith("\n") else table.rstrip("\r\n"))


def _table_text(values: Mapping[str, Any], end: str) -> str:
    document = tomlkit.document()
    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, _item(value))
    document.add(TABLE, tomlkit.table(is_super_table=True).add(SERVER, table))
    return tomlkit.dumps(document).replace("\n", end)


def _item(value: Any) -> Any:
    if isinstance(value, list) and len(value) > 4:
        array = tomlkit.array()
        for first in range(0, len(value), _ITEMS_IN_LINE):
            array.add_line(*value[first : first + _ITEMS_IN_LINE])
        array.add_line(indent="")
        return array
    return tomlkit.item(value)


def _with_key(old: ConfigText, values: Mapping[str, Any]) -> str:
    """Set our keys one by one where the table is, in whatever form the person or Codex has written it."""
    document = tomlkit.parse(old.text)
    servers: Any = document.setdefault(TABLE, tomlkit.table(is_super_table=True))
    entry = servers.get(SERVER)
    if entry is None:
        inline = tomlkit.inline_table()
        inline.update(values)
        servers[SERVER] = inline
    else:
        for key in [key for key in entry if key not in values]:
            del entry[key]
        for key, value in values.items():
            if key not in entry or entry[key] != value:
                entry[key] = value
    return line_ends(old.text, tomlkit.dumps(document))


def _ways_out(old: ConfigText, record: ConfigEntry) -> Iterator[Callable[[], str]]:
    if record.text and old.text.count(record.text) == 1:
        yield lambda: old.text.replace(record.text, record.instead_of)
    yield lambda: without_lines(old.text)
    line = one_line(old.text)
    yield from _swaps(old.text, line, _edited(line, None) if line else "")
    yield lambda: _without_key(old, record, whole=record.made_table)
    yield lambda: _without_key(old, record, whole=False)


def _swaps(text: str, before: str, after: str) -> list[Callable[[], str]]:
    """The way that puts `after` in the place of `before`, where that is known and there once."""
    return [lambda: text.replace(before, after)] if before and after and text.count(before) == 1 else []


def _edited(line: str, values: Mapping[str, Any] | None) -> str:
    """That line with our entry in it, or without one; empty when it cannot be edited."""
    try:
        document = tomlkit.parse(line)
        servers: Any = document[TABLE]
        if values is None:
            del servers[SERVER]
        else:
            servers[SERVER] = tomlkit.inline_table()
            servers[SERVER].update(values)
        return tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError):
        return ""


def _without_key(old: ConfigText, record: ConfigEntry, whole: bool) -> str:
    document = tomlkit.parse(old.text)
    servers: Any = document[TABLE]
    del servers[SERVER]
    if whole and not servers:
        del document[TABLE]
    return line_ends(old.text, tomlkit.dumps(document))


def _first_that_holds(
    old: ConfigText,
    wanted: Mapping[str, Any] | None,
    ways: Iterable[Callable[[], str]],
    file: Path,
) -> ConfigText:
    """The first way whose result says the same as before but for our entry, which says what is wanted."""
    before = _foreign(old.data)
    for way in ways:
        try:
            new = with_text(old, way(), file)
        except (BatonError, TOMLKitError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
        says = server_in(new.data)
        fits = says is None if wanted is None else says == dict(wanted)
        if (
            fits
            and _foreign(new.data) == before
            and remarks(new.text) >= remarks(old.text, says_ours=wanted is None)
        ):
            return new
    what = f"remove [{TABLE}.{SERVER}] from it by hand" if wanted is None else "use --no-config"
    raise InvalidInput(
        f"{file}: cannot be edited without touching what is yours; {what}; nothing was changed"
    )


def _foreign(data: Mapping[str, Any]) -> str:
    """Everything that is not ours, with the order of its keys; as text, since NaN equals nothing."""
    rest = copy.deepcopy(dict(data))
    servers = rest.get(TABLE)
    if isinstance(servers, dict):
        servers.pop(SERVER, None)
        if not servers:
            # An empty table says nothing, and whether it is there may be our doing.
            del rest[TABLE]
    return repr(rest)
