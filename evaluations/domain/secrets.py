"""The signs by which a pasted secret is recognized."""

import re
from typing import Final

# How providers begin their keys, and keys whose form no name has.
KEY_PREFIX: Final = r"(?:sk|pk|rk|gsk|xai|pplx|nvapi|csk|tgp|fw|hf|r8|ghp|glpat|whsec)[-_]"
DISTINCT_KEY: Final = r"AIza[A-Za-z0-9_-]{30,}|A[KS]IA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+"
KEY: Final = re.compile(
    rf"(?:bearer\s+)?{KEY_PREFIX}[A-Za-z0-9_=+/.-]{{16,}}|bearer\s+\S{{16,}}|{DISTINCT_KEY}"
    r"|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{32,}",
    re.IGNORECASE,
)
# A key inside a longer text: a known prefix and a run of letters and digits, or a distinct form.
KEY_IN_TEXT: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{KEY_PREFIX}(?:[A-Za-z0-9]{{1,12}}[-_]){{0,3}}(?=[A-Za-z]{{0,40}}\d)[A-Za-z0-9]{{16,}}[\w-]*"
    rf"|[Bb]earer\s+(?=\S{{0,200}}\d)[\w.~+/=-]{{16,}}|{DISTINCT_KEY})",
    re.ASCII,
)
VARIABLE_NAME: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
# Words in names of headers and fields whose values are secrets.
SECRET_WORDS: Final = frozenset(
    {"apikey", "auth", "authorization", "cookie", "credential", "credentials"}
    | {"password", "secret", "signature", "token"}
)
LAST_SECRET_WORDS: Final = frozenset({"key"})
# Names that end in such a word and are not secret.
HARMLESS_NAMES: Final = frozenset({"prompt_cache_key", "idempotency-key"})


def is_probable_key(text: str) -> bool:
    """Whether the text looks like an API key or token rather than a name, or contains one."""
    return KEY.fullmatch(text.strip()) is not None or KEY_IN_TEXT.search(text) is not None


def mask_keys(text: str) -> str:
    return KEY_IN_TEXT.sub("…", text)


def is_secret_name(name: str) -> bool:
    """Whether a header or field of this name is secret: ``X-Gateway-Token``, ``api_key``."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return name.lower() not in HARMLESS_NAMES and (not SECRET_WORDS.isdisjoint(words) or words[-1] in LAST_SECRET_WORDS)


def can_show_lines(text: str) -> bool:
    """Whether lines such as ``Name: value`` can be shown again because none may contain a secret."""
    if is_probable_key(text):
        return False
    pairs = [line.partition(":") for line in text.splitlines()]
    return not any(
        is_probable_key(value) or (is_secret_name(name.strip(' \t{,"')) and "$" not in value)
        for name, _, value in pairs
    )


def is_variable_name(text: str) -> bool:
    """Whether the text can be shown as the name of an environment variable: LIKE_THIS, and no key."""
    return VARIABLE_NAME.fullmatch(text.strip()) is not None and not is_probable_key(text)


def is_plain_address(text: str) -> bool:
    """Whether the text can be shown as an address, without a user, password, parameters or key."""
    return not any(mark in text for mark in "@?#") and not any(map(is_probable_key, text.split("/")))
