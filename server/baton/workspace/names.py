"""Paths as git has them: bytes, relative, separated by slashes, b"" for the folder itself."""


def join(folder: bytes, name: bytes) -> bytes:
    """The path of `name` in `folder`."""
    return folder + b"/" + name if folder else name


def parent(path: bytes) -> bytes:
    """The folder of `path`; b"" at the top."""
    return path.rpartition(b"/")[0]


def base(path: bytes) -> bytes:
    """The last name of `path`."""
    return path.rpartition(b"/")[2]


def parents(path: bytes) -> list[bytes]:
    """Every folder above `path`, outermost first, without the top."""
    names = path.split(b"/")
    return [b"/".join(names[:count]) for count in range(1, len(names))]


def below(path: bytes, folder: bytes) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return not folder or path == folder or path.startswith(folder + b"/")
