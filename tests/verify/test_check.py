"""A check runs in the sandbox, on the checkout alone, and its end is told apart by kind."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from baton.codex.entries import MAX_BESIDE
from baton.contract.evidence import CheckStatus
from baton.process.child import Finished
from baton.verify import check
from baton.verify.place import CheckLimits
from verify.bench import PYTHON, Bench, worker_home

pytestmark = [pytest.mark.anyio, pytest.mark.codex]


async def test_passing_and_failing_commands_are_told_apart_by_exit_status(bench: Bench) -> None:
    passed = await bench.check("true")
    failed = await bench.check([PYTHON, "-c", "import sys; print('so it is'); sys.exit(3)"])
    assert (passed.status, passed.exit_code, passed.sandboxed) == (CheckStatus.PASSED, 0, True)
    assert (failed.status, failed.exit_code, failed.sandboxed) == (CheckStatus.FAILED, 3, True)
    assert "so it is" in failed.tail
    assert failed.detail == "exit status 3"


async def test_missing_program_is_not_a_failure(bench: Bench) -> None:
    result = await bench.check("no-such-program --version")
    assert result.status is CheckStatus.MISSING
    assert "no-such-program" in (result.detail or "")


async def test_exit_status_of_cargo_and_of_a_missing_command_are_not_confused(bench: Bench) -> None:
    result = await bench.check([PYTHON, "-c", "raise SystemExit(101)"])
    assert (result.status, result.exit_code) == (CheckStatus.FAILED, 101)


async def test_what_cannot_be_looked_at_is_no_end_of_the_run(bench: Bench) -> None:
    too_long = "/" + "x" * 300  # an error for whoever asks what is there, as a folder of another user is
    bench.base = {**bench.base, "PYENV_ROOT": too_long, "CARGO_HOME": too_long, "GRADLE_USER_HOME": too_long}
    assert (await bench.check("true")).status is CheckStatus.PASSED
    missing = await bench.check(f".{too_long}/run")
    assert missing.status is CheckStatus.MISSING


async def test_what_keeps_a_check_from_being_prepared_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr(check, "toolchain", locked)
    result = await bench.check("true")
    assert result.status is CheckStatus.REFUSED
    assert "could not be prepared" in (result.detail or "") and "/somewhere" in (result.detail or "")


async def test_script_whose_interpreter_is_missing_is_missing(bench: Bench) -> None:
    bench.ours("run", "#!/no/such/interpreter\n", 0o755)
    result = await bench.check("./run")
    assert result.status is CheckStatus.MISSING
    assert "/no/such/interpreter" in (result.detail or "")


async def test_script_of_the_tree_runs_relative_to_the_workspace(bench: Bench) -> None:
    bench.ours("gradlew", '#!/bin/sh\necho "arguments: $*"\n', 0o755)
    result = await bench.check("./gradlew test --offline")
    assert result.status is CheckStatus.PASSED
    assert "arguments: test --offline" in bench.output(result)


async def test_leading_assignments_reach_the_program(bench: Bench) -> None:
    result = await bench.check(f"FOO='a b' {PYTHON} -c 'import os; print(os.environ[\"FOO\"])'")
    assert bench.output(result).strip() == "a b"


async def test_secrets_of_the_environment_do_not_reach_a_check(bench: Bench) -> None:
    names = ("DATABASE_URL", "GH_PAT", "MYSQL_PWD", "SENTRY_DSN", "PASSPHRASE", "OPENAI_API_KEY")
    bench.base = {**bench.base, **dict.fromkeys(names, "sesame"), "WANTED": "yes"}
    result = await bench.check("env", extra_names=("WANTED",))
    output = bench.output(result)
    assert "sesame" not in output
    assert "WANTED=yes" in output
    assert "GIT_AUTHOR_NAME=Test Author" in output
    assert "CODEX_HOME" not in output
    assert "HTTP_PROXY=" not in output.upper()


async def test_keys_that_codex_reads_from_its_home_do_not_reach_a_check(bench: Bench) -> None:
    keys = Path(os.environ["CODEX_HOME"]) / ".env"
    keys.write_text("CORP_KEY=sesame\n")
    home = worker_home(bench.state, keys.parent)
    bench.sandbox = replace(bench.sandbox, home=home)
    assert (home.path / ".env").readlink() == keys
    result = await bench.check("env")
    assert result.status is CheckStatus.PASSED
    assert "sesame" not in bench.output(result)


async def test_home_and_temporary_folder_are_its_own(bench: Bench) -> None:
    code = "import os, tempfile; print(os.path.expanduser('~')); print(tempfile.gettempdir())"
    result = await bench.check([PYTHON, "-c", code])
    home, temporary = bench.output(result).splitlines()
    assert Path(home).is_relative_to(bench.state.scratch)
    assert Path(temporary).is_relative_to(bench.state.scratch)


async def test_reader_of_standard_input_sees_its_end_at_once(bench: Bench) -> None:
    result = await bench.check("cat")
    assert result.status is CheckStatus.PASSED


async def test_nothing_outside_the_checkout_can_be_written(bench: Bench, test_root: Path) -> None:
    outside = test_root / "outside"
    result = await bench.check([PYTHON, "-c", f"open({str(outside)!r}, 'w')"])
    assert result.status is CheckStatus.FAILED
    assert not outside.exists()
    inside = await bench.check([PYTHON, "-c", "open('made', 'w').write('x')"])
    assert inside.status is CheckStatus.PASSED
    assert (bench.place.worktree / "made").read_text() == "x"


async def test_no_file_of_the_checkout_gets_a_second_name_outside_of_it(bench: Bench) -> None:
    """Who watches the checkout's folders would not be told of what is written under that."""
    slot = bench.place.worktree.parent
    bench.place = replace(bench.place, shells=(slot,))
    bench.ours("old", "old")
    try_all = f"ln old {bench.place.scratch}/alias; ln old {slot}/alias; ln old alias && echo within"
    result = await bench.check(["sh", "-c", try_all])
    assert "within" in bench.output(result)
    assert (bench.place.worktree / "old").stat().st_nlink == 2, bench.output(result)


async def test_persons_tree_state_and_codex_home_cannot_be_read(bench: Bench) -> None:
    bench.theirs("secret.txt", "sesame")
    (bench.state.root / "other").mkdir()
    (bench.state.root / "other" / "secret").write_text("sesame")
    codex = Path(os.environ["CODEX_HOME"]) / "auth.json"
    codex.write_text("sesame")
    for path in (bench.person / "secret.txt", bench.state.root / "other" / "secret", codex):
        result = await bench.check(["cat", f"{path.parent}/./{path.name}"])
        assert result.status is CheckStatus.FAILED, path
        assert "sesame" not in bench.output(result)


async def test_local_server_works_and_nothing_else_is_reached(bench: Bench) -> None:
    bench.ours(
        "serve.py",
        """
import asyncio, http.server, socket, sys, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read().decode())
asyncio.run(asyncio.sleep(0))
for address in (("127.0.0.1", int(sys.argv[1])), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, 2)
    except OSError:
        pass
print("tried")
""",
    )
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = await bench.check([PYTHON, "serve.py", str(listener.getsockname()[1])])
        # Asked of the listener: within the private network a port of the same number may well be open.
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert bench.output(result).splitlines() == ["hello", "tried"], result


async def test_check_ends_with_its_main_process_and_what_it_leaves_is_ended(bench: Bench) -> None:
    marker = f"left-{os.getpid()}-{time.monotonic_ns()}"
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', "
        f"{marker!r}], start_new_session=True); print('done')"
    )
    result = await bench.check([PYTHON, "-c", code])
    assert result.status is CheckStatus.PASSED
    assert result.seconds < 60
    assert not [each for each in psutil.process_iter(["cmdline"]) if marker in (each.info["cmdline"] or ())]


async def test_time_limit_ends_a_check(bench: Bench) -> None:
    result = await bench.check(
        [PYTHON, "-c", "import time; print('begun', flush=True); time.sleep(600)"],
        limits=CheckLimits(seconds=1.5),
    )
    assert result.status is CheckStatus.TIMED_OUT
    assert "1.5 s" in (result.detail or "")
    assert "begun" in bench.output(result)


async def test_output_limit_ends_a_check_and_keeps_what_fits(bench: Bench) -> None:
    result = await bench.check(
        [PYTHON, "-c", "while True: print('x' * 99)"], limits=CheckLimits(seconds=60, output_bytes=100_000)
    )
    assert result.status is CheckStatus.LIMIT
    assert result.output_bytes == 100_000
    assert len(bench.output(result)) == 100_000


async def test_memory_limit_ends_a_check(bench: Bench) -> None:
    hungry = "import time; kept = bytearray(400_000_000); time.sleep(600)"
    result = await bench.check(
        [PYTHON, "-c", hungry], limits=CheckLimits(seconds=60, memory_bytes=150_000_000)
    )
    assert result.status is CheckStatus.LIMIT
    assert "memory" in (result.detail or "")


async def test_whole_output_is_kept_and_the_failing_part_is_shown(bench: Bench) -> None:
    code = (
        "for n in range(20000): print('line', n)\n"
        "print('E   AssertionError: seven is not eight')\n"
        "for n in range(20000): print('line', n)\n"
        "raise SystemExit(1)"
    )
    result = await bench.check([PYTHON, "-c", code])
    assert "seven is not eight" in result.tail
    assert "line 19999" in result.tail
    assert len(result.tail) <= 2000
    assert bench.output(result).count("\n") == 40001


async def test_without_a_sandbox_nothing_runs_unless_the_person_allows_it(bench: Bench) -> None:
    refused = await bench.check("touch made", sandboxed=False)
    assert refused.status is CheckStatus.REFUSED
    assert not (bench.place.worktree / "made").exists()
    allowed = await bench.check("touch made", sandboxed=False, unsandboxed=(("touch",),))
    assert (allowed.status, allowed.sandboxed) == (CheckStatus.PASSED, False)
    assert "without the sandbox" in (allowed.detail or "")


async def test_permission_to_leave_the_sandbox_is_for_that_command_alone(bench: Bench) -> None:
    result = await bench.check("touch made", unsandboxed=(("docker", "compose"),))
    assert result.sandboxed is True


async def test_variables_of_the_task_never_reach_the_program_that_makes_the_sandbox(
    bench: Bench, test_root: Path
) -> None:
    spy = test_root / "spy-codex"
    seen = test_root / "seen"
    spy.write_text(f'#!/bin/sh\nenv > {seen}\nexec {bench.sandbox.binary.path} "$@"\n')
    spy.chmod(0o755)
    bench.sandbox = replace(bench.sandbox, binary=replace(bench.sandbox.binary, path=spy))
    bench.ours("node_modules/.bin/sh", "#!/bin/sh\n", 0o755)
    # The spy stands before the real program, which is what has to be readable inside.
    bench.place = replace(bench.place, readable=(bench.sandbox.binary.path.parent,))
    await bench.check("LD_PRELOAD=/evil.so true")
    outer = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
    assert "LD_PRELOAD" not in outer
    assert str(bench.place.worktree) not in outer["PATH"]


async def test_persons_tree_that_cannot_be_hidden_is_said(bench: Bench) -> None:
    for number in range(MAX_BESIDE + 10):
        bench.theirs(f"data/{number}", "x")
    bench.theirs("data/node_modules/x", "x")
    (bench.place.worktree / "data").mkdir()
    bench.share("data/node_modules")
    result = await bench.check(["cat", "data/node_modules/x"])
    assert result.status is CheckStatus.PASSED
    assert f"{bench.person} can be read" in (result.detail or "")


async def test_shared_folder_deep_in_a_tree_is_read_and_its_neighbours_are_not(
    bench: Bench,
) -> None:
    bench.theirs("packages/a/node_modules/x/index.js", "shared")
    for secret in ("packages/a/src.js", "packages/b/src.js", "top.js"):
        bench.theirs(secret, "sesame")
    (bench.place.worktree / "packages" / "a").mkdir(parents=True)
    bench.share("packages/a/node_modules")
    (bench.place.worktree / "look").write_text(
        f"#!/bin/sh\ncat packages/a/node_modules/x/index.js\ncd {bench.person}\n"
        "cat packages/a/src.js packages/b/src.js top.js\necho x > packages/a/node_modules/x/index.js\n"
    )
    (bench.place.worktree / "look").chmod(0o755)
    result = await bench.check("./look")
    assert bench.output(result).startswith("shared")
    assert "sesame" not in bench.output(result)
    assert (bench.person / "packages/a/node_modules/x/index.js").read_text() == "shared"


class _Launch:
    """A launch whose guard is killed so many times."""

    def __init__(self, kills: int, *, before_it_tells: bool) -> None:
        self.kills, self.before_it_tells, self.runs = kills, before_it_tells, 0

    async def run(self, *_: object, **__: object) -> Finished:
        self.runs += 1
        lost = self.runs <= self.kills
        if lost and self.before_it_tells:
            raise BlockingIOError
        ended = {"exit_code": None, "signal": 9} if lost else {"exit_code": 0, "signal": None}
        more = {"timed_out": False, "over_limit": None, "seconds": 0.1, "leftovers": 0, "survivors": 0}
        return Finished(**ended, **more, output_bytes=0, guard_lost=lost)


@pytest.mark.parametrize("before_it_tells", [True, False])
async def test_a_check_whose_guard_was_killed_is_run_once_more(
    before_it_tells: bool, test_root: Path
) -> None:
    launch = _Launch(1, before_it_tells=before_it_tells)
    log = test_root / "log"
    log.touch()
    done = await check._to_its_end(launch, ("true",), {}, CheckLimits(), log)
    assert (done.exit_code, launch.runs) == (0, 2)


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_sandbox_that_could_not_be_set_up_is_tried_once_more(failures: int, test_root: Path) -> None:
    log = test_root / "log"

    class Launch(_Launch):
        async def run(self, *_: object, **__: object) -> Finished:
            log.write_text("bwrap: cannot" if self.runs < failures else "")
            done = await super().run()
            return replace(done, exit_code=1) if log.read_text() else done

    launch = Launch(0, before_it_tells=False)
    done = await check._to_its_end(launch, ("true",), {}, CheckLimits(), log)
    assert (done.exit_code, launch.runs) == (failures - 1, 2)


async def test_check_cannot_put_another_file_in_the_place_of_its_output(bench: Bench) -> None:
    secret = bench.state.root / "secret"
    secret.write_text("sesame")
    swap = (
        "import os, pathlib, sys; home = pathlib.Path(os.environ['HOME']).parent\n"
        "for folder in (home, home.parent):\n"
        "    for name in [*os.listdir(folder), 'output', home.name + '.output']:\n"
        "        try:\n"
        "            path = folder / name\n"
        "            path.is_dir() or path.unlink(missing_ok=True) or path.symlink_to(sys.argv[1])\n"
        "        except OSError: pass\n"
        "print('swapped'); sys.exit(1)"
    )
    result = await bench.check([PYTHON, "-c", swap, str(secret)])
    assert (result.status, result.tail.strip()) == (CheckStatus.FAILED, "swapped")
    assert bench.output(result) == "swapped\n"


VIEW = """
import os, socket
def family(number):
    try:
        socket.socket(number).close()
    except OSError as error:
        return error.errno
for line in open("/proc/self/mountinfo"):
    before, _, after = line.partition(" - ")
    print(*before.split()[3:6], *after.split())
print(*(line for line in open("/proc/self/status") if line.startswith(("Cap", "No", "Sec", "Uid", "Gid"))))
print(os.listdir("/proc/self/fd"), os.getsid(0), sorted(os.environ), [family(number) for number in range(48)])
"""


async def test_helper_by_itself_makes_the_sandbox_that_codex_makes(bench: Bench) -> None:
    bench.theirs("deps/file", "content")
    bench.share("deps")
    seen = []
    for direct in (True, False):
        bench.sandbox = replace(bench.sandbox, direct=direct)
        result = await bench.check([PYTHON, "-c", VIEW])
        assert result.status is CheckStatus.PASSED, result
        seen.append(bench.output(result).replace(f"check-{bench.runs}", "check-N"))
    assert seen[0] == seen[1]
    assert str(bench.place.worktree) in seen[0]
