"""The same records come out of every file, whatever it is and whatever it is packed in."""

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow, FileLimits
from evaluations.formats.archives import pack_folder
from evaluations.formats.columnar_reader import dictionary_bytes
from evaluations.formats.record_streams import Record
from evaluations.formats.sources import open_source
from tests.helpers.packed_files import (
    FLAT,
    NESTED,
    PACKED,
    Rows,
    as_arrow_stream,
    as_columns,
    as_json,
    as_jsonl,
    as_parquet,
    as_separated,
    tarred,
    zipped,
    zstd,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\r\t"), max_size=30)
NUMBER = st.integers(-(2**63), 2**63 - 1)
FRACTION = st.floats(allow_nan=False, allow_infinity=False)
# Of one kind in each column, as tables have it; an empty list or object alone would have no kind there.
NESTED_ROW = st.fixed_dictionaries(
    {
        "text": TEXT,
        "number": st.none() | NUMBER,
        "fraction": st.none() | FRACTION,
        "flag": st.none() | st.booleans(),
        "maybe": st.none() | TEXT,
        "messages": st.lists(st.fixed_dictionaries({"role": TEXT, "content": TEXT}), min_size=1, max_size=3),
        "object": st.fixed_dictionaries({"deep": st.lists(st.lists(NUMBER, min_size=1), min_size=1, max_size=2)}),
    }
)
FLAT_ROW = st.fixed_dictionaries({"one": CELL, "two, three": CELL, 'fo"ur': CELL}).filter(
    lambda row: any(map(str.strip, row.values()))  # rows without anything in them are skipped
)


def read(content: bytes) -> list[Record | BadRow]:
    return list(open_source(io.BytesIO(content), "rows.file").records)


def values(content: bytes) -> list[object]:
    return [record.values if isinstance(record, Record) else record for record in read(content)]


@given(st.lists(NESTED_ROW, min_size=2, max_size=6), st.sampled_from(sorted(NESTED)), st.sampled_from(sorted(PACKED)))
def test_records_of_any_kind_come_back_as_they_were(rows: Rows, kind: str, packed: str) -> None:
    assert values(PACKED[packed](NESTED[kind](rows))) == rows


@given(st.lists(FLAT_ROW, min_size=1, max_size=6), st.sampled_from(sorted(FLAT)), st.sampled_from(sorted(PACKED)))
def test_texts_come_back_from_tables_as_they_were(rows: Rows, kind: str, packed: str) -> None:
    assert values(PACKED[packed](FLAT[kind](rows))) == rows


@given(st.lists(FLAT_ROW, min_size=1, max_size=4))
def test_a_list_for_each_column_is_read_as_rows(rows: Rows) -> None:
    assert values(as_columns(rows)) == rows


def lines(content: bytes) -> list[int]:
    return [record.line for record in read(content)]


def test_the_files_of_an_archive_are_read_as_one_in_the_order_of_their_names() -> None:
    files = {f"part-{number}.csv": f"one\n{number}\n{number}\n".encode() for number in (10, 2, 1)}
    assert values(zipped(files)) == [{"one": number} for number in ("1", "1", "2", "2", "10", "10")]
    assert lines(zipped(files)) == [1, 2, 3, 4, 5, 6]
    assert values(tarred(files)) == [{"one": number} for number in ("10", "10", "2", "2", "1", "1")]


def test_a_bad_row_of_several_files_is_named_in_its_own() -> None:
    found = read(zipped({"1.jsonl": b'{"a": 1}\n', "2.jsonl": b'\n{"a": 2}\n{"a"'}))
    assert found[2] == BadRow(3, "not valid JSON: expecting ':' delimiter at column 5 (line 3 of 2.jsonl)")


def test_the_splits_of_a_saved_data_set_are_told_apart() -> None:
    """As `save_to_disk` of the library datasets writes them; what it leaves in its cache is not part of it."""
    files = {
        "set/dataset_dict.json": b'{"splits": ["train", "test"]}',
        "set/train/dataset_info.json": b"{}",
        "set/train/state.json": b"{}",
        "set/train/data-00000-of-00002.arrow": as_arrow_stream([{"a": 1}, {"a": 2}]),
        "set/train/data-00001-of-00002.arrow": as_arrow_stream([{"a": 3}]),
        "set/train/cache-0123.arrow": b"no data",
        "set/test/data-00000-of-00001.arrow": as_arrow_stream([{"a": 4}]),
    }
    order = [("test", 4), ("train", 1), ("train", 2), ("train", 3)]
    expected: list[object] = [{"split": split, "a": a} for split, a in order]
    assert values(zipped(files)) == expected
    assert sorted(values(gzip.compress(tarred(files))), key=str) == sorted(expected, key=str)
    assert open_source(io.BytesIO(zipped(files)), "set.zip").columns == ("split", "a")


@pytest.mark.parametrize(
    ("second", "differs"),
    [
        (b"one,three\n1,2\n", "it lacks “two” and also has “three”"),
        (b"two\n1\n", "it lacks “one”"),
        (b"two,one,a,b,c,d,e,f\n1,1,1,1,1,1,1,1\n", "it also has “a”, “b”, “c”, “d”, “e” and 1 more"),
    ],
)
def test_of_files_of_other_columns_it_is_said_which_differ(second: bytes, differs: str) -> None:
    with pytest.raises(InputRefused) as refused:
        values(zipped({"1.csv": b"one,two\n1,2\n", "2.csv": second}))
    assert str(refused.value) == (
        f"2.csv in rows.file has other columns than 1.csv: {differs}. Import them one by one."
    )


def test_a_column_named_split_stays_as_it_is() -> None:
    files = {"dataset_dict.json": b"{}", "train/data.arrow": as_arrow_stream([{"split": "mine"}])}
    assert values(zipped(files)) == [{"split": "mine"}]


def test_what_stands_before_the_rows_of_a_json_object_goes_beside_them() -> None:
    (row,) = read(b'{"models": [{"name": "one"}], "examples": [{"a": 1}], "later": 2}')
    assert isinstance(row, Record)
    assert (row.values, row.enclosing) == ({"a": 1}, {"models": [{"name": "one"}]})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"rows": [{"a": 1}]}', [{"a": 1}]),
        (b'{\n"found": [{"a": 1}],\n"of": [1, 2]}', [{"a": 1}]),
        (b'{"messages": [{"role": "user"}]}', [{"messages": [{"role": "user"}]}]),
        (b'{"data": [{"a": 1}]}\n{"data": []}', [{"data": [{"a": 1}]}, {"data": []}]),
        (b'{"tags": ["a"], "text": "b"}', [{"tags": ["a"], "text": "b"}]),
        (b'{"tags": ["a"], "more": ["b", "c"]}', [{"tags": ["a"], "more": ["b", "c"]}]),
        (b'{"a": [1, 2],\n"b": ["c", null]}', [{"a": 1, "b": "c"}, {"a": 2, "b": None}]),
    ],
)
def test_an_object_is_a_row_unless_it_clearly_holds_rows(content: bytes, expected: list[object]) -> None:
    assert values(content) == expected


def test_excel_may_say_first_how_cells_are_separated() -> None:
    (row,) = read(b"sep=;\r\none;two, three\r\n1;2\r\n")
    assert isinstance(row, Record)
    assert (row.line, row.values) == (3, {"one": "1", "two, three": "2"})


def test_what_only_tables_have_becomes_what_json_has() -> None:
    table = pa.table(
        {
            "moment": pa.array([datetime(2026, 1, 31, 12, tzinfo=UTC)], pa.timestamp("ns", "Europe/Berlin")),
            "day": [date(2026, 1, 31)],
            "hour": pa.array([time(1, 2)], pa.time64("ns")),
            "price": [Decimal("1.50")],
            "bytes": [b"text"],
            "kind": pa.array(["a"]).dictionary_encode(),
            "pairs": pa.array([[("k", Decimal("2.0"))]], pa.map_(pa.string(), pa.decimal128(3, 1))),
            "deep": pa.array([[{"at": datetime(2026, 1, 1)}]], pa.list_(pa.struct([("at", pa.timestamp("ns"))]))),
            "small": pa.array([1.5], pa.float16()),
            "nothing": pa.nulls(1),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    assert values(file.getvalue()) == [
        {
            "moment": "2026-01-31T13:00:00+01:00",
            "day": "2026-01-31",
            "hour": "01:02:00",
            "price": "1.50",
            "bytes": "text",
            "kind": "a",
            "pairs": {"k": "2.0"},
            "deep": [{"at": "2026-01-01T00:00:00"}],
            "small": 1.5,
            "nothing": None,
        }
    ]


def test_bytes_that_are_no_text_are_a_bad_row_of_a_table() -> None:
    found = read(as_parquet([{"a": b"text"}, {"a": b"\xff"}]))
    assert found == [Record(1, 0, {"a": "text"}), BadRow(2, "a has bytes that are not valid UTF-8")]


def test_text_that_is_none_is_a_bad_row_of_a_table() -> None:
    wrong = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    file = io.BytesIO()
    pq.write_table(pa.table({"a": wrong}), file)
    assert read(file.getvalue()) == [Record(1, 0, {"a": "a"}), BadRow(2, "a has bytes that are not valid UTF-8")]


def repeated(length: int, times: int) -> bytes:
    """A Parquet file that holds one text once and says that it stands in so many rows."""
    index = pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), ["x" * length])
    file = io.BytesIO()
    pq.write_table(pa.table({"a": index, "b": index.dictionary_decode() if length < 9 else index}), file)
    return file.getvalue()


def test_one_long_text_that_stands_for_many_is_not_made_many_times() -> None:
    content = repeated(6_000_000, 2_000)
    assert len(content) < 2_000_000
    before = pa.total_allocated_bytes()
    most = 0
    for record in open_source(io.BytesIO(content), "rows.parquet").records:
        assert isinstance(record, Record)
        assert len(record.values["a"]) == 6_000_000
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 100_000_000


def test_how_long_a_dictionary_is_stands_in_its_page() -> None:
    content = io.BytesIO(repeated(300_000, 10))
    assert dictionary_bytes(content, pq.read_metadata(content)) == {"a": 300_004, "b": 300_004}


@pytest.mark.parametrize("packed", [gzip.compress, zstd, lambda content: zipped({"rows.jsonl": content})])
def test_what_unpacks_to_more_than_is_allowed_is_refused(packed: Callable[[bytes], bytes]) -> None:
    content = packed(as_jsonl([{"a": number} for number in range(90_000)]))
    with pytest.raises(InputRefused, match=r"^rows\.file is larger than 1 MB when unpacked, the limit of this site"):
        list(open_source(io.BytesIO(content), "rows.file", FileLimits(unpacked_bytes=1024 * 1024)).records)


@pytest.mark.parametrize("letter", [b" ", b"\n", b"0"])
def test_a_bomb_without_rows_is_refused_long_before_its_end(letter: bytes) -> None:
    bomb = zstd(b'{"a": 1}\n' + letter * 100_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(InputRefused, match="This is not a file of rows"):
        list(open_source(io.BytesIO(bomb), "rows.file").records)


def test_a_compressed_file_of_equal_rows_is_no_bomb() -> None:
    rows = [{"a": "the same " * 100}] * 20_000
    content = zstd(as_jsonl(rows))
    assert len(content) * 2_000 < len(as_jsonl(rows))
    assert len(read(content)) == 20_000


def test_a_file_of_more_rows_than_are_allowed_is_refused() -> None:
    content = as_jsonl([{"a": 1}] * 11)
    assert len(list(open_source(io.BytesIO(content), "rows.file", FileLimits(rows=11)).records)) == 11
    with pytest.raises(InputRefused, match=r"^rows\.file has more than 10 rows, the limit of this site"):
        list(open_source(io.BytesIO(content), "rows.file", FileLimits(rows=10)).records)


def test_cells_of_ten_megabytes_are_read() -> None:
    rows = [{"a": "x" * 10_000_000}, {"a": "y" * 10_000_000}]
    for content in (as_json(rows), as_separated(",")(rows), as_parquet(rows)):
        assert values(content) == rows


def test_a_cell_longer_than_a_row_may_be_is_refused() -> None:
    rows = [{"a": "x" * 17_000_000}]
    for content in (as_jsonl(rows), as_parquet(rows)):
        with pytest.raises(InputRefused, match=r"16 MB. This is not a file of rows\.$"):
            read(content)


def test_nothing_is_left_of_a_packed_parquet_file(tmp_path: Path) -> None:
    content = zipped({"rows.parquet": as_parquet([{"a": 1}])})
    source = open_source(io.BytesIO(content), "rows.zip", FileLimits(scratch=str(tmp_path)))
    assert [record.values for record in source.records if isinstance(record, Record)] == [{"a": 1}]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_becomes_the_same_zip_every_time(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for name, content in {
        "train/data-0.arrow": as_arrow_stream([{"a": 1}]),
        "dataset_dict.json": b"{}",
        "train/state.json": b"{}",
        "train/cache-1.arrow": b"",
        "README.md": b"#",
        ".git/config": b"",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    first, second = io.BytesIO(), io.BytesIO()
    pack_folder(folder, first)
    os.utime(folder / "train/data-0.arrow", (1, 1))
    pack_folder(folder, second)
    assert first.getvalue() == second.getvalue()
    with zipfile.ZipFile(first) as archive:
        assert archive.namelist() == ["dataset_dict.json", "train/state.json", "train/data-0.arrow"]
    assert values(first.getvalue()) == [{"split": "train", "a": 1}]


def test_a_folder_with_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(
        InputRefused, match=r"contains a link \(“rows.jsonl”\). Copy the folder with the files themselves"
    ):
        pack_folder(tmp_path, io.BytesIO())
