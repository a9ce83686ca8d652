"""Broken or hostile files, each with the sentence that refuses it."""

import gzip
import io
import os
import struct
import tarfile
import zipfile
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.factories.imports import comparison_row, encode_jsonl
from tests.helpers.packed_files import (
    as_arrow_file,
    as_arrow_stream,
    as_json,
    as_parquet,
    as_separated,
    tarred,
    zipped,
    zstd,
)

ROWS: Final = [comparison_row(f"q{number}") for number in range(20)]
GOOD: Final = encode_jsonl(ROWS)
CSV: Final = as_separated(",")(ROWS)
MB: Final = 1024 * 1024


def linked(kind: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("rows.jsonl")
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    return file.getvalue()


def link_in_zip() -> bytes:
    entry = zipfile.ZipInfo("rows.jsonl")
    entry.external_attr = 0o120777 << 16
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    return file.getvalue()


def encrypted() -> bytes:
    content = bytearray(zipped({"rows.jsonl": GOOD}))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def wrong_sum() -> bytes:
    content = bytearray(zipped({"rows.jsonl": GOOD}, zipfile.ZIP_STORED))
    content[content.index(b"Rayleigh")] ^= 1
    return bytes(content)


def long_directory() -> bytes:
    content = bytearray(zipped({"rows.jsonl": GOOD}))
    struct.pack_into("<L", content, content.rindex(b"PK\x05\x06") + 12, 3_000_000_000)
    return bytes(content)


def huge_pax() -> bytes:
    entry = tarfile.TarInfo("././@PaxHeader")
    entry.type, entry.size = tarfile.XHDTYPE, 4 * 1024**3
    return entry.tobuf() + bytes(1024)


def fat_line(content: bytes) -> bytes:
    return content + b" " * (17 * MB) + b"\n"


def union() -> bytes:
    number, text = pa.array([1]), pa.array(["a"])
    column = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [number, text])
    batch = pa.record_batch({"odd": column})
    file = io.BytesIO()
    with pa.ipc.new_stream(file, batch.schema) as out:
        out.write_batch(batch)
    return file.getvalue()


def twice_named() -> bytes:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["query", "query"])
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def no_rows() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({column: pa.array([], pa.string()) for column in ROWS[0]}), file)
    return file.getvalue()


def truncated(content: bytes, share: float = 0.6) -> bytes:
    return content[: int(len(content) * share)]


PARQUET: Final = as_parquet(ROWS)
STREAM: Final = as_arrow_stream(ROWS)
WHOLE: Final[dict[str, tuple[str, bytes, str]]] = {
    "empty": ("rows.jsonl", b"", "rows.jsonl is empty (0 bytes)."),
    "blank": ("rows.jsonl", b"\xef\xbb\xbf \r\n \n", "rows.jsonl contains only blank space."),
    "nothing in gzip": ("rows.gz", gzip.compress(b""), "rows.gz is empty"),
    "gzip cut off": (
        "rows.gz",
        truncated(gzip.compress(os.urandom(9_000).hex().encode())),
        "rows.gz is damaged or truncated: its gzip data",
    ),
    "gzip without its end": ("rows.gz", gzip.compress(GOOD)[:-4], "rows.gz is damaged or truncated: its gzip data"),
    "gzip with a wrong sum": ("rows.gz", gzip.compress(GOOD)[:-8] + bytes(8), "rows.gz is damaged or truncated"),
    "gzip and then something else": ("rows.gz", gzip.compress(GOOD) + b"more", "rows.gz is damaged or truncated"),
    "gzip twice": (
        "rows.gz",
        gzip.compress(gzip.compress(GOOD)),
        "rows.gz is compressed more than once. Unpack it first.",
    ),
    "zstd cut off": ("rows.zst", truncated(zstd(GOOD)), "rows.zst is damaged or truncated: its zstd data"),
    "zstd of nonsense": (
        "rows.zst",
        b"\x28\xb5\x2f\xfd" + b"nonsense" * 9,
        "rows.zst is damaged or truncated: its zstd data",
    ),
    "bzip2": (
        "rows.bz2",
        b"BZh91AY&SY",
        "rows.bz2 is compressed with bzip2: unpack it, or compress it with gzip or zstd.",
    ),
    "7z": ("rows.7z", b"7z\xbc\xaf\x27\x1c", "rows.7z is a 7z archive: unpack it, or make it a ZIP."),
    "old Excel": (
        "rows.xls",
        b"\xd0\xcf\x11\xe0\xa1\xb1",
        "rows.xls is an old Excel or Word file: save it as CSV in UTF-8.",
    ),
    "Excel": (
        "rows.xlsx",
        zipped({"[Content_Types].xml": b"", "xl/workbook.xml": b""}),
        "rows.xlsx is an Excel workbook: save it as CSV",
    ),
    "OpenDocument": (
        "rows.ods",
        zipped({"mimetype": b"", "content.xml": b""}),
        "rows.ods is an OpenDocument file: save it as CSV in UTF-8.",
    ),
    "a program": ("rows.jsonl", bytes(range(256)) * 40, "rows.jsonl is a binary file, not text"),
    "UTF-16 without its mark": (
        "rows.csv",
        CSV.decode().encode("utf-16-le"),
        "rows.csv seems to be UTF-16 without a byte order mark",
    ),
    "UTF-16 that breaks": (
        "rows.csv",
        CSV.decode().encode("utf-16") + b"\x00\xd8\x41\x00",
        "rows.csv starts as UTF-16 and is broken",
    ),
    "Latin-1 header": (
        "rows.csv",
        "größe,query_id\n1,2\n".encode("latin-1"),
        "rows.csv is not UTF-8 (Latin-1 or Windows-1252, perhaps",
    ),
    "Latin-1 array": (
        "rows.json",
        b'[{"query": "na\xefve"}]',
        "rows.json is broken at line 1: the text is not UTF-8 (Latin-1",
    ),
    "all rows in Latin-1": (
        "rows.csv",
        CSV.replace(b"Rayleigh", b"Rayl\xe9igh"),
        "No row of rows.csv is valid. Line 2: the row is not UTF-8",
    ),
    "a column twice": (
        "rows.csv",
        b"query,query_id,query\n1,2,3\n",
        "column “query” more than once. Give each column its own name",
    ),
    "columns without a name": (
        "rows.csv",
        b"\n".join(line + (b",x,y" if number else b",,") for number, line in enumerate(CSV.splitlines())),
        "No row of rows.csv is valid. Line 2: column 7 has no name and holds “x”. Name it.",
    ),
    "a pointer of Git LFS": (
        "rows.parquet",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "rows.parquet is a Git LFS pointer: fetch the file itself with “git lfs pull”.",
    ),
    "a web page": (
        "rows.csv",
        b"\xef\xbb\xbf\n<!DOCTYPE html><html><body>Sign in, please</body></html>",
        "rows.csv is a web page, perhaps a sign-in page",
    ),
    "XML": (
        "rows.xml",
        b'<?xml version="1.0"?><rows/>',
        "rows.xml is XML: save it as JSONL, CSV in UTF-8",
    ),
    "an empty object": ("rows.json", b"{}", "rows.json starts with an empty object. It has no rows."),
    "many columns": (
        "rows.csv",
        ",".join(f"c{n}" for n in range(1_001)).encode() + b"\n",
        "rows.csv has 1,001 columns; the limit is 1,000",
    ),
    "an open quote": (
        "rows.csv",
        CSV + b'"q99,' + b"x\n" * 99,
        "rows.csv is broken at line 22: a quote is never closed.",
    ),
    "a long line": (
        "rows.jsonl",
        fat_line(GOOD),
        "Line 21 of rows.jsonl is longer than 16 MB. This is not a file of rows.",
    ),
    "an array that breaks off": ("rows.json", as_json(ROWS)[:-30], "rows.json is broken at line 1: not valid JSON"),
    "an object that breaks off": (
        "rows.json",
        b'{"data": ' + as_json(ROWS),
        "rows.json is broken at line 1: the file ends too early",
    ),
    "an object without rows": (
        "rows.json",
        b'{"accuracy": 0.9,\n "of": {"n": 3}}',
        "rows.json is one JSON object without an array of objects, so it has no rows.",
    ),
    "an object with a hole": (
        "rows.json",
        b'{"data": ' + as_json(ROWS) + b' "b": 1}',
        "rows.json is broken at line 1: a comma or the closing brace is missing",
    ),
    "an array of numbers under a key": ("rows.json", b'{"data": [1, 2]}', "each entry of the array must be an object"),
    "nesting": (
        "rows.json",
        b'[{"a": ' + b"[" * 100_000,
        "rows.json is broken at line 1: a number is too long or objects are nested too deeply",
    ),
    "Parquet cut off": (
        "rows.parquet",
        truncated(PARQUET),
        "rows.parquet cannot be read as Parquet: it is damaged or truncated",
    ),
    "Parquet without its middle": (
        "rows.parquet",
        PARQUET[:300] + bytes(len(PARQUET) - 900) + PARQUET[-600:],
        "rows.parquet cannot be read as Parquet",
    ),
    "a column twice in Parquet": (
        "rows.parquet",
        twice_named(),
        "column “query” more than once. Give each column its own name",
    ),
    "no rows in Parquet": ("rows.parquet", no_rows(), "rows.parquet has no rows."),
    "Arrow cut off": (
        "rows.arrow",
        truncated(STREAM, 0.3),
        "rows.arrow cannot be read as Arrow: it is damaged or truncated",
    ),
    "Arrow file cut off": (
        "rows.arrow",
        truncated(as_arrow_file(ROWS), 0.4),
        "rows.arrow cannot be read as Arrow: it is damaged or truncated",
    ),
    "a union": ("rows.arrow", union(), "rows.arrow has the column “odd” of the type dense_union"),
    "ZIP cut off": (
        "rows.zip",
        truncated(zipped({"rows.jsonl": GOOD})),
        "rows.zip is a damaged or truncated ZIP. Copy or pack it again.",
    ),
    "empty ZIP": (
        "rows.zip",
        zipped({}),
        "rows.zip contains no data file (JSONL, JSON, CSV, TSV, Parquet, Arrow): it is empty.",
    ),
    "ZIP of pictures": ("rows.zip", zipped({"a.png": b"1", "b.png": b"2"}), "Arrow): only a.png, b.png."),
    "ZIP with a wrong sum": ("rows.zip", wrong_sum(), "rows.zip is damaged or truncated: its ZIP data"),
    "encrypted ZIP": ("rows.zip", encrypted(), "rows.zip is encrypted. Unpack it and import the file inside."),
    "LZMA in ZIP": (
        "rows.zip",
        zipped({"rows.jsonl": GOOD}, zipfile.ZIP_LZMA),
        "rows.zip uses an unsupported compression method",
    ),
    "up and out of a ZIP": (
        "rows.zip",
        zipped({"../../rows.jsonl": GOOD}),
        "rows.zip contains an entry that points outside of it (“../../rows.jsonl”)",
    ),
    "up and out, beside rows": (
        "rows.zip",
        zipped({"rows.jsonl": GOOD, "a/../../.ssh/keys": b""}),
        "points outside of it",
    ),
    "from the root of a ZIP": (
        "rows.zip",
        zipped({"/etc/rows.jsonl": GOOD}),
        "points outside of it (“/etc/rows.jsonl”)",
    ),
    "from a drive": ("rows.zip", zipped({"C:\\rows.jsonl": GOOD}), "points outside of it"),
    "a link in a ZIP": ("rows.zip", link_in_zip(), "rows.zip contains a link (“rows.jsonl”)"),
    "ZIP in ZIP": (
        "rows.zip",
        zipped({"inner.zip": zipped({"rows.jsonl": GOOD})}),
        "rows.zip contains another archive (“inner.zip”). Unpack it first.",
    ),
    "ZIP in ZIP by another name": (
        "rows.zip",
        zipped({"rows.jsonl": zipped({"rows.jsonl": GOOD})}),
        "rows.jsonl in rows.zip is compressed more than once",
    ),
    "gzip twice in ZIP": (
        "rows.zip",
        zipped({"rows.gz": gzip.compress(gzip.compress(GOOD))}),
        "rows.gz in rows.zip is compressed more than once",
    ),
    "thousands of entries": (
        "rows.zip",
        zipped({f"{number}.jsonl": b"" for number in range(5_001)}, zipfile.ZIP_STORED),
        "rows.zip contains more than 5,000 files",
    ),
    "a long list of entries": ("rows.zip", long_directory(), "rows.zip contains more than 5,000 files"),
    "files of other columns": (
        "rows.zip",
        zipped({"1.csv": CSV, "2.csv": b"query_id,more\nq1,1\n"}),
        "2.csv in rows.zip has other columns than 1.csv",
    ),
    "up and out of a tar": (
        "rows.tar.gz",
        gzip.compress(tarred({"../rows.jsonl": GOOD})),
        "rows.tar.gz contains an entry that points outside of it",
    ),
    "a symbolic link in a tar": ("rows.tar", linked(tarfile.SYMTYPE), "rows.tar contains a link (“rows.jsonl”)"),
    "a hard link in a tar": ("rows.tar", linked(tarfile.LNKTYPE), "rows.tar contains a link"),
    "a device in a tar": ("rows.tar", linked(tarfile.CHRTYPE), "rows.tar contains a link"),
    "tar cut off": (
        "rows.tar",
        truncated(tarred({"rows.jsonl": GOOD}), 0.2),
        "rows.tar is a damaged or truncated tar archive",
    ),
    "empty tar": ("rows.tar.gz", gzip.compress(tarred({"a/.DS_Store": b""})), "Arrow): it is empty."),
    "a name of 4 GB in a tar": ("rows.tar", huge_pax(), "rows.tar is a damaged or truncated"),
    "tar in gzip twice": (
        "rows.tar.gz",
        gzip.compress(gzip.compress(tarred({"rows.jsonl": GOOD}))),
        "is compressed more than once",
    ),
}
