"""What the columns of a foreign file mean: looked at, said by a person, and remembered for the next such file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

from django.db import transaction
from django.utils import timezone

from evaluations.domain import OF_ONE_FILE, FileFormat, InputRefused, NamesMissing, Reading
from evaluations.formats.file_sample import sample_of
from evaluations.formats.sources import open_source
from evaluations.models import ColumnMapping, Evaluation, User
from evaluations.services.importing.fetching import limits
from evaluations.services.recording import record

LOOKED_AT: Final = 200  # rows
SHOWN: Final = 3
MOST_WORDS: Final = 12  # different values of a column that a person can be asked about
LONGEST_WORD: Final = 80


@dataclass(frozen=True)
class Sheet:
    """A file as it stands: its columns, its first rows, and the words of those columns that hold few."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    words: Mapping[str, tuple[str, ...]]


def columns_at(file: BinaryIO, name: str) -> tuple[str, ...]:
    return sample_of(open_source(file, name, limits()))[0].columns


def look_at(file: BinaryIO, name: str) -> Sheet:
    """Raises InputRefused where it cannot be read at all."""
    sample, records = sample_of(open_source(file, name, limits()))
    if not sample.rows:
        list(records)  # which says why none can be read
    if not sample.columns:
        raise InputRefused(f"None of the first rows of {name} can be read.")
    few = {column: found for column in sample.columns if (found := words(sample.rows, column))}
    return Sheet(sample.columns, tuple(sample.rows[:SHOWN]), few)


def words(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[str, ...]:
    """The different values of a column; none where they are too many, or too long, to be words."""
    found: dict[str, None] = {}
    for row in rows:
        value = row.get(column)
        if isinstance(value, (dict, list)):
            return ()
        text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        found[text.strip()[: LONGEST_WORD + 1]] = None
        if len(found) > MOST_WORDS or len(text.strip()) > LONGEST_WORD:
            return ()
    return tuple(sorted(found))


# ---- remembered --------------------------------------------------------------------------------


def signature(columns: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(columns)).encode()).hexdigest()


def remembered(evaluation: Evaluation, columns: Sequence[str]) -> ColumnMapping | None:
    return ColumnMapping.objects.filter(evaluation=evaluation, signature=signature(columns)).first()


def recalled(known: ColumnMapping) -> Reading:
    """How files with these columns are read. Whose they are is said of each file anew."""
    return Reading(
        format=known.format,
        mapping=known.mapping,
        constants={field: value for field, value in known.constants.items() if field not in OF_ONE_FILE},
        choices=known.choices,
    )


def as_remembered(evaluation: Evaluation, file: BinaryIO, name: str, reading: Reading) -> Reading:
    """How files with these columns were read before, where nothing else is asked for now. Raises NamesMissing."""
    is_asked = reading.mapping or reading.choices or set(reading.constants) - set(OF_ONE_FILE)
    if reading.format != FileFormat.AUTO or is_asked or reading.as_it_is:
        return reading
    if not ColumnMapping.objects.filter(evaluation=evaluation).exists():
        return reading
    known = remembered(evaluation, columns_at(file, name))
    if known is None:
        return reading
    refuse_missing_names(known, reading, name)
    said = recalled(known)
    constants = {**said.constants, **reading.constants}
    return replace(reading, format=said.format, mapping=said.mapping, choices=said.choices, constants=constants)


def refuse_missing_names(known: ColumnMapping, reading: Reading, name: str) -> None:
    """What had one value for all rows of the earlier file needs one of this file's own; a model has the file's name."""
    told = {**names_for_all_rows(reading), "candidate": reading.candidate or name}
    lacks = [field for field in OF_ONE_FILE if field in known.constants and not told.get(field)]
    if lacks:
        raise NamesMissing(
            f"The columns of {name} are known, but names are not remembered from one file to the next. "
            f"Give this file its own: {' '.join(f'--set {field}=…' for field in lacks)}, or on the page of its columns."
        )


def names_for_all_rows(reading: Reading) -> dict[str, str]:
    """Whose the rows of this file are, as far as it was said for all of them."""
    said = {"candidate": reading.candidate, "rater": reading.rater, "rater_kind": str(reading.rater_kind or "")}
    told = {**said, **{field: value for field, value in reading.constants.items() if field in OF_ONE_FILE}}
    return {field: value for field, value in told.items() if value}


def remember(evaluation: Evaluation, columns: Sequence[str], reading: Reading, user: User | None) -> None:
    """Files with these columns are read like this from now on, unless somebody says otherwise.

    Of a name for all rows only that there was one is kept: it would be the wrong one for the next file.
    """
    told = {
        "columns": list(columns),
        "format": str(reading.format),
        "mapping": dict(reading.mapping),
        "constants": {field: "" if field in OF_ONE_FILE else value for field, value in reading.constants.items()},
        "choices": dict(reading.choices),
    }
    before = remembered(evaluation, columns)
    if before is not None and all(getattr(before, name) == value for name, value in told.items()):
        return
    with transaction.atomic():
        kept, _ = ColumnMapping.objects.update_or_create(
            evaluation=evaluation,
            signature=signature(columns),
            defaults={**told, "user": user, "said_at": timezone.now()},
        )
        record("mapped columns", kept, user=user, evaluation=evaluation, after=told)


def forget(mapping: ColumnMapping, *, user: User | None) -> None:
    with transaction.atomic():
        told = {"columns": mapping.columns, "format": mapping.format}
        record("forgot columns", mapping, user=user, evaluation=mapping.evaluation, before=told)
        mapping.delete()
