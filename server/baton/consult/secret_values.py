"""Judges a value that stands where a credential would: is it one, or a name, a path, a placeholder? Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

SHORTEST = 6
"""Characters of the shortest password that counts."""

_PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|change[-_ ]?(?:me|this|it)|replace|redacted|masked|dummy|sample|fake|your[-_ ]|"
    r"^your|insert|todo|fixme|not[-_]?set|unset|undefined|default|secret[-_]?here|(?:key|token)[-_]?here|"
    r"^(?:test|testing|foo|bar|baz|mock|stub|none|null|nil|true|false|empty|hidden|required|optional)(?:\b|[-_\d])|"
    r"(?:test|mock|dummy)[-_]?(?:password|passwd|pass|secret|token|key)|"
    r"^(?:my|the|some|a|an)[-_ ]?(?:password|passwd|secret|token|key|api)|"
    r"x{4,}|\*{3,}|\.{3,}|…|#{4,}|-{4,}|_{4,}|0{6,}|1234567|abcdef|deadbeef|lorem"
)
_REFERENCE = re.compile(
    r"^\$|^#?\{[^{}]*\}$|^\\\(|^\[[A-Za-z _-]+\]$|^%[A-Za-z_(]"
    r"|\$\{|\$\(|\{\{|%\(|<[A-Za-z_ /-]+>|^@|^&|^!|^arn:|^(?:env|ref|vault|op|ssm|file):"
)
_CONSTANT = re.compile(r"[A-Z]{2,}(?:_[A-Z]{2,})+")
"""`CLIENT_SECRET` where a secret stands is the name of what goes there."""
_TECHNICAL = re.compile(
    r"(?i)^(?:sha|md|aes|rsa|hs|rs|es|ps|ed|ec|base|utf|oauth|pbkdf|argon|bcrypt|scrypt|x|pkcs|http|ipv|u?int|float)\d"
    r"|i18n|l10n|pass|pwd|secret|token|key|cred|auth|field|input|user"
)
"""Names in which a number stands: of algorithms, encodings and types, and of what holds a password."""
_WORDS = re.compile(r"[A-Za-z]+(?:[-_.:/ ][A-Za-z]+)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z]*(?:[-_.][A-Za-z0-9]+)*")
_CAMEL = re.compile(r"(?:[._]?(?:[A-Z]?[a-z]{2,}\d{0,5}|[A-Z]{1,6}\d{2,5}|[A-Z]{2,6}))+")
"""Names in code, also dotted: `ed25519.Ed25519PrivateKey`."""
_PATH = re.compile(
    r"[A-Za-z]:\\|[\w.-]+(?:/[\w.-]+)+\.\w{1,5}$|[\w-]+\.(?:py|js|ts|json|ya?ml|pem|txt|md|go|rs|toml|env)$"
)
_ROOTED = re.compile(r"(?:\.{1,2}|~)?/")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+\.\w+$|www\.")
_CODE = re.compile(r"[()\[\]{}<>|]|::|->|=>|\s")
_HASH = re.compile(r"\$(?:2[abxy]|argon2\w*|5|6|pbkdf2[\w-]*|scrypt)\$|^(?:sha\d{1,3}|md5)[-:]|^pbkdf2_")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_HEX = re.compile(r"(?i)[0-9a-f]+")
_SEQUENCES = (
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789+/",
    "01234567890123456789abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
)


def entropy(text: str) -> float:
    """Bits per character, from how often each occurs (Shannon)."""
    if not text:
        return 0.0
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)


def is_placeholder(value: str) -> bool:
    """Whether it only stands for a value: a template, a reference, a word like `changeme`, one character."""
    if _PLACEHOLDER.search(value) or _REFERENCE.search(value) or _CONSTANT.fullmatch(value):
        return True
    return len(set(value)) <= 3 or any(value.lower() in sequence for sequence in _SEQUENCES)


def looks_random(value: str) -> bool:
    """Whether a token of a known form can be a real one: not a placeholder, and varied enough."""
    return not is_placeholder(value) and entropy(value) >= 2.8


def is_password(value: str, *, quoted: bool) -> bool:
    """Whether a value given for a password is one: nothing that is only a word, a name, a path or code."""
    if len(value) < SHORTEST or len(value) > 300 or is_placeholder(value) or _HASH.search(value):
        return False
    if not quoted and _CODE.search(value):
        return False
    # A word with a number behind it is a name in code, but a password where a password is given; so are
    # several in quotes, where no name of code stands.
    is_word_with_number = re.fullmatch(r"[A-Za-z]+\d{1,6}", value) is not None
    are_words_with_numbers = (
        quoted
        and re.fullmatch(r"[A-Za-z]+(?:\d{1,6}[A-Za-z]*)+", value) is not None
        and not _TECHNICAL.search(value)
    )
    if not is_word_with_number and not are_words_with_numbers and _is_named_thing(value):
        return False
    if any(character.isspace() for character in value):
        return False
    has_digit = any(character.isdigit() for character in value)
    has_symbol = any(not character.isalnum() for character in value)
    has_letter = any(character.isalpha() for character in value)
    if not has_letter:
        # A number is a number unless it is long or has signs in it.
        return has_symbol and has_digit and len(value) >= 8
    return has_digit or (has_symbol and bool(re.search(r"[!@#$%^&*+=?~]", value))) or _mixed_letters(value)


def is_key(value: str, *, quoted: bool) -> bool:
    """Whether a value given for a key or token is one: long and varied, in letters and digits or hex."""
    if len(value) < 12 or len(value) > 4_000 or is_placeholder(value) or _HASH.search(value):
        return False
    if (_CODE.search(value) and not (quoted and _is_jumble(value))) or _ADDRESS.match(value):
        return False
    if _UUID.fullmatch(value):
        return entropy(value) >= 2.8
    if _HEX.fullmatch(value):
        return len(value) >= 16 and entropy(value) >= 2.8 and not value.isdigit()
    if _is_named_thing(value):
        return False
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    if not letters:
        return False
    if not digits:
        return len(value) >= 20 and _mixed_letters(value) and entropy(value) >= 3.8
    return entropy(value) >= 3.0


def is_suspect(value: str) -> bool:
    """Whether a bare word looks random enough to be looked at: a guess, never a verdict.

    Hex, UUIDs, digests, names in words and dotted or slashed paths are left alone.
    """
    if len(value) < 24 or is_placeholder(value) or _HEX.fullmatch(value) or _UUID.search(value):
        return False
    if _HASH.search(value) or _ADDRESS.match(value) or _is_named_thing(value):
        return False
    digits = sum(character.isdigit() for character in value)
    if not digits or not any(character.islower() for character in value):
        return False
    if not any(character.isupper() for character in value):
        return len(value) >= 32 and entropy(value) >= 4.0 and digits >= 4 and "_" not in value
    return entropy(value) >= 4.2


def _is_jumble(value: str) -> bool:
    """Letters, digits and signs in such disorder as no code has."""
    signs = {character for character in value if not character.isalnum() and not character.isspace()}
    digits = sum(character.isdigit() for character in value)
    is_long = len(value) >= 20 and not any(character.isspace() for character in value)
    return is_long and digits >= 3 and len(signs) >= 4 and entropy(value) >= 4.0


def _is_named_thing(value: str) -> bool:
    """Words, an identifier, a path or an address: what code and texts name things with."""
    if (
        _ADDRESS.match(value)
        or _PATH.search(value)
        or (_CAMEL.fullmatch(value) and not _mixed_letters(value))
    ):
        return True
    if _WORDS.fullmatch(value) and not _mixed_letters(value):
        return True
    if not _NAME.fullmatch(value):
        return False
    parts = re.split(r"[-_.]", value)
    wordy = [part for part in parts if part.isalpha() and not _mixed_letters(part)]
    counted = [part for part in parts if part.isdigit() or re.fullmatch(r"[A-Za-z]{1,8}\d{1,2}", part)]
    return len(parts) > 1 and len(wordy) >= 1 and len(wordy) + len(counted) == len(parts) and len(value) < 60


def _mixed_letters(value: str) -> bool:
    """Capitals and small letters in an order that no name has: they change too often."""
    letters = [character for character in value if character.isalpha()]
    if len(letters) < 8:
        return False
    changes = sum(1 for one, two in pairwise(letters) if one.isupper() != two.isupper())
    return changes / len(letters) > 0.36
