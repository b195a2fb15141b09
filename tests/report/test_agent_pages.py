"""The page that changes agents: off by default, and what it writes is what was typed and nothing else."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from baton.cli.main import baton
from baton.consult.adapters import adapter_of
from baton.consult.agents import Known
from baton.consult.records import Records
from baton.contract.session import Session
from baton.engine.house import House
from baton.policy.layer import PERSON_FILE
from baton.policy.load import load_policy
from baton.report.dashboard.app import dashboard
from baton.report.dashboard.guard import EDITING
from baton.report.dashboard.keys import Keys
from report.story import IMAGE, SCRIPT
from report.test_dashboard import BASE, PORT
from report.test_report import Seen

OWN = """# mine
[consult]
enabled = true # since spring

# asked rarely
[consult.agents.claude]
priority = 30 # after the others
model = "claude-opus-5-5"   # the big one
scores = { coding = 50, writing = 99 } # as I see it

[concurrency]
max_workers = 3 # not more
"""

CLAUDE = f"{EDITING}/claude"


@pytest.fixture
def house() -> Iterator[House]:
    with House.open() as opened:
        yield opened


@pytest.fixture
def file(house: House) -> Path:
    made = house.codex_home / PERSON_FILE
    made.parent.mkdir(parents=True)
    made.write_text(OWN)
    return made


def entered(house: House, *, edit: bool = True) -> TestClient:
    keys = Keys(PORT)
    made = TestClient(dashboard(house, keys, PORT, edit=edit), base_url=BASE, follow_redirects=False)
    assert made.get(keys.link).status_code == 200
    return made


@pytest.fixture
def browser(house: House, file: Path) -> TestClient:
    return entered(house)


def form_of(browser: TestClient, agent: str = "claude") -> dict[str, str]:
    """What a browser sends when its person saves this agent without having typed anything."""
    page = browser.get(EDITING)
    assert page.status_code == 200
    text = page.text.split(f'action="{EDITING}/{agent}#')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input[^>]* name="([\w.]+)" value="([^"]*)"', text))
    for name, options in re.findall(r'<select[^>]* name="([\w.]+)"[^>]*>(.*?)</select>', text):
        (fields[name],) = re.findall(r"<option selected>(.*?)</option>", options)
    return fields


def save(browser: TestClient, form: dict[str, str], *, to: str = CLAUDE, origin: str | None = BASE) -> Any:
    return browser.post(to, data=form, headers={} if origin is None else {"origin": origin})


# -- only where it is switched on ------------------------------------------------------------------


def test_without_the_flag_there_is_no_form_and_nothing_is_taken(house: House, file: Path) -> None:
    plain = entered(house, edit=False)
    assert EDITING not in plain.get("/").text
    assert plain.get(EDITING).status_code == 404
    for path in (EDITING, CLAUDE, "/"):
        answer = save(plain, {"model": "x"}, to=path)
        assert (answer.status_code, answer.text) == (405, "baton dashboard: the dashboard only shows\n")
    assert file.read_text() == OWN


def test_the_command_has_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr("baton.report.dashboard.serve.serve", lambda *_, edit, **__: asked.append(edit))
    for flags in ([], ["--edit"]):
        assert CliRunner().invoke(baton, ["dashboard", *flags]).exit_code == 0
    assert asked == [False, True]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_with_it_only_forms_are_taken_and_only_there(browser: TestClient, method: str) -> None:
    assert browser.request(method, CLAUDE, headers={"origin": BASE}).status_code == 405
    assert save(browser, {}, to="/").status_code == 405
    assert save(browser, {}, to="/agentsx").status_code == 405


# -- what is saved ---------------------------------------------------------------------------------


def test_the_page_shows_every_agent_of_the_policy(browser: TestClient, house: House) -> None:
    page = browser.get(EDITING)
    for name, agent in load_policy(house.codex_home, None).consult.agents.items():
        form = form_of(browser, name)
        assert (form["runtime"], form["model"], form["effort"]) == (agent.runtime, agent.model, agent.effort)
        assert form["enabled"] == str(agent.enabled).lower()
        assert form["priority"] == str(agent.priority)
        scores = {
            key.removeprefix("scores."): text for key, text in form.items() if "scores." in key and text
        }
        assert scores == {key: str(points) for key, points in agent.scores.items()}
        assert not {"command", "settings"} & set(form)
    assert "form-action 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "same-origin"
    assert browser.get("/").headers["referrer-policy"] == "no-referrer"


def test_what_is_typed_is_in_the_file_and_all_else_stays(
    browser: TestClient, house: House, file: Path
) -> None:
    file.chmod(0o640)
    form = form_of(browser)
    answer = save(browser, form | {"priority": "5", "scores.coding": "77"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/agents?saved=claude")
    assert file.read_text() == OWN.replace("= 30", "= 5").replace("coding = 50", "coding = 77")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.with_name("policy.toml.bak").read_text() == OWN
    assert "claude is saved." in Seen(browser.get(answer.headers["location"]).text).text
    shown = CliRunner().invoke(baton, ["policy", "show"]).output
    assert re.search(r"consult\.agents\.claude\.priority\s*=?\s*5\b", shown)

    async def look(house: House, agent: Any) -> Known:
        return Known(None)

    async def told() -> dict[str, Any]:
        session = Session(cwd=str(house.codex_home))
        return await Records(house).agents(session, look, adapter_of)

    (claude,) = [one for one in anyio.run(told)["agents"] if one["agent"] == "claude"]
    assert (claude["model"], claude["scores"]["coding"]) == ("claude-opus-5-5", 77)


def test_what_the_file_did_not_say_is_added_where_it_belongs(
    browser: TestClient, house: House, file: Path
) -> None:
    form = form_of(browser)
    changed = {"enabled": "false", "effort": "high", "scores.testing": "1"}
    assert save(browser, form | changed).status_code == 303
    agent = load_policy(house.codex_home, None).consult.agents["claude"]
    assert (agent.enabled, agent.effort, dict(agent.scores)["testing"]) == (False, "high", 1)
    kept = [line for line in OWN.splitlines() if "scores" not in line]
    assert [line for line in file.read_text().splitlines() if line in kept] == kept
    assert save(browser, form_of(browser, "codex") | {"scores.coding": "3"}, to=f"{EDITING}/codex")
    assert load_policy(house.codex_home, None).consult.agents["codex"].scores["coding"] == 3


def test_without_a_file_one_is_made_for_its_owner_alone(house: House) -> None:
    browser = entered(house)
    assert save(browser, form_of(browser) | {"model": "claude-opus-5-5"}).status_code == 303
    file = house.codex_home / PERSON_FILE
    assert file.read_text() == '[consult.agents.claude]\nmodel = "claude-opus-5-5"\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["policy.toml"]


def test_carriage_returns_a_byte_order_mark_and_a_link_stay(
    browser: TestClient, file: Path, test_root: Path
) -> None:
    real = test_root / "dotfiles.toml"
    real.write_bytes(b"\xef\xbb\xbf" + OWN.replace("\n", "\r\n").encode())
    file.unlink()
    file.symlink_to(real)
    assert save(browser, form_of(browser) | {"priority": "5", "web_search": "false"}).status_code == 303
    assert file.is_symlink()
    content = real.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf# mine\r\n")
    assert content.count(b"\n") == content.count(b"\r\n") == OWN.count("\n") + 1
    assert b"web_search = false\r\n" in content


def test_a_form_that_says_nothing_new_writes_nothing(browser: TestClient, file: Path) -> None:
    before = file.stat()
    answer = save(browser, form_of(browser))
    assert answer.status_code == 200
    assert "Nothing differs" in answer.text
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


# -- what is refused, with the file as it was ------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "text", "fault"),
    [
        ("priority", "soon", 'expected a whole number, got "soon"'),
        ("priority", "1001", "expected less than or equal to 1000, got 1001"),
        ("scores.coding", "101", "expected less than or equal to 100, got 101"),
        ("scores.coding", "", 'expected a whole number, got ""'),
        ("enabled", "perhaps", 'expected a boolean, got "perhaps"'),
        ("runtime", "cluade", "did you mean 'claude'?"),
        ("model", "two words", "expected text of the form"),
        ("effort", "a\nb", "must be one line of printable text"),
    ],
)
def test_a_wrong_value_is_told_beside_its_field(
    browser: TestClient, file: Path, field: str, text: str, fault: str
) -> None:
    answer = save(browser, form_of(browser) | {field: text})
    assert answer.status_code == 400
    beside = re.search(rf'id="field-claude-{re.escape(field)}-fault">(.*?)</p>', answer.text)
    assert beside is not None
    assert fault in Seen(beside[1]).text
    assert answer.text.count('class="fault"') == 1
    assert file.read_bytes() == OWN.encode()
    assert [path.name for path in file.parent.iterdir()] == ["policy.toml"]


def test_hostile_text_in_a_field_stays_text(browser: TestClient, file: Path) -> None:
    hostile = f'"><{SCRIPT}{IMAGE}\u202e'
    answer = save(browser, form_of(browser) | {"model": hostile, "runtime": hostile})
    assert answer.status_code == 400
    assert SCRIPT not in answer.text
    assert IMAGE not in answer.text
    assert "\u202e" not in answer.text
    assert file.read_bytes() == OWN.encode()


@pytest.mark.parametrize("origin", ["http://evil.example", "null", None, f"http://localhost:{PORT}"])
def test_another_site_s_form_is_refused(browser: TestClient, file: Path, origin: str | None) -> None:
    assert save(browser, form_of(browser) | {"priority": "5"}, origin=origin).status_code == 403
    assert file.read_bytes() == OWN.encode()


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_a_form_comes_from_this_page(browser: TestClient, file: Path, site: str) -> None:
    headers = {"origin": BASE, "sec-fetch-site": site}
    answer = browser.post(CLAUDE, data=form_of(browser) | {"priority": "5"}, headers=headers)
    assert answer.status_code == 403
    assert file.read_bytes() == OWN.encode()


@pytest.mark.parametrize(
    "token", [None, "", "x", "é", pytest.param(Keys(PORT).form, id="another dashboard's")]
)
def test_a_form_without_the_dashboard_s_token_is_refused(
    browser: TestClient, file: Path, token: str | None
) -> None:
    form = form_of(browser) | {"priority": "5"}
    del form["token"]
    assert save(browser, form | ({} if token is None else {"token": token})).status_code == 403
    assert file.read_bytes() == OWN.encode()


def test_a_form_without_the_cookie_is_refused(browser: TestClient, file: Path) -> None:
    form = form_of(browser) | {"priority": "5"}
    browser.cookies.clear()
    assert save(browser, form).status_code == 401
    assert file.read_bytes() == OWN.encode()


def test_a_page_from_before_a_change_is_refused(browser: TestClient, file: Path) -> None:
    form = form_of(browser) | {"priority": "5"}
    changed = OWN.replace("# mine", "# mine alone")
    file.write_text(changed)
    answer = save(browser, form)
    assert answer.status_code == 409
    assert "has been changed since this page was made" in answer.text
    assert "the form said '5'" in Seen(answer.text).text
    assert file.read_text() == changed
    file.unlink()
    assert save(browser, form).status_code == 409
    assert not file.exists()
    assert save(browser, {key: text for key, text in form.items() if key != "seen"}).status_code == 409


@pytest.mark.parametrize("content", [b"[consult\n", b"\xff\xfe", b"[consult]\nenabeld = true\n"])
def test_a_policy_that_cannot_be_read_is_never_an_empty_one(
    browser: TestClient, file: Path, content: bytes
) -> None:
    form = form_of(browser) | {"priority": "5"}
    file.write_bytes(content)
    for answer in (browser.get(EDITING), save(browser, form)):
        assert answer.status_code == 400
        assert str(file) in Seen(answer.text).text
        assert "<form" not in answer.text
    assert file.read_bytes() == content


def test_a_field_that_there_is_none_of_is_told_with_the_nearest(browser: TestClient, file: Path) -> None:
    form = form_of(browser)
    answer = save(browser, form | {"modle": "x"})
    assert (answer.status_code, "did you mean 'model'?" in Seen(answer.text).text) == (400, True)
    # What is started is changed in the file alone.
    assert save(browser, form | {"command": "/bin/sh"}).status_code == 400
    assert save(browser, form | {"settings": "{}"}).status_code == 400
    assert save(browser, form, to=f"{EDITING}/nobody").status_code == 404
    assert file.read_bytes() == OWN.encode()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "application/json", 415),
        (b"a=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
        (b"a=%FF", "application/x-www-form-urlencoded", 400),
        (b"a", "application/x-www-form-urlencoded", 400),
        (b"a=1&a=2", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a%d=1" % n for n in range(200)), "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded", 403),
    ],
)
def test_what_is_no_form_of_ours_is_answered_in_a_line(
    browser: TestClient, file: Path, body: bytes, kind: str, status: int
) -> None:
    answer = browser.post(CLAUDE, content=body, headers={"origin": BASE, "content-type": kind})
    assert answer.status_code == status
    assert file.read_bytes() == OWN.encode()


def test_a_hard_link_is_told_before_saving(browser: TestClient, file: Path, test_root: Path) -> None:
    assert "is a hard link" not in browser.get(EDITING).text
    (test_root / "dotfiles.toml").hardlink_to(file)
    assert "policy.toml is a hard link: its other names keep" in browser.get(EDITING).text
