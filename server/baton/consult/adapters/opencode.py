"""OpenCode: one `opencode run` with every tool denied, its events as lines of JSON.

It asks the model for ever when an answer ends without a reason, and stays silent while it retries: both are
ended from here.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from baton.consult.adapters.output import (
    added,
    ended_badly,
    events,
    failed,
    failure_of,
    killed,
    money,
    number,
    one_line,
    structured_from,
    table,
    table_of,
    tail,
    text_of,
    usage,
    wait_of,
    with_schema,
)
from baton.consult.adapters.program import (
    empty_room,
    number_in,
    own_folder,
    program_of,
    prompt_bytes,
    version_of,
)
from baton.consult.adapters.protocol import (
    Agent,
    CannotAsk,
    Exit,
    Invocation,
    Kill,
    Places,
    Question,
    Reply,
    Runtime,
    Sees,
    Watcher,
)
from baton.consult.sessions import database_of, keep_database
from baton.contract.errors import InvalidInput
from baton.contract.evidence import Usage
from baton.contract.reply import ReplyFailure
from baton.engine.house import House

LOGIN = "opencode auth login"

AGENT = "consult"

MAX_STEPS = 40
"""Answers of the model in one question. Its own limit of steps does not hold."""

OFF: Mapping[str, str] = {
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
"""Nothing of a project, of another program or from the network is loaded."""

_TROUBLE = re.compile(r'message="stream error".*? error\.error="((?:[^"\\]|\\.)*)"')

_SESSION = re.compile(r"ses_[0-9A-Za-z]+")


@dataclass(frozen=True)
class OpenCode:
    """Sees only the question: its folder is empty and no tool is allowed but, when asked for, the web's."""

    runtime: Runtime = Runtime.OPENCODE
    sees: Sees = Sees.GIVEN
    web: bool = True

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        program = program_of(
            agent,
            places.house,
            "opencode",
            known={"provider": dict},
            names=key_names(provider_of(agent)),
            XDG_CONFIG_HOME=str(own_folder(places.house, self.runtime, "config")),
        )
        fill_config_home(places.house, number_in(version_of(program.path, places.house, program.env)))
        room = empty_room(places.house, self.runtime)
        database = _database(question, places)
        env = {
            **program.env,
            **OFF,
            "OPENCODE_DB": ":memory:" if database is None else str(database),
            "OPENCODE_CONFIG_CONTENT": json.dumps(configuration(agent, question)),
        }
        argv = [
            *("run", "--pure", "--agent", AGENT, "--model", str(agent.model)),
            *(("--variant", agent.effort) if agent.effort else ()),
            *("--format", "json", "--title", "consult", "--print-logs", "--log-level", "ERROR"),
            # From any other folder it would answer a resumed conversation without printing, and never end.
            *("--dir", str(room)),
            *(("-s", _session(question.resume)) if question.resume is not None else ()),
        ]
        prompt = with_schema(question.prompt, question.answer_schema)
        return replace(program, env=env).asked(argv, room, prompt_bytes(prompt))

    def watcher(self) -> Watcher:
        return _Watch().look

    def read(self, agent: Agent, question: Question, places: Places, ended: Exit) -> Reply:
        heard = _Heard()
        for event in events(places.stdout):
            heard.take(event)
        reply = heard.reply(agent, question)
        if question.resume is None and heard.session is not None and _SESSION.fullmatch(heard.session):
            with contextlib.suppress(OSError):  # then it cannot be gone on with, and that is said when tried
                keep_database(places.house, heard.session, places.scratch / "opencode.db")
        if ended.kill is not None:
            return _killed(reply, ended, places.stderr)
        if heard.error is not None:
            return _service_failure(reply, heard.error, places.stderr)
        if ended.code != 0:
            badly = ended_badly(replace(reply, text=None), ended, places.stderr, tail(places.stderr))
            return replace(badly, required_action=LOGIN if badly.failure is ReplyFailure.AUTH else None)
        match heard.reason:
            case "length":
                return failed(reply, ReplyFailure.CUT, "the answer ended at the model's limit of length")
            case "content-filter":
                return failed(reply, ReplyFailure.REFUSED, "a content filter ended the answer")
            case "stop" if reply.text is not None:
                return reply
        why = f"its last step ended with {heard.reason!r}" if heard.reason else "it took no step"
        return failed(replace(reply, text=None), ReplyFailure.NO_ANSWER, f"OpenCode gave no answer: {why}")


def provider_of(agent: Agent) -> str:
    """The provider in the agent's model. Raises `InvalidInput` without one.

    A model is never left to OpenCode: without a login it would take one of a service nobody chose.
    """
    provider, slash, name = (agent.model or "").partition("/")
    if not (provider and slash and name):
        raise InvalidInput(
            f"agents.{agent.id}.model: OpenCode needs PROVIDER/MODEL, got {agent.model!r};"
            " opencode models lists them"
        )
    return provider


def key_names(provider: str) -> tuple[str, ...]:
    """Variables in which the provider's programs look for a login that the person has set up there."""
    own = re.sub(r"[^A-Z0-9]", "_", provider.upper())
    more = {"google": ("GEMINI_API_KEY", "GOOGLE_*"), "amazon-bedrock": ("AWS_*",), "azure": ("AZURE_*",)}
    return (f"{own}_API_KEY", *more.get(provider, ()))


def configuration(agent: Agent, question: Question) -> dict[str, Any]:
    """The whole configuration of one question, with every tool denied twice.

    At the top as well as in the agent, because an agent that OpenCode does not find is replaced by one that
    may do everything.
    """
    provider = provider_of(agent)
    allowed = {"webfetch": "allow", "websearch": "allow"} if question.web and agent.web_search else {}
    permission = {"*": "deny", **allowed, "external_directory": "deny"}
    own = agent.extra.get("provider")
    return {
        "share": "disabled",
        "autoupdate": False,
        "snapshot": False,
        "model": agent.model,
        "small_model": agent.model,
        "enabled_providers": [provider],
        **({"provider": {provider: dict(own)}} if own else {}),
        "permission": permission,
        "agent": {
            AGENT: {
                "mode": "primary",
                "description": "Answers one question.",
                "prompt": "You answer one question with what you are given.",
                "permission": permission,
            }
        },
    }


def fill_config_home(house: House, version: str | None) -> None:
    """See that OpenCode finds nothing to install in its configuration folder, which holds nothing else."""
    folder = own_folder(house, "opencode", "config", "opencode")
    own_folder(house, "opencode", "config", "opencode", "node_modules")
    lock = folder / "package-lock.json"
    wanted = json.dumps({"packages": {"": {"dependencies": {"@opencode-ai/plugin": version or "*"}}}})
    if not lock.exists() or lock.read_text(encoding="utf-8") != wanted:
        fresh = lock.with_name(f".lock-{version}")
        fresh.write_text(wanted, encoding="utf-8")
        fresh.replace(lock)


def _database(question: Question, places: Places) -> Path | None:
    """Where the conversation is kept; None when it is not to be. Raises `CannotAsk` for one that is gone.

    A new one has no name yet, and lies with the question until it has.
    """
    if question.resume is not None:
        kept = database_of(places.house, _session(question.resume))
        if not kept.exists():
            raise CannotAsk(ReplyFailure.SESSION_GONE, f"the conversation {question.resume} is not kept here")
        return kept
    return places.scratch / "opencode.db" if question.keep_session else None


def _session(named: str) -> str:
    if not _SESSION.fullmatch(named):
        raise InvalidInput(f"{named!r} is no conversation of OpenCode")
    return named


class _Watch:
    """Sees the endless loop: steps that end without a reason, or far too many of them."""

    def __init__(self) -> None:
        self._steps = 0
        self._unknown = 0

    def look(self, line: bytes) -> Kill | None:
        if b"step_finish" not in line:
            return None
        event = table_of(line) or {}
        if event.get("type") != "step_finish":
            return None
        self._steps += 1
        self._unknown += _reason(event) == "unknown"
        if self._unknown >= 2:
            return Kill(
                ReplyFailure.LOOP,
                "the model's answers end without a reason, and OpenCode asks again without end; it was ended",
            )
        if self._steps >= MAX_STEPS:
            return Kill(ReplyFailure.LOOP, f"no answer within {MAX_STEPS} steps; it was ended")
        return None


def _reason(event: Mapping[str, Any]) -> str | None:
    return text_of(table(event, "part").get("reason"))


@dataclass
class _Heard:
    """What the events told so far."""

    session: str | None = None
    texts: list[str] = field(default_factory=list)
    """Of the latest step."""
    reason: str | None = None
    error: Mapping[str, Any] | None = None
    tokens: list[Usage] = field(default_factory=list)
    cost: float | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        self.session = text_of(event.get("sessionID")) or self.session
        part = table(event, "part")
        match event.get("type"):
            case "step_start":
                self.texts.clear()
                self.reason = None
            case "text":
                text = text_of(part.get("text"))
                self.texts += [text] if text else []
            case "step_finish":
                self.reason = _reason(event)
                self._spent(part)
            case "error":
                self.error = table(event, "error")

    def _spent(self, part: Mapping[str, Any]) -> None:
        told, cache = table(part, "tokens"), table(part, "tokens", "cache")
        reasoning = number(told.get("reasoning"))
        spent = usage(
            number(told.get("input")),
            number(cache.get("read")),
            number(cache.get("write")),
            added(number(told.get("output")), reasoning),
            reasoning,
        )
        if spent is not None:
            self.tokens.append(spent)
        cost = money(part.get("cost"))
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def reply(self, agent: Agent, question: Question) -> Reply:
        text = "\n".join(self.texts) or None
        names = Usage.model_fields
        total = {name: added(*(getattr(spent, name) for spent in self.tokens)) for name in names}
        return Reply(
            text=text,
            structured=structured_from(text) if question.answer_schema is not None else None,
            session_id=self.session if question.keep_session or question.resume else None,
            # It tells nowhere which model answered; this is the one that it was made to ask.
            model=agent.model,
            attested=False,
            usage=Usage(**total) if self.tokens else None,
            cost=self.cost if self.tokens else None,
        )


def _killed(reply: Reply, ended: Exit, stderr: Path) -> Reply:
    """Ended by a deadline; its log tells what it had been trying in silence."""
    assert ended.kill is not None
    tried = _TROUBLE.findall(tail(stderr))
    if not tried or ended.kill.failure not in (ReplyFailure.IDLE_TIMEOUT, ReplyFailure.TURN_TIMEOUT):
        return killed(reply, ended)
    kill = Kill(failure_of(tried[-1]), f"{one_line(tried[-1])}; it kept trying: {ended.kill.detail}")
    return killed(reply, replace(ended, kill=kill))


def _service_failure(reply: Reply, error: Mapping[str, Any], stderr: Path) -> Reply:
    name, data = str(error.get("name")), table(error, "data")
    message = one_line(str(data.get("message") or name))
    status = number(data.get("statusCode"))
    log = tail(stderr)
    if "ProviderModelNotFoundError" in log or "ModelNotFound" in name:
        found = ReplyFailure.UNKNOWN_MODEL
        message = f"OpenCode does not know the model {reply.model}; opencode models lists them"
    elif name == "ProviderAuthError":
        found = ReplyFailure.AUTH
    elif name == "ContentFilterError":
        found = ReplyFailure.REFUSED
    else:
        found = failure_of(f"{message} {data.get('responseBody') or ''}", status)
    headers = {str(key).lower(): value for key, value in table(data, "responseHeaders").items()}
    wait = str(headers.get("retry-after") or "")
    return replace(
        reply,
        text=None,
        structured=None,
        failure=found,
        detail=message,
        retry_after=float(wait) if re.fullmatch(r"\d+(\.\d+)?", wait) else wait_of(message),
        required_action=LOGIN if found is ReplyFailure.AUTH else None,
    )
