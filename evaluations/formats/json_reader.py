"""JSON as records: one object a line, one array, or an array under a key of one object."""

import codecs
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow
from evaluations.formats.record_streams import (
    BLOCK_BYTES,
    MAX_BLANK_BYTES,
    MAX_BLANK_LINES,
    MAX_RECORD_BYTES,
    MB,
    NOT_UTF8,
    Record,
    blocks_of_lines,
    too_many_blank_lines,
)
from evaluations.formats.values import json_or_none, repeated_key_sentence

# Under which keys of an object rows are looked for first.
NUMBERED: Final = re.compile(r'\{\s*"0"\s*:\s*[^{\[\s]')  # the rows of one column of a table that pandas wrote
USUAL_KEYS: Final = frozenset({"data", "examples", "rows", "records", "items", "instances"})
MAX_COLUMNWISE_BYTES: Final = 32 * MB
# Samples of a long file beyond its beginning.
PLACES: Final = 16
PLACE_BYTES: Final = 64 * 1024
ROWS_OF_A_PLACE: Final = 50
BLANK: Final = re.compile(r"[ \t\r\n]*")
DECODER: Final = json.JSONDecoder()  # of beginnings, where nothing becomes a row


class StrictDecoder:
    """A decoder that records repeated keys of an object, of which the standard decoder silently keeps the last."""

    def __init__(self) -> None:
        self.repeated_keys: list[str] = []
        self.read = json.JSONDecoder(object_pairs_hook=self._object).raw_decode

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        parsed = dict(pairs)
        if len(parsed) < len(pairs):
            self.repeated_keys.append(repeated_key_sentence(pairs))
        return parsed

    def take_reason(self) -> str:
        """The reason why the last value is bad; the record of repeated keys is cleared."""
        why = self.repeated_keys[0]
        self.repeated_keys.clear()
        return why


def read_json_lines(file: BinaryIO, name: str) -> Iterator[Record | BadRow]:
    strict = StrictDecoder()
    read, repeated_keys = strict.read, strict.repeated_keys
    index = number = 0
    written = 0  # the last line with something on it
    for block in blocks_of_lines(file, name):
        for line in block:
            number += 1
            try:
                text = line.decode().strip()
                if not text:
                    continue
                written = number
                values, end = read(text)
                if end == len(text) and type(values) is dict:
                    yield BadRow(number, strict.take_reason()) if repeated_keys else Record(number, index, values)
                else:
                    yield BadRow(number, explain_no_record(text))
                    repeated_keys.clear()
            except ValueError as error:
                yield BadRow(number, explain_json_error(error))
                repeated_keys.clear()
            except RecursionError:
                yield BadRow(number, "nested too deeply")
                repeated_keys.clear()
            index += 1
        if number - written > MAX_BLANK_LINES:
            raise too_many_blank_lines(name, written + 1)


def rows_from_all_over(file: BinaryIO) -> list[Mapping[str, Any]]:
    """Rows sampled from positions spread over a file of lines; the file position is restored."""
    here = file.tell()
    end = file.seek(0, io.SEEK_END)
    rows: list[Mapping[str, Any]] = []
    for place in range(1, PLACES + 1):
        file.seek(max(here, (end - here) * place // PLACES + here - PLACE_BYTES))
        lines = file.read(PLACE_BYTES).split(b"\n")
        whole = lines[1:] if place == PLACES else lines[1:-1]
        parsed = map(json_or_none, whole[-ROWS_OF_A_PLACE:])
        rows += [row for row in parsed if isinstance(row, dict) and row]
    file.seek(here)
    return rows


def explain_no_record(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return explain_json_error(error)
    return "is not a JSON object"


def explain_json_error(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the line {NOT_UTF8}"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg.lower()} at column {error.colno}"
    return "has a number with too many digits"


def read_json_array(file: BinaryIO, name: str) -> Iterator[Record | BadRow]:
    """The objects of one JSON array, each decoded as soon as it has been read."""
    text = TextWindow(file, name)
    yield from entries_of_array(text, None)
    text.refuse_more("array")


def read_json_under_key(key: str, file: BinaryIO, name: str) -> Iterator[Record | BadRow]:
    """The objects of the array under one key of a JSON object; members before the array go to ``enclosing``."""
    text = TextWindow(file, name)
    enclosing: dict[str, Any] = {}
    text.take("{")
    while text.next_letter() != "}":
        member = text.take_value()
        if not isinstance(member, str):
            raise text.refusal("a key must be text")
        text.take(":")
        if member == key:
            yield from entries_of_array(text, enclosing)
            enclosing = {}  # members after the array belong to no row
        else:
            enclosing[member] = text.take_value()
        if text.next_letter() == ",":
            text.take(",")
        elif text.next_letter() != "}":
            raise text.refusal("a comma or the closing brace is missing")
    text.take("}")
    text.refuse_more("object")


def entries_of_array(text: "TextWindow", enclosing: Mapping[str, Any] | None) -> Iterator[Record | BadRow]:
    text.take("[")
    index = 0
    while (letter := text.next_letter()) != "]":
        if index:
            if letter != ",":
                raise text.refusal("a comma or the closing bracket is missing")
            text.take(",")
            letter = text.next_letter()
        if letter != "{":
            raise text.refusal("each entry of the array must be an object")
        line = text.line
        values = text.take_value()
        yield (
            BadRow(line, text.strict.take_reason())
            if text.strict.repeated_keys
            else Record(line, index, values, enclosing)
        )
        index += 1
    text.take("]")


def read_json_columns(columns: Mapping[str, Any]) -> Iterator[Record | BadRow]:
    """Rows of a small JSON object with a list for each column."""
    for index, values in enumerate(zip(*columns.values(), strict=True)):
        yield Record(index + 1, index, dict(zip(columns, values, strict=True)))


class TextWindow:
    """A window on a long text: knows its line, grows until a value fits, forgets what was read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.line = 1
        self.strict = StrictDecoder()
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._window = ""
        self._at = 0
        self._blank = 0
        self._ended = False

    def refusal(self, why: str) -> InputRefused:
        return InputRefused(f"{self.name} is broken at line {self.line:,}: {why}. Nothing after it was read.")

    def is_over(self) -> bool:
        """Skip white space, and return whether the text is at its end."""
        self._blank = 0
        while True:
            blank = BLANK.match(self._window, self._at)
            assert blank is not None
            self._blank += blank.end() - self._at
            self._pass(blank.end())
            if self._at < len(self._window) or self._ended:
                return self._at == len(self._window)
            if self._blank > MAX_BLANK_BYTES:
                raise too_many_blank_lines(self.name, self.line)
            self._grow()

    def next_letter(self) -> str:
        """The next character that is not white space, without taking it."""
        if self._at < len(self._window) and self._window[self._at] > " ":
            return self._window[self._at]
        if self.is_over():
            raise self.refusal("the file ends too early")
        return self._window[self._at]

    def take(self, letter: str) -> None:
        if self.next_letter() != letter:
            raise self.refusal(f"“{letter}” is missing")
        self._pass(self._at + 1)

    def take_value(self) -> Any:
        self.next_letter()
        while True:
            self.strict.repeated_keys.clear()
            try:
                value, end = self.strict.read(self._window, self._at)
            except json.JSONDecodeError as error:
                if self._ended or len(self._window) - self._at > MAX_RECORD_BYTES:
                    raise self.refusal(f"not valid JSON ({error.msg.lower()})") from None
                self._grow()
            except (ValueError, RecursionError):
                raise self.refusal("a number is too long or objects are nested too deeply") from None
            else:
                if end < len(self._window) or self._ended:
                    self._pass(end)
                    return value
                self._grow()  # a number may go on

    def refuse_more(self, what: str) -> None:
        if not self.is_over():
            raise self.refusal(f"there is text after the end of the {what}")

    def _pass(self, end: int) -> None:
        self.line += self._window.count("\n", self._at, end)
        self._at = end

    def _grow(self) -> None:
        """Read as much again as is in the window, so that a long object is not scanned too often."""
        self._window = self._window[self._at :]
        self._at = 0
        more = self._file.read(max(BLOCK_BYTES, len(self._window)))
        self._ended = not more
        try:
            self._window += self._decoder.decode(more, final=self._ended)
        except UnicodeDecodeError:
            raise self.refusal(f"the text {NOT_UTF8}") from None


def find_rows_key(head: str) -> str | None:
    """The key under which a JSON object holds its rows, by its beginning; None where it is a row itself.

    A common key; else, if the object spans several lines, the only key with an array of objects.
    """
    first, _, rest = head.lstrip().partition("\n")
    is_row = isinstance(json_or_none(first), dict)
    if is_row and rest.strip():
        return None
    arrays: list[str] = []
    for key, value in object_members(head):
        if value.startswith("[") and key in USUAL_KEYS:
            return key
        if value.startswith("[") and value[1:].lstrip().startswith("{"):
            arrays.append(key)
    return arrays[0] if rest and not is_row and len(arrays) == 1 else None


def object_members(head: str) -> Iterator[tuple[str, str]]:
    """The keys at the beginning of an object, with the beginnings of their values."""
    at = head.index("{") + 1
    try:
        while True:
            key, at = DECODER.raw_decode(head, skip_blank(head, at))
            at = skip_blank(head, skip_blank(head, at) + 1)
            if not isinstance(key, str):
                return
            yield key, head[at : at + 200]
            _, at = DECODER.raw_decode(head, at)
            at = skip_blank(head, at) + 1
    except (ValueError, RecursionError):
        return


def skip_blank(text: str, at: int) -> int:
    blank = BLANK.match(text, at)
    assert blank is not None
    return blank.end()


def may_be_columnwise(head: str) -> bool:
    """Whether the first value of an object is a list of single values, or an object of them by their numbers."""
    _, value = next(object_members(head), ("", ""))
    if NUMBERED.match(value):
        return True
    return value.startswith("[") and not value[1:].lstrip().startswith(("{", "["))


def parse_columnwise_object(content: bytes, name: str) -> Mapping[str, list[Any]] | None:
    """The columns of an object whose values are lists of one length, else None.

    Or, as pandas writes a table, an object with the same numbers of rows for each.
    """
    strict = StrictDecoder()
    try:
        text = content.decode("utf-8-sig").strip()
        values, end = strict.read(text)
    except (ValueError, RecursionError):
        return None
    if end < len(text):
        return None
    if strict.repeated_keys:
        raise InputRefused(f"{name} is one JSON object, and {strict.take_reason()}.")
    if isinstance(values, dict) and all(isinstance(column, dict) for column in values.values()):
        is_table = len({tuple(column) for column in values.values()}) == 1
        values = {name: list(column.values()) for name, column in values.items()} if is_table else None
    lists = isinstance(values, dict) and all(isinstance(column, list) for column in values.values())
    return values if lists and len({len(column) for column in values.values()}) == 1 else None
