"""Finds credentials in text that is about to leave this machine, and masks them in prose.

Three nets: detect-secrets and the forms of known tokens; values that are given to a name like `password` or
`api_key`; private keys. What is merely random enough (entropy) is a suspect: shown, never acted upon. Nothing
is looked up anywhere: text is only read. What gets through: credentials in plain words, split over lines,
or encoded once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from baton.consult.secret_patterns import PLACES, TOKENS, Pattern
from baton.consult.secret_values import is_key, is_password, is_placeholder, is_suspect, looks_random

WINDOW = 4_000
OVERLAP = 600
"""Characters of a longer line that are given to the library together: no line makes a search slow."""

_PASSWORD_NAME = r"(?:pass(?:word|wd|phrase|code)|(?<![a-z])(?:pass|psk)(?![a-z])|pwd)"
_KEY_NAME = (
    r"(?:(?:api|app|access|auth|account|private|secret|service|client|admin|webhook|bot|root|signing|encryption|master|license|"
    r"storage|shared|subscription|session|consumer|deploy|jwt|hmac|crypto)[_-]?(?:key|secret|token|salt)|secret|"
    r"token|credential|apikey|salt)"
)
_KEYWORD = re.compile(rf"(?i)(?:(?P<password>{_PASSWORD_NAME})|(?P<key>{_KEY_NAME}))[A-Za-z0-9_-]{{0,40}}")
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]{0,60}\Z")
_GIVEN = re.compile(
    r"[\"'`\])\\]{0,4}(?:\[\w{0,20}\])?"
    # In a sentence; as a pair of a name and a value; as a property.
    r"(?: (?:for|of|to|on) [\w .-]{1,40}?(?= (?:is|was)\b))?(?: (?:is|was|value))?"
    r"(?:[\s,+]{1,60}[\"']?(?:value|defaultValue|ParameterValue)[\"']?(?=[ ]{0,2}[:=]))?"
    r"(?: ?\{ ?get;[^}\n]{0,40}\})?"
    # The type between a name and its value, as languages have it.
    r"(?:\s{0,4}:\s{0,4}(?:&(?:'\w{1,20} )?)?[\w\[\]|.<>?*&]{1,40}(?: \| \w{1,20})?(?=\s?=)"
    r"|[ \t]{1,4}(?:\*?string|\[\]byte)(?=\s{0,4}=))?"
    r"(?:\.(?:equals\w{0,10}|isEqualTo|eq|unwrap_or|value_or|getOrElse|orElse)(?=\())?"
    r"[ \t]{0,8}(?P<sep>:=|=>|===?|!==?|:-|\?:|\?\?|\|\||or(?=[ \t])|=|:|,|\(|>|[ \t])[ \t]{0,8}"
    r"(?:(?:new )?(?:Some|Just|String|\w{0,20}Secret\w{0,20}|\w{0,12}[Bb]ytes|of|from|fromString|valueOf)"
    r"\((?=[\"']))?"
    r"(?:(?:[BbRrUu@L]{1,2}(?=[\"']))?(?P<quote>\"{3}|\\{0,3}[\"']|`|&quot;)(?P<quoted>[^\n]{1,400}?)(?P=quote)"
    r"|(?P<bare>[^\s\"'`;,<]{1,400}))"
)
_NEEDS_QUOTES = frozenset((",", "(", "==", "!=", "===", "!==", "=>", "||", "??", "?:", "or"))
"""Behind these stands code; only a text in quotes is a value."""
_NAME_ENDS = re.compile(
    r"(?i)(?:[_-]?(?:ids?|names?|urls?|uris?|paths?|files?|types?|len|length|count|ttl|expir\w*|fields?|headers?|"
    r"prefix|suffix|regex|pattern|hint|label|title|text|message|msg|error|policy|min|max|reset|hash|hashes|digest|"
    r"column|param|params|env|var|ref|class|input|form|prompt|placeholder|description|version|algorithm|alg|"
    r"provider|manager|service|store|arn|encoder|validator|limit|usage|budget|kind|format|rules?|"
    r"endpoint|issuer|scope|scopes|required|enabled|at|date|address|mode|size|bytes|list|strategy))$"
    r"|tokeni[sz]|(?:page|csrf|xsrf|next|cursor|sync|continuation|public|cancellation)[_-]?tokens?$|tokens$|"
    r"(?:^|[_-])(?:public|primary|foreign|cache|sort|partition)"
)
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_SIZE = 20_000
_TYPE_NAME = re.compile(r"[A-Za-z_][\w.]*(?:Key|Token|Secret|Password|Credential)[A-Za-z]*")
_PUTTY = re.compile(
    r"PuTTY-User-Key-File-\d:.{0,2000}?Private-Lines:\s*\d+\s+(?P<body>[A-Za-z0-9+/=\s]{40,4000})", re.DOTALL
)
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/]{20,}")
_RANDOM_WORD = re.compile(r"(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/_-]{24,512}={0,2}(?![A-Za-z0-9+/_=-])")
_LONG_WORD = re.compile(r"[A-Za-z0-9+/_=.-]{16,}")
_DIGIT = re.compile(r"[0-9]")
_PLAIN = re.compile(r"[\w.+/=:@%~?&-]+")
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?![A-Z0-9 ]{0,30}PRIVATE)[A-Z0-9 ]{1,40}-----[^-]{0,20000}-----END ", re.DOTALL
)
_PUBLIC_WORDS = ("AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNh")
"""How public keys of ssh begin."""
_DIGEST_CONTEXT = re.compile(
    r"(?i)(?:sha\d{1,3}|md5|integrity|checksum|digest|hash|etag|base64,|h1:|resolved)\W{0,4}[\w=:-]{0,12}$|\$2[abxy]\$\d\d\$$"
)


@dataclass(frozen=True)
class Hit:
    """Something that looks like a credential; what it says is not kept here."""

    what: str
    start: int
    end: int
    line: int
    """From 1."""


@dataclass(frozen=True)
class Scan:
    """What was found in a text, by position."""

    hits: tuple[Hit, ...]
    suspects: tuple[Hit, ...]
    """Random-looking words on lines without a hit: a guess that never blocks."""


@dataclass(frozen=True)
class Masked:
    """A text in which credentials are replaced by what they were."""

    text: str
    hits: tuple[Hit, ...]


def scan(text: str) -> Scan:
    """Look through a text of any size; the time grows with its length alone."""
    starts = _line_starts(text)
    found = [*_private_keys(text), *_known_forms(text), *_assignments(text), *_by_library(text)]
    guesses = [("random text", start, end) for start, end in _random_words(text)]
    hits = _numbered(_merged(found), starts)
    # A hit may span lines, as a private key does.
    lines = {
        line for hit in hits for line in range(hit.line, hit.line + text.count("\n", hit.start, hit.end) + 1)
    }
    suspects = [hit for hit in _numbered(_merged(guesses), starts) if hit.line not in lines]
    return Scan(tuple(hits), tuple(suspects))


def mask(text: str) -> Masked:
    """Prose without its credentials: each is replaced by `[masked: what it was]`, nothing else changes.

    Only for prose: in code and patches that would change what they say.
    """
    hits: list[Hit] = []
    for _ in range(3):
        # What stood behind a credential may be one itself.
        found = scan(text).hits
        if not found:
            break
        hits += found if not hits else ()
        for hit in reversed(found):
            text = f"{text[: hit.start]}[masked: {hit.what}]{text[hit.end :]}"
    return Masked(text, tuple(hits))


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


Found = tuple[str, int, int]
"""What it is, and from where to where."""


def _known_forms(text: str) -> Iterator[Found]:
    folded = text.lower()
    for pattern in (*TOKENS, *PLACES):
        if not any(need in (folded if pattern.folds else text) for need in pattern.needs):
            continue
        for match in pattern.regex.finditer(text):
            if _counts(pattern, match.group("value")):
                yield pattern.what, *match.span("value")


def _assignments(text: str) -> Iterator[Found]:
    for word in _KEYWORD.finditer(text):
        given = _GIVEN.match(text, word.end())
        if given is None:
            continue
        before = _NAME_BEFORE.search(text, max(0, word.start() - 60), word.start())
        name = (before.group() if before else "") + word.group()
        yield from _assigned(name, word.group("password") is not None, given)


def _by_library(text: str) -> Iterator[Found]:
    last = -1
    for match in _LONG_WORD.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        if start == last or not _DIGIT.search(match.group()):
            continue
        last = start
        for base, window in _windows(text, start):
            for what, finds in _library():
                for value in finds(window):
                    at = window.find(value)
                    if at >= 0 and _PLAIN.fullmatch(value) and looks_random(value):
                        yield what, base + at, base + at + len(value)


def _windows(text: str, start: int) -> Iterator[tuple[int, str]]:
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    if end - start <= WINDOW:
        yield start, text[start:end]
        return
    for at in range(start, end, WINDOW - OVERLAP):
        yield at, text[at : min(at + WINDOW, end)]


def _counts(pattern: Pattern, value: str) -> bool:
    if pattern.random:
        return looks_random(value)
    if is_placeholder(value) or value.lower() in _USUAL:
        return False
    # On a command line and in a call the place alone says little: the value must look like one.
    return pattern.what not in _LOOSE or is_password(value, quoted=False)


_USUAL = frozenset(
    (
        *("pass", "password", "passwd", "pwd", "pw", "secret", "token", "test", "example", "username"),
        *("user", "root", "admin", "guest", "postgres", "mysql", "redis", "rabbitmq", "minio", "mongo"),
    )
)
"""What stands for a password in examples, or is one that everybody knows."""

_LOOSE = frozenset(("password on a command line", "password of a login", "password in a .pgpass line"))


def _assigned(name: str, is_password_name: bool, match: re.Match[str]) -> Iterator[Found]:
    separator = match.group("sep")
    is_quoted = match.group("quoted") is not None
    group = "quoted" if is_quoted else "bare"
    value = match.group(group)
    if not is_quoted:
        value = value.rstrip(".,;:!?)]}'\"\\")
    if _NAME_ENDS.search(name) or (not is_quoted and separator in _NEEDS_QUOTES):
        return
    if separator.isspace() and (name.lower() == "pass" or not (is_password_name or is_quoted)):
        if is_suspect(value):
            yield f"value of {_shown(name)}", match.start(group), match.start(group) + len(value)
        return
    start = match.start(group)
    if not is_quoted and separator.isspace():
        # "the password is hunter2" is prose; only what no word of a text looks like counts.
        if is_key(value, quoted=False) or (_strong(value) and is_password(value, quoted=False)):
            yield "password", start, start + len(value)
        return
    if is_password_name:
        if is_password(value, quoted=is_quoted):
            yield "password", start, start + len(value)
    elif is_key(value, quoted=is_quoted) and (is_quoted or not _TYPE_NAME.fullmatch(value)):
        yield f"value of {_shown(name)}", start, start + len(value)


def _strong(value: str) -> bool:
    return len(value) >= 8 and bool(re.search(r"\d", value)) and bool(re.search(r"[A-Za-z]", value))


def _shown(name: str) -> str:
    return name.strip("-_.")[-40:]


def _private_keys(text: str) -> Iterator[Found]:
    begins = list(_KEY_BEGIN.finditer(text))
    for place, begin in enumerate(begins):
        following = begins[place + 1].start() if place + 1 < len(begins) else len(text)
        limit = min(following, begin.end() + _KEY_SIZE)
        closing = _KEY_END.search(text, begin.end(), limit)
        end = closing.end() if closing else limit
        # The marks alone are in every program that reads keys; a key has its content between them.
        body = text[begin.end() : closing.start() if closing else limit]
        runs = [run for run in _BASE64_RUN.finditer(body) if looks_random(run.group())]
        if runs:
            yield "private key", begin.start(), end if closing else begin.end() + runs[-1].end()
    if "PuTTY-User-Key-File-" in text:
        for match in _PUTTY.finditer(text):
            yield "private key", *match.span("body")


def _random_words(text: str) -> Iterator[tuple[int, int]]:
    public = [match.span() for match in _PUBLIC_BLOCK.finditer(text)]
    for match in _RANDOM_WORD.finditer(text):
        if match.group().startswith(_PUBLIC_WORDS) or any(
            start <= match.start() < end for start, end in public
        ):
            continue
        before = text[max(0, match.start() - 80) : match.start()].rpartition("\n")[2]
        if is_suspect(match.group()) and not _DIGEST_CONTEXT.search(before):
            yield match.span()


@lru_cache(maxsize=1)
def _library() -> tuple[tuple[str, Callable[[str], list[str]]], ...]:
    """The detectors of detect-secrets that know a token by its form, each with what it finds in a line."""
    from detect_secrets.plugins import (
        artifactory,
        aws,
        azure_storage_key,
        cloudant,
        discord,
        github_token,
        gitlab_token,
        ibm_cloud_iam,
        ibm_cos_hmac,
        jwt,
        mailchimp,
        npm,
        openai,
        pypi_token,
        sendgrid,
        slack,
        softlayer,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    detectors = (
        artifactory.ArtifactoryDetector(),
        aws.AWSKeyDetector(),
        azure_storage_key.AzureStorageKeyDetector(),
        cloudant.CloudantDetector(),
        discord.DiscordBotTokenDetector(),
        github_token.GitHubTokenDetector(),
        gitlab_token.GitLabTokenDetector(),
        ibm_cloud_iam.IbmCloudIamDetector(),
        ibm_cos_hmac.IbmCosHmacDetector(),
        jwt.JwtTokenDetector(),
        mailchimp.MailchimpDetector(),
        npm.NpmDetector(),
        openai.OpenAIDetector(),
        pypi_token.PypiTokenDetector(),
        sendgrid.SendGridDetector(),
        slack.SlackDetector(),
        softlayer.SoftlayerDetector(),
        square_oauth.SquareOAuthDetector(),
        stripe.StripeDetector(),
        telegram_token.TelegramBotTokenDetector(),
        twilio.TwilioKeyDetector(),
    )

    def finder(detector: object) -> Callable[[str], list[str]]:
        analyze = detector.analyze_string  # type: ignore[attr-defined]
        return lambda line: [value for value in analyze(line) if isinstance(value, str) and value]

    return tuple((detector.secret_type.lower(), finder(detector)) for detector in detectors)


def _merged(spans: list[Found]) -> list[Found]:
    """Overlapping finds as one, named after the one that starts first and reaches furthest."""
    merged: list[Found] = []
    for what, start, end in sorted(spans, key=lambda span: (span[1], -span[2])):
        if merged and start < merged[-1][2]:
            last = merged[-1]
            merged[-1] = (last[0], last[1], max(last[2], end))
        else:
            merged.append((what, start, end))
    return merged


def _numbered(spans: list[Found], starts: list[int]) -> list[Hit]:
    hits, line = [], 0
    for what, start, end in spans:
        while line + 1 < len(starts) and starts[line + 1] <= start:
            line += 1
        hits.append(Hit(what, start, end, line + 1))
    return hits
