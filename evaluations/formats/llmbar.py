"""LLMBar: its pairs with a gold label, and what judges answered in both orders."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain import (
    CallState,
    Choice,
    ComparisonRow,
    Notice,
    NoticeKind,
    QueryPart,
    RaterKind,
    Reading,
    Row,
    Shown,
    VerdictRow,
)
from evaluations.formats.conversing import unread
from evaluations.formats.file_sample import FileSample, mostly
from evaluations.formats.messages import response
from evaluations.formats.rows import DEFAULT_ASPECT, prefixed
from evaluations.formats.streams import Record
from evaluations.formats.values import RowRefused, required_text

CANDIDATES: Final = ("output_1", "output_2")
WINNERS: Final[Mapping[str | None, str]] = {"1": Choice.A, "2": Choice.B, None: CallState.UNREADABLE}
ORDERS: Final = {"swap = False": Shown.AS_STORED, "swap = True": Shown.SWAPPED}
OF_RESULTS: Final = ("input", "output_1", "output_2", "results")
KNOWN: Final = frozenset({"input", "output_1", "output_2", "label"})


def has_labels(sample: FileSample) -> bool:
    return mostly(str(value).strip() in ("1", "2") for value in sample.values("label"))


def dataset_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A comparison and its gold verdict. The query's id is the row's number, from 0."""
    values = record.values
    key = prefixed(str(record.index), reading)
    label = required_text(values, "label").strip()
    if label not in ("1", "2"):
        raise RowRefused(f"label is “{label[:40]}” where 1 or 2 is expected")
    return (
        ComparisonRow(
            line=record.line,
            query=QueryPart(
                key=key, cluster=key, messages=[{"role": "user", "content": required_text(values, "input")}]
            ),
            candidate_a=CANDIDATES[0],
            response_a=response(values, "output_1"),
            candidate_b=CANDIDATES[1],
            response_b=response(values, "output_2"),
            metadata={column: value for column, value in values.items() if column not in KNOWN},
        ),
        VerdictRow(
            line=record.line,
            query_key=key,
            candidate_a=CANDIDATES[0],
            candidate_b=CANDIDATES[1],
            rater=reading.rater or "gold",
            rater_kind=RaterKind.GOLD,
            aspect=DEFAULT_ASPECT,
            choice=WINNERS[label],
        ),
    )


def result_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A judge's verdicts in both orders; winner 1 is output_1 in either of them."""
    if not reading.rater:
        raise RowRefused("the file does not name its judge: give it a name for the whole file")
    earlier = [Notice(record.line, NoticeKind.NOT_STORED, "an earlier round of a judge")]
    return (
        *verdicts(record, reading),
        *earlier * (len(record.values["results"]) - 1),
        *unread(record.values, OF_RESULTS, record.line),
    )


def verdicts(record: Record, reading: Reading) -> Iterator[VerdictRow]:
    values = record.values
    texts = (required_text(values, "input"), text(values, "output_1"), text(values, "output_2"))
    for order, answer in last_round(values).items():
        yield VerdictRow(
            line=record.line,
            query_key=prefixed(str(record.index), reading),
            candidate_a=None,
            candidate_b=None,
            rater=reading.rater,
            rater_kind=reading.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=winner(answer),
            shown=ORDERS[order],
            rationale=completion(answer),
            expected_texts=texts,
        )


def text(values: Mapping[str, Any], field: str) -> str:
    return response(values, field)[0]["content"]


def last_round(values: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Where a judge thought again after its orders disagreed, the last round is its answer."""
    rounds = values.get("results")
    if not isinstance(rounds, list) or not rounds or not isinstance(rounds[-1], dict):
        raise RowRefused("results must be a list with at least one round")
    last: dict[str, Mapping[str, Any]] = rounds[-1]
    if set(last) != set(ORDERS) or not all(isinstance(answer, dict) for answer in last.values()):
        raise RowRefused("a round of results must hold “swap = False” and “swap = True”")
    return last


def winner(answer: Mapping[str, Any]) -> str:
    given = answer.get("winner")
    if not isinstance(given, (str, type(None))) or given not in WINNERS:
        raise RowRefused(f"winner is “{str(given)[:40]}” where 1, 2 or null is expected")
    return WINNERS[given]


def completion(answer: Mapping[str, Any]) -> str:
    """The judge's own words, kept as its rationale."""
    given = answer.get("completion")
    return given[0] if isinstance(given, list) and given and isinstance(given[0], str) else ""
