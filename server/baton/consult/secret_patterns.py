"""Credentials that are told by their form: what issuers say their tokens look like. Pure data.

The patterns stand beside those of detect-secrets, for issuers and places that it has none for. Group `value`
is what must not leave; without it that is the whole match. Bounds at both ends keep a token from being found
inside a longer word; what is joined to it by `-` or `_` is a word of its own, but where the form is a
usual one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """One form of credential."""

    what: str
    regex: re.Pattern[str]
    needs: tuple[str, ...]
    """Texts of which one is in every match, in small letters where `folds`: what makes looking cheap."""
    random: bool = True
    """Whether the value must look random: a token of an issuer does, a password need not."""
    folds: bool = False
    """Whether capitals do not matter for `needs`."""


def _token(what: str, form: str, *needs: str, joined: bool = True) -> Pattern:
    beside = "A-Za-z0-9" if joined else "A-Za-z0-9_-"
    bounded = rf"(?<![{beside}])(?P<value>{form})(?![{beside}])"
    return Pattern(what, re.compile(bounded), needs)


_WORD = "[A-Za-z0-9_-]"

TOKENS: tuple[Pattern, ...] = (
    _token("AWS access key id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", "AKIA", "ASIA", "ABIA", "ACCA"),
    _token("Anthropic key", rf"sk-ant-{_WORD}{{24,}}", "sk-ant-"),
    _token("OpenAI key", rf"sk-(?:proj-|svcacct-|admin-)?{_WORD}{{32,}}", "sk-", joined=False),
    _token("OpenRouter key", r"sk-or-v1-[0-9a-f]{40,}", "sk-or-"),
    _token("GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("GitHub token", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{40,}", "github_pat_"),
    _token("GitLab token", rf"(?:glpat|gldt|glft|glrt|glsoat|glcbt|glptt|glagent)-{_WORD}{{20,}}", "gl"),
    _token("Google API key", rf"AIza{_WORD}{{35}}", "AIza"),
    _token("Google OAuth secret", rf"GOCSPX-{_WORD}{{24,}}", "GOCSPX-"),
    _token("Google OAuth token", rf"ya29\.{_WORD}{{30,}}", "ya29."),
    _token("Hugging Face token", r"hf_[A-Za-z]{30,}", "hf_"),
    _token("Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{20,}", "xox"),
    _token("Slack token", r"xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{30,}", "xapp-"),
    _token("Stripe key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{20,}", "k_live_", "k_test_"),
    _token("Stripe webhook secret", r"whsec_[A-Za-z0-9+/=]{24,}", "whsec_"),
    _token("Twilio key", r"SK[0-9a-f]{32}", "SK", joined=False),
    _token("SendGrid key", rf"SG\.{_WORD}{{16,}}\.{_WORD}{{30,}}", "SG."),
    _token("Mailgun key", r"key-[0-9a-f]{32}", "key-", joined=False),
    _token("npm token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _token("PyPI token", rf"pypi-AgE{_WORD}{{50,}}", "pypi-"),
    _token("RubyGems key", r"rubygems_[0-9a-f]{40,}", "rubygems_"),
    _token("NuGet key", r"oy2[a-z0-9]{43}", "oy2"),
    _token("Cargo registry token", r"cio[A-Za-z0-9]{32}", "cio", joined=False),
    _token("Docker Hub token", rf"dckr_(?:pat|oat)_{_WORD}{{24,}}", "dckr_"),
    _token("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{60,}", "_v1_"),
    _token("Shopify token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "shp"),
    _token("Square token", rf"(?:EAAA|sq0(?:atp|csp)-){_WORD}{{22,}}", "EAAA", "sq0"),
    _token("Databricks token", r"dapi[0-9a-f]{32}(?:-\d)?", "dapi"),
    _token("Vault token", rf"hv[sbr]\.{_WORD}{{24,}}", "hvs.", "hvb.", "hvr."),
    _token("Terraform token", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_WORD}{{50,}}", ".atlasv1."),
    _token("Atlassian token", rf"ATATT3x{_WORD}{{40,}}(?:=[A-F0-9]{{8}})?", "ATATT3x"),
    _token("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_"),
    _token("Notion token", r"ntn_[A-Za-z0-9]{40,}", "ntn_"),
    _token("Postman key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-"),
    _token("New Relic key", r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    _token("Grafana token", rf"gl(?:c|sa)_{_WORD}{{32,}}=*", "glc_", "glsa_"),
    _token("Sentry token", rf"sntry[su]_{_WORD}{{32,}}=*", "sntry"),
    _token("PlanetScale password", rf"pscale_(?:tkn|pw|oauth)_{_WORD}{{32,}}", "pscale_"),
    _token("Supabase key", r"sb(?:p|_secret)_[A-Za-z0-9_-]{24,}", "sbp_", "sb_secret_"),
    _token("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}", "dp."),
    _token("Azure client secret", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{34}", "8Q~"),
    _token("Telegram bot token", rf"\d{{8,10}}:AA{_WORD}{{32,34}}", ":AA"),
    _token("Discord bot token", rf"[MNO][A-Za-z0-9_-]{{23,25}}\.{_WORD}{{6}}\.{_WORD}{{27,38}}", "."),
    _token("Figma token", rf"figd_{_WORD}{{36,}}", "figd_"),
    _token("Groq key", r"gsk_[A-Za-z0-9]{48,}", "gsk_"),
    _token("xAI key", r"xai-[A-Za-z0-9]{60,}", "xai-"),
    _token("Perplexity key", r"pplx-[A-Za-z0-9]{40,}", "pplx-"),
    _token("Replicate token", r"r8_[A-Za-z0-9]{36,}", "r8_"),
    _token("Pinecone key", rf"pcsk_{_WORD}{{40,}}", "pcsk_"),
    _token("LangSmith key", rf"lsv2_(?:pt|sk)_{_WORD}{{32,}}", "lsv2_"),
    _token("Tailscale key", rf"tskey-[a-z]+-{_WORD}{{20,}}", "tskey-"),
    _token("Netlify token", r"nfp_[A-Za-z0-9]{36,}", "nfp_"),
    _token("Heroku key", rf"HRKU-{_WORD}{{30,}}", "HRKU-"),
    _token("Buildkite token", r"bk[a-z]{2}_[0-9a-f]{40}", "bk"),
    _token("CircleCI token", r"CCIPAT_[A-Za-z0-9]+_[0-9a-f]{40}", "CCIPAT_"),
    _token("Sourcegraph token", r"sgp_(?:[0-9a-f]{16}_)?[0-9a-f]{40}", "sgp_"),
    _token("Pulumi token", r"pul-[0-9a-f]{40}", "pul-"),
    _token("Brevo key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}", "xkeysib-"),
    _token("Dynatrace token", r"dt0[a-z]\d\d\.[A-Z2-7]{24}\.[A-Z2-7]{64}", "dt0"),
    _token("Firebase server key", rf"AAAA{_WORD}{{7}}:APA91b{_WORD}{{100,}}", ":APA91b"),
    _token("Facebook token", r"EAA[A-Za-z0-9]{80,}", "EAA"),
    _token("Dropbox token", rf"sl\.(?:u\.)?{_WORD}{{100,}}", "sl."),
    _token("age secret key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "AGE-SECRET-KEY-1"),
    _token("JSON web token", rf"eyJ{_WORD}{{10,}}\.eyJ{_WORD}{{10,}}\.{_WORD}{{16,}}", "eyJ"),
    Pattern(
        "Slack webhook",
        re.compile(
            r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Z0-9]+/[A-Z0-9]+/\w{16,})"
        ),
        ("hooks.slack.com/",),
    ),
    Pattern(
        "Discord webhook",
        re.compile(r"discord(?:app)?\.com/api/webhooks/\d+/(?P<value>[\w-]{40,})"),
        ("/api/webhooks/",),
    ),
    Pattern(
        "Azure storage key",
        re.compile(r"(?:AccountKey|SharedAccessKey)\s*=\s*(?P<value>[A-Za-z0-9+/]{40,}={0,2})"),
        (
            "AccountKey",
            "SharedAccessKey",
        ),
    ),
    Pattern(
        "signed URL",
        re.compile(r"[?&](?:sig|X-Amz-Signature)=(?P<value>[A-Za-z0-9%+/]{40,})"),
        ("sig=", "X-Amz-Signature="),
    ),
    Pattern(
        "npm token",
        re.compile(r":_(?:authToken|auth|password)\s*=\s*(?P<value>[^\s\"'$]{12,})"),
        (":_auth", ":_password"),
    ),
    Pattern(
        "registry login", re.compile(r"\"auth\"\s*:\s*\"(?P<value>[A-Za-z0-9+/]{16,}={0,2})\""), ('"auth"',)
    ),
)
"""Forms that a token has by itself, wherever it stands."""

PLACES: tuple[Pattern, ...] = (
    Pattern(
        "password in an address",
        re.compile(
            r"\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@'\"<>]{0,100}:(?!\d{1,5}[/?#])(?P<value>[^\s/'\"<>]{1,200})@[^\s/@]"
        ),
        ("://",),
        random=False,
    ),
    Pattern(
        "authorization header",
        re.compile(
            r"(?i)\b(?:proxy-)?authorization[\"']?\s*[:=,]\s*[\"']?\s*(?:bearer|token|basic|apikey|ssws|bot|digest)\s+"
            r"(?P<value>[A-Za-z0-9+/_.~=-]{12,})"
        ),
        ("authorization",),
        folds=True,
    ),
    Pattern("bearer token", re.compile(r"\b[Bb]earer\s+(?P<value>[A-Za-z0-9+/_.~-]{20,}=*)"), ("earer",)),
    Pattern(
        "key in an address",
        re.compile(
            r"(?i)[?&](?:api_?key|apikey|access_token|auth_token|client_secret|secret|token|password)="
            r"(?P<value>[A-Za-z0-9%._~+/-]{12,})"
        ),
        (
            "?",
            "&",
        ),
    ),
    Pattern(
        "login on a command line",
        re.compile(
            r"\bcurl\b.{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,60}:(?P<value>[^\s\"'$]{4,100})"
        ),
        ("curl",),
        random=False,
    ),
    Pattern(
        "password on a command line",
        re.compile(r"(?i)\s--?(?:password|passwd|pass)[ =](?P<value>[^\s\"'$<\[{(-][^\s\"'<>]{5,100})"),
        ("-pass",),
        random=False,
        folds=True,
    ),
    Pattern(
        "password on a command line",
        re.compile(
            r"\b(?:sshpass|mysql(?:dump|admin)?|mariadb|psql|redis-cli|mongo(?:sh)?|docker|podman|helm)\b"
            r"[^\n|;&]{0,120}?\s-(?:p|a)\s?[\"']?(?P<value>[A-Za-z0-9][^\s\"'$:/]{5,100})[\"']?(?=\s|$)"
        ),
        ("sshpass", "mysql", "mariadb", "redis-cli", "mongo", "docker", "podman", "helm"),
        random=False,
    ),
    Pattern(
        "password on a command line",
        re.compile(r"\s-pass(?:in|out)?\s+pass:(?P<value>[^\s\"'$]{4,100})"),
        ("pass:",),
        random=False,
    ),
    Pattern(
        "password on a command line",
        re.compile(r"\bldap[a-z]{2,10}\b[^\n|;&]{0,200}?\s-w\s?[\"']?(?P<value>[^\s\"'$-][^\s\"'$]{5,100})"),
        ("ldap",),
        random=False,
    ),
    Pattern(
        "password on a command line",
        re.compile(r"\bhtpasswd\s+-\w*b\w*\s+(?:[^\s-]\S*\s+){1,2}(?P<value>[^\s\"'$]{4,100})(?=\s|$)"),
        ("htpasswd",),
        random=False,
    ),
    Pattern(
        "password in a .pgpass line",
        re.compile(r"(?m)^\+?[\w.*-]+:(?:5432|\*):[^:\s]+:[^:\s]+:(?P<value>[^\s:]{4,100})$"),
        (":5432:", ":*:"),
        random=False,
    ),
    Pattern(
        "password of a login",
        re.compile(
            r"(?:\bauth\s*=\s*\(|BasicAuth\(|\.(?:login|authenticate|basic_auth)\(|mysqli(?:_connect)?\([^,\n]{1,100},"
            r"|PlainAuth\([^,\n]{1,40},|getConnection\([^\n]{1,200}?,)\s*[\"'][^\"'\n]{1,80}[\"']\s*,\s*"
            r"[\"'](?P<value>[^\"'\n]{6,100})[\"']"
        ),
        ("auth", "Auth(", "getConnection(", ".login(", "mysqli"),
        random=False,
    ),
    Pattern(
        "password in a netrc line",
        re.compile(r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<value>\S{4,100})"),
        ("machine",),
        random=False,
    ),
    Pattern(
        "password in SQL",
        re.compile(
            r"(?i)\b(?:user|role|grant)\b[^\n;]{0,120}?\b(?:identified\s+by|password)\s+'(?P<value>[^'\n]{4,100})'"
        ),
        (
            "identified",
            "password",
        ),
        random=False,
        folds=True,
    ),
    Pattern(
        "password in a connection string",
        re.compile(r"(?i)(?:^|[;\"'\s])(?:password|pwd)\s*=\s*(?P<value>[^;\"'\s$<{(]{4,100})\s*;"),
        (
            "password",
            "pwd",
        ),
        random=False,
        folds=True,
    ),
)
"""Places where only a credential stands."""
