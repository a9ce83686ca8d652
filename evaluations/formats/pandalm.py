"""PandaLM: its test set with three people's verdicts a row, and the results of judges on it."""

from collections.abc import Mapping
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.files import FileFormat, FileRow, QueryPart, ReadOptions, VerdictRow
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import (
    cluster_name,
    make_comparison,
    make_verdict,
    unread_column_notices,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.native_rows import DEFAULT_ASPECT, prefix_key
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import MAX_CATEGORY, RowRefused, optional_text, required_text

ANNOTATORS: Final = ("annotator1", "annotator2", "annotator3")
RESULT_SUFFIX: Final = "_result"
CHOICES: Final[Mapping[str, str]] = {
    "1": Choice.A,
    "2": Choice.B,
    "0": Choice.TIE,
    "tie": Choice.TIE,
    "garbage": CallState.UNREADABLE,
}
KNOWN: Final = frozenset(
    {"idx", "motivation_app", "cmp_key", "instruction", "input", "response1", "response2", *ANNOTATORS}
)


def pandalm_testset_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison, and one human verdict for each annotator."""
    values = record.values
    key = prefix_key(required_text(values, "idx"), options)
    first, _, second = required_text(values, "cmp_key").partition("_")
    if not first or not second:
        raise RowRefused("cmp_key must name two candidates joined by “_”")
    responses = [parse_response(values, field) for field in ("response1", "response2")]
    metadata = {column: value for column, value in values.items() if column not in KNOWN}
    comparison = make_comparison(record, pandalm_query(values, key), (first, second), responses, metadata)
    verdicts = (
        make_verdict(comparison, name, RaterKind.HUMAN, pandalm_human_choice(required_text(values, name), name))
        for name in ANNOTATORS
        if name in values
    )
    return comparison, *verdicts


def pandalm_query(values: Mapping[str, Any], key: str) -> QueryPart:
    instruction = optional_text(values, "instruction")
    text = optional_text(values, "input")
    question = "\n\n".join(part for part in (instruction, text) if part.strip())
    if not question:
        raise RowRefused("instruction is missing")
    return QueryPart(
        key=key,
        cluster=cluster_name(f"{instruction}\n{text}"),
        messages=user_turn(question),
        category=optional_text(values, "motivation_app", MAX_CATEGORY),
    )


def pandalm_human_choice(word: str, annotator: str) -> str:
    if word not in ("0", "1", "2"):
        raise RowRefused(f"{annotator} is “{word[:40]}”; expected 0, 1 or 2")
    return CHOICES[word]


def has_pandalm_results(sample: FileSample) -> bool:
    """Whether the column of results contains PandaLM's words: other files have a column “idx” too."""
    columns = [column for column in sample.columns if column.endswith(RESULT_SUFFIX)]
    return fits_mostly(
        str(value).strip().lower() in CHOICES for column in columns[:1] for value in sample.values(column)
    )


def pandalm_result_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A judge's verdict. The file names no candidates: 1 is the response shown first."""
    column = pandalm_result_column(record.values)
    word = required_text(record.values, column).strip()
    if word.lower() not in CHOICES:
        raise RowRefused(f"{column} is “{word[:40]}”; expected 1, 2, 0, Tie or garbage")
    judge = column.removesuffix(RESULT_SUFFIX)
    used = ("idx", column, f"{judge}_reason")
    return (
        VerdictRow(
            line=record.line,
            query_key=prefix_key(required_text(record.values, "idx"), options),
            candidate_a=None,
            candidate_b=None,
            rater=options.rater or judge,
            rater_kind=options.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=CHOICES[word.lower()],
            rationale=optional_text(record.values, f"{judge}_reason"),
        ),
        *unread_column_notices(record.values, used, record.line),
    )


def pandalm_result_column(values: Mapping[str, Any]) -> str:
    for column in values:
        if column.endswith(RESULT_SUFFIX):
            return column
    raise RowRefused("has no column that ends in _result")


PANDALM_FORMATS: Final = (
    ImportFormat(
        FileFormat.PANDALM,
        (COMPARISONS, VERDICTS),
        ("idx", "cmp_key", "instruction", "response1", "response2"),
        pandalm_testset_rows,
    ),
    ImportFormat(
        FileFormat.PANDALM, (VERDICTS,), ("idx", "*_result"), pandalm_result_rows, is_match=has_pandalm_results
    ),
)
