"""What children see of the environment: what is listed, and nothing that is merely not known to be secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.process.environment import check_environment, pick, tool_environment, worker_environment

SECRETS = (
    *("DATABASE_URL", "GH_PAT", "GITHUB_TOKEN", "MYSQL_PWD", "SENTRY_DSN", "PASSPHRASE", "OPENAI_API_KEY"),
    *("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "NPM_CONFIG__AUTH", "PGPASSWORD", "COOKIE", "LD_PRELOAD"),
    *("PYTHONPATH", "NODE_OPTIONS", "VIRTUAL_ENV", "BASH_ENV", "ENV"),
)

BASE = {
    **dict.fromkeys(SECRETS, "secret"),
    "PATH": "/usr/bin",
    "HOME": "/home/person",
    "TMPDIR": "/tmp/person",
    "XDG_RUNTIME_DIR": "/run/user/1",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "USER": "person",
    "HTTPS_PROXY": "http://proxy.invalid",
    "https_proxy": "http://proxy.invalid",
    "SSL_CERT_FILE": "/ca.pem",
    "GIT_DIR": "/elsewhere",
    "GIT_AUTHOR_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "CC": "clang",
}

HOME, TMP = Path("/scratch/home"), Path("/scratch/tmp")


def test_no_secret_reaches_a_child_of_any_kind() -> None:
    for seen in (
        worker_environment(BASE, home=HOME, tmpdir=TMP),
        check_environment(BASE, home=HOME, tmpdir=TMP),
        tool_environment(BASE),
    ):
        assert not set(seen) & set(SECRETS)
        assert "GIT_DIR" not in seen
        assert seen["PATH"] == "/usr/bin"
        assert seen["LC_ALL"] == "C.UTF-8"


def test_check_has_a_home_of_its_own_and_what_builds_need() -> None:
    seen = check_environment(BASE, home=HOME, tmpdir=TMP, run_id="rabcdefgh")
    assert (seen["HOME"], seen["TMPDIR"]) == ("/scratch/home", "/scratch/tmp")
    assert (seen["GIT_AUTHOR_NAME"], seen["GIT_COMMITTER_EMAIL"], seen["CC"]) == (
        "A",
        "a@example.invalid",
        "clang",
    )
    assert (seen["BATON_WORKER"], seen["BATON_RUN"]) == ("1", "rabcdefgh")
    assert not {"XDG_RUNTIME_DIR", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"} & set(seen)


def test_worker_without_a_given_home_has_none() -> None:
    seen = worker_environment(BASE)
    assert not {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"} & set(seen)


def test_tools_keep_the_persons_home_proxies_and_authorities() -> None:
    seen = tool_environment(BASE, ["GIT_AUTHOR_NAME", "MY_PROVIDER_KEY"])
    assert (seen["HOME"], seen["HTTPS_PROXY"], seen["https_proxy"]) == (
        "/home/person",
        *["http://proxy.invalid"] * 2,
    )
    assert seen["SSL_CERT_FILE"] == "/ca.pem"
    assert not any(name.startswith("GIT_") for name in seen)


@pytest.mark.parametrize("added", ["DATABASE_URL", "DATABASE_*"])
def test_names_that_the_person_adds_are_passed_on(added: str) -> None:
    assert worker_environment(BASE, [added])["DATABASE_URL"] == "secret"
    assert check_environment(BASE, [added], home=HOME, tmpdir=TMP)["DATABASE_URL"] == "secret"


def test_added_names_cannot_bring_back_the_persons_home() -> None:
    seen = check_environment(BASE, ["HOME", "TMP*", "XDG_*"], home=HOME, tmpdir=TMP)
    assert (seen["HOME"], seen["TMPDIR"]) == ("/scratch/home", "/scratch/tmp")
    assert "XDG_RUNTIME_DIR" not in seen


def test_lone_star_is_not_everything() -> None:
    assert pick({"A": "1", "*": "2"}, ["*"]) == {"*": "2"}


@given(st.dictionaries(st.text(), st.text()), st.lists(st.text()))
def test_picking_gives_listed_variables_unchanged_and_no_others(
    base: dict[str, str], names: list[str]
) -> None:
    picked = pick(base, names)
    assert picked.items() <= base.items()
    for name in base:
        listed = name in names or any(
            len(listed) > 1 and listed.endswith("*") and name.startswith(listed[:-1]) for listed in names
        )
        # A name that itself ends in a star can be listed only as a prefix, which it matches.
        assert (name in picked) == listed
