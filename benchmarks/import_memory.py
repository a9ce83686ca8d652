"""How much memory a large file needs: sent to the server, checked and, if asked for, stored.

    python benchmarks/import_memory.py [--format jsonl] [--megabytes 200] [--upload] [--store]

Makes a file of comparisons of about one kilobyte each, so many megabytes of them before they are packed, and checks it
as the commands do, in a database of its own (SQLite in a temporary folder, or the empty one of DATABASE_URL). With
--upload the file is first posted to the page as a browser does. Prints one line of JSON for each step: its peak above
what the idle process had, and what it took of one processor.
"""

import argparse
import csv
import gzip
import io
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

sys.path.insert(0, str(Path(__file__).parent.parent))
OWN_FOLDER = tempfile.TemporaryDirectory(prefix="judgeweb-benchmark-")  # gone at the end
os.environ.setdefault("JUDGEWEB_DATA_DIR", OWN_FOLDER.name)
os.environ.setdefault("JUDGEWEB_MAX_UPLOAD_MB", "4096")
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django
from django.conf import settings

# An error page, if there is one, is to be read without collecting static files first.
settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
django.setup()

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from evaluations.domain.imports import ImportRequest
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import User
from evaluations.overview.services import create_evaluation

MB: Final = 1024 * 1024
WORDS: Final = [f"word{number}" for number in range(2_000)]
AT_ONCE: Final = 5_000


def text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def comparisons(megabytes: int) -> Iterator[list[dict[str, Any]]]:
    rng = random.Random(1)
    responses = [text(rng, 55) for _ in range(997)]
    written = number = 0
    while written < megabytes * MB:
        rows = []
        for number in range(number, number + AT_ONCE):  # noqa: B020 - goes on where it stopped
            rows.append(
                {
                    "query_id": f"q{number}",
                    "query": f"{number} {text(rng, 8)}",
                    "candidate_a": "alpha",
                    "response_a": f"{number} {responses[number % 997]}",
                    "candidate_b": "beta",
                    "response_b": f"{responses[number * 7 % 997]} {number}",
                    "category": f"category{number % 8}",
                }
            )
        number += 1
        written += sum(len(json.dumps(row)) for row in rows)
        yield rows


def lines(file: Any, megabytes: int) -> None:
    for rows in comparisons(megabytes):
        file.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())


def make_json(file: BinaryIO, megabytes: int) -> None:
    file.write(b"[")
    for number, rows in enumerate(comparisons(megabytes)):
        file.write(("," if number else "").encode() + json.dumps(rows)[1:-1].encode())
    file.write(b"]")


def make_csv(file: BinaryIO, megabytes: int) -> None:
    out = io.TextIOWrapper(file, newline="")
    writer = None
    for rows in comparisons(megabytes):
        writer = writer or csv.DictWriter(out, list(rows[0]))
        if out.tell() == 0:
            writer.writeheader()
        writer.writerows(rows)
    out.flush()


def make_gzip(file: BinaryIO, megabytes: int) -> None:
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1) as packed:
        lines(packed, megabytes)


def make_zstd(file: BinaryIO, megabytes: int) -> None:
    import pyarrow as pa  # noqa: PLC0415 - here and below: not part of the process that is measured

    with pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd") as packed:
        lines(packed, megabytes)


def make_zip(file: BinaryIO, megabytes: int) -> None:
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("rows.jsonl", "w", force_zip64=True) as packed,
    ):
        lines(packed, megabytes)


def make_parquet(file: BinaryIO, megabytes: int) -> None:
    """One group of rows for each gigabyte, as writers make them who are not told otherwise."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    tables: list[pa.Table] = []
    writer = None
    for rows in comparisons(megabytes):
        tables.append(pa.Table.from_pylist(rows))
        writer = writer or pq.ParquetWriter(file, tables[0].schema)
        if len(tables) * AT_ONCE >= MB:
            writer.write_table(pa.concat_tables(tables), row_group_size=MB)
            tables = []
    assert writer is not None
    if tables:
        writer.write_table(pa.concat_tables(tables), row_group_size=MB)
    writer.close()


def make_arrow(file: BinaryIO, megabytes: int) -> None:
    import pyarrow as pa  # noqa: PLC0415

    writer = None
    for rows in comparisons(megabytes):
        table = pa.Table.from_pylist(rows)
        writer = writer or pa.ipc.new_stream(file, table.schema)
        writer.write_table(table, max_chunksize=1_000)
    assert writer is not None
    writer.close()


MADE: Final[dict[str, Callable[[BinaryIO, int], None]]] = {
    "jsonl": lines,
    "json": make_json,
    "csv": make_csv,
    "parquet": make_parquet,
    "arrow": make_arrow,
    "gzip": make_gzip,
    "zstd": make_zstd,
    "zip": make_zip,
}


def write(path: Path, kind: str, megabytes: int) -> None:
    with path.open("wb") as file:
        MADE[kind](file, megabytes)


def make_file(kind: str, megabytes: int) -> Path:
    """Written by another process, so that what that needs is not counted."""
    path = Path(os.environ["JUDGEWEB_DATA_DIR"], f"rows.{kind}")
    writing = multiprocessing.get_context("fork").Process(target=write, args=(path, kind, megabytes))
    writing.start()
    writing.join()
    assert writing.exitcode == 0
    return path


def resident(line: str) -> float:
    """Of this process, in MB: VmRSS now, VmHWM at most since it was set back."""
    line_found = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith(line))
    return int(line_found.split()[1]) / 1024


@contextmanager
def measured(step: str, path: Path, idle: float) -> Iterator[dict[str, Any]]:
    Path("/proc/self/clear_refs").write_text("5")
    began, cpu = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    figures: dict[str, Any] = {"step": step, "file": path.name, "file_mb": round(path.stat().st_size / MB)}
    yield figures
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime
    figures |= {
        "peak_mb_above_idle": round(resident("VmHWM") - idle),
        "idle_mb": round(idle),
        "seconds": round(time.monotonic() - began, 1),
        "processor_seconds": round(seconds, 1),
    }
    if figures.get("rows"):
        figures["rows_a_processor_second"] = round(figures["rows"] / seconds)
    print(json.dumps(figures), flush=True)


class Posted(io.RawIOBase):
    """The body of a form with one file in it, as a browser sends it."""

    def __init__(self, path: Path) -> None:
        fields = {"format": "auto", "pair": "all"}
        form = "".join(
            f'--mark\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        form += f'--mark\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
        end = b"\r\n--mark--\r\n"
        self.length = len(form) + path.stat().st_size + len(end)
        self._parts = [io.BytesIO(form.encode()), path.open("rb"), io.BytesIO(end)]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._parts:
            if number := self._parts[0].readinto(buffer):  # type: ignore[attr-defined]
                return int(number)
            self._parts.pop(0)
        return 0


def upload(path: Path, evaluation: Evaluation) -> Import:
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_user("owner", is_staff=True, is_superuser=True))
    evaluation.memberships.create(user=User.objects.get(), role="owner")
    body = Posted(path)
    answer = client.generic(
        "POST",
        reverse("imports", args=[evaluation.slug]),
        CONTENT_TYPE="multipart/form-data; boundary=mark",
        CONTENT_LENGTH=str(body.length),
        **{"wsgi.input": io.BufferedReader(body)},
    )
    assert answer.status_code == 302, answer.content.decode()
    return Import.objects.get()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", choices=list(MADE), default="jsonl")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--upload", action="store_true", help="post it to the page first")
    parser.add_argument("--store", action="store_true", help="store it as well")
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    evaluation = create_evaluation(slug="benchmark", name="Benchmark", owner=None, by=None)
    connection.close()
    path = make_file(options.format, options.megabytes)
    idle = resident("VmRSS")
    if options.upload:
        with measured("upload", path, idle):
            importing_file = upload(path, evaluation)
        with measured("check", path, idle) as figures:
            continue_import(importing_file)
            figures["rows"] = importing_file.rows_read
    else:
        with measured("check", path, idle) as figures, path.open("rb") as file:
            importing_file = preview_file(evaluation, file, path.name, ImportRequest(), user=None)
            figures["rows"] = importing_file.rows_read
    assert importing_file.is_checked, importing_file.reason
    assert not importing_file.rows_bad
    path.unlink()
    if options.store:
        path = Path(importing_file.file.path)
        start_storing(importing_file, skip_bad=False, user=None)
        with measured("store", path, idle) as figures:
            continue_import(importing_file)
            importing_file.refresh_from_db()
            figures["rows"] = importing_file.rows_stored
        assert importing_file.state == "done", importing_file.reason


if __name__ == "__main__":
    main()
