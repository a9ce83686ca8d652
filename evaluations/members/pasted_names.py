"""Usernames and e-mail addresses in pasted text."""

import re
from dataclasses import dataclass
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.models.users import fold_username

MAX_NAMES: Final = 300
MAX_CHARACTERS: Final = 60_000
# “Ada Lovelace <ada@example.org>”, as mail programs copy it.
ADDRESS_WITH_NAME: Final = re.compile(r"([^<>,;\n]*)<\s*(?:mailto:)?([^<>\s]+)\s*>")
SEPARATORS: Final = re.compile(r"[\s,;]+")
QUOTES: Final = " \t\"'“”"


@dataclass(frozen=True)
class PastedName:
    """A username as it was pasted, and the name to show for it: "" where the text has none."""

    username: str
    display_name: str = ""


def parse_pasted_names(text: str) -> list[PastedName]:
    """The names in the order of the text, each once. Spaces, commas, semicolons and lines separate them.

    >>> [name.username for name in parse_pasted_names("ada, grace@example.org;Ada")]
    ['ada', 'grace@example.org']
    >>> parse_pasted_names('"Ada Lovelace" <ada@example.org>')
    [PastedName(username='ada@example.org', display_name='Ada Lovelace')]
    """
    found: list[PastedName] = []
    position = 0
    for match in ADDRESS_WITH_NAME.finditer(text):
        found += split_names(text[position : match.start()])
        found.append(PastedName(match[2], match[1].strip(QUOTES)))
        position = match.end()
    found += split_names(text[position:])
    unique: dict[str, PastedName] = {}
    for name in found:
        unique.setdefault(fold_username(name.username), name)
    if not unique:
        raise InputRefused("Enter at least one name or e-mail address.")
    if len(unique) > MAX_NAMES:
        raise InputRefused(f"{len(unique):,} names are too many. Add up to {MAX_NAMES} at a time.")
    return list(unique.values())


def split_names(text: str) -> list[PastedName]:
    return [PastedName(name) for part in SEPARATORS.split(text) if (name := part.strip(QUOTES))]
