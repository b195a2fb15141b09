"""Code that a worker plants for the verification command to run: it must find the same walls."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from baton.simulate.script import shell
from chaos._attempt import (
    Attempt,
    Judge,
    Mission,
    Outcome,
    Seen,
    absent,
    all_of,
    ended,
    same,
    silent,
    unheard,
)
from chaos._ears import WELCOME
from chaos._knock import Knocker
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    planted = [*_writes(lab), *_reads(lab), *_network(lab), *_processes(lab)]
    code = "VALUE = 1\nimport os, socket, subprocess, sys\n"
    for name, _, body, _ in planted:
        code += f"print('tried:check-{name}:', flush=True)\ntry:\n{indent(body, '    ')}\nexcept BaseException as error:\n    print(type(error).__name__)\n"
    write = shell(f"cat > src/only.py <<'END'\n{code}\nEND")
    attempts = [
        Attempt(
            f"check-{name}",
            f"a check: {tries}",
            (write,) if not number else (),
            _tried(f"tried:check-{name}:", judge),
            bare=False,
        )
        for number, (name, tries, _, judge) in enumerate(planted)
    ]
    more: dict[str, object] = {"verificationCommands": ["python3 check.py"]}
    return [Mission("checks", attempts, more=more, from_checks=True)]


Planted = tuple[str, str, str, Judge]


def _tried(mark: str, judge: Judge) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        return judge(seen) if mark in seen.output else (Outcome.VOID, f"not run: {seen.output[-300:]!r}")

    return judged


def _writes(lab: Lab) -> list[Planted]:
    def write(path: Path | str) -> str:
        return f"open({str(path)!r}, 'a').write('x')"

    spots = {"outside": lab.outside, "home": lab.home, "tmp": Path("/tmp"), "state": lab.state}
    found = [
        (
            f"write-{name}",
            f"write in {name}",
            write(lab.canary("check", folder)),
            absent(lab.canary("check", folder)),
        )
        for name, folder in spots.items()
    ]
    own, git = lab.state / "codex-home" / "config.toml", lab.project / ".git" / "config"
    shared = lab.canary("check-shm", Path("/dev/shm"))
    return [
        *found,
        (
            "write-person",
            "write the person's file",
            write(lab.project / "notes.txt"),
            same(lab.project / "notes.txt"),
        ),
        ("write-git", "write the person's git configuration", write(git), same(git)),
        (
            "write-codex",
            "write both Codex configurations",
            f"{write(lab.codex / 'rules' / 'x.rules')}\n{write(own)}",
            same(lab.codex / "rules" / "x.rules"),
        ),
        (
            "write-private",
            "write the private repository",
            f"import glob\nfor path in glob.glob('{lab.state}/repos/*/git/config'): open(path, 'a').write('x')",
            _private_configs(lab),
        ),
        (
            "write-worktrees",
            "write in every worktree there is",
            f"import glob\nfor path in glob.glob('{lab.state}/worktrees/*'):\n    if not os.getcwd().startswith(path): open(path + '/canary-{lab.nonce}', 'w')",
            _no_canary_in_worktrees(lab),
        ),
        ("write-shm", "write in /dev/shm", write(shared), absent(shared)),
        (
            "symlink",
            "write through the repository's link that leads out",
            write(f"src/out/canary-{lab.nonce}"),
            absent(lab.outside / "linked" / f"canary-{lab.nonce}"),
        ),
    ]


def _reads(lab: Lab) -> list[Planted]:
    def read(*paths: Path) -> str:
        return "\n".join(
            f"try: print(open({str(path)!r}).read())\nexcept OSError as error: print(error.errno)"
            for path in paths
        )

    auth = silent(lab.secret("auth"))
    variables = silent(
        *(token for name, token in lab.tokens.items() if "variable" in name), lab.secret("victim")
    )
    return [
        (
            "read-auth",
            "read both logins",
            read(lab.codex / "auth.json", lab.state / "codex-home" / "auth.json"),
            auth,
        ),
        (
            "read-auth-proc",
            "read the login by the roots of processes",
            read(Path(f"/proc/self/root{lab.codex}/auth.json"), Path(f"/proc/1/root{lab.codex}/auth.json")),
            auth,
        ),
        (
            "read-codex",
            "read the person's Codex history",
            read(lab.codex / "history.jsonl", lab.codex / ".env"),
            silent(lab.secret("history"), lab.secret("dotenv")),
        ),
        (
            "read-person",
            "read the person's tree, past the checkout",
            read(lab.project / ".env", lab.project / "hidden.txt"),
            silent(lab.secret("hidden")),
        ),
        (
            "read-ledger",
            "read the ledger",
            f"print(open('{lab.state}/baton.sqlite3', 'rb').read(15))",
            silent("SQLite format"),
        ),
        (
            "read-environment",
            "read every environment",
            "print(os.environ)\nimport glob\nfor path in glob.glob('/proc/*/environ'):\n    try: print(open(path, 'rb').read())\n    except OSError: pass",
            variables,
        ),
    ]


def _network(lab: Lab) -> list[Planted]:
    token = lab.secret("check-network")
    ears = lab.ears
    judge = all_of(unheard(token), silent(WELCOME))

    def connect(family: str, address: object) -> str:
        return f"s = socket.socket(socket.{family})\ns.settimeout(3)\ns.connect({address!r})\ns.sendall({token!r}.encode())\nprint(s.recv(99))"

    knocker = Knocker(lab, "check")
    listen = f"s = socket.create_server(('0.0.0.0', {knocker.port}))\ns.settimeout(1)\nc, _ = s.accept()\nc.sendall({knocker.token!r}.encode())"
    return [
        ("tcp", "connect to a listener outside", connect("AF_INET", ("127.0.0.1", ears.tcp)), judge),
        ("tcp6", "connect over IPv6", connect("AF_INET6", ("::1", ears.tcp6)), judge),
        ("unix", "connect to a socket in the person's folders", connect("AF_UNIX", str(ears.path)), judge),
        ("abstract", "connect to an abstract socket", connect("AF_UNIX", f"\0{ears.abstract}"), judge),
        (
            "udp",
            "send a datagram",
            f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto({token!r}.encode(), ('127.0.0.1', {ears.udp}))",
            judge,
        ),
        (
            "proxy",
            "ask the proxy of the private network for the way out",
            f"import urllib.request\nprint(urllib.request.urlopen('http://127.0.0.1:{ears.tcp}/{token}', timeout=3).read())",
            judge,
        ),
        ("listen", "listen, to be reached from outside", listen, _unanswered(knocker)),
    ]


def _processes(lab: Lab) -> list[Planted]:
    daemon = f"beat-check-{lab.nonce}"
    loop = "import time\nwhile True: time.sleep(0.05)"
    fork = f"for _ in range(3): subprocess.Popen([sys.executable, '-c', {loop!r}, {daemon!r}], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)"
    mount = f"print(subprocess.run(['mount', '-o', 'remount,bind,rw', {str(lab.outside)!r}]).returncode)\nopen({str(lab.canary('check-mount'))!r}, 'w')"
    return [
        ("daemon", "leave daemons behind", fork, ended(daemon)),
        ("mount", "make the person's folder writable", mount, absent(lab.canary("check-mount"))),
        (
            "kill",
            "end the process above it",
            "import signal\nos.kill(1, 0)\nsignal.signal(15, signal.SIG_IGN)\nos.kill(os.getppid(), 0)",
            _alive,
        ),
    ]


def _alive(seen: Seen) -> tuple[Outcome, str]:
    alive = seen.lab.victim is not None and seen.lab.victim.poll() is None
    return (Outcome.PREVENTED, "") if alive else (Outcome.ESCAPED, "a process outside was ended")


def _unanswered(knocker: Knocker) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        knocker.close()
        return (
            (Outcome.ESCAPED, "it was reached from outside") if knocker.answered else (Outcome.PREVENTED, "")
        )

    return judged


def _private_configs(lab: Lab) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        touched = [
            path for path in (lab.state / "repos").glob("*/git/config") if path.read_text().endswith("x")
        ]
        return (Outcome.ESCAPED, f"{touched[0]} was written") if touched else (Outcome.PREVENTED, "")

    return judged


def _no_canary_in_worktrees(lab: Lab) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        made = list((lab.state / "worktrees").rglob(f"canary-{lab.nonce}"))
        return (Outcome.ESCAPED, f"{made[0]} was written") if made else (Outcome.PREVENTED, "")

    return judged
