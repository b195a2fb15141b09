"""The front: answers Codex at once with the standard library alone, and becomes the full server when needed.

Codex starts a server for every thread and waits about a second for its tools, while most threads never call
one. So this program answers `initialize`, `tools/list` and `ping` from a file rendered with the package. The
first request beyond those is left to `baton.runtime.handover`, which makes this process the full server.

Runs on Python 3.8 and later, far enough to say what is missing. Start it with `-I -S`: nothing here needs a
site folder, and without one it starts in half the time.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Lists that the full server serves only where the surface has them; it refuses them with this same error.
LISTS = ("resources/list", "resources/templates/list", "prompts/list")
MODERN = "io.modelcontextprotocol/protocolVersion"


class Front:
    """One client's conversation up to the hand-over."""

    def __init__(self):
        with open(os.path.join(ROOT, "server", "baton", "tools", "surface.json"), "rb") as file:
            surface = json.loads(file.read())
        self.versions = surface["versions"]
        self.worker = os.environ.get("BATON_WORKER") == "1"
        self.answers = surface["worker"] if self.worker else surface
        groups = () if self.worker else switched_on()
        if groups:
            self.answers = surface["consult"]
            told = surface["instructions"][" ".join(groups)]
            self.answers["initialize"] = {**self.answers["initialize"], "instructions": told}
            tools = [tool for name in groups for tool in surface["further"].get(name, ())]
            if tools:
                self.answers["tools"] = {
                    **self.answers["tools"],
                    "tools": self.answers["tools"]["tools"] + tools,
                }
            for name in groups:
                for method, added in surface["furtherLists"].get(name, {}).items():
                    listed = self.answers["lists"][method]
                    for key, entries in added.items():
                        listed[key] = listed[key] + entries
        self.hello = None
        """The client's `initialize` as it came, for the full server."""
        self.initialized = None
        """The client's `notifications/initialized`, once it came."""

    def answer(self, line):
        """The reply to one line: bytes, b"" where none is due, None when only the full server can reply."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return b""
        if not isinstance(message, dict):
            return b""
        method, number = message.get("method"), message.get("id")
        if number is None or method is None:
            if method == "notifications/initialized":
                self.initialized = line
            return b""
        params = table(message.get("params"))
        if method == "initialize" and self.hello is None:
            return self._initialize(number, params, line)
        if self.hello is None or MODERN in table(params.get("_meta")) or not isinstance(method, str):
            return None
        if method == "tools/list":
            return reply(number, self.answers["tools"])
        if method == "ping":
            return reply(number, {})
        if method in self.answers["lists"]:
            return reply(number, self.answers["lists"][method])
        if method in LISTS or self.worker:
            return refuse(number, -32601, "Method not found", method)
        return None

    def _initialize(self, number, params, line):
        version, client = params.get("protocolVersion"), params.get("clientInfo")
        complete = (
            isinstance(version, str)
            and isinstance(params.get("capabilities"), dict)
            and isinstance(client, dict)
            and isinstance(client.get("name"), str)
            and isinstance(client.get("version"), str)
        )
        if not complete:
            return refuse(number, -32602, "Invalid request parameters", "")
        self.hello = line
        result = dict(self.answers["initialize"])
        if version in self.versions:
            result["protocolVersion"] = version
        return reply(number, result)


def switched_on():
    """The optional groups that the person switched on; their policy is read only when it speaks of one."""
    home = os.environ.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
    try:
        with open(os.path.join(home, "baton", "policy.toml"), "rb") as file:
            if b"consult" not in file.read():
                return ()
    except OSError:
        return ()
    reach_package()
    from baton.runtime.groups import enabled_groups

    return enabled_groups(os.environ)


def reach_package():
    """Make the package importable."""
    # The installed plugin is not this program's to write in.
    sys.dont_write_bytecode = True
    folder = os.path.join(ROOT, "server")
    if folder not in sys.path:
        sys.path.insert(0, folder)


def table(value):
    """A member of a message as it should be: nothing where it is no object."""
    return value if isinstance(value, dict) else {}


def reply(number, result):
    """A JSON-RPC answer as one line."""
    return encode({"jsonrpc": "2.0", "id": number, "result": result})


def refuse(number, code, message, data):
    """A JSON-RPC error as one line."""
    return encode({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message, "data": data}})


def encode(message):
    """A message as one line of UTF-8."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def write(data):
    """Write all of `data` to the client."""
    while data:
        data = data[os.write(1, data) :]


def main():
    """Serve stdin and stdout until the client closes."""
    front = Front()
    rest = b""
    while True:
        chunk = os.read(0, 65536)
        if not chunk:
            return
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for position, line in enumerate(lines):
            answer = front.answer(line)
            if answer is None:
                reach_package()
                from baton.runtime.handover import hand_over

                # Comes back only when the client has left.
                hand_over(front, ROOT, lines[position:], rest)
                return
            write(answer)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
