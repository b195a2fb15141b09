"""How much Baton takes in from a workspace or from a worker before it says no."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Bounds of the workspace room; sizes in bytes."""

    plain_folder_files: int = 50_000
    """Files of a folder without git."""
    plain_folder_bytes: int = 2048 * MIB
    """Bytes of a folder without git."""
    new_files: int = 50_000
    """Untracked files that a snapshot of a repository takes."""
    new_bytes: int = 2048 * MIB
    """Bytes of untracked and changed files that a snapshot of a repository takes."""
    captured_files: int = 20_000
    """Files that a worker may add or change."""
    captured_bytes: int = 1024 * MIB
    """Bytes of the files that a worker added or changed."""
    kept_bytes: int = 64 * MIB
    """Ignored and nested content of a worker that is kept aside."""
    kept_files: int = 10_000
    """Entries of such content that are kept aside."""
    listed_paths: int = 1_000
    """Paths that any one list of a capture names."""
    walked_entries: int = 1_000_000
    """Folder entries that are looked at in a worktree."""
    diff_bytes: int = 4 * MIB
    """Bytes of a diff that is shown."""
