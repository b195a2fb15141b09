"""The snapshot is the workspace's bytes on disk, and taking it leaves no trace."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput, Unsupported
from baton.ledger.state import StateFolder
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import locate
from baton.workspace.repository import PrivateRepository
from workspace.person import Person, footprint, on_disk

BASE = "refs/runs/r1/base"


def everything_is_there(repo) -> None:
    """Every object that a ref reaches is readable, without the help of any index."""
    repo.run(["rev-list", "--objects", "--all"])
    done = repo.run(["fsck", "--full", "--strict", "--no-dangling"], ok=(0, 1, 2, 4, 8))
    assert b"missing" not in done.stdout + done.stderr
    assert b"broken" not in done.stdout + done.stderr


def test_holds_tracked_changed_untracked_deleted_and_staged_states_as_on_disk(
    person, open_repository, content
):
    person.write("src/a.py", "a = 2\n")
    person.write("src/new.py", "new\n")
    person.write("build/out.o", "ignored")
    person.write("x.log", "ignored")
    (person.root / "src/b.py").unlink()
    person.write("staged.txt", "staged\n")
    person.git("add", "staged.txt")
    person.write("staged.txt", "on disk\n")
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    expected = {
        p: v for p, v in on_disk(person.root).items() if not p.startswith(b"build/") and p != b"x.log"
    }
    assert content(repo, taken.commit) == expected
    assert taken.head == person.git("rev-parse", "HEAD").decode()
    assert repo.run(["rev-parse", taken.commit + "^"]).stdout.decode().strip() == taken.head
    assert repo.resolve(BASE) == taken.commit


def test_leaves_every_file_of_the_repository_byte_for_byte_with_its_time_stamp(person, open_repository):
    person.write("src/a.py", "a = 2\n")
    person.write("staged.txt", "staged\n")
    person.git("add", "staged.txt")
    os.utime(person.root / "src/b.py", (1, 1))  # a stat that a refresh of their index would mend
    before = footprint(person.root)
    repo = open_repository(person)
    for _ in range(2):
        repo.snapshot(BASE, "r1")
    worktree = repo.add_worktree("r1-1", repo.snapshot(BASE, "r1").commit)
    (worktree.root / "src/a.py").write_text("worker\n")
    captured = repo.capture(worktree, BASE, "refs/runs/r1/tasks/t/1", person.root.parent / "aside")
    repo.merge(BASE, BASE, captured.commit, "m", "refs/runs/r1/merge/1")
    assert footprint(person.root) == before
    assert person.git("for-each-ref", "--format=%(refname)").splitlines() == [
        b"refs/baton/pin/r1",
        b"refs/heads/main",
    ]


def test_a_second_snapshot_sees_every_kind_of_later_change(person, open_repository, content):
    repo = open_repository(person)
    first = repo.snapshot(BASE)
    assert repo.snapshot(BASE) == first
    (person.root / "src/b.py").unlink()
    repo.snapshot(BASE)
    person.write("src/b.py", "b = 1\n")  # back again: their listing never changed
    assert repo.snapshot(BASE).tree == first.tree
    os.chmod(person.root / "src/a.py", 0o755)
    person.write("later.txt", "later\n")
    assert content(repo, repo.snapshot(BASE).commit) == on_disk(person.root)
    (person.root / "later.txt").unlink()
    (person.root / "later.txt").mkdir()
    person.write("later.txt/inside", "x")
    shutil.rmtree(person.root / "src")
    person.write("src", "a file now")
    assert content(repo, repo.snapshot(BASE).commit) == on_disk(person.root)
    (person.root / "src").unlink()
    person.link("src", "bin")
    assert content(repo, repo.snapshot(BASE).commit) == on_disk(person.root)


def test_what_changes_while_the_list_of_paths_stays_the_same(person, open_repository, content):
    repo = open_repository(person)
    repo.snapshot(BASE)

    def same_as_anew() -> None:
        seen = content(repo, repo.snapshot(BASE).commit)
        for cache in (repo.path / "indexes").glob("snapshot*"):
            cache.unlink()
        assert seen == content(repo, repo.snapshot(BASE).commit)

    def edit() -> None:
        person.write("src/a.py", "other\n")
        os.chmod(person.root / "src/b.py", 0o755)

    def link() -> None:
        (person.root / "src/b.py").unlink()
        person.link("src/b.py", "a.py")

    def folder_behind_an_ignored_link() -> None:
        (person.root / "src").rename(person.root.parent / "moved")
        (person.root / "src").symlink_to(person.root.parent / "moved")

    def nested() -> None:
        (person.root / "src").unlink()
        (person.root / "bin/run").unlink()
        Person.init(person.root / "bin/run").write("x", "y")

    (person.root / ".git/info/exclude").write_text("/src\n/bin/run\n")
    for act in (edit, link, folder_behind_an_ignored_link, nested):
        act()
        same_as_anew()
    (person.root / "bin/run").rename(person.root.parent / "away")
    same_as_anew()


def test_a_tracked_folder_replaced_by_a_link_is_recorded_as_a_link(person, open_repository, content):
    outside = person.root.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("not ours")
    shutil.rmtree(person.root / "src")
    person.link("src", str(outside))
    repo = open_repository(person)
    held = content(repo, repo.snapshot(BASE).commit)
    assert held == on_disk(person.root)
    assert b"src/a.py" not in held


def test_survives_amend_reset_branch_deletion_and_pruning_in_the_persons_repository(
    person, open_repository, content
):
    person.git("checkout", "-q", "-b", "topic")
    person.write("src/topic.py", "topic\n" * 50)
    person.commit("topic")
    person.write("staged.txt", "only in their index\n")
    person.git("add", "staged.txt")
    person.write("loose.txt", "untracked\n")
    repo = open_repository(person)
    first = repo.snapshot(BASE, "r1")
    held = content(repo, first.commit)
    person.git("rm", "-q", "--cached", "staged.txt")
    (person.root / "staged.txt").unlink()
    person.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended")
    person.write("second.txt", "second\n")
    person.commit("second")
    second = repo.snapshot("refs/runs/r1/now", "r1")
    held_second = content(repo, second.commit)
    person.git("reset", "-q", "--hard", "HEAD~2")
    person.git("checkout", "-q", "main")
    person.git("branch", "-D", "topic")
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("gc", "-q", "--prune=now")
    everything_is_there(repo)
    assert content(repo, first.commit) == held
    assert content(repo, second.commit) == held_second
    again = repo.add_worktree("r1-1", first.commit)
    assert on_disk(again.root) == held


def test_objects_that_vanished_since_an_earlier_run_are_read_from_disk_again(
    person, open_repository, content
):
    person.write("kept.txt", "kept on disk\n")
    person.commit("kept")
    repo = open_repository(person)
    repo.snapshot(BASE, "r1")
    repo.unpin("r1")
    person.git("reset", "-q", "HEAD~1")  # kept.txt stays on disk, untracked
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("gc", "-q", "--prune=now")
    repo.delete_ref(BASE)
    taken = repo.snapshot("refs/runs/r2/base", "r2")
    assert content(repo, taken.commit)[b"kept.txt"] == ("100644", b"kept on disk\n")
    everything_is_there(repo)


def test_what_only_their_index_holds_is_copied(person, open_repository):
    person.write("staged.txt", "staged and on disk alike\n")
    person.git("add", "staged.txt")
    repo = open_repository(person)
    repo.snapshot(BASE, "r1")
    oid = person.git("hash-object", "staged.txt").decode()
    assert repo.missing([oid], borrow=False) == []


def test_unborn_head_and_empty_repository(tmp_path, open_repository, content):
    person = Person.init(tmp_path / "unborn")
    repo = open_repository(person)
    empty = repo.snapshot(BASE, "r1")
    assert empty.head is None
    assert content(repo, empty.commit) == {}
    worktree = repo.add_worktree("r1-1", empty.commit)
    assert on_disk(worktree.root) == {}
    person.write("a", "1")
    person.git("add", "a")
    person.write("b", "2")
    taken = repo.snapshot(BASE, "r1")
    assert content(repo, taken.commit) == on_disk(person.root)
    assert repo.run(["rev-list", "--count", taken.commit]).stdout.strip() == b"1"
    everything_is_there(repo)


def test_sha256_repository(tmp_path, open_repository, content):
    person = Person.init(tmp_path / "sha256", "--object-format=sha256")
    person.write("a", "1")
    person.commit()
    person.write("b", "2")
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    assert len(taken.commit) == 64
    assert content(repo, taken.commit) == on_disk(person.root)
    worktree = repo.add_worktree("r1-1", taken.commit)
    (worktree.root / "c").write_text("3")
    captured = repo.capture(worktree, taken, "refs/runs/r1/tasks/t/1", tmp_path / "aside")
    assert [change.path for change in captured.changes] == [b"c"]


def test_conversions_of_the_persons_git_change_nothing(tmp_path, open_repository, content):
    person = Person.init(tmp_path / "converted")
    person.git("config", "core.autocrlf", "true")
    person.git("config", "core.safecrlf", "true")
    person.git("config", "filter.shout.clean", "touch ran-clean; tr a-z A-Z")
    person.git("config", "filter.shout.smudge", "touch ran-smudge; tr A-Z a-z")
    person.git("config", "filter.shout.required", "true")
    person.write(
        ".gitattributes",
        "*.up filter=shout\n*.id ident\n*.u16 text working-tree-encoding=UTF-16\n*.txt text eol=crlf\n",
    )
    person.write("w.up", "lower\n")
    person.write("i.id", "$Id$\n")
    person.write("e.u16", "text\n".encode("utf-16"))
    person.write("crlf.txt", b"one\r\ntwo\r\n")
    person.write("big.lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    person.git("config", "core.safecrlf", "false")
    person.commit()
    person.git("config", "core.safecrlf", "true")
    for marker in person.root.glob("ran-*"):
        marker.unlink()
    person.write("mixed.txt", b"a\nb\r\n")
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    assert content(repo, taken.commit) == on_disk(person.root)
    worktree = repo.add_worktree("r1-1", taken.commit)
    assert on_disk(worktree.root) == on_disk(person.root)
    captured = repo.capture(worktree, taken, "refs/runs/r1/tasks/t/1", tmp_path / "aside")
    assert captured.changes == ()
    assert not list(person.root.glob("ran-*"))


def test_odd_names_modes_and_links(tmp_path, open_repository, content):
    person = Person.init(tmp_path / "odd")
    names = [
        b"with space",
        b"new\nline",
        b'quo"te',
        b"back\\slash",
        b"tab\t",
        b"not-utf8-\xff\xfe",
        "é".encode(),
        "e\u0301".encode(),
        b"-dash",
        b":(glob)*",
        b"Case",
        b"case",
        b"#hash",
        b"!bang",
        b"con",
        b"git~1",
        b"trail.",
    ]
    for number, name in enumerate(names):
        person.write(b"dir/" + name, str(number), 0o755 if number % 2 else 0o644)
    person.link(b"to\nnowhere", b"no/where\xff")
    person.git("config", "core.protectNTFS", "false")
    person.commit()
    person.write(b"untracked-\xfe\n", "u")
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    assert content(repo, taken.commit) == on_disk(person.root)
    assert on_disk(repo.add_worktree("r1-1", taken.commit).root) == on_disk(person.root)


def test_flags_of_their_index_do_not_hide_what_is_on_disk(person, open_repository, content):
    person.git("update-index", "--assume-unchanged", "src/a.py")
    person.git("update-index", "--skip-worktree", "src/b.py")
    person.write("src/a.py", "edited, assumed unchanged\n")
    person.write("src/b.py", "edited, skipped\n")
    person.write("intent", "to add\n")
    person.git("add", "-N", "intent")
    repo = open_repository(person)
    assert content(repo, repo.snapshot(BASE).commit) == on_disk(person.root)


def test_an_unfinished_merge_is_read_from_disk(person, open_repository, content):
    person.git("checkout", "-q", "-b", "other")
    person.write("src/a.py", "theirs\n")
    person.commit()
    person.git("checkout", "-q", "main")
    person.write("src/a.py", "ours\n")
    person.commit()
    person.git("merge", "other", ok=False)
    assert person.git("ls-files", "-u")
    repo = open_repository(person)
    held = content(repo, repo.snapshot(BASE).commit)
    assert held == on_disk(person.root)
    assert b"<<<<<<<" in held[b"src/a.py"][1]


def test_their_index_lock_is_neither_waited_for_nor_taken(person, open_repository, content):
    (person.root / ".git/index.lock").write_text("")
    repo = open_repository(person)
    assert content(repo, repo.snapshot(BASE, "r1").commit) == on_disk(person.root)
    assert (person.root / ".git/index.lock").read_text() == ""


def test_executable_bits_come_from_their_index_where_the_disk_cannot_say(person, open_repository, content):
    person.git("config", "core.fileMode", "false")
    os.chmod(person.root / "bin/run", 0o644)
    os.chmod(person.root / "src/a.py", 0o755)
    repo = open_repository(person)
    for _ in range(2):
        held = content(repo, repo.snapshot(BASE).commit)
        assert held[b"bin/run"][0] == "100755"
        assert held[b"src/a.py"][0] == "100644"


def test_ignore_case_setting_does_not_merge_two_names(person, open_repository, content):
    person.git("config", "core.ignoreCase", "true")
    person.write("Readme", "one")
    person.write("README", "two")
    person.git("-c", "core.ignoreCase=false", "add", "-A")
    repo = open_repository(person)
    held = content(repo, repo.snapshot(BASE).commit)
    assert (held[b"Readme"][1], held[b"README"][1]) == (b"one", b"two")


def test_repositories_inside_are_left_out_and_said(person, open_repository, content):
    inner = Person.init(person.root / "vendor/inner")
    inner.write("x", "1")
    inner.commit()
    Person.init(person.root / "empty-inner")
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    assert sorted(taken.nested) == [b"empty-inner", b"vendor/inner"]
    assert any("vendor/inner" in note for note in taken.notes)
    assert not any(path.startswith((b"vendor", b"empty")) for path in content(repo, taken.commit))


def test_the_persons_own_ignore_rules_hold(person, open_repository, content, own_home):
    (own_home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/.ignore\n")
    (own_home / ".ignore").write_text("*.secret\n")
    (person.root / ".git/info/exclude").write_text("private/\n")
    person.write("k.secret", "s")
    person.write("private/x", "s")
    repo = open_repository(person)
    taken = repo.snapshot(BASE)
    assert content(repo, taken.commit).keys().isdisjoint({b"k.secret", b"private/x"})
    worktree = repo.add_worktree("r1-1", taken.commit)
    (worktree.root / "w.secret").write_text("s")
    captured = repo.capture(worktree, taken, "refs/runs/r1/tasks/t/1", person.root.parent / "aside")
    assert (captured.changes, captured.ignored) == ((), (b"w.secret",))


def test_git_variables_of_the_environment_are_ignored(
    person, open_repository, content, monkeypatch, tmp_path
):
    other = Person.init(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    repo = open_repository(person)
    assert content(repo, repo.snapshot(BASE, "r1").commit) == on_disk(person.root)
    assert not (tmp_path / "index").exists()


def test_hooks_monitors_and_aliases_of_the_repository_never_run(person, open_repository, tmp_path):
    ran = tmp_path / "ran"
    script = f"#!/bin/sh\necho x >> {ran}\nexit 1\n"
    for hook in ("reference-transaction", "post-checkout", "post-index-change", "pre-auto-gc"):
        person.write(f".git/hooks/{hook}", script, 0o755)
    person.write("monitor", script, 0o755)
    person.git("config", "core.fsmonitor", str(person.root / "monitor"))
    person.git("config", "core.pager", str(person.root / "monitor"))
    ran.unlink(missing_ok=True)
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    repo.add_worktree("r1-1", taken.commit)
    repo.unpin("r1")
    assert not ran.exists()


def test_plain_folder_with_its_own_ignore_rules(tmp_path, open_repository, content):
    folder = tmp_path / "plain"
    person = Person(folder)
    person.write("a.txt", "a")
    person.write("sub/b.txt", "b", 0o755)
    person.write("out/c.bin", "c")
    person.write(".gitignore", "out/\n")
    person.link("l", "a.txt")
    repo = open_repository(folder)
    before = footprint(folder)
    taken = repo.snapshot(BASE, "r1")
    assert footprint(folder) == before
    assert taken.head is None
    assert content(repo, taken.commit) == {p: v for p, v in on_disk(folder).items() if p != b"out/c.bin"}
    person.write("a.txt", "changed")
    (folder / "l").unlink()
    assert content(repo, repo.snapshot(BASE).commit)[b"a.txt"] == ("100644", b"changed")
    repo.unpin("r1")


def test_a_plain_folder_beyond_the_limits_is_refused_with_a_way_out(tmp_path, open_repository):
    folder = tmp_path / "plain"
    for number in range(6):
        Person(folder).write(f"f{number}", "x" * 100)
    with pytest.raises(InvalidInput, match="more than 5 files"):
        open_repository(folder, Limits(plain_folder_files=5)).snapshot(BASE)
    with pytest.raises(InvalidInput, match=r"largest: f0"):
        open_repository(folder, Limits(plain_folder_bytes=500)).snapshot(BASE)


def test_too_much_untracked_content_is_refused_with_a_way_out(person, open_repository):
    for number in range(6):
        person.write(f"data/f{number}", "x" * 100)
    with pytest.raises(InvalidInput, match="more than 5 untracked files"):
        open_repository(person, Limits(new_files=5)).snapshot(BASE)
    with pytest.raises(InvalidInput, match="ignore what is not needed"):
        open_repository(person, Limits(new_bytes=500)).snapshot(BASE)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_named(person, open_repository):
    person.write("locked", "x", 0o000)
    with pytest.raises(Unsupported, match=r"locked in .* cannot be read"):
        open_repository(person).snapshot(BASE)


def test_special_files_do_not_stop_a_snapshot(person, open_repository, content):
    os.mkfifo(person.root / "pipe")
    repo = open_repository(person)
    assert b"pipe" not in content(repo, repo.snapshot(BASE).commit)


def test_a_result_can_be_fetched_with_the_printed_command(person, open_repository):
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    subprocess.run(shlex.split(repo.fetch_command(BASE)), cwd=person.root, check=True, capture_output=True)
    assert person.git("rev-parse", "FETCH_HEAD").decode() == taken.commit


def test_a_damaged_stat_cache_is_made_again(person, open_repository, content):
    repo = open_repository(person)
    repo.snapshot(BASE)
    (repo.path / "indexes" / "snapshot").write_bytes(b"DIRC damaged")
    assert content(repo, repo.snapshot(BASE).commit) == on_disk(person.root)


def test_a_lock_left_by_a_killed_git_is_no_obstacle(person, open_repository, content):
    repo = open_repository(person)
    repo.snapshot(BASE)
    (repo.path / "indexes" / "snapshot.lock").write_text("")
    person.write("src/a.py", "later\n")
    assert content(repo, repo.snapshot(BASE).commit) == on_disk(person.root)


def test_twenty_thousand_files(tmp_path, open_repository):
    person = Person.init(tmp_path / "large")
    for number in range(20_000):
        folder = person.root / f"d{number // 200}"
        if number % 200 == 0:
            folder.mkdir()
        (folder / f"f{number}").write_text(str(number))
    person.commit()
    (person.root / "d3/f700").write_text("changed")
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    assert [
        change.path for change in repo.changes("HEAD" if taken.head is None else taken.head, taken.commit)
    ] == [b"d3/f700"]
    assert len(repo.run(["ls-tree", "-r", "--name-only", taken.tree]).stdout.splitlines()) == 20_000
    # Only the changed file and the folders above it are Baton's own; the rest is borrowed.
    own = repo.run(["count-objects", "-v"], borrow=False).stdout.decode()
    assert int(own.split("count: ")[1].split()[0]) <= 4


def test_root_of_a_person_may_be_reached_by_a_link(person, tmp_path, open_repository, content):
    (tmp_path / "alias").symlink_to(person.root)
    direct, aliased = open_repository(person), open_repository(Path(tmp_path / "alias"))
    assert direct.path == aliased.path
    assert content(aliased, aliased.snapshot(BASE).commit) == on_disk(person.root)


def test_a_repository_that_cannot_be_written_is_copied_whole(person, open_repository, content):
    (person.root / ".git/refs/baton").write_text("in the way of any pin")
    repo = open_repository(person)
    taken = repo.snapshot(BASE, "r1")
    assert any("cannot be written" in note for note in taken.notes)
    oids = repo.run(["rev-list", "--objects", "--no-object-names", taken.commit]).stdout.decode().split()
    assert repo.missing(oids, borrow=False) == []
    assert content(repo, taken.commit) == on_disk(person.root)


def test_batons_own_state_inside_the_folder_is_no_part_of_it(tmp_path, content):
    git = Git.find()
    folder = tmp_path / "plain"
    Person(folder).write("a", "1")
    state = StateFolder.find({"BATON_STATE": str(folder / "st [a]te")})
    for _ in range(2):
        repo = PrivateRepository.open(state, locate(folder, git), git=git)
        taken = repo.snapshot(BASE)
        assert (content(repo, taken.commit), taken.nested) == ({b"a": ("100644", b"1")}, ())
        repo.add_worktree("r1-1", taken.commit)
