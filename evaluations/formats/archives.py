"""ZIP and tar archives: the files in them that hold rows, read without unpacking to disk."""

import os
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, cast

from evaluations.domain.errors import InputRefused
from evaluations.formats.decompression import BorrowedFile, UnpackingMeter, meter_pieces
from evaluations.formats.record_streams import BLOCK_BYTES, MB, file_from_pieces, read_pieces
from evaluations.formats.zip_stream import BEFORE_ALL_FILES

ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
MAX_ENTRIES: Final = 5_000
MAX_DIRECTORY_BYTES: Final = 8 * MB
MAX_NAME_BYTES: Final = 64 * 1024
DATA: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
PACKED: Final = (".gz", ".zst", ".zstd")
NESTED: Final = (".zip", ".tar", ".tgz", ".7z", ".rar", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tbz2", ".txz")
# Files that the library datasets writes in addition to the rows.
ABOUT_DATASETS: Final = frozenset({"dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json"})
DICTIONARY: Final = "dataset_dict.json"
OUTSIDE: Final = re.compile(r"[/\\]|[A-Za-z]:|.*(^|[/\\])\.\.([/\\]|$)|.*\x00", re.DOTALL)

OFFICE: Final = {
    "xl/": "an Excel workbook: save it as CSV (“CSV UTF-8” in Excel)",
    "word/": "a Word document: save its rows as CSV in UTF-8",
    "content.xml": "an OpenDocument file: save it as CSV in UTF-8",
}

# What the standard library raises on archives that are not as they should be.
BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, struct.error, OSError, ValueError, IndexError)


@dataclass(frozen=True)
class ArchivePart:
    """One file of an archive. ``split``: the part of a data set that it belongs to, if any."""

    name: str
    file: BinaryIO
    split: str


@dataclass(frozen=True)
class Archive:
    """The files that hold rows. ``parts`` must be read one after another."""

    names: Sequence[str]
    parts: Iterator[ArchivePart]


def is_zip(head: bytes) -> bool:
    return head.startswith(ZIP)


def is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def zip_archive(file: BinaryIO, name: str, meter: UnpackingMeter) -> Archive:
    refuse_long_directory(file, name)
    try:
        opened = zipfile.ZipFile(cast(IO[bytes], BorrowedFile(file)))
        entries = {entry.filename: entry for entry in opened.infolist() if not entry.is_dir()}
    except BROKEN:
        raise InputRefused(f"{name} is a damaged or truncated ZIP. Copy or pack it again.") from None
    refuse_office(entries, name)
    for entry in opened.infolist():
        refuse_entry(entry.filename, name, is_link=stat.S_ISLNK(entry.external_attr >> 16))
    chosen = data_files(list(entries), name)
    for entry in (entries[name] for name in chosen):
        if entry.flag_bits & 1:
            raise InputRefused(f"{name} is encrypted. Unpack it and import the file inside.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputRefused(f"{name} uses an unsupported compression method. Create the ZIP again with deflate.")
    return Archive(chosen, zip_parts(opened, entries, chosen, meter))


def zip_parts(
    opened: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], chosen: Sequence[str], meter: UnpackingMeter
) -> Iterator[ArchivePart]:
    for name in chosen:
        pieces = meter_pieces(pieces_of_entry(opened, entries[name]), meter, "ZIP", BROKEN)
        yield ArchivePart(name, file_from_pieces(pieces), split_from_folder(name, entries))


def pieces_of_entry(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    with opened.open(entry) as file:
        yield from read_pieces(file.read)


def refuse_long_directory(file: BinaryIO, name: str) -> None:
    """Refuse a ZIP whose list of entries is too long, by the length that its end record states."""
    size = file.seek(0, 2)
    file.seek(max(0, size - MAX_NAME_BYTES - 22))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        return  # the reader will refuse it
    entries, length = struct.unpack("<HL", tail[at + 10 : at + 16])
    if length == 0xFFFFFFFF and (long := tail.rfind(b"PK\x06\x06", 0, at)) >= 0 and len(tail) >= long + 48:
        entries, length = struct.unpack("<QQ", tail[long + 32 : long + 48])
    if length > MAX_DIRECTORY_BYTES or (entries > MAX_ENTRIES and entries != 0xFFFF):
        raise too_many_entries(name)


def too_many_entries(name: str) -> InputRefused:
    return InputRefused(f"{name} contains more than {MAX_ENTRIES:,} files. Import an archive of the data files only.")


def refuse_office(entries: Sequence[str] | dict[str, zipfile.ZipInfo], name: str) -> None:
    if not any(entry in entries for entry in ("[Content_Types].xml", "content.xml")):
        return
    for start, what in OFFICE.items():
        if any(entry.startswith(start) for entry in entries):
            raise InputRefused(f"{name} is {what}.")


def refuse_entry(entry: str, name: str, *, is_link: bool) -> None:
    if OUTSIDE.match(entry):
        raise InputRefused(
            f"{name} contains an entry that points outside of it (“{display_entry(entry)}”). Nothing was read. "
            "Create the archive again."
        )
    if is_link:
        raise InputRefused(
            f"{name} contains a link (“{display_entry(entry)}”). Create the archive again with the files themselves."
        )


def display_entry(entry: str) -> str:
    return entry[:80].encode(errors="replace").decode()


def data_files(entries: Sequence[str], name: str) -> list[str]:
    """The files that hold rows, by their endings or as the only file, sorted by name."""
    if len(entries) > MAX_ENTRIES:
        raise too_many_entries(name)
    seen = [entry for entry in entries if not is_ignored_entry(entry)]
    if nested := next((entry for entry in seen if entry.lower().endswith(NESTED)), None):
        raise InputRefused(f"{name} contains another archive (“{display_entry(nested)}”). Unpack it first.")
    files = [entry for entry in seen if is_data_file(entry)] or (seen if len(seen) == 1 else [])
    if not files:
        what = f"only {', '.join(map(display_entry, seen[:5]))}" if seen else "it is empty"
        raise InputRefused(f"{name} contains no data file (JSONL, JSON, CSV, TSV, Parquet, Arrow): {what}.")
    return sorted(files, key=natural_sort_key)


def is_data_file(entry: str) -> bool:
    lower = entry.lower()
    for ending in PACKED:
        lower = lower.removesuffix(ending)
    return lower.endswith(DATA)


def is_ignored_entry(entry: str) -> bool:
    """Whether a file is hidden or made by systems and libraries, and holds no rows."""
    parts = re.split(r"[/\\]", entry)
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return hidden or parts[-1] in ABOUT_DATASETS or (parts[-1].startswith("cache-") and parts[-1].endswith(".arrow"))


def natural_sort_key(entry: str) -> list[tuple[int, str]]:
    """A key that sorts part-2 before part-10."""
    return [(int(run), "") if run.isdecimal() else (-1, run) for run in re.split(r"([0-9]{1,18})", entry)]


def split_from_folder(entry: str, entries: Sequence[str] | dict[str, zipfile.ZipInfo]) -> str:
    """The folder of a saved DatasetDict that contains it."""
    folder = PurePosixPath(entry).parent
    return folder.name if str(folder.parent / DICTIONARY) in entries else ""


def tar_archive(open_again: Callable[[], BinaryIO], name: str) -> Archive:
    """A tar is gone through once for the names of its files, and again for their rows."""
    names = [entry for entry, _ in tar_entries(open_again(), name)]
    chosen = data_files(names, name)
    return Archive(chosen, tar_parts(open_again, frozenset(chosen), names, name))


def tar_parts(
    open_again: Callable[[], BinaryIO], chosen: frozenset[str], names: Sequence[str], name: str
) -> Iterator[ArchivePart]:
    for entry, content in tar_entries(open_again(), name):
        if entry in chosen:
            yield ArchivePart(entry, content, split_from_folder(entry, names))


def tar_entries(file: BinaryIO, name: str) -> Iterator[tuple[str, BinaryIO]]:
    """The names and contents of all files, in their order. Content that the caller does not read is skipped."""
    long_name = ""
    long_size: int | None = None
    number = 0
    while (block := read_exactly(file, tarfile.BLOCKSIZE, name)).strip(b"\x00"):
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            raise damaged_archive(name) from None
        number += 1
        if number > MAX_ENTRIES:
            raise too_many_entries(name)
        if header.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            if not 0 <= header.size <= MAX_NAME_BYTES:
                raise damaged_archive(name)
            content_of_header = read_exactly(file, padded_size(header.size), name)[: header.size]
            if header.type == tarfile.GNUTYPE_LONGNAME:
                long_name = content_of_header.rstrip(b"\x00").decode(errors="surrogateescape")
            elif header.type == tarfile.XHDTYPE:
                long_name, long_size = parse_pax_header(content_of_header, long_name)
            continue
        entry, size = long_name or header.name, header.size if long_size is None else long_size
        long_name, long_size = "", None
        is_link = header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.DIRTYPE)
        refuse_entry(entry, name, is_link=is_link)
        if header.type == tarfile.DIRTYPE:
            continue
        content = TarContent(file, size, name)
        yield entry.removeprefix("./"), file_from_pieces(content.pieces(content.padding))
        deque(content.pieces(0), maxlen=0)  # skips what the caller did not read


def parse_pax_header(header: bytes, name: str) -> tuple[str, int | None]:
    """The name and the size where an extended header gives them: records of “length key=value”, each on a line."""
    size: int | None = None
    for key, value in re.findall(rb"\d+ ([^=\n]+)=([^\n]*)\n", header):
        if key == b"path":
            name = value.decode(errors="surrogateescape")
        elif key == b"size" and value.isdigit() and len(value) < 18:
            size = int(value)
    return name, size


class TarContent:
    """The bytes of one file in a tar, followed by padding."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self._file = file
        self._name = name
        self._left = padded_size(max(0, size))
        self.padding = self._left - max(0, size)

    def pieces(self, end: int) -> Iterator[bytes]:
        """Pieces of what is not read yet, until ``end`` bytes are left."""
        while self._left > end:
            piece = self._file.read(min(BLOCK_BYTES, self._left - end))
            if not piece:
                raise damaged_archive(self._name)
            self._left -= len(piece)
            yield piece


def padded_size(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def read_exactly(file: BinaryIO, number: int, name: str) -> bytes:
    block = file.read(number)
    if len(block) < number:
        raise damaged_archive(name)
    return block


def damaged_archive(name: str) -> InputRefused:
    return InputRefused(f"{name} is a damaged or truncated tar archive. Pack it again.")


def pack_folder(folder: Path, into: BinaryIO) -> None:
    """Write the files of rows and those that describe the data set, uncompressed."""
    entries = sorted(folder_entries(folder))
    rows = data_files(entries, folder.name)
    about = [entry for entry in entries if entry.rpartition("/")[2] in ABOUT_DATASETS]
    with zipfile.ZipFile(into, "w", zipfile.ZIP_STORED) as archive:
        for entry in (*about, *rows):
            info = zipfile.ZipInfo(entry, BEFORE_ALL_FILES)
            info.file_size = (folder / entry).stat().st_size
            with (folder / entry).open("rb") as file, archive.open(info, "w") as out:
                shutil.copyfileobj(file, out, BLOCK_BYTES)


def folder_entries(folder: Path) -> Iterator[str]:
    number = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in (*folders, *files):
            path = Path(parent, name)
            entry = path.relative_to(folder).as_posix()
            if path.is_symlink() and not is_ignored_entry(entry):
                raise InputRefused(
                    f"{folder.name} contains a link (“{entry[:80]}”). Copy the folder with the files themselves "
                    "(cp -rL)."
                )
        for name in files:
            number += 1
            if number > MAX_ENTRIES:
                raise too_many_entries(folder.name)
            yield Path(parent, name).relative_to(folder).as_posix()
