"""Values that may be secrets, pasted where something else was asked for. No error, event or log repeats them."""

import re
from typing import Final

# What providers begin their keys with, and a run of characters that no name has.
KEY: Final = re.compile(
    r"(?:bearer\s+)?(?:sk|pk|rk|gsk|xai|pplx|nvapi|csk|tgp|fw|hf|r8|ghp|glpat|whsec)[-_][A-Za-z0-9_=+/.-]{16,}"
    r"|bearer\s+\S{16,}|AIza[A-Za-z0-9_-]{30,}|A[KS]IA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+"
    r"|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{32,}",
    re.IGNORECASE,
)
# The same within a text: after what providers begin their keys with, a run of letters and digits that no word has.
KEY_IN_TEXT: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|pplx|nvapi|csk|tgp|fw|hf|r8|ghp|glpat|whsec)[-_](?:[A-Za-z0-9]{1,12}[-_]){0,3}"
    r"(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{16,}[\w-]*",
    re.ASCII,
)
VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


def may_be_key(text: str) -> bool:
    """Whether the text looks like an API key or token rather than a name, or holds one."""
    return KEY.fullmatch(text.strip()) is not None or KEY_IN_TEXT.search(text) is not None


def without_keys(text: str) -> str:
    return KEY_IN_TEXT.sub("…", text)


def is_variable_name(text: str) -> bool:
    """Whether the text can be shown as the name of an environment variable: LIKE_THIS, and no key."""
    return VARIABLE.fullmatch(text.strip()) is not None and not may_be_key(text)


def is_plain_address(text: str) -> bool:
    """Whether the text can be shown as an address: it holds no user, password or parameters, and no key."""
    return not any(mark in text for mark in "@?#") and not any(map(may_be_key, text.split("/")))
