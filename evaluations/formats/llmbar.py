"""LLMBar: pairs with a gold label, and the answers of judges in both orders."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.files import FileFormat, FileRow, Notice, NoticeKind, QueryPart, ReadOptions, VerdictRow
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import make_comparison, make_verdict, unread_column_notices, user_turn
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.native_rows import DEFAULT_ASPECT, prefix_key
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import RowRefused, required_text

CANDIDATES: Final = ("output_1", "output_2")
WINNERS: Final[Mapping[str | None, str]] = {"1": Choice.A, "2": Choice.B, None: CallState.UNREADABLE}
ORDERS: Final = {"swap = False": ShownOrder.AS_STORED, "swap = True": ShownOrder.SWAPPED}
OF_RESULTS: Final = ("input", "output_1", "output_2", "results")
KNOWN: Final = frozenset({"input", "output_1", "output_2", "label"})


def has_llmbar_labels(sample: FileSample) -> bool:
    return fits_mostly(str(value).strip() in ("1", "2") for value in sample.values("label"))


def llmbar_dataset_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison and its gold verdict. The query's id is the row's number, from 0."""
    values = record.values
    key = prefix_key(str(record.index), options)
    label = required_text(values, "label").strip()
    if label not in ("1", "2"):
        raise RowRefused(f"label is “{label[:40]}”; expected 1 or 2")
    query = QueryPart(key, cluster=key, messages=user_turn(required_text(values, "input")))
    responses = [parse_response(values, side) for side in CANDIDATES]
    metadata = {column: value for column, value in values.items() if column not in KNOWN}
    comparison = make_comparison(record, query, CANDIDATES, responses, metadata)
    return comparison, make_verdict(comparison, options.rater or "gold", RaterKind.GOLD, WINNERS[label])


def llmbar_result_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A judge's verdicts in both orders; winner 1 is output_1 in either of them."""
    if not options.rater:
        raise RowRefused("the file does not name its judge. Set a name for the whole file")
    earlier = [Notice(record.line, NoticeKind.NOT_STORED, "an earlier round of a judge")]
    return (
        *llmbar_verdicts(record, options),
        *earlier * (len(record.values["results"]) - 1),
        *unread_column_notices(record.values, OF_RESULTS, record.line),
    )


def llmbar_verdicts(record: Record, options: ReadOptions) -> Iterator[VerdictRow]:
    values = record.values
    texts = (required_text(values, "input"), llmbar_text(values, "output_1"), llmbar_text(values, "output_2"))
    for order, answer in last_llmbar_round(values).items():
        yield VerdictRow(
            line=record.line,
            query_key=prefix_key(str(record.index), options),
            candidate_a=None,
            candidate_b=None,
            rater=options.rater,
            rater_kind=options.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=llmbar_winner(answer),
            shown=ORDERS[order],
            rationale=llmbar_completion(answer),
            expected_texts=texts,
        )


def llmbar_text(values: Mapping[str, Any], field: str) -> str:
    return parse_response(values, field)[0]["content"]


def last_llmbar_round(values: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The last round of a judge that was asked again after its orders disagreed."""
    rounds = values.get("results")
    if not isinstance(rounds, list) or not rounds or not isinstance(rounds[-1], dict):
        raise RowRefused("results must be a list with at least one round")
    last: dict[str, Mapping[str, Any]] = rounds[-1]
    if set(last) != set(ORDERS) or not all(isinstance(answer, dict) for answer in last.values()):
        raise RowRefused("a round of results must hold “swap = False” and “swap = True”")
    return last


def llmbar_winner(answer: Mapping[str, Any]) -> str:
    winner = answer.get("winner")
    if not isinstance(winner, (str, type(None))) or winner not in WINNERS:
        raise RowRefused(f"winner is “{str(winner)[:40]}”; expected 1, 2 or null")
    return WINNERS[winner]


def llmbar_completion(answer: Mapping[str, Any]) -> str:
    """The judge's own words, kept as its rationale."""
    completion = answer.get("completion")
    return completion[0] if isinstance(completion, list) and completion and isinstance(completion[0], str) else ""


LLMBAR_FORMATS: Final = (
    ImportFormat(
        FileFormat.LLMBAR,
        (VERDICTS,),
        ("input", "output_1", "output_2", "results"),
        llmbar_result_rows,
        certainty=5,
    ),
    ImportFormat(
        FileFormat.LLMBAR,
        (COMPARISONS, VERDICTS),
        ("input", "output_1", "output_2", "label"),
        llmbar_dataset_rows,
        is_match=has_llmbar_labels,
    ),
)
