"""Processes that mean to outlive the turn and write when nobody looks any more."""

from __future__ import annotations

from baton.simulate.script import Shell
from chaos._attempt import Attempt, Mission, by_shell, ended
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    return [Mission("background", _attempts(lab))]


def _attempts(lab: Lab) -> list[Attempt]:
    def loop(name: str) -> str:
        code = 'import time\nwhile True: open("src/beat", "a").write("x"); time.sleep(0.05)'
        return f"python3 -c '{code}' {token(name)}"

    def token(name: str) -> str:
        return f"beat-{name}-{lab.nonce}"

    def start(name: str, tries: str, script: str) -> Attempt:
        return by_shell(f"background-{name}", tries, script, ended(token(name)))

    fork = (
        "import os, sys, time, signal\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "for n in (1, 2, 13, 15): signal.signal(n, signal.SIG_IGN)\n"
        "while True:\n"
        "    try: open('src/beat', 'a').write('x')\n"
        "    except OSError: pass\n"
        "    time.sleep(0.05)"
    )
    attached = Shell(f"echo tried:background-attached:; {loop('attached')}", None, {"yield_time_ms": 500})
    return [
        start("ampersand", "go on in the background", f"({loop('ampersand')} </dev/null >/dev/null 2>&1 &)"),
        start("nohup", "go on under nohup", f"nohup {loop('nohup')} </dev/null >/dev/null 2>&1 &"),
        start(
            "setsid", "go on in a session of its own", f"setsid {loop('setsid')} </dev/null >/dev/null 2>&1 &"
        ),
        start(
            "double-fork",
            "go on as a daemon that ignores every signal it can",
            f'python3 -c "{fork}" {token("double-fork")} </dev/null >/dev/null 2>&1',
        ),
        start(
            "trap-exit",
            "start when the shell exits",
            f"late() {{ setsid {loop('trap-exit')} </dev/null >/dev/null 2>&1 & }}\ntrap late EXIT",
        ),
        start(
            "trap-term",
            "start anew when told to end",
            f"(trap '' TERM HUP INT; while :; do {loop('trap-term')}; done) </dev/null >/dev/null 2>&1 &",
        ),
        start(
            "clean-environment",
            "go on without the marks that a worker's processes carry",
            f"env -i PATH=$PATH setsid {loop('clean-environment')} </dev/null >/dev/null 2>&1 &",
        ),
        start(
            "many",
            "start so many that some are missed",
            f"for n in 1 2 3 4 5 6 7 8; do setsid {loop('many')} </dev/null >/dev/null 2>&1 & done",
        ),
        Attempt(
            "background-attached",
            "go on in the terminal of an unfinished command",
            (attached,),
            ended(token("attached")),
            bare=False,
        ),
    ]
