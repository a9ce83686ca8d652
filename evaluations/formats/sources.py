"""The kind of a file, recognised from its beginning, and its records."""

import codecs
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from evaluations.domain.disk_space import DiskFull, has_room, is_no_space_left
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow, FileLimits
from evaluations.formats.archives import Archive, ArchivePart, is_tar, is_zip, tar_archive, zip_archive
from evaluations.formats.candidate_names import models_of_entries
from evaluations.formats.csv_reader import read_csv
from evaluations.formats.decompression import (
    UnpackingMeter,
    decode_to_utf8,
    decompress,
    is_compressed,
    is_utf16_or_utf32,
)
from evaluations.formats.json_reader import (
    MAX_COLUMNWISE_BYTES,
    find_rows_key,
    may_be_columnwise,
    parse_columnwise_object,
    read_json_array,
    read_json_columns,
    read_json_lines,
    read_json_under_key,
    rows_from_all_over,
)
from evaluations.formats.record_streams import (
    BLOCK_BYTES,
    BlankCounts,
    Record,
    RecordSource,
    file_from_pieces,
    read_pieces,
)
from evaluations.formats.values import json_or_none

VIEWED: Final = {"row_idx", "row", "truncated_cells"}
HEAD_BYTES: Final = BLOCK_BYTES
BLOCKS_BETWEEN_LOOKS: Final = 256  # at the free space while a file is unpacked
USUAL: Final = FileLimits()
# So many unreadable records at the start, or later in a row, mean that it is the wrong file.
PATIENCE: Final = 100
LATER_PATIENCE: Final = 10_000
LISTED: Final = 5  # columns, in a sentence
SAVE_IT: Final = "save it as JSONL, CSV in UTF-8, or Parquet"
REPACK: Final = "unpack it, or compress it with gzip or zstd"
MAGIC: Final = {
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file: save it as CSV in UTF-8",
    b"SQLite format 3": f"an SQLite database: {SAVE_IT}",
    b"%PDF": f"a PDF: {SAVE_IT}",
    b"BZh": f"compressed with bzip2: {REPACK}",
    b"\xfd7zXZ": f"compressed with xz: {REPACK}",
    b"\x04\x22\x4d\x18": f"compressed with LZ4: {REPACK}",
    b"7z\xbc\xaf": "a 7z archive: unpack it, or make it a ZIP",
    b"Rar!": "a RAR archive: unpack it, or make it a ZIP",
    b"version https://git-lfs": "a Git LFS pointer: fetch the file itself with “git lfs pull”",
}
MARKUP: Final = {
    (b"<!doctype html", b"<html"): f"a web page, perhaps a sign-in page: {SAVE_IT}",
    (b"<?xml",): f"XML: {SAVE_IT}",
}


def open_source(file: BinaryIO, name: str, limits: FileLimits = USUAL) -> RecordSource:
    """Read a seekable file for what its beginning shows. Raises InputRefused, here or while it is read."""
    source = source_of_file(file, name, limits)
    records = unwrap_viewer_rows(skip_blank_rows(source.records, source.blank))
    return replace(source, records=refuse_hopeless_file(records, name, limits))


def unwrap_viewer_rows(records: Iterator[Record | BadRow]) -> Iterator[Record | BadRow]:
    """The rows inside the objects of the dataset viewer of Hugging Face."""
    for record in records:
        if isinstance(record, BadRow) or record.values.keys() != VIEWED or not isinstance(record.values["row"], dict):
            yield record
        elif cut := record.values["truncated_cells"]:
            columns = quote_columns([str(column) for column in cut])
            yield BadRow(record.line, f"the dataset viewer cut off {columns}. Download the dataset’s own files")
        else:
            yield replace(record, values=record.values["row"])


def source_of_file(file: BinaryIO, name: str, limits: FileLimits) -> RecordSource:
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if is_zip(head):
        return source_of_archive(zip_archive(file, name, UnpackingMeter(name, limits)), name, limits)

    def opened() -> BinaryIO:
        file.seek(0)
        return decompress(file, head, UnpackingMeter(name, limits)) if is_compressed(head) else file

    if is_compressed(head):
        stream = opened()
        inner = stream.read(HEAD_BYTES)
        if is_tar(inner):
            return source_of_archive(tar_archive(opened, name), name, limits)
        return source_of_stream(inner, stream, name, limits)
    if is_tar(head):
        return source_of_archive(tar_archive(opened, name), name, limits)
    return source_of_data(opened(), head, name, limits)


def source_of_stream(head: bytes, rest: BinaryIO, name: str, limits: FileLimits) -> RecordSource:
    """The source of decompressed data, whose beginning was already read."""
    stream = file_from_pieces(chain([head] if head else [], read_pieces(rest.read)))
    if not is_parquet(head):
        return source_of_data(stream, head, name, limits)
    return source_of_data(spill_to_disk(stream, name, limits), head, name, limits)


def spill_to_disk(stream: BinaryIO, name: str, limits: FileLimits) -> BinaryIO:
    """An unnamed temporary file with the stream: a compressed Parquet file has to be read from its end."""
    try:
        whole = cast(BinaryIO, tempfile.TemporaryFile(dir=limits.scratch))  # noqa: SIM115 - the caller reads it
        folder = Path(limits.scratch or tempfile.gettempdir())
        for written, block in enumerate(read_pieces(stream.read)):
            if written % BLOCKS_BETWEEN_LOOKS == 0 and not has_room(folder, len(block), limits.reserve_bytes):
                whole.close()
                raise DiskFull
            whole.write(block)
    except OSError as error:
        if is_no_space_left(error):
            raise DiskFull from None
        raise InputRefused(f"{name} cannot be unpacked here ({error.strerror}). Import it uncompressed.") from None
    whole.seek(0)
    return whole


def source_of_archive(archive: Archive, name: str, limits: FileLimits) -> RecordSource:
    """The files of an archive one after another; where there are several, their rows are counted through."""
    sources = (source_of_part(part, name, limits) for part in archive.parts)
    first = next(sources)
    if len(archive.names) == 1:
        return replace(first, part=models_of_entries(archive.names)[0])
    blank = BlankCounts()
    return RecordSource(first.columns, number_rows_through(first, sources, archive.names, name, blank), blank=blank)


def source_of_part(part: ArchivePart, name: str, limits: FileLimits) -> RecordSource:
    where = f"{part.name} in {name}"
    head = part.file.read(HEAD_BYTES)
    rest = part.file
    if is_compressed(head):
        packed = file_from_pieces(chain([head], read_pieces(rest.read)))
        rest = decompress(packed, head, UnpackingMeter(where, limits))
        head = rest.read(HEAD_BYTES)
    source = source_of_stream(head, rest, where, limits)
    if not part.split:
        return source
    columns = source.columns if source.columns is None or "split" in source.columns else ("split", *source.columns)
    return replace(
        source, columns=columns, records=(add_split_to_record(record, part.split) for record in source.records)
    )


def add_split_to_record(record: Record | BadRow, split: str) -> Record | BadRow:
    if isinstance(record, BadRow) or "split" in record.values:
        return record
    return replace(record, values={"split": split, **record.values})


def number_rows_through(
    first: RecordSource, others: Iterator[RecordSource], names: Sequence[str], name: str, blank: BlankCounts
) -> Iterator[Record | BadRow]:
    number = 0
    for part, called, source in zip(names, models_of_entries(names), chain([first], others), strict=False):
        if source.columns and first.columns and set(source.columns) != set(first.columns):
            differs = column_difference(source.columns, first.columns)
            raise InputRefused(
                f"{part} in {name} has other columns than {names[0]}: {differs}. Import them one by one."
            )
        for record in source.records:
            if isinstance(record, Record):
                yield replace(record, line=number + 1, index=number, part=called)
            else:
                yield BadRow(number + 1, f"{record.reason} (line {record.line:,} of {part})")
            number += 1
        blank.rows += source.blank.rows
        blank.columns += source.blank.columns


def column_difference(columns: Sequence[str], others: Sequence[str]) -> str:
    """The missing and the additional columns, in words."""
    lacks, alone = set(others) - set(columns), set(columns) - set(others)
    differences = [f"lacks {quote_columns(sorted(lacks))}"] if lacks else []
    return "it " + " and ".join([*differences, *([f"also has {quote_columns(sorted(alone))}"] if alone else [])])


def quote_columns(columns: Sequence[str]) -> str:
    shown = ", ".join(f"“{column[:40]}”" for column in columns[:LISTED])
    return f"{shown} and {len(columns) - LISTED} more" if len(columns) > LISTED else shown


def source_of_data(file: BinaryIO, head: bytes, name: str, limits: FileLimits) -> RecordSource:
    """A file, seekable where it is Parquet, for what it is. ``head`` is how it begins."""
    refuse_non_data(head, name)
    if is_parquet(head) or is_arrow(head):
        from evaluations.formats.columnar_reader import read_arrow, read_parquet  # noqa: PLC0415 - heavy, and seldom needed

        return read_parquet(file, name) if is_parquet(head) else read_arrow(file, name)
    if is_utf16_or_utf32(head):
        narrow = decode_to_utf8(file, head, name)
        head = narrow.read(HEAD_BYTES)
        file = file_from_pieces(chain([head] if head else [], read_pieces(narrow.read)))
    refuse_non_text_file(head, name)
    return source_of_text(file, head, name)


def source_of_text(file: BinaryIO, head: bytes, name: str) -> RecordSource:
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if start.startswith(b"["):
        return RecordSource(None, read_json_array(file, name))
    if not start.startswith(b"{"):
        return read_csv(file, name)
    text = start.decode(errors="replace")
    if key := find_rows_key(text):
        return RecordSource(None, read_json_under_key(key, file, name))
    if "\n" in text.rstrip() and isinstance(json_or_none(text), dict) and not may_be_columnwise(text):
        raise InputRefused(f"{name} is one JSON object without an array of objects, so it has no rows.")
    return source_of_lines(file, text, name)


def source_of_lines(file: BinaryIO, text: str, name: str) -> RecordSource:
    if not may_be_columnwise(text):
        later_rows = partial(rows_from_all_over, file) if file.seekable() else list
        return RecordSource(None, read_json_lines(file, name), later_rows=later_rows)
    content = file.read(MAX_COLUMNWISE_BYTES)
    if columns := parse_columnwise_object(content, name):
        return RecordSource(tuple(columns), read_json_columns(columns))
    return RecordSource(None, read_json_lines(file_from_pieces(chain([content], read_pieces(file.read))), name))


def is_packed(head: bytes) -> bool:
    """Whether a file with this beginning may expand to far more than its length."""
    return is_zip(head) or is_compressed(head) or is_parquet(head) or is_arrow(head) or is_tar(head)


def is_parquet(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def is_arrow(head: bytes) -> bool:
    """A file of that name, or a stream, which begins with a mark and the short length of its first message."""
    return head.startswith(b"ARROW1\x00\x00") or (head.startswith(b"\xff\xff\xff\xff") and head[7:8] == b"\x00")


def refuse_non_data(head: bytes, name: str) -> None:
    if not head:
        raise InputRefused(f"{name} is empty (0 bytes).")
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise InputRefused(f"{name} is {what}.")
    if is_zip(head) or is_tar(head) or is_compressed(head):
        raise InputRefused(f"{name} is compressed more than once. Unpack it first.")


def refuse_non_text_file(head: bytes, name: str) -> None:
    if not head.removeprefix(codecs.BOM_UTF8).strip():
        raise InputRefused(f"{name} contains only blank space.")
    for marks, what in MARKUP.items():
        if head.removeprefix(codecs.BOM_UTF8).lstrip()[:20].lower().startswith(marks):
            raise InputRefused(f"{name} is {what}.")
    if head.count(0) * 3 > len(head) and not (any(head[:64:2]) and any(head[1:64:2])):
        raise InputRefused(f"{name} seems to be UTF-16 without a byte order mark. Save it as UTF-8.")
    control = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in head)
    if control > 8 and control * 20 > len(head) and (0 in head or not begins_as_utf8(head)):
        raise InputRefused(f"{name} is a binary file, not text: {SAVE_IT}.")


def begins_as_utf8(head: bytes) -> bool:
    """Whether bytes begin as UTF-8; the last character may be incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def skip_blank_rows(records: Iterator[Record | BadRow], blank: BlankCounts) -> Iterator[Record | BadRow]:
    """The records without blank rows, which are counted."""
    for record in records:
        if isinstance(record, Record) and is_blank(record.values):
            blank.rows += 1
        else:
            yield record


def is_blank(values: Mapping[str, Any]) -> bool:
    for value in values.values():
        if value is not None and (not isinstance(value, str) or value.strip()):
            return False
    return bool(values)


def refuse_hopeless_file(
    records: Iterator[Record | BadRow], name: str, limits: FileLimits
) -> Iterator[Record | BadRow]:
    """Refuse early a file that is too long or unreadable."""
    broken: list[BadRow] = []
    any_read = False
    for number, record in enumerate(records):
        if number >= limits.rows:
            raise too_many_rows(name, limits)
        if isinstance(record, Record):
            if broken:
                yield from broken
                broken = []
            any_read = True
            yield record
            continue
        broken.append(record)
        if len(broken) == (LATER_PATIENCE if any_read else PATIENCE):
            where = f"of {len(broken):,} rows of {name}, from line {broken[0].line:,} on,"
            raise InputRefused(f"None {where} is valid. {bad_row_reason(broken[0])}")
    if not any_read:
        raise InputRefused(
            f"No row of {name} is valid. {bad_row_reason(broken[0])}" if broken else f"{name} has no rows."
        )
    yield from broken


def too_many_rows(name: str, limits: FileLimits) -> InputRefused:
    return InputRefused(
        f"{name} has more than {limits.rows:,} rows, the limit of this site (JUDGEWEB_MAX_ROWS). "
        "Split it, or ask for a higher limit."
    )


def bad_row_reason(bad: BadRow) -> str:
    return f"Line {bad.line}: {bad.reason}."
