"""Rows packed as bytes in every container that can be read."""

import csv
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

Rows = Sequence[Mapping[str, Any]]


def as_jsonl(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def as_json(rows: Rows) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


def as_indented(rows: Rows) -> bytes:
    return json.dumps(rows, indent=2).encode("utf-8-sig")


def as_data(rows: Rows) -> bytes:
    return json.dumps({"about": {"version": [1, 2]}, "data": rows, "later": [{"no": "row"}]}).encode()


def as_examples(rows: Rows) -> bytes:
    return json.dumps({"models": [{"name": "one"}], "examples": rows}, indent=1).encode()


def as_columns(rows: Rows) -> bytes:
    return json.dumps({column: [row[column] for row in rows] for column in rows[0]}).encode()


def as_separated(delimiter: str, encoding: str = "utf-8", ending: str = "\r\n") -> Callable[[Rows], bytes]:
    def written(rows: Rows) -> bytes:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator=ending)
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode(encoding)

    return written


def as_parquet(rows: Rows, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), file, **options)
    return file.getvalue()


def as_arrow_stream(rows: Rows) -> bytes:
    table = pa.Table.from_pylist(list(rows))
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table, max_chunksize=2)
    return file.getvalue()


def as_arrow_file(rows: Rows) -> bytes:
    table = pa.Table.from_pylist(list(rows))
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=2)
    return file.getvalue()


NESTED: Final[Mapping[str, Callable[[Rows], bytes]]] = {
    "jsonl": as_jsonl,
    "json": as_json,
    "indented json": as_indented,
    "json under data": as_data,
    "json under examples": as_examples,
    "parquet": as_parquet,
    "arrow stream": as_arrow_stream,
    "arrow file": as_arrow_file,
}
FLAT: Final[Mapping[str, Callable[[Rows], bytes]]] = {
    "csv": as_separated(","),
    "semicolons": as_separated(";", "utf-8-sig"),
    "tsv": as_separated("\t", ending="\n"),
    "csv of an old Mac": as_separated(",", ending="\r"),
    "csv in UTF-16": as_separated("\t", "utf-16"),
}


def in_two_members(content: bytes) -> bytes:
    half = len(content) // 2
    return gzip.compress(content[:half], 1) + gzip.compress(content[half:], 1)


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def zipped(files: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(files: Mapping[str, bytes], kind: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


PACKED: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "as it is": lambda content: content,
    "gzip": lambda content: gzip.compress(content, 1),
    "gzip in two members": in_two_members,
    "zstd": zstd,
    "zstd in two frames": lambda content: zstd(content[:7]) + zstd(content[7:]),
    "zip": lambda content: zipped({"folder/rows.csv": content, "README.md": b"# Rows"}),
    "stored zip": lambda content: zipped({"rows": content}, zipfile.ZIP_STORED),
    "gzip in zip": lambda content: zipped({"rows.jsonl.gz": gzip.compress(content, 1)}),
    "tar": lambda content: tarred({"./rows.csv": content, "LICENSE": b"MIT"}),
    "tar.gz": lambda content: gzip.compress(tarred({"x" * 120 + "/rows.csv": content}), 1),
    "tar.zst": lambda content: zstd(tarred({"x" * 120 + "/rows.csv": content}, tarfile.GNU_FORMAT)),
}
