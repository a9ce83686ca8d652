"""Single values of a record, with the sentence why one is refused."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, cast

MAX_KEY: Final = 200  # query ids, clusters, names of candidates and raters
MAX_CATEGORY: Final = 120
MAX_ASPECT: Final = 60
MAX_SAMPLE: Final = 32_767
MAX_DEPTH: Final = 50
MAX_NAMES: Final = 1_000  # of columns that are remembered
NOT_STORABLE: Final = re.compile("[\x00\ud800-\udfff]")
ASPECT_KEY: Final = re.compile(r"[-a-z0-9_]+")
NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
POINT_ZERO: Final = re.compile(r"(?<=[0-9])\.0+$")  # as tables write whole numbers in columns with empty cells
Values = Mapping[str, Any]


class RowRefused(Exception):
    """A record that cannot be stored; the reason follows “line 17:”."""


def refuse_unstorable(value: object, where: str, depth: int = 0) -> None:
    """NUL, lone surrogates, NaN and Infinity: no database keeps them as they are."""
    if isinstance(value, str):
        # Plain ASCII, as most texts are, is passed without a search for invalid characters.
        if (not value.isascii() or "\x00" in value) and (match := NOT_STORABLE.search(value)):
            what = "a NUL character" if match.group() == "\x00" else "half of a surrogate pair"
            raise RowRefused(f"{where} holds {what}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise RowRefused(f"{where} is NaN or infinite")
    elif isinstance(value, (dict, list)):
        if depth == MAX_DEPTH:
            raise RowRefused(f"{where} is nested more than {MAX_DEPTH} levels deep")
        for part in [*value.keys(), *value.values()] if isinstance(value, dict) else value:
            refuse_unstorable(part, where, depth + 1)


@lru_cache(maxsize=MAX_NAMES)
def refuse_unstorable_name(column: str) -> None:
    refuse_unstorable(column, "a column's name")


def value_as_text(value: object, field: str) -> str:
    """A value as text: what JSON writes as a boolean or a number keeps JSON's spelling."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise RowRefused(f"{field} must be text")


def optional_text(values: Values, field: str, limit: int | None = None) -> str:
    """The text of a column, or "" where the column or its value is absent."""
    value = values.get(field)
    text = "" if value is None else value_as_text(value, field)
    if limit is not None and len(text) > limit:
        raise RowRefused(f"{field} has {len(text):,} characters; the limit is {limit}")
    return text


def required_text(values: Values, field: str, limit: int | None = None) -> str:
    text = optional_text(values, field, limit)
    if not text.strip():
        raise RowRefused(f"{field} is missing")
    return text


def required_name(values: Values, field: str) -> str:
    """The name of a model or of a rater, without the blank space around it: it would make another one."""
    return required_text(values, field, MAX_KEY).strip()


def repeated_key_sentence(pairs: Sequence[tuple[str, object]]) -> str:
    key = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return f"the key “{key[:40]}” appears more than once in one object"


def object_from_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise RowRefused(repeated_key_sentence(pairs))
    return values


def parse_structured_value(value: object, field: str) -> object:
    """A structured value, parsed from JSON where it is in a cell of a CSV."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        parsed: object = json.loads(value, object_pairs_hook=object_from_pairs)
    except (ValueError, RecursionError):
        raise RowRefused(f"{field} is not valid JSON") from None
    refuse_unstorable(parsed, field)
    return parsed


def json_or_none(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def row_metadata(values: Values, used: frozenset[str]) -> dict[str, Any]:
    """The column ``row_metadata``, and every column that no format knows."""
    metadata = parse_structured_value(values.get("metadata"), "metadata")
    if metadata is None and values.keys() <= used:
        return {}
    if not isinstance(metadata, (dict, type(None))):
        raise RowRefused("metadata must be an object")
    others = {column: value for column, value in values.items() if column not in used and column != "metadata"}
    return {**others, **cast("dict[str, Any]", metadata or {})}


def content_key(value: object) -> str:
    """A short id made of the text alone."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.strip().encode(errors="replace")).hexdigest()[:16]


def aspect_key(values: Values, default: str) -> str:
    key = (optional_text(values, "aspect", MAX_ASPECT) or default).strip().lower()
    if not ASPECT_KEY.fullmatch(key):
        raise RowRefused(f"aspect “{key}” may have only letters, digits, hyphens and underscores")
    return key


def whole_number(values: Values, field: str, most: int) -> int | None:
    text = POINT_ZERO.sub("", optional_text(values, field).strip())
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) > most:
        raise RowRefused(f"{field} must be a whole number from 0 to {most:,}")
    return int(text)


def required_number(values: Values, field: str) -> float:
    """A number: as JSON has it, or spelled so in a cell of a CSV. A boolean is none."""
    value = values.get(field)
    if isinstance(value, bool) or not isinstance(value, (int, float, str, type(None))):
        raise RowRefused(f"{field} must be a number")
    text = required_text(values, field).strip()
    if not NUMBER.fullmatch(text):
        raise RowRefused(f"{field} “{text[:40]}” is not a number such as 4 or 3.5")
    number = float(text)
    if not math.isfinite(number):
        raise RowRefused(f"{field} “{text[:40]}” is too large")
    return number + 0.0  # what is written as -0 is 0


def iso_time(values: Values, field: str) -> str | None:
    """A time in ISO 8601, checked and returned unchanged."""
    text = optional_text(values, field).strip()
    if not text:
        return None
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise RowRefused(f"{field} “{text[:40]}” is not a time such as 2026-01-31T12:00:00Z") from None
    return text


def approximate_size(value: Any) -> int:
    """About how many characters a value has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(approximate_size, value)) + sum(map(approximate_size, value.values()))
    return sum(map(approximate_size, value)) if isinstance(value, list) else 8
