"""What a hard link comes to when its file is replaced as a whole, as every file of a person's is."""

from __future__ import annotations

from pathlib import Path


def hard_link_note(file: Path) -> str | None:
    """What to tell before the file is changed; None when it has no other name. Follows symbolic links."""
    try:
        names = file.stat().st_nlink
    except OSError:
        return None
    if names < 2:
        return None
    # Replaced as a whole, so that nobody ever reads half of it: that cannot keep a hard link.
    return (
        f"{file} is a hard link: its other names keep the text from before this change;"
        " link them anew, or make it a symbolic link, which stays one"
    )
