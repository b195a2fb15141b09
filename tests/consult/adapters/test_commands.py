"""The command lines and environments that contain each program, and what is refused before one is started."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.consult.adapters import adapter_of
from baton.consult.adapters.claude import same_model
from baton.consult.adapters.codex import is_strict
from baton.consult.adapters.copilot import native_program
from baton.consult.adapters.opencode import MAX_STEPS, provider_of
from baton.consult.adapters.output import structured_from
from baton.consult.adapters.protocol import Agent, CannotAsk, Exit, Invocation, Kill, Runtime
from baton.consult.sessions import database_of
from baton.contract.errors import InvalidInput
from baton.contract.reply import ReplyFailure
from consult.adapters.cases import SCHEMA
from consult.adapters.conftest import Desk, question

HELP = (
    "--setting-sources --strict-mcp-config --tools --permission-mode --json-schema --restricted"
    " --permission-prompts --disable-slash-commands"
)

SESSION = "11111111-1111-4111-8111-111111111111"

Script = Callable[[str, str], str]


@pytest.fixture
def program(script: Script) -> Callable[..., str]:
    """A fake program that tells a version and options; nothing else of it is used here."""

    def make(version: str = "2.1.332", options: str = HELP) -> str:
        told = {"--version": f"{version} (a program)", "--help": options}
        return script("program", f"import sys\nprint({told!r}[sys.argv[1]])")

    return make


def prepared(desk: Desk, agent: Agent, **more: Any) -> Invocation:
    adapter: Any = adapter_of(agent.runtime)
    invocation: Invocation = adapter.prepare(agent, question(**more), desk.places())
    return invocation


def option(invocation: Invocation, name: str) -> str | None:
    """The argument that follows an option."""
    argv = invocation.argv
    return argv[argv.index(name) + 1] if name in argv else None


class TestClaude:
    def test_has_no_tool_no_settings_no_servers_and_cannot_ask(self, desk: Desk, program: Any) -> None:
        made = prepared(desk, Agent("c", Runtime.CLAUDE, program(), "claude-sonnet-5", "low"))
        assert option(made, "--tools") == ""
        assert option(made, "--setting-sources") == ""
        assert option(made, "--permission-mode") == "dontAsk"
        assert option(made, "--permission-prompts") == "none"
        assert {"--strict-mcp-config", "--restricted", "--disable-slash-commands"} <= set(made.argv)
        assert (option(made, "--model"), option(made, "--effort")) == ("claude-sonnet-5", "low")
        assert "--fallback-model" not in made.argv
        assert "--bare" not in made.argv  # which obeys the settings of a project, and forgets a subscription
        assert list(made.cwd.iterdir()) == []
        assert made.stdin == b"What is 2+2?"
        assert "What is 2+2?" not in made.argv
        assert made.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
        assert made.env["CLAUDE_CODE_MAX_RETRIES"] == "1"
        assert made.env["API_TIMEOUT_MS"] == "60000"

    def test_an_older_one_is_contained_by_what_it_has(self, desk: Desk, program: Any) -> None:
        older = HELP.replace("--restricted --permission-prompts ", "")
        made = prepared(desk, Agent("c", Runtime.CLAUDE, program("2.1.197", older)))
        assert not {"--restricted", "--permission-prompts"} & set(made.argv)
        assert (option(made, "--tools"), option(made, "--setting-sources")) == ("", "")

    def test_one_that_cannot_be_contained_is_not_asked(self, desk: Desk, program: Any) -> None:
        ancient = HELP.replace("--setting-sources ", "")
        with pytest.raises(CannotAsk) as refused:
            prepared(desk, Agent("c", Runtime.CLAUDE, program("1.0.0", ancient)))
        assert refused.value.failure is ReplyFailure.SCOPE_NOT_ENFORCED

    def test_the_web_is_a_matter_of_both_agent_and_question(self, desk: Desk, program: Any) -> None:
        command = program()
        for allowed in (False, True):
            for wanted in (False, True):
                agent = Agent("c", Runtime.CLAUDE, command, web_search=allowed)
                made = prepared(desk, agent, web=wanted)
                assert option(made, "--tools") == ("WebSearch" if allowed and wanted else "")

    def test_conversations(self, desk: Desk, program: Any) -> None:
        agent = Agent("c", Runtime.CLAUDE, program())
        assert option(prepared(desk, agent), "--session-id")
        assert option(prepared(desk, agent, resume=SESSION), "--resume") == SESSION
        assert "--no-session-persistence" in prepared(desk, agent, keep_session=False).argv
        with pytest.raises(InvalidInput):
            prepared(desk, agent, resume="--dangerously-skip-permissions")

    def test_ceiling_and_schema_are_its_own_to_hold(self, desk: Desk, program: Any) -> None:
        made = prepared(desk, Agent("c", Runtime.CLAUDE, program()), max_cost=0.5, answer_schema=SCHEMA)
        assert option(made, "--max-budget-usd") == "0.5000"
        assert json.loads(option(made, "--json-schema") or "") == SCHEMA
        with pytest.raises(InvalidInput):
            prepared(
                desk,
                Agent("c", Runtime.CLAUDE, program()),
                answer_schema={"type": "object", "description": "x" * 100_001},
            )

    def test_only_its_own_variables_are_passed_beside_the_named_ones(self, desk: Desk, program: Any) -> None:
        given = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GH_TOKEN": "k", "MINE": "m", "OURS": "o"}
        agent = Agent("c", Runtime.CLAUDE, program(), extra={"env": ["MINE"]}, env_names=("OURS",))
        env = prepared(desk.with_env(**given), agent).env
        assert {name for name in given if name in env} == {"ANTHROPIC_API_KEY", "MINE", "OURS"}


class TestOpenCode:
    AGENT = Agent("o", Runtime.OPENCODE, model="deepseek/deepseek-chat")

    def test_every_tool_is_denied_at_the_top_and_in_the_agent(self, desk: Desk, program: Any) -> None:
        made = prepared(desk, Agent("o", Runtime.OPENCODE, program(), "deepseek/deepseek-chat"))
        config = json.loads(made.env["OPENCODE_CONFIG_CONTENT"])
        denied = {"*": "deny", "external_directory": "deny"}
        assert config["permission"] == config["agent"]["consult"]["permission"] == denied
        assert option(made, "--agent") == "consult"
        assert config["enabled_providers"] == ["deepseek"]  # never a service that nobody chose
        assert config["model"] == config["small_model"] == option(made, "--model") == "deepseek/deepseek-chat"
        assert (config["share"], config["snapshot"], config["autoupdate"]) == ("disabled", False, False)
        assert "--pure" in made.argv
        assert made.env["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"

    def test_the_person_s_configuration_is_out_of_sight_and_nothing_is_fetched(
        self, desk: Desk, program: Any
    ) -> None:
        here = desk.with_env(XDG_CONFIG_HOME="/home/person/.config", XDG_DATA_HOME="/home/person/data")
        made = prepared(here, Agent("o", Runtime.OPENCODE, program("1.18.33"), "deepseek/x"))
        config = Path(made.env["XDG_CONFIG_HOME"])
        assert config.is_relative_to(desk.house.state.root)
        assert made.env["XDG_DATA_HOME"] == "/home/person/data"  # where its logins are
        lock = json.loads((config / "opencode" / "package-lock.json").read_text())
        assert lock["packages"][""]["dependencies"] == {"@opencode-ai/plugin": "1.18.33"}
        assert (config / "opencode" / "node_modules").is_dir()

    def test_a_conversation_is_gone_on_with_in_the_folder_of_its_beginning(
        self, desk: Desk, program: Any
    ) -> None:
        """From another one OpenCode never ends."""
        agent = Agent("o", Runtime.OPENCODE, program(), "deepseek/x")
        database_of(desk.house, "ses_abc1").touch()
        first, second = prepared(desk, agent), prepared(desk, agent, resume="ses_abc1")
        assert option(first, "--dir") == option(second, "--dir") == str(first.cwd)
        assert option(second, "-s") == "ses_abc1"
        with pytest.raises(InvalidInput):
            prepared(desk, agent, resume="--auto")

    def test_a_conversation_that_is_not_kept_is_never_on_disk(self, desk: Desk, program: Any) -> None:
        agent = Agent("o", Runtime.OPENCODE, program(), "deepseek/x")
        assert prepared(desk, agent, keep_session=False).env["OPENCODE_DB"] == ":memory:"

    def test_a_conversation_has_a_database_of_its_own_under_its_name(self, desk: Desk, program: Any) -> None:
        agent, places = Agent("o", Runtime.OPENCODE, program(), "deepseek/x"), desk.places()
        adapter: Any = adapter_of(Runtime.OPENCODE)
        made = adapter.prepare(agent, question(), places)
        for suffix in ("", "-wal"):
            Path(made.env["OPENCODE_DB"] + suffix).write_text("kept" + suffix)
        places.stdout.write_text('{"type":"step_start","sessionID":"ses_abc1","part":{}}\n')
        places.stderr.touch()
        # Also where it was ended: what was said so far can be gone on with.
        adapter.read(agent, question(), places, Exit(None, 15, Kill(ReplyFailure.TURN_TIMEOUT, "late")))
        kept = Path(prepared(desk, agent, resume="ses_abc1").env["OPENCODE_DB"])
        assert kept == database_of(desk.house, "ses_abc1")
        assert (kept.read_text(), kept.with_name(f"{kept.name}-wal").read_text()) == ("kept", "kept-wal")
        with pytest.raises(CannotAsk) as gone:
            prepared(desk, agent, resume="ses_abc2")
        assert gone.value.failure is ReplyFailure.SESSION_GONE

    @pytest.mark.parametrize("model", [None, "", "deepseek", "/x", "deepseek/"])
    def test_a_model_is_never_left_to_it(self, model: str | None) -> None:
        with pytest.raises(InvalidInput, match="PROVIDER/MODEL"):
            provider_of(Agent("o", Runtime.OPENCODE, model=model))

    def test_only_the_key_of_its_provider_is_passed(self, desk: Desk, program: Any) -> None:
        given = {"DEEPSEEK_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENCODE_PERMISSION": '{"*":"allow"}'}
        agent = Agent("o", Runtime.OPENCODE, program(), "deepseek/x")
        env = prepared(desk.with_env(**given), agent).env
        assert [name for name in given if name in env] == ["DEEPSEEK_API_KEY"]

    def test_the_schema_goes_into_the_prompt(self, desk: Desk, program: Any) -> None:
        made = prepared(desk, Agent("o", Runtime.OPENCODE, program(), "a/b"), answer_schema=SCHEMA)
        assert json.dumps(SCHEMA, separators=(",", ":")).encode() in made.stdin

    def test_the_second_step_without_a_reason_ends_it(self) -> None:
        look = _watcher(Runtime.OPENCODE)
        unknown = b'{"type":"step_finish","part":{"reason":"unknown"}}'
        good = b'{"type":"step_finish","part":{"reason":"tool-calls"}}'
        words = b'{"type":"text","part":{"text":"step_finish unknown"}}'
        assert [look(line) for line in (unknown, words, good, words)] == [None] * 4
        kill = look(unknown)
        assert kill is not None and kill.failure is ReplyFailure.LOOP

    def test_far_too_many_steps_end_it(self) -> None:
        look = _watcher(Runtime.OPENCODE)
        step = b'{"type":"step_finish","part":{"reason":"tool-calls"}}'
        seen = [look(step) for _ in range(MAX_STEPS)]
        assert seen[:-1] == [None] * (MAX_STEPS - 1)
        assert seen[-1] is not None


class TestCopilot:
    def test_has_no_tool_no_instructions_and_a_home_of_its_own(self, desk: Desk, program: Any) -> None:
        here = desk.with_env(COPILOT_ALLOW_ALL="true", COPILOT_HOME="/home/person/.copilot", GH_TOKEN="t")
        made = prepared(here, Agent("p", Runtime.COPILOT, program(), "gpt-5.5", "low"))
        assert "--available-tools=none" in made.argv  # an empty list would offer them all
        assert {"--no-custom-instructions", "--disable-builtin-mcps", "--no-ask-user"} <= set(made.argv)
        assert {"--no-remote", "--no-remote-export", "--no-auto-update"} <= set(made.argv)
        assert not [word for word in made.argv if "allow-all" in word or "yolo" in word or "trust" in word]
        assert "COPILOT_ALLOW_ALL" not in made.env
        assert made.env["GH_TOKEN"] == "t"
        assert Path(made.env["COPILOT_HOME"]).is_relative_to(desk.house.state.root)
        assert "-p" not in made.argv  # with it standard input is passed over
        assert (option(made, "--model"), option(made, "--reasoning-effort")) == ("gpt-5.5", "low")
        assert list(made.cwd.iterdir()) == []

    def test_conversations(self, desk: Desk, program: Any) -> None:
        agent = Agent("p", Runtime.COPILOT, program())
        assert [word for word in prepared(desk, agent).argv if word.startswith("--session-id=")]
        # Not by `--session-id`, which would begin a new one under the id of one that is gone.
        assert f"--resume={SESSION}" in prepared(desk, agent, resume=SESSION).argv
        with pytest.raises(InvalidInput):
            prepared(desk, agent, resume="../../etc")

    def test_the_web_cannot_be_had_alone(self, desk: Desk, program: Any) -> None:
        agent = Agent("p", Runtime.COPILOT, program(), web_search=True)
        with pytest.raises(InvalidInput, match="web"):
            prepared(desk, agent, web=True)
        prepared(desk, agent)

    def test_the_tokens_of_a_conversation_that_goes_on_are_those_of_the_question(self, desk: Desk) -> None:
        """It tells the totals of the whole conversation."""
        adapter: Any = adapter_of(Runtime.COPILOT)
        agent, spent = Agent("p", Runtime.COPILOT), []
        for number, total in enumerate((100, 250, 400)):
            resume = SESSION if number else None
            places = desk.places()
            adapter.prepare(_with_command(agent), question(resume=resume), places)
            usage = {"inputTokens": total, "outputTokens": total // 10, "cacheReadTokens": number}
            metrics = {"modelMetrics": {"m": {"usage": usage}}}
            (places.scratch / "usage.json").write_text(json.dumps(metrics))
            places.stderr.touch()
            places.stdout.write_text(
                '{"type":"assistant.message","data":{"content":"four","toolRequests":[]}}\n'
                f'{{"type":"result","sessionId":"{SESSION}","exitCode":0}}\n'
            )
            spent.append(adapter.read(agent, question(resume=resume), places, Exit(0)).usage)
        assert [usage.input_tokens for usage in spent] == [100, 150, 150]
        assert [usage.output_tokens for usage in spent] == [10, 15, 15]

    def test_unknown_former_totals_make_the_usage_unknown(self, desk: Desk) -> None:
        adapter: Any = adapter_of(Runtime.COPILOT)
        places = desk.places()
        (places.scratch / "usage.json").write_text('{"modelMetrics":{"m":{"usage":{"inputTokens":9}}}}')
        places.stdout.write_text(f'{{"type":"result","sessionId":"{SESSION}","exitCode":0}}\n')
        places.stderr.touch()
        reply = adapter.read(Agent("p", Runtime.COPILOT), question(resume=SESSION), places, Exit(0))
        assert reply.usage is None

    def test_the_native_program_is_found_behind_npm_s_loader(self, test_root: Path) -> None:
        package = test_root / "node_modules" / "@github"
        loader, shim = package / "copilot" / "npm-loader.js", test_root / "copilot"
        for folder in ("copilot", "copilot-linux-x64", "copilot-linux-arm64", "copilot-darwin-arm64"):
            (package / folder).mkdir(parents=True)
            (package / folder / "copilot").write_text("")
            (package / folder / "copilot").chmod(0o755)
        loader.write_text("")
        shim.symlink_to(loader)
        assert native_program(shim).parent.parent == package
        assert native_program(shim).parent.name.startswith("copilot-")
        assert native_program(package / "copilot-linux-x64" / "copilot").name == "copilot"


class TestAntigravity:
    """Against a fake program: the real one is not to be had."""

    def agent(self, command: str) -> Agent:
        return Agent("a", Runtime.ANTIGRAVITY, command, extra={"uncontained": True})

    def test_is_only_asked_where_the_person_says_so(self, desk: Desk, script: Script) -> None:
        command = script("agy", "print('four')")
        reply = desk.ask(Agent("a", Runtime.ANTIGRAVITY, command), question())
        assert reply.failure is ReplyFailure.SCOPE_NOT_ENFORCED
        assert desk.told == []
        assert desk.ask(self.agent(command), question()).text == "four"

    def test_an_answer_says_that_nothing_contained_it(self, desk: Desk, script: Script) -> None:
        reply = desk.ask(self.agent(script("agy", "import sys\nprint(sys.argv[1:])")), question())
        assert reply.text == "['-p', 'What is 2+2?']"
        assert "not contained" in reply.detail
        assert (reply.model, reply.attested, reply.usage) == (None, False, None)

    def test_its_silence_is_bounded(self, desk: Desk, script: Script) -> None:
        command = script("agy", "import time\ntime.sleep(600)")
        assert desk.ask(self.agent(command), question(idle_seconds=1.0)).failure is ReplyFailure.IDLE_TIMEOUT

    def test_saying_nothing_is_no_answer(self, desk: Desk, script: Script) -> None:
        assert desk.ask(self.agent(script("agy", "")), question()).failure is ReplyFailure.NO_ANSWER

    def test_a_question_that_does_not_fit_is_refused(self, desk: Desk, script: Script) -> None:
        reply = desk.ask(self.agent(script("agy", "")), question("x" * 100_001))
        assert reply.failure is ReplyFailure.BAD_REQUEST


@pytest.mark.parametrize("runtime", Runtime)
def test_an_unknown_setting_is_refused_with_the_nearest(desk: Desk, program: Any, runtime: Runtime) -> None:
    agent = Agent("a", runtime, program(), "a/b", extra={"envv": ["X"]})
    reply = desk.ask(agent, question())
    assert reply.failure is ReplyFailure.BAD_REQUEST
    assert "settings.envv" in reply.detail
    if runtime is not Runtime.CODEX:
        assert "did you mean 'env'?" in reply.detail


@pytest.mark.parametrize("runtime", Runtime)
def test_a_program_that_is_not_there_is_told(desk: Desk, runtime: Runtime) -> None:
    extra = {"uncontained": True} if runtime is Runtime.ANTIGRAVITY else {}
    model = None if runtime is Runtime.ANTIGRAVITY else "a/b"
    reply = desk.ask(Agent("a", runtime, "/nowhere/program", model, extra=extra), question())
    assert reply.failure is ReplyFailure.NOT_INSTALLED
    assert "/nowhere/program" in reply.detail


@pytest.mark.parametrize("runtime", Runtime)
def test_an_empty_question_is_refused(desk: Desk, program: Any, runtime: Runtime) -> None:
    extra = {"uncontained": True} if runtime is Runtime.ANTIGRAVITY else {}
    model = None if runtime is Runtime.ANTIGRAVITY else "a/b"
    reply = desk.ask(Agent("a", runtime, program(), model, extra=extra), question(" \n"))
    assert reply.failure is ReplyFailure.BAD_REQUEST


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("claude-sonnet-5", "claude-sonnet-5", True),
        ("claude-sonnet-5", "claude-sonnet-5-20261001", True),
        ("claude-sonnet-5", "anthropic/claude-sonnet-5@20261001", True),
        ("us.anthropic.claude-sonnet-5-20261001-v1:0", "claude-sonnet-5", True),
        ("claude-sonnet-5-20261001", "claude-sonnet-5", True),
        ("claude-sonnet-5[1m]", "claude-sonnet-5", True),
        ("claude-sonnet-5", "claude-sonnet-5-1", False),
        ("claude-sonnet-5", "claude-sonnet-55", False),
        ("claude-sonnet-5", "claude-haiku-5", False),
        ("claude-opus-5-5", "claude-opus-5", False),
        ("sonnet", "claude-sonnet-5-20261001", True),
        ("opus", "claude-sonnet-5", False),
        ("default", "claude-anything-9", True),
    ],
)
def test_whether_the_model_that_answered_is_the_one_asked_for(asked: str, answered: str, same: bool) -> None:
    assert same_model(asked, answered) is same


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        ({"type": "object"}, False),
        ({**SCHEMA, "additionalProperties": True}, False),
        ({**SCHEMA, "required": []}, False),
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "array", "items": SCHEMA}, True),
        ({"type": "array", "items": {"type": "object"}}, False),
        ({"$ref": "#/$defs/x", "$defs": {"x": SCHEMA}}, False),
        ({**SCHEMA, "properties": {"answer": {"anyOf": [{"type": "object"}, {"type": "null"}]}}}, False),
    ],
)
def test_which_schema_the_service_takes_as_it_is(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```\nThat is it.', {"a": 1}),
        ('I think {"a": {"b": 2}} is it', {"a": {"b": 2}}),
        ("[1, 2]", [1, 2]),
        ("4", None),
        ("no", None),
        ("", None),
        (None, None),
        ("{" * 100_000, None),
    ],
)
def test_the_json_in_an_answer_is_found(text: str | None, found: Any) -> None:
    assert structured_from(text) == found


def _watcher(runtime: Runtime) -> Callable[[bytes], Any]:
    adapter: Any = adapter_of(runtime)
    watcher: Callable[[bytes], Any] = adapter.watcher()
    return watcher


def _with_command(agent: Agent) -> Agent:
    return Agent(agent.id, agent.runtime, "/bin/true")
