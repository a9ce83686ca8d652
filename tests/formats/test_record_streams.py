"""Bytes in, records out; and one clear sentence for what is no file of rows."""

import csv
import io
import json
import os
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow
from evaluations.formats import json_reader
from evaluations.formats.record_streams import BLOCK_BYTES, NOT_UTF8, Record
from evaluations.formats.sources import open_source

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\r\t"))
COLUMNS = ("one", "two", "three")


def holds_something(cells: Iterable[object]) -> bool:
    """Rows without anything in them are skipped, which has its own tests."""
    return any(cell is not None and (not isinstance(cell, str) or cell.strip()) for cell in cells)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.dictionaries(TEXT, values, min_size=1).filter(lambda row: holds_something(row.values()))
    return st.lists(row, min_size=1)


def read(content: bytes) -> list[Record | BadRow]:
    return list(open_source(io.BytesIO(content), "rows.file").records)


def values(content: bytes) -> list[object]:
    return [record.values if isinstance(record, Record) else record for record in read(content)]


def refusal(content: bytes) -> str:
    with pytest.raises(InputRefused) as refused:
        read(content)
    return str(refused.value)


@given(objects(TEXT | st.none() | st.booleans()))
def test_jsonl_gives_back_what_was_written(rows: list[dict[str, object]]) -> None:
    assert values("\n".join(json.dumps(row) for row in rows).encode()) == rows


@given(objects(TEXT | st.lists(TEXT)), st.sampled_from([None, 1, 4]))
def test_a_json_array_gives_back_what_was_written_at_its_lines(
    rows: list[dict[str, object]], indent: int | None
) -> None:
    text = json.dumps(rows, indent=indent)
    assert values(text.encode()) == rows
    opening = [
        number for number, line in enumerate(text.split("\n"), start=1) if line.startswith(" " * (indent or 0) + "{")
    ]
    if indent:
        assert [record.line for record in read(text.encode())] == opening


@given(st.lists(st.lists(CELL, min_size=3, max_size=3).filter(holds_something), min_size=1), st.booleans())
def test_csv_gives_back_what_was_written(rows: list[list[str]], with_mark: bool) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([COLUMNS, *rows])
    content = written.getvalue().encode("utf-8-sig" if with_mark else "utf-8")
    assert values(content) == [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def test_a_csv_record_stands_at_the_line_where_it_starts() -> None:
    content = b'one,two,three\n1,"two\nlines",3\n4,5,6\n'
    assert [(record.line, record.index) for record in read(content) if isinstance(record, Record)] == [(2, 0), (4, 1)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_may_be_separated_by_commas_semicolons_or_tabs(delimiter: str) -> None:
    assert values(f"one{delimiter}two\n1{delimiter}2\n".encode()) == [{"one": "1", "two": "2"}]


def test_a_broken_line_17_is_named_and_the_others_are_read() -> None:
    lines = [json.dumps({"n": number}) for number in range(1, 31)]
    lines[16] = '{"n": 17'
    found = read("\n".join(lines).encode())
    assert [record for record in found if isinstance(record, BadRow)] == [
        BadRow(17, "not valid JSON: expecting ',' delimiter at column 9")
    ]
    assert len(found) == 30


def test_blank_lines_are_passed_over_and_still_counted() -> None:
    assert [record.line for record in read(b'{"a": 1}\n\n  \n{"a": 2}\n')] == [1, 4]


def test_a_csv_row_with_a_field_too_many_is_bad() -> None:
    assert read(b"one,two\n1,2\n1,2,3\n")[1] == BadRow(3, "has 3 fields; the header has 2")


def test_a_line_that_is_not_utf8_is_bad_and_the_others_are_read() -> None:
    assert values(b'{"a": 1}\n{"a": "\xff"}\n') == [{"a": 1}, BadRow(2, f"the line {NOT_UTF8}")]
    assert values(b"one,two\n1,2\n\xe9,2\n") == [{"one": "1", "two": "2"}, BadRow(3, f"the row {NOT_UTF8}")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"n": ' + b"9" * 5_000 + b"}", "has a number with too many digits"),
        (b"17", "is not a JSON object"),
    ],
)
def test_json_that_breaks_readers_is_a_bad_row(line: bytes, reason: str) -> None:
    assert read(b'{"a": 1}\n' + line)[1] == BadRow(2, reason)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "rows.file is empty (0 bytes)."),
        (b"\xef\xbb\xbf \n", "rows.file contains only blank space."),
        (b"[]", "rows.file has no rows."),
        (b"one,two\n", "rows.file has no rows."),
        (bytes(range(256)) * 4, "rows.file is a binary file, not text: save it as JSONL, CSV in UTF-8, or Parquet."),
        (b"na\xefve,two\n1,2\n", f"rows.file {NOT_UTF8}."),
        (
            b"one,two,one\n1,2,3\n",
            "rows.file has the column “one” more than once. Give each column its own name, or remove it.",
        ),
        (
            b'{"a": 1\n"b": 2}',
            "No row of rows.file is valid. Line 1: not valid JSON: expecting ',' delimiter at column 8.",
        ),
    ],
)
def test_a_file_that_is_no_file_of_rows_is_refused_in_one_sentence(content: bytes, sentence: str) -> None:
    assert refusal(content) == sentence


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b'[{"a": 1},\n{"a": }]', 2, "not valid JSON (expecting value)"),
        (b'[{"a": 1}\n{"a": 2}]', 2, "a comma or the closing bracket is missing"),
        (b'[{"a": 1},', 1, "the file ends too early"),
        (b"[1, 2]", 1, "each entry of the array must be an object"),
        (b'[{"a": 1}]\n{}', 2, "there is text after the end of the array"),
        (b'[{"a": "\xff"}]', 1, f"the text {NOT_UTF8}"),
        (b'[{"a": ' + b"9" * 5_000 + b"}]", 1, "a number is too long or objects are nested too deeply"),
    ],
)
def test_a_json_array_that_breaks_off_is_refused_at_its_line(content: bytes, line: int, why: str) -> None:
    assert refusal(content) == f"rows.file is broken at line {line}: {why}. Nothing after it was read."


class Endless(io.RawIOBase):
    """200 MB made as they are read: a file that is long and costs no disk."""

    def __init__(self, start: bytes, block: bytes) -> None:
        self.left = 200 * 1024 * 1024
        self.start = start
        self.block = block
        self.pending = b""
        self.taken = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        self.left, self.pending = 200 * 1024 * 1024, self.start
        return place

    def readinto(self, buffer: Any) -> int:
        if not self.pending and self.left > 0:
            self.pending = self.block
        taken = self.pending[: len(buffer)]
        buffer[: len(taken)] = taken
        self.pending = self.pending[len(taken) :]
        self.left -= len(taken)
        self.taken += len(taken)
        return len(taken)


@pytest.mark.parametrize(
    ("start", "block", "sentence"),
    [
        (b"", os.urandom(65536), "is a binary file"),
        (b"", b"garbage without an end " * 1000, "Line 1 of rows.file is longer than 16 MB"),
        (
            b"{",
            b"not json\n" * 1000,
            "None of 100 rows of rows.file, from line 1 on, is valid. Line 1: not valid JSON",
        ),
        (
            b'{"a": 1}\n',
            b"not json\n" * 1000,
            "None of 10,000 rows of rows.file, from line 2 on, is valid. Line 2: not valid JSON",
        ),
        (b"[{", b"not json either " * 1000, "is broken at line 1: not valid JSON"),
        (
            b'one,two\n"',
            b"a quote that never ends, \n" * 1000,
            "rows.file is broken at line 2: a quote is never closed.",
        ),
    ],
    ids=["bytes", "one line", "lines", "lines after a good one", "array", "quote"],
)
def test_200_mb_of_garbage_are_refused_without_reading_on(start: bytes, block: bytes, sentence: str) -> None:
    endless = Endless(start, block)
    with pytest.raises(InputRefused) as refused:
        list(open_source(buffered(endless), "rows.file").records)
    assert sentence in str(refused.value)
    assert endless.taken < 40 * 1024 * 1024


def test_a_long_file_needs_no_more_memory_than_a_short_one() -> None:
    def peak(rows: int) -> int:
        content = io.BytesIO(b'{"a": "' + b"x" * 1000 + b'"}\n')
        line = content.getvalue()
        file = buffered(Repeated(line, rows))
        tracemalloc.start()
        assert sum(1 for _ in open_source(file, "rows.file").records) == rows
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(20_000) < peak(200) + 500_000


def buffered(file: io.RawIOBase) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(file))


class Repeated(Endless):
    def __init__(self, line: bytes, times: int) -> None:
        self.size = len(line) * times
        super().__init__(b"", line)

    def seek(self, place: int, whence: int = 0) -> int:
        self.left, self.pending = self.size, b""
        return place


def test_a_text_full_of_control_characters_is_read_all_the_same() -> None:
    (row,) = read(b"name,text\n\x1f\x08\x1f\x08\x1f,\x08\x1f\x08\x1f\x08\n")
    assert isinstance(row, Record)
    assert row.values == {"name": "\x1f\x08\x1f\x08\x1f", "text": "\x08\x1f\x08\x1f\x08"}


TWICE = "the key “{}” appears more than once in one object"


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "a"),
        ('{"a": {"b": [{"c": 1, "c": 1}]}}', "c"),
    ],
)
def test_an_object_that_has_a_key_twice_is_a_bad_row_and_the_others_are_read(row: str, key: str) -> None:
    good = '{"a": 1}'
    for content in (f"{good}\n{row}\n{good}\n", f"[{good},\n{row},\n{good}]", f'{{"data": [{good},\n{row},\n{good}]}}'):
        first, bad, last = read(content.encode())
        assert [record.values for record in (first, last) if isinstance(record, Record)] == [{"a": 1}, {"a": 1}]
        assert bad == BadRow(2, TWICE.format(key))


def test_a_list_for_each_column_has_each_column_once() -> None:
    with pytest.raises(InputRefused) as refused:
        read(b'{"a": [1, 2], "b": [3, 4], "a": [5, 6]}')
    assert str(refused.value).endswith(f"is one JSON object, and {TWICE.format('a')}.")


def test_what_is_said_twice_in_a_line_that_is_no_row_is_not_held_against_the_next() -> None:
    content = b'[{"a": 1, "a": 2}] \n{"a": 1, "a": 2} x\n{"a": 1}\n'
    assert [isinstance(record, Record) for record in read(b'{"b": 1}\n' + content)] == [True, False, False, True]


def test_an_object_longer_than_the_window_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "BLOCK_BYTES", 8)
    rows: list[object] = [{"a": "x" * 1_000}, {"b": "é" * 500}]
    assert values(json.dumps(rows, ensure_ascii=False).encode()) == rows


def test_records_come_one_by_one_and_the_rest_is_not_read() -> None:
    def first(file: BinaryIO) -> Iterator[Record | BadRow]:
        yield next(open_source(file, "rows.file").records)

    line = b'{"a": 1}\n'
    file = io.BytesIO(line * 100_000)
    list(first(file))
    assert file.tell() <= BLOCK_BYTES + 3 < len(line) * 100_000


# ---- what spreadsheets leave blank ------------------------------------------------------------------------


def blank(content: bytes) -> tuple[list[object], int, int]:
    source = open_source(io.BytesIO(content), "rows.file")
    found: list[object] = [one.values if isinstance(one, Record) else one for one in source.records]
    return found, source.blank.rows, source.blank.columns


ONE: list[object] = [{"one": "1", "two": "2"}]


@pytest.mark.parametrize(
    ("content", "rows", "columns"),
    [
        (b"one,two\n1,2\n,\n , \n,\n", 3, 0),
        (b"one,two,,\n1,2,,\n,,,\n", 1, 2),
        (b",one,,two\n,1,,2\n", 0, 2),
        (b"\xef\xbb\xbfsep=;\r\none;two;\r\n1;2;\r\n;;\r\n", 1, 1),
        (b",,,\n,,,\none,two,,\n1,2,,\n", 0, 2),
        (b"one,two\n1,2,,,\n", 0, 3),
        (b"one,two,,\n1,2\n", 0, 2),
        (b"one,two,Unnamed: 2\n1,2,\n", 0, 1),
        (b"one\ttwo\t\n1\t2\t\n\t\t\n", 1, 1),
        (b'{"one": "1", "two": "2"}\n{"one": null, "two": " "}\n', 1, 0),
        (b'[{"one": "1", "two": "2"}, {"one": "", "two": null}]', 1, 0),
    ],
)
def test_blank_rows_and_columns_are_skipped_and_counted(content: bytes, rows: int, columns: int) -> None:
    assert blank(content) == (ONE, rows, columns)


def test_rows_after_blank_ones_keep_their_lines_and_their_numbers() -> None:
    found = [one for one in read(b"one,two\n1,2\n,\n3,4\n") if isinstance(one, Record)]
    assert [(one.line, one.index) for one in found] == [(2, 0), (4, 1)]


def test_a_million_blank_rows_of_a_spreadsheet_are_no_reason_to_refuse_it() -> None:
    assert blank(b"one,two\n1,2\n" + b",\n" * 200_000)[:2] == (ONE, 200_000)


def test_one_column_without_a_name_may_hold_row_numbers_and_several_are_asked_for_names() -> None:
    assert blank(b",one\n0,1\n")[0] == [{"": "0", "one": "1"}]
    found, *_ = blank(b"one,,\n1,,\n1,x,\n")
    assert found == [{"one": "1"}, BadRow(3, "column 2 has no name and holds “x”. Name it")]
