"""Previews of a stored file under a column mapping, and the check of the file by it."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO, Final, cast

from django.core.cache import cache

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import CANDIDATE_FIELD, BadRow, ReadOptions
from evaluations.domain.imports import SampleRow
from evaluations.formats.column_mapping import mapped_fields
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex
from evaluations.imports.columns.column_memory import remember_mapping
from evaluations.imports.import_changes import check_again, check_waiting_again
from evaluations.imports.lifecycle import refuse_archived_evaluation
from evaluations.imports.preview_summary import sample_entry
from evaluations.imports.source_files import (
    SAMPLED_ROWS,
    SHOWN_ROWS,
    Sheet,
    get_file_limits,
    read_column_names,
    read_later_columns,
    read_sheet,
)
from evaluations.models.imports import Import
from evaluations.models.users import User

COLUMNS_CACHED_SECONDS: Final = 3_600


@dataclass
class MappingPreview:
    """The result of reading the first rows by a mapping. ``refused`` says why nothing can be read."""

    samples: list[SampleRow] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    rows: int = 0
    bad_rows: int = 0
    refused: str = ""
    reasons: list[tuple[str, int]] = field(default_factory=list)


def read_import_sheet(importing: Import) -> Sheet:
    """The sheet of a kept file. Its columns are those of all its rows."""
    with importing.file.open("rb") as opened:
        file = cast(BinaryIO, opened)
        key = f"import-columns:{importing.sha256}"
        if (later := cache.get(key)) is None:
            later = read_later_columns(file, importing.file_name)
            cache.set(key, later, COLUMNS_CACHED_SECONDS)
        return read_sheet(file, importing.file_name, later)


def combine_reading(importing: Import, columns: ReadOptions) -> ReadOptions:
    """The requested read options with this mapping. A mapped model replaces the name for all rows."""
    requested = importing.request.reading
    return replace(
        requested,
        candidate="" if CANDIDATE_FIELD in mapped_fields(columns) else requested.candidate,
        format=columns.format,
        mapping=columns.mapping,
        constants=columns.constants,
        choices=columns.choices,
        later_columns=columns.later_columns,
    )


def preview_mapping(importing: Import, columns: ReadOptions) -> MappingPreview:
    """Read the first rows of the file by a mapping, without the database."""
    reading, preview = combine_reading(importing, columns), MappingPreview()
    try:
        with importing.file.open("rb") as file, SeenIndex() as counted:
            entries = read_file_rows(
                cast(BinaryIO, file), importing.file_name, reading, counted, limits=get_file_limits()
            ).entries
            reasons: Counter[str] = Counter()
            for number, entry in enumerate(islice(entries, SAMPLED_ROWS)):
                preview.rows += 1
                if isinstance(entry, BadRow):
                    preview.bad_rows += 1
                    reasons[entry.reason] += 1
                    preview.bad += [entry] if number < SHOWN_ROWS else []
                elif number < SHOWN_ROWS:
                    preview.samples.append(sample_entry(entry))
            preview.reasons = reasons.most_common(3)
    except InputRefused as refused:
        preview.refused = str(refused)
    return preview


def apply_mapping(importing: Import, mapped: ReadOptions, *, user: User | None) -> None:
    """Use the mapping for this file and later ones with these columns. A worker checks a long file."""
    refuse_archived_evaluation(importing.evaluation)
    preview = preview_mapping(importing, mapped)
    if preview.refused:
        raise InputRefused(preview.refused)
    if not preview.rows:
        raise InputRefused(f"{importing.file_name} has no rows.")
    if preview.rows == preview.bad_rows:
        raise InputRefused(f"None of the first {preview.rows:,} rows is valid: {preview.reasons[0][0]}.")
    with importing.file.open("rb") as file:
        columns = read_column_names(cast(BinaryIO, file), importing.file_name)
    options, reading = importing.options, combine_reading(importing, mapped)
    options = replace(options, request=replace(options.request, reading=reading), is_remembered=False, is_mapped=True)
    after = {
        "format": reading.format,
        "mapping": dict(reading.mapping),
        "constants": dict(reading.constants),
        "choices": dict(reading.choices),
    }
    check_again(importing, options, user=user, after=after)
    remember_mapping(importing.evaluation, columns, mapped, user)
    check_waiting_again(importing)


def remember_import_mapping(importing: Import) -> None:
    """Remember the mapping of this import for files with the same columns."""
    with importing.file.open("rb") as file:
        columns = read_column_names(cast(BinaryIO, file), importing.file_name)
    remember_mapping(importing.evaluation, columns, importing.request.reading, importing.user)
