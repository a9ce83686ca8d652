"""A kept file under a mapping: what its first rows become, and the check of it whole once a person is content."""

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final, cast

from django.db import transaction

from evaluations.domain import CANDIDATE, BadRow, ColumnsUnknown, ImportState, InputRefused, Reading
from evaluations.formats.mapping import named
from evaluations.formats.reading import read_rows
from evaluations.formats.seen import Seen
from evaluations.models import ColumnMapping, Evaluation, Import, User
from evaluations.services.importing.mapping import (
    LOOKED_AT,
    SHOWN,
    Sheet,
    columns_at,
    look_at,
    names_for_all_rows,
    recalled,
    remember,
    remembered,
)
from evaluations.services.importing.previewing import (
    Pairs,
    check_received,
    is_quickly_checked,
    keep,
    preview,
    reading_of,
    receive,
    refuse_archived,
    unsaved,
)
from evaluations.services.importing.sampling import sample
from evaluations.services.recording import record

MAPPABLE: Final = (ImportState.MAPPING, ImportState.PREVIEWED)


@dataclass
class Trial:
    """What the first rows become. ``refused``: why nothing can be made of the file like this."""

    samples: list[dict[str, Any]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    rows: int = 0
    bad_rows: int = 0
    refused: str = ""
    reasons: list[tuple[str, int]] = field(default_factory=list)


def take(
    evaluation: Evaluation,
    file: BinaryIO,
    size: int,
    *,
    file_name: str,
    reading: Reading,
    user: User | None,
    pair: str,
    derive_pairs: float | None,
) -> Import:
    """Check a short file at once, and leave a long one to a worker: its state says which.

    One whose columns are not known is kept until somebody says what they mean. Raises InputRefused.
    """
    said: dict[str, Any] = {"file_name": file_name, "reading": reading, "user": user, "pair": pair}
    said["derive_pairs"] = derive_pairs
    try:
        return (preview if is_quickly_checked(file, size) else receive)(evaluation, file, **said)
    except ColumnsUnknown as unknown:
        return keep_unfitted(evaluation, file, why=str(unknown), **said)


def keep_unfitted(
    evaluation: Evaluation,
    file: BinaryIO,
    *,
    file_name: str,
    reading: Reading,
    user: User | None,
    pair: str,
    derive_pairs: float | None,
    why: str,
) -> Import:
    """Keep a file whose columns are not known, until a person says what they mean."""
    try:
        look_at(file, file_name)
    except InputRefused:  # there is nothing that a mapping could be tried on
        raise InputRefused(why) from None
    asked = dataclasses.replace(reading, as_it_is=True)
    importing = unsaved(evaluation, file, file_name, asked, user, Pairs(pair, derive_pairs), brings="")
    importing.state, importing.reason = ImportState.MAPPING, why
    keep(importing, file)
    return importing


def sheet_of(importing: Import) -> Sheet:
    with importing.file.open("rb") as file:
        return look_at(cast(BinaryIO, file), importing.file_name)


def remembered_for(importing: Import, sheet: Sheet) -> ColumnMapping | None:
    return remembered(importing.evaluation, sheet.columns)


def said_before(importing: Import, sheet: Sheet) -> Reading | None:
    """How this file was last read, or else files with the same columns."""
    own = reading_of(importing)
    if own.is_mapped:
        return own
    known = remembered_for(importing, sheet)
    if known is None:
        return None
    return recalled(known)


def names_given(importing: Import) -> dict[str, str]:
    """Whose the rows of this file are, as far as it was said for all of them."""
    return names_for_all_rows(reading_of(importing))


def with_reading(importing: Import, told: Reading) -> Reading:
    """How the file was asked to be read, but for what its columns mean: that its model's name is one of them too."""
    asked = reading_of(importing)
    is_named = CANDIDATE in named(told)
    return dataclasses.replace(
        asked,
        candidate="" if is_named else asked.candidate,
        format=told.format,
        mapping=told.mapping,
        constants=told.constants,
        choices=told.choices,
    )


def trial(importing: Import, told: Reading) -> Trial:
    """What the first rows of the file become when it is read like this; nothing is asked of the database."""
    reading, made = with_reading(importing, told), Trial()
    try:
        with importing.file.open("rb") as file, Seen() as counted:
            entries = read_rows(cast(BinaryIO, file), importing.file_name, reading, counted).entries
            reasons: Counter[str] = Counter()
            for number, entry in enumerate(islice(entries, LOOKED_AT)):
                made.rows += 1
                if isinstance(entry, BadRow):
                    made.bad_rows += 1
                    reasons[entry.reason] += 1
                if number < SHOWN:
                    (made.bad if isinstance(entry, BadRow) else made.samples).append(
                        entry if isinstance(entry, BadRow) else sample(entry)  # type: ignore[arg-type]
                    )
            made.reasons = reasons.most_common(3)
    except InputRefused as refused:
        made.refused = str(refused)
    return made


def fit(importing: Import, told: Reading, *, user: User | None) -> bool:
    """Read the file like this, and others with the same columns from now on. True where a worker is to check it."""
    refuse_archived(importing.evaluation)
    tried = trial(importing, told)
    if tried.refused:
        raise InputRefused(tried.refused)
    if not tried.rows:
        raise InputRefused(f"{importing.file_name} holds no rows.")
    if tried.rows == tried.bad_rows:
        raise InputRefused(f"None of the first {tried.rows:,} rows can be stored like this: {tried.reasons[0][0]}.")
    with importing.file.open("rb") as file:
        columns = columns_at(cast(BinaryIO, file), importing.file_name)
        is_quick = is_quickly_checked(cast(BinaryIO, file), importing.file.size)
    begin_anew(importing, with_reading(importing, told), user)
    remember(importing.evaluation, columns, told, user)
    if is_quick:
        check_received(importing)
    return not is_quick


def begin_anew(importing: Import, reading: Reading, user: User | None) -> None:
    told = {"format": reading.format, "mapping": dict(reading.mapping)}
    said = {"constants": dict(reading.constants), "choices": dict(reading.choices), "remembered": False, "mapped": True}
    with transaction.atomic():
        begun = Import.objects.filter(pk=importing.pk, state__in=MAPPABLE).update(
            state=ImportState.CHECKING,
            options={**importing.options, **said},
            summary={},
            bad_rows=[],
            rows_read=0,
            rows_stored=0,
            rows_unchanged=0,
            rows_bad=0,
            rows_skipped=0,
            reason="",
            seen_at=None,
            **told,
        )
        if not begun:
            raise InputRefused(f"{importing.file_name} was stored or discarded already.")
        record("mapped", importing, user=user, evaluation=importing.evaluation, after={**told, **said})
    importing.refresh_from_db()


def remember_reading(importing: Import) -> None:
    """Files with the same columns are read as this one is."""
    with importing.file.open("rb") as file:
        columns = columns_at(cast(BinaryIO, file), importing.file_name)
    remember(importing.evaluation, columns, reading_of(importing), importing.user)
