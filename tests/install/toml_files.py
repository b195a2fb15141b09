"""Generates valid config.toml files in every form that people and programs write them in."""

from __future__ import annotations

import tomllib

from hypothesis import strategies as st

_BARE = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})

_BASIC = _TEXT.map(lambda text: f'"{text.translate(_ESCAPES)}"')
_LITERAL = _TEXT.map(lambda text: "'" + text.replace("'", "") + "'")
_BLOCK = st.lists(_TEXT, max_size=3).map(lambda lines: '"""\n' + "\n".join(lines).translate(_ESCAPES) + '"""')
_LITERAL_BLOCK = st.lists(st.sampled_from(["[mcp_servers.baton]", "# no comment", "x = 1"]), max_size=3).map(
    lambda lines: "'''\n" + "\n".join(lines) + "'''"
)
_SCALAR = st.one_of(
    _BASIC,
    _LITERAL,
    _BLOCK,
    _LITERAL_BLOCK,
    st.integers(-(2**40), 2**40).map(str),
    st.sampled_from(["0xDEADBEEF", "0o17", "0b101", "1_000", "6.02e23", "-0.0", "inf", "-inf", "nan"]),
    st.sampled_from(["true", "false", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5", "07:32:00"]),
)
_KEY = st.one_of(_BARE, _BARE.map(lambda name: f'"{name} x"'), _BARE.map(lambda name: f"'{name}.y'"))
_COMMENT = _TEXT.map(lambda text: f"# {text}")
_ARRAY = st.lists(_SCALAR, max_size=4).flatmap(
    lambda items: st.sampled_from(
        [
            "[" + ", ".join(items) + "]",
            "[\n" + "".join(f"    {item}, # item\n" for item in items) + "]",
            "[ " + " , ".join(items) + " ]",
        ]
    )
)
_INLINE = st.dictionaries(_BARE, _SCALAR.filter(lambda text: "\n" not in text), max_size=3).map(
    lambda items: "{ " + ", ".join(f"{key} = {value}" for key, value in items.items()) + " }"
)
_VALUE = st.one_of(_SCALAR, _ARRAY, _INLINE)
_END = st.sampled_from(["", "  ", " # remark", "\t# é"])


@st.composite
def _pairs(draw: st.DrawFn, prefix: str = "") -> list[str]:
    """Lines of keys and values; every key is once there."""
    lines = []
    for key in draw(st.lists(_KEY, max_size=4, unique_by=lambda key: key.strip("\"'"))):
        lines += draw(st.lists(st.one_of(_COMMENT, st.just("")), max_size=2))
        dotted = draw(st.sampled_from(["", "", f".{'deep'}"]))
        equals = draw(st.sampled_from([" = ", "=", "   =  "]))
        lines.append(f"{prefix}{key}{dotted}{equals}{draw(_VALUE)}{draw(_END)}")
    return lines


@st.composite
def _table(draw: st.DrawFn, number: int) -> list[str]:
    name = draw(
        st.sampled_from(
            [f"t{number}", f"t{number}.inner", f'projects."/a b/{number}"', f"profiles.p{number}"]
        )
    )
    header = draw(
        st.sampled_from([f"[{name}]", f"[ {name} ]", f"[[list{number}]]", f"  [{name}]  # about it"])
    )
    repeat = 2 if header.startswith("[[") else 1
    lines: list[str] = []
    for _ in range(repeat):
        lines += [*draw(st.lists(_COMMENT, max_size=1)), header, *draw(_pairs())]
    return lines


_SERVERS = st.sampled_from(
    [
        [],
        [],
        ["[mcp_servers]"],
        ["mcp_servers = {}"],
        ['mcp_servers = { other = { command = "x" } } # inline'],
        ['mcp_servers.other.command = "x"', 'mcp_servers.other.args = ["y"] # dotted'],
        ["[mcp_servers.other]", 'command = "x" # mine', "[mcp_servers.other.env]", 'A = "b"'],
        ["[mcp_servers.zulu]", 'command = "x"', "", "[t90]", "a = 1", "[mcp_servers.alpha]", 'command = "y"'],
        ["[mcp_servers]", "# only a remark"],
        ['[mcp_servers."baton two"]', "command = 'x'"],
    ]
)


@st.composite
def config_files(draw: st.DrawFn) -> bytes:
    """A valid config.toml, as bytes."""
    servers = draw(_SERVERS)
    at_top = bool(servers) and not servers[0].startswith("[")
    lines = draw(_pairs("x_")) if draw(st.booleans()) else []
    lines = [line for line in lines if not line.startswith(('x_"', "x_'"))]
    if at_top:
        lines += servers
    tables = [draw(_table(number)) for number in range(draw(st.integers(0, 3)))]
    if servers and not at_top:
        tables.insert(draw(st.integers(0, len(tables))), servers)
    for table in tables:
        lines += [*draw(st.lists(st.just(""), max_size=2)), *table]
    text = "\n".join(lines)
    text += draw(st.sampled_from(["", "\n", "\n\n", "\n# the end"])) if text else ""
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    mark = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return mark + text.encode()


def is_valid(content: bytes) -> bool:
    """Whether it is TOML: the generator does not rule out every clash of names."""
    try:
        tomllib.loads(content.decode("utf-8-sig"))
    except ValueError:
        return False
    return True
