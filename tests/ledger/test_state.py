"""Where state may live, and how private it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput, StateUnavailable
from baton.ledger import state as state_module
from baton.ledger.filesystem import NETWORK, type_in_mountinfo
from baton.ledger.state import StateFolder

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 0:27 / /home/person/local\\040disk rw shared:5 master:2 - xfs /dev/sdb rw
32 22 0:28 / /mnt rw - ext4 /dev/sdc rw
33 32 0:29 / /mnt rw - fuse.sshfs host:/ rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib", "ext4"),
        ("/home", "nfs4"),
        ("/home/person/.local/state/baton", "nfs4"),
        ("/home/person/local disk/baton", "xfs"),
        ("/homes/person", "ext4"),
        ("/mnt/x", "fuse.sshfs"),
    ],
)
def test_deepest_and_last_mount_decides_the_file_system(folder: str, kind: str) -> None:
    assert type_in_mountinfo(MOUNTS, folder) == kind


def test_network_file_systems_are_told_from_local_ones() -> None:
    network = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "lustre",
        "fuse.sshfs",
        "fuse.rclone",
        "fuse.glusterfs",
        "davfs",
    ]
    local = [
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "tmpfs",
        "overlay",
        "apfs",
        "f2fs",
        "bcachefs",
        "fuse.gocryptfs",
        "fuseblk",
        "virtiofs",
    ]
    assert [kind for kind in network if not NETWORK.fullmatch(kind)] == []
    assert [kind for kind in local if NETWORK.fullmatch(kind)] == []


def test_state_on_a_network_is_refused_before_anything_is_made(
    test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "network_type", lambda folder: "nfs4")
    with pytest.raises(StateUnavailable, match=r"network file system \(nfs4\)"):
        StateFolder.find({"BATON_STATE": str(test_root / "far"), "HOME": str(test_root)})
    assert not (test_root / "far").exists()


def test_folders_are_made_for_the_person_alone(test_root: Path) -> None:
    before = os.umask(0)
    try:
        state = StateFolder.find({"BATON_STATE": str(test_root / "deep" / "state"), "HOME": str(test_root)})
    finally:
        os.umask(before)
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in (state.root, *state.folders()))


def test_folder_that_others_may_read_is_closed_to_them(test_root: Path) -> None:
    (test_root / "state").mkdir(mode=0o755)
    assert StateFolder.find().root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", ["home/.codex/baton", "home/.codex", "codex/x"])
def test_state_below_a_codex_home_is_refused(place: str, test_root: Path) -> None:
    env = {"HOME": str(test_root / "home"), "CODEX_HOME": str(test_root / "codex")}
    with pytest.raises(InvalidInput, match="lies in the Codex home"):
        StateFolder.find({**env, "BATON_STATE": str(test_root / place)})
    link = test_root / "link"
    (test_root / place).mkdir(parents=True, exist_ok=True)
    link.symlink_to(test_root / place)
    with pytest.raises(InvalidInput, match="lies in the Codex home"):
        StateFolder.find({**env, "BATON_STATE": str(link)})


def test_state_beside_a_codex_home_is_fine(test_root: Path) -> None:
    env = {"HOME": str(test_root), "CODEX_HOME": str(test_root / "codex")}
    assert StateFolder.find({**env, "BATON_STATE": str(test_root / "codex-state")}).root.is_dir()


def test_relative_place_is_refused() -> None:
    with pytest.raises(InvalidInput, match="absolute path, not 'state'"):
        StateFolder.find({"BATON_STATE": "state"})


def test_default_follows_the_given_environment_alone(
    test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert StateFolder.find({"HOME": str(test_root)}).root == test_root / ".local/state/baton"
    xdg = {"HOME": str(test_root), "XDG_STATE_HOME": str(test_root / "xdg")}
    assert StateFolder.find(xdg).root == test_root / "xdg/baton"
    assert StateFolder.find({**xdg, "XDG_STATE_HOME": "relative"}).root == test_root / ".local/state/baton"


@pytest.mark.parametrize("place", ["/dev/null/state", "/proc/state"])
def test_place_that_cannot_be_made_is_said_in_one_line(place: str) -> None:
    with pytest.raises(StateUnavailable, match="cannot be used") as said:
        StateFolder.find({"BATON_STATE": place})
    assert "\n" not in str(said.value)


def test_folder_of_another_user_is_refused(test_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(StateUnavailable, match="belongs to another user"):
        StateFolder.find()
