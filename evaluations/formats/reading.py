"""A file in, rows out: which format it is, and what each of its records brings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import BinaryIO, Final

from evaluations.domain import (
    FLIPPED,
    BadRow,
    Choice,
    FileFormat,
    InputRefused,
    Reading,
    Row,
    ScoreRow,
    Shown,
    VerdictRow,
)
from evaluations.formats import llmbar, pandalm, squality
from evaluations.formats.exported import material
from evaluations.formats.rows import comparison_row, response_row, score_row, verdict_row
from evaluations.formats.seen import Seen
from evaluations.formats.streams import Record, open_source
from evaluations.formats.values import MAX_SAMPLE, RowRefused, refuse_unstorable

Meaning = Callable[[Record, Reading], tuple[Row, ...]]


@dataclass(frozen=True)
class Format:
    """``name`` is what a person asks for; several formats of one name differ by their columns."""

    name: str
    brings: str  # comparisons, verdicts or scores
    needs: tuple[str, ...]
    meaning: Meaning


FORMATS: Final[Sequence[Format]] = (
    Format(
        FileFormat.COMPARISONS,
        "comparisons",
        ("query_id", "query", "candidate_a", "response_a", "candidate_b", "response_b"),
        comparison_row,
    ),
    Format(FileFormat.RESPONSES, "comparisons", ("query_id", "query", "candidate", "response"), response_row),
    Format(FileFormat.VERDICTS, "verdicts", ("query_id", "candidate_a", "candidate_b", "choice"), verdict_row),
    Format(FileFormat.SCORES, "scores", ("query_id", "candidate", "value"), score_row),
    Format(
        FileFormat.PANDALM,
        "comparisons",
        ("idx", "cmp_key", "instruction", "response1", "response2"),
        pandalm.testset_rows,
    ),
    Format(FileFormat.PANDALM, "verdicts", ("idx", "*_result"), pandalm.result_rows),
    Format(FileFormat.LLMBAR, "verdicts", ("input", "output_1", "output_2", "results"), llmbar.result_rows),
    Format(FileFormat.LLMBAR, "comparisons", ("input", "output_1", "output_2", "label"), llmbar.dataset_rows),
    Format(FileFormat.SQUALITY, "scores", ("passage-id", "questions"), squality.passage_rows),
)
# What stands instead of a needed column.
INSTEAD: Final = {"query": "messages"}


@dataclass(frozen=True)
class Entry:
    """What one record of a file brings: one row, or material and the verdicts or scores that came with it."""

    line: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Contents:
    """A file understood. Reading ``entries`` may raise InputRefused where the file breaks off."""

    format: Format
    entries: Iterator[Entry | BadRow]


def read_rows(file: BinaryIO, name: str, reading: Reading, seen: Seen, brings: str = "") -> Contents:
    """The rows of a file. ``seen`` counts samples; ``brings`` refuses other material."""
    source = open_source(file, name)
    beginning = [] if source.columns else list(up_to_first_readable(source.records))
    columns = renamed_columns(source.columns or columns_of(beginning), reading, name)
    found = detect(columns, reading.format, name, brings)
    refuse_other_material(found, brings, name)
    if source.columns:
        refuse_missing_columns(found, columns, name)
    records = chain(beginning, source.records)
    return Contents(found, (with_samples(entry_of(record, found, reading), seen) for record in records))


def up_to_first_readable(records: Iterator[Record | BadRow]) -> Iterator[Record | BadRow]:
    for record in records:
        yield record
        if isinstance(record, Record):
            return


def columns_of(records: Sequence[Record | BadRow]) -> tuple[str, ...]:
    return tuple(column for record in records if isinstance(record, Record) for column in record.values)


def renamed_columns(columns: tuple[str, ...], reading: Reading, name: str) -> tuple[str, ...]:
    for column in reading.mapping:
        if column not in columns:
            raise InputRefused(f"{name} has no column “{column}” to map. It has: {listed(columns)}.")
    return tuple(reading.mapping.get(column, column) for column in columns)


def listed(columns: tuple[str, ...]) -> str:
    shown = ", ".join(column[:40] for column in columns[:12])
    return f"{shown}, …" if len(columns) > 12 else shown


def detect(columns: tuple[str, ...], asked: str, name: str, brings: str = "") -> Format:
    """The format whose needed columns are there; of those asked for, the one that fits best.

    Of two that fit alike the one that brings what is wanted: scores may stand beside their responses.
    """
    allowed = [form for form in FORMATS if asked in (FileFormat.AUTO, form.name)]
    best = max(allowed, key=lambda form: (fit(form, columns), form.brings == brings))
    if fit(best, columns) <= 0.5:
        raise InputRefused(
            f"The columns of {name} ({listed(columns)}) fit no known format. A comparison row needs "
            f"{', '.join(FORMATS[0].needs)}."
            if asked == FileFormat.AUTO
            else f"{name} has no column {missing(best, columns)}, which the format {asked} needs."
        )
    return best


def fit(form: Format, columns: tuple[str, ...]) -> float:
    return sum(has(columns, column) for column in form.needs) / len(form.needs)


def has(columns: tuple[str, ...], needed: str) -> bool:
    if needed.startswith("*"):
        return any(column.endswith(needed[1:]) for column in columns)
    return needed in columns or INSTEAD.get(needed) in columns


def missing(form: Format, columns: tuple[str, ...]) -> str:
    return " and no column ".join(f"“{column}”" for column in form.needs if not has(columns, column))


def refuse_other_material(found: Format, brings: str, name: str) -> None:
    if brings and found.brings != brings:
        raise InputRefused(f"{name} holds {found.brings}, not {brings}: import it as {found.brings}.")


def refuse_missing_columns(found: Format, columns: tuple[str, ...], name: str) -> None:
    if absent := missing(found, columns):
        raise InputRefused(f"{name} has no column {absent}, which the format {found.name} needs.")


def entry_of(record: Record | BadRow, found: Format, reading: Reading) -> Entry | BadRow:
    if isinstance(record, BadRow):
        return record
    values = {reading.mapping.get(column, column): value for column, value in material(record.values).items()}
    try:
        for column, value in values.items():
            refuse_unstorable(column, "a column's name")
            refuse_unstorable(value, column)
        return Entry(record.line, found.meaning(replace(record, values=values), reading))
    except RowRefused as refused:
        return BadRow(record.line, str(refused))


def with_samples(given: Entry | BadRow, seen: Seen) -> Entry | BadRow:
    """Verdicts and scores without a sample are counted: the first of its kind in the file is 0."""
    if isinstance(given, BadRow):
        return given
    rows = tuple(numbered(row, seen) for row in given.rows)
    for row in rows:
        if isinstance(row, (VerdictRow, ScoreRow)) and (row.sample or 0) > MAX_SAMPLE:
            what = "verdict" if isinstance(row, VerdictRow) else "score"
            return BadRow(given.line, f"is more than sample {MAX_SAMPLE:,} of the same {what}")
    return replace(given, rows=rows)


def numbered(row: Row, seen: Seen) -> Row:
    if not isinstance(row, (VerdictRow, ScoreRow)) or row.sample is not None:
        return row
    return replace(row, sample=seen.ordinal(counted_as(row)))


def counted_as(row: VerdictRow | ScoreRow) -> tuple[str, ...]:
    """What two rows have in common that are samples of one thing."""
    if isinstance(row, ScoreRow):
        return "score", row.query_key, row.candidate, row.rater_kind, row.rater, row.aspect
    told = sorted_by_name(row)
    names = (told.candidate_a or "", told.candidate_b or "")
    return told.query_key, *names, told.rater_kind, told.rater, told.aspect, told.shown


def sorted_by_name(row: VerdictRow) -> VerdictRow:
    """The row with A as the candidate whose name sorts first; without names it stays as it is."""
    if row.candidate_a is None or row.candidate_b is None or row.candidate_a <= row.candidate_b:
        return row
    return turned_round(replace(row, candidate_a=row.candidate_b, candidate_b=row.candidate_a))


TURNED: Final = {Shown.AS_STORED: Shown.SWAPPED, Shown.SWAPPED: Shown.AS_STORED}


def turned_round(row: VerdictRow) -> VerdictRow:
    """The same choice told with the sides exchanged."""
    choice = FLIPPED[Choice(row.choice)] if row.choice in tuple(Choice) else row.choice
    return replace(row, choice=choice, shown=TURNED.get(row.shown, row.shown))
