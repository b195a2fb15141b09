"""Makes credentials that were never issued, at run time, from a seeded generator: none is in any file."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from dataclasses import dataclass

HEX = "0123456789abcdef"
WORD = string.ascii_letters + string.digits
BASE64 = WORD + "+/"
URLSAFE = WORD + "-_"

ALPHABETS = {
    "hex": HEX,
    "word": WORD,
    "base64": BASE64,
    "url": URLSAFE,
    "digits": string.digits,
    "nonzero": "123456789",
    "letters": string.ascii_letters,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "bech32": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "azure": URLSAFE + ".~",
    "signs": string.ascii_lowercase + string.digits + "!@#$^&*(-_=+)",
}


@dataclass(frozen=True)
class TrueCase:
    """A text that holds a credential."""

    name: str
    text: str
    secret: str
    """What must not leave."""
    known_miss: bool = False
    """It does leave, and the documentation says so."""


@dataclass(frozen=True)
class FalseCase:
    """A text that holds none, though it looks like it."""

    name: str
    text: str
    known_mistake: bool = False
    """It is taken for one."""


class Maker:
    """Makes values that look like what issuers give out."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def of(self, alphabet: str, length: int) -> str:
        """Random characters; where the alphabet has digits and letters, both are in it."""
        kinds = [kind for kind in (string.digits, string.ascii_letters) if set(kind) & set(alphabet)]
        while True:
            made = "".join(self._random.choice(alphabet) for _ in range(length))
            if all(set(kind) & set(made) for kind in kinds):
                return made

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def jwt(self) -> str:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
        body = json.dumps({"sub": self.of(string.digits, 10), "iat": 1516239022, "role": "a"})
        return f"{head}.{base64.urlsafe_b64encode(body.encode()).decode().rstrip('=')}.{self.of(URLSAFE, 43)}"

    def like(self, text: str) -> str:
        """Other letters and digits in the places of these."""
        kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
        return "".join(
            next((self._random.choice(kind) for kind in kinds if character in kind), character)
            for character in text
        )

    def filled(self, text: str) -> str:
        """With random characters for `«alphabet:number»`, and a token for `«jwt»`."""

        def one(match: re.Match[str]) -> str:
            name, _, length = match[1].partition(":")
            return self.jwt() if name == "jwt" else self.of(ALPHABETS[name], int(length))

        return re.sub("«([^»]*)»", one, text)

    def key_lines(self, count: int) -> str:
        return "\n".join(self.of(BASE64, 64) for _ in range(count))

    def password(self) -> str:
        return (
            self._random.choice(["Tiger", "Maple", "Harbor", "Quartz"])
            + self._random.choice("!#%?")
            + self.of(string.digits, 3)
            + self.of(string.ascii_lowercase, 3)
        )


def pem(kind: str, body: str) -> str:
    """A private key file."""
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"
