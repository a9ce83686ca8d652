"""Values inside the objects and lists of a record, by paths such as ``message.content`` or ``choices.0.text``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

MAX_PATHS: Final = 100
MAX_DEPTH: Final = 5
LISTED_PLACES: Final = (0, -1)  # of a list: its first and its last item


def get_value(values: Mapping[str, Any], path: str) -> Any:
    """The value of a column of that name, else the one at that path; None if there is neither."""
    if path in values or "." not in path:
        return values.get(path)
    found: Any = values
    for part in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and is_place(part) and -len(found) <= int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def is_place(part: str) -> bool:
    number = part.removeprefix("-")
    return number.isascii() and number.isdecimal() and len(number) < 6


def list_paths(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The paths to the texts and numbers inside the objects of these rows, up to 100."""
    paths: dict[str, None] = {}
    for row in rows:
        for column, value in row.items():
            if isinstance(value, (dict, list)):
                paths.update(dict.fromkeys(walk_paths(value, column, 1)))
        if len(paths) >= MAX_PATHS:
            break
    return tuple(path for path in paths if path not in {column for row in rows for column in row})[:MAX_PATHS]


def walk_paths(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth < MAX_DEPTH:
        for key, inner in value.items():
            yield from walk_paths(inner, f"{path}.{key}", depth + 1)
    elif isinstance(value, list) and depth < MAX_DEPTH:
        for place in LISTED_PLACES:
            if value and isinstance(value[place], (dict, list)):
                yield from walk_paths(value[place], f"{path}.{place}", depth + 1)
    if depth > 1 and value is not None and not isinstance(value, dict):
        yield path
