"""A workers' home holds the person's way to the model and nothing else of theirs."""

from __future__ import annotations

import os
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from baton.codex.home import Login, WorkerHome, prepare_worker_home
from baton.contract.errors import InvalidInput
from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import say

CONFIG = """
model = "gpt-5.6-sol"
model_provider = "corp"
approval_policy = "never"
notify = ["spy"]

[model_providers.corp]
name = "Corp"
base_url = "https://models.example.invalid/v1"
wire_api = "responses"
env_key = "CORP_KEY"
env_http_headers = { "X-Team" = "CORP_TEAM" }
query_params = { version = "1" }
request_max_retries = 2
brand_new_key = "?"

[model_providers.other]
name = "Other"
experimental_bearer_token = "sesame"

[mcp_servers.spy]
command = "spy"

[projects."/"]
trust_level = "trusted"

[features]
respect_system_proxy = true
multi_agent = true

[permissions.mine.filesystem]
":root" = "write"
"""


@pytest.fixture
def person(test_root: Path) -> Path:
    return test_root / "home" / ".codex"


def prepare(root: Path, person: Path, env: dict[str, str] | None = None) -> WorkerHome:
    return prepare_worker_home(
        root / "state" / "codex-home", person, env or {}, temporary=root / "state" / "tmp"
    )


def config_of(home: WorkerHome) -> dict[str, object]:
    return tomllib.loads((home.path / "config.toml").read_text())


def test_only_the_way_to_the_model_is_taken_over(test_root: Path, person: Path) -> None:
    (person / "config.toml").write_text(CONFIG)
    home = prepare(test_root, person)
    config = config_of(home)
    assert config["model_provider"] == "corp"
    providers = config["model_providers"]
    assert isinstance(providers, dict)
    assert list(providers) == ["corp"]
    assert providers["corp"]["query_params"] == {"version": "1"}
    assert "brand_new_key" not in providers["corp"]
    assert home.left_out == ("model_providers.corp.brand_new_key",)
    text = (home.path / "config.toml").read_text()
    for foreign in ("sesame", "spy", "trusted", "mine", "approval_policy", "gpt-5.6-sol"):
        assert foreign not in text
    features = config["features"]
    assert isinstance(features, dict)
    assert features["respect_system_proxy"] is True
    assert features["multi_agent"] is False


def test_keys_of_the_provider_are_named_for_the_server_alone(test_root: Path, person: Path) -> None:
    (person / "config.toml").write_text(CONFIG)
    home = prepare(test_root, person)
    assert home.login is Login.PROVIDER
    assert home.env_names == ("CORP_KEY", "CORP_TEAM")


def test_login_file_is_linked_so_that_a_new_token_is_written_through(test_root: Path, person: Path) -> None:
    (person / "auth.json").write_text("{}")
    home = prepare(test_root, person)
    assert home.login is Login.FILE
    assert (home.path / "auth.json").readlink() == person / "auth.json"
    (home.path / "auth.json").write_text('{"new": 1}')
    assert (person / "auth.json").read_text() == '{"new": 1}'
    (person / "auth.json").unlink()
    home = prepare(test_root, person)
    assert home.login is Login.NONE
    assert not (home.path / "auth.json").is_symlink()
    assert "no login was found" in (home.why or "")


def test_failure_to_get_through_without_a_login_says_to_log_in(test_root: Path, person: Path) -> None:
    (person / "config.toml").write_text("")
    home = prepare(test_root, person)
    cut = TurnFailure(failure_class=FailureClass.NETWORK, message="Connection failed")
    told = home.explained(cut)
    assert told.message == "Connection failed; no login was found: run `codex login`"
    assert home.explained(told) == told
    crash = TurnFailure(failure_class=FailureClass.CRASH, message="Codex ended")
    assert home.explained(crash) == crash
    (person / "auth.json").write_text("{}")
    assert prepare(test_root, person).explained(cut) == cut


def test_key_in_the_environment_counts_as_a_login(test_root: Path, person: Path) -> None:
    home = prepare(test_root, person, {"CODEX_API_KEY": "k"})
    assert home.login is Login.ENVIRONMENT
    assert "CODEX_API_KEY" in home.env_names


def test_rules_instructions_and_agents_are_swept_out(test_root: Path, person: Path) -> None:
    home = prepare(test_root, person)
    for name in ("rules/default.rules", "hooks/x.py", "agents/a.toml"):
        (home.path / name).parent.mkdir()
        (home.path / name).write_text("x")
    (home.path / "AGENTS.md").write_text("x")
    (home.path / "plugins").symlink_to(person)
    (home.path / "sessions").mkdir()
    again = prepare(test_root, person)
    left = {entry.name for entry in again.path.iterdir()}
    assert left == {"config.toml", "sessions", "bare", ".baton.lock"}
    assert person.is_dir()


def test_changed_config_is_taken_over_and_an_unchanged_one_left_alone(test_root: Path, person: Path) -> None:
    (person / "config.toml").write_text(CONFIG)
    file = prepare(test_root, person).path / "config.toml"
    before = file.stat().st_ino
    assert prepare(test_root, person).path.joinpath("config.toml").stat().st_ino == before
    (person / "config.toml").write_text(CONFIG.replace("https://models", "https://newer"))
    assert "https://newer" in prepare(test_root, person).path.joinpath("config.toml").read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_login_that_is_a_link_is_a_secret_where_it_really_lies(test_root: Path, person: Path) -> None:
    (test_root / "dotfiles").mkdir()
    (test_root / "dotfiles" / "auth.json").write_text("{}")
    (person / "auth.json").symlink_to(test_root / "dotfiles" / "auth.json")
    home = prepare(test_root, person)
    assert set(home.secrets) == {person, home.path, test_root / "dotfiles" / "auth.json"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("model = ", "cannot be read"),
        ("model_providers = 3", "model_providers must be a table"),
        ("model_provider = 3", "model_provider must be a string"),
        ('model_provider = "x"\nmodel_providers.x = 1', "must be a table"),
    ],
)
def test_config_that_cannot_be_read_is_one_line(test_root: Path, person: Path, text: str, word: str) -> None:
    (person / "config.toml").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        prepare(test_root, person)
    assert word in refused.value.message
    assert str(person / "config.toml") in refused.value.message
    assert not (test_root / "state" / "codex-home" / "config.toml").exists()


def test_byte_order_mark_and_missing_config_are_fine(test_root: Path, person: Path) -> None:
    (person / "config.toml").write_bytes(b"\xef\xbb\xbf" + CONFIG.encode())
    assert config_of(prepare(test_root, person))["model_provider"] == "corp"
    (person / "config.toml").unlink()
    assert "model_provider" not in config_of(prepare(test_root, person))


def test_login_in_the_keyring_keeps_the_persons_home_and_says_what_that_costs(
    test_root: Path, person: Path
) -> None:
    (person / "config.toml").write_text(
        'cli_auth_credentials_store = "keyring"\n[mcp_servers.spy]\ncommand = "spy"\n'
    )
    home = prepare(test_root, person)
    assert (home.login, home.path) == (Login.KEYRING, person)
    assert home.allow_rules_apply is False
    assert home.foreign_servers == ("spy",)
    (person / "rules").mkdir()
    (person / "rules" / "default.rules").write_text("# nothing\n\n")
    assert prepare(test_root, person).allow_rules_apply is False
    (person / "rules" / "default.rules").write_text('prefix_rule(pattern=["git"], decision="allow")\n')
    home = prepare(test_root, person)
    assert home.allow_rules_apply is True
    assert "default.rules" in (home.why or "")


def test_many_at_once_leave_one_whole_home(test_root: Path, person: Path) -> None:
    (person / "config.toml").write_text(CONFIG)
    (person / "auth.json").write_text("{}")
    with ThreadPoolExecutor(8) as pool:
        homes = list(pool.map(lambda _: prepare(test_root, person), range(32)))
    assert len(set(map(repr, homes))) == 1
    assert config_of(homes[0])["model_provider"] == "corp"
    assert not [entry for entry in homes[0].path.iterdir() if entry.name.startswith(".baton-")]


@pytest.mark.codex
def test_real_codex_accepts_every_key_that_is_taken_over(
    test_root: Path, person: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    model.fallback(say("hello"))
    keys = f"""
model_provider = "corp"
chatgpt_base_url = "https://example.invalid"
openai_base_url = "https://example.invalid"
forced_login_method = "api"
oss_provider = "ollama"
[model_providers.corp]
name = "Corp"
base_url = "{model.url}"
wire_api = "responses"
env_key = "CORP_KEY"
env_key_instructions = "ask"
query_params = {{ a = "b" }}
http_headers = {{ a = "b" }}
env_http_headers = {{ b = "B" }}
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 1000
websocket_connect_timeout_ms = 1000
requires_openai_auth = false
supports_websockets = false
"""
    (person / "config.toml").write_text(keys)
    home = prepare(test_root, person)
    done = subprocess.run(
        [codex_binary, "exec", "--strict-config", "--skip-git-repo-check", "--json", "-C", test_root, "hi"],
        env={"PATH": os.environ["PATH"], "CORP_KEY": "k", **home.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"hello" in done.stdout, done.stderr
    assert model.requests


@pytest.mark.codex
def test_home_below_the_temporary_folder_is_used_without_complaint(
    tmp_path: Path, person: Path, codex_binary: Path
) -> None:
    home = prepare_worker_home(tmp_path / "codex-home", person, {}, temporary=tmp_path / "codex-tmp")
    done = subprocess.run(
        [codex_binary, "debug", "models"],
        env={"PATH": os.environ["PATH"], **home.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"Refusing to create helper binaries" not in done.stderr
