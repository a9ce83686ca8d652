"""LLM Comparator: one JSON document with two models, and examples with what raters said of both outputs.

A score above 0 is for A, below 0 for B; it is in terms of A and B even where the rater was shown B first.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain import Choice, ComparisonRow, Notice, NoticeKind, RaterKind, Reading, Row, Shown, VerdictRow
from evaluations.formats.conversing import asked, candidate, named_by_text, query_of, unread
from evaluations.formats.messages import response
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, optional_text, required_number, required_text
from evaluations.formats.wording import with_strength

RATER: Final = "llm-comparator"  # where neither the file nor a person says who rated
OURS: Final = "label_source"  # a field that every example of an export from here has
OF_EXAMPLE: Final = (
    *("input_text", "tags", "output_text_a", "output_text_b", "score", "individual_rater_scores", "custom_fields"),
)
PLAIN: Final = (0, 1)  # scores that say no more than which is better
BOTH_ARE_BAD: Final = "both are bad"  # a label of exports from here, beside a score of 0
SHOWN: Final[Mapping[object, Shown]] = {True: Shown.SWAPPED, False: Shown.AS_STORED}


def example_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A comparison with each rater's verdict; without raters with the example's score, as one of both orders."""
    values = record.values
    tags = values.get("tags")
    category = str(tags[0]) if isinstance(tags, list) and tags else ""
    fields = values.get("custom_fields")
    custom: Mapping[str, Any] = fields if isinstance(fields, dict) else {}
    first, second = response(values, "output_text_a"), response(values, "output_text_b")
    names = models(record, custom) or named_by_text(first, second)
    comparison = ComparisonRow(
        line=record.line,
        query=query_of(
            asked(required_text(values, "input_text")), reading, key=candidate(custom, "query_id"), category=category
        ),
        candidate_a=names[0],
        response_a=first,
        candidate_b=names[1],
        response_b=second,
        metadata=metadata_in(custom),
    )
    further = tags[1:] if isinstance(tags, list) else []
    notices = (Notice(record.line, NoticeKind.NOT_STORED, f"the further tag “{tag}”") for tag in further)
    return comparison, *verdicts(values, comparison, reading), *notices, *unread(values, OF_EXAMPLE, record.line)


def metadata_in(custom: Mapping[str, Any]) -> dict[str, Any]:
    """Without what an export from here adds: which row it is, and labels, which nobody must read beside the texts."""
    if OURS not in custom:
        return dict(custom)
    ours = ("query_id", "candidate", OURS)
    return {field: value for field, value in custom.items() if field not in ours and not field.startswith("label: ")}


def models(record: Record, custom: Mapping[str, Any]) -> tuple[str, str] | None:
    """As the example names them, else as the head of the document does."""
    given = custom.get("candidate")
    listed = (record.beside or {}).get("models")
    if not isinstance(given, list) and isinstance(listed, list):
        given = [one.get("name") for one in listed if isinstance(one, dict)]
    if not isinstance(given, list) or len(given) != 2:
        return None
    one, other = given
    if not isinstance(one, str) or not isinstance(other, str) or not one.strip() or not other.strip() or one == other:
        return None
    if max(len(one), len(other)) > MAX_KEY:
        raise RowRefused(f"a model's name has more than {MAX_KEY} characters")
    return one, other


def verdicts(values: Mapping[str, Any], comparison: ComparisonRow, reading: Reading) -> Iterator[Row]:
    given = values.get("individual_rater_scores") or []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise RowRefused("individual_rater_scores must be a list of objects")
    for one in given or [{"score": values.get("score")}]:
        if one.get("score") is None:
            if given:
                yield Notice(comparison.line, NoticeKind.NO_ANSWER, rater_of(one, reading))
            continue
        score = required_number(one, "score")
        yield VerdictRow(
            line=comparison.line,
            query_key=comparison.query.key,
            candidate_a=comparison.candidate_a,
            candidate_b=comparison.candidate_b,
            rater=rater_of(one, reading),
            rater_kind=reading.rater_kind or RaterKind.JUDGE,
            aspect=DEFAULT_ASPECT,
            choice=choice_of(score, one.get("rating_label")),
            shown=SHOWN.get(one.get("is_flipped"), Shown.UNKNOWN) if given else Shown.FOLDED,
            rationale=optional_text(one, "rationale"),
            note=with_strength("", "" if abs(score) in PLAIN else f"{abs(score):g}"),
        )


def choice_of(score: float, label: object) -> Choice:
    if score == 0 and label == BOTH_ARE_BAD:
        return Choice.BOTH_BAD
    return Choice.A if score > 0 else Choice.B if score < 0 else Choice.TIE


def rater_of(rating: Mapping[str, Any], reading: Reading) -> str:
    fields = rating.get("custom_fields")
    named = candidate(fields, "rater") if isinstance(fields, dict) else ""
    return reading.rater or named or RATER
