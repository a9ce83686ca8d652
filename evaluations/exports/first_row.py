"""The first row of a preview, shortened for a page."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

MAX_FIRST_ROW_BYTES: Final = 1_000_000
MAX_TEXT_CHARACTERS: Final = 140
MAX_ITEMS: Final = 3


class FirstLine:
    """The first line of the blocks that pass. ``is_complete`` once its end has passed."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.is_complete = False

    def watch(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            if not self.is_complete and len(self.kept) < MAX_FIRST_ROW_BYTES:
                start, newline, _ = block.partition(b"\n")
                self.kept += start
                self.is_complete = bool(newline)
            yield block

    def format(self) -> str:
        """The line as indented JSON with shortened texts; "" if it is not whole or not JSON."""
        try:
            row = json.loads(self.kept) if self.is_complete else None
        except ValueError:
            return ""
        return "" if row is None else json.dumps(shorten_json(row), ensure_ascii=False, indent=1)


def shorten_json(value: Any) -> Any:
    """
    >>> shorten_json({"a": [1, 2, 3, 4], "b": "short"})
    {'a': [1, 2, 3, '… 1 more'], 'b': 'short'}
    """
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARACTERS:
        return f"{value[:MAX_TEXT_CHARACTERS]}…"
    if isinstance(value, list):
        more = len(value) - MAX_ITEMS
        return [*map(shorten_json, value[:MAX_ITEMS]), *([f"… {more:,} more"] if more > 0 else [])]
    if isinstance(value, dict):
        return {key: shorten_json(item) for key, item in value.items()}
    return value
