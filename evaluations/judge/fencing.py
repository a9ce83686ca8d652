"""Delimiters round judged text that the text itself cannot guess."""

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

# Whatever looks like one of our delimiters inside a judged text loses its double bracket.
FORGED: Final = re.compile(r"\[\[(?=\s*(?:begin|end)\b)", re.IGNORECASE)


def fence_token(fence_key: str, texts: Iterable[str]) -> str:
    """Sixteen hex digits from the key and the texts: the same call always renders the same prompt.

    Each text goes in with its length, so that moving a boundary changes the token.
    """
    digest = hmac.new(fence_key.encode(), digestmod=hashlib.sha256)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:16]


def fenced(title: str, text: str, token: str) -> str:
    """The text between two delimiter lines, with every look-alike in it broken."""
    return f"[[begin {title} {token}]]\n{FORGED.sub('[ [', text)}\n[[end {title} {token}]]"
