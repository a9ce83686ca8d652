"""LLM Comparator: one JSON document with two models and rated examples.

A score above 0 is for A, below 0 for B, in terms of A and B even where the rater was shown B first.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.files import ComparisonRow, FileFormat, FileRow, Notice, NoticeKind, ReadOptions
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import (
    WITHOUT_NAMES,
    first_candidate_name,
    make_comparison,
    make_query,
    make_verdict,
    names_from_texts,
    unread_column_notices,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, optional_text, required_number, required_text

RATER: Final = "llm-comparator"  # where neither the file nor the form names the rater
OURS: Final = "label_source"  # a field of every example of our own exports
OF_EXAMPLE: Final = (
    *("input_text", "tags", "output_text_a", "output_text_b", "score", "individual_rater_scores", "custom_fields"),
)
PLAIN: Final = (0, 1)  # scores without a strength
BOTH_ARE_BAD: Final = "both are bad"  # a label of our own exports, with a score of 0
SHOWN: Final[Mapping[object, ShownOrder]] = {True: ShownOrder.SWAPPED, False: ShownOrder.AS_STORED}


def llm_comparator_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison with each rater's verdict; without raters with the example's score, as one of both orders."""
    values = record.values
    tags = values.get("tags")
    category = str(tags[0]) if isinstance(tags, list) and tags else ""
    fields = values.get("custom_fields")
    custom: Mapping[str, Any] = fields if isinstance(fields, dict) else {}
    first, second = parse_response(values, "output_text_a"), parse_response(values, "output_text_b")
    names = compared_models(record, custom) or names_from_texts(first, second)
    key = first_candidate_name(custom, "query_id")
    query = make_query(user_turn(required_text(values, "input_text")), options, key=key, category=category)
    comparison = make_comparison(record, query, names, (first, second), foreign_metadata(custom))
    further = tags[1:] if isinstance(tags, list) else []
    notices = (Notice(record.line, NoticeKind.NOT_STORED, f"the further tag “{tag}”") for tag in further)
    return (
        comparison,
        *llm_comparator_verdicts(values, comparison, options),
        *notices,
        *unread_column_notices(values, OF_EXAMPLE, record.line),
    )


def foreign_metadata(custom: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without the row id and the labels that our own export adds."""
    if OURS not in custom:
        return dict(custom)
    ours = ("query_id", "candidate", OURS)
    return {field: value for field, value in custom.items() if field not in ours and not field.startswith("label: ")}


def compared_models(record: Record, custom: Mapping[str, Any]) -> tuple[str, str] | None:
    """The models named by the example, else by the head of the document."""
    names = custom.get("candidate")
    listed = (record.enclosing or {}).get("models")
    if not isinstance(names, list) and isinstance(listed, list):
        names = [model.get("name") for model in listed if isinstance(model, dict)]
    if not isinstance(names, list) or len(names) != 2:
        return None
    first, second = names
    if (
        not isinstance(first, str)
        or not isinstance(second, str)
        or not first.strip()
        or not second.strip()
        or first == second
    ):
        return None
    if max(len(first), len(second)) > MAX_KEY:
        raise RowRefused(f"a model's name has more than {MAX_KEY} characters")
    return first, second


def llm_comparator_verdicts(
    values: Mapping[str, Any], comparison: ComparisonRow, options: ReadOptions
) -> Iterator[FileRow]:
    ratings = values.get("individual_rater_scores") or []
    if not isinstance(ratings, list) or not all(isinstance(rating, dict) for rating in ratings):
        raise RowRefused("individual_rater_scores must be a list of objects")
    for rating in ratings or [{"score": values.get("score")}]:
        if rating.get("score") is None:
            if ratings:
                yield Notice(comparison.line, NoticeKind.NO_ANSWER, llm_comparator_rater(rating, options))
            continue
        score = required_number(rating, "score")
        yield make_verdict(
            comparison,
            llm_comparator_rater(rating, options),
            options.rater_kind or RaterKind.JUDGE,
            choice_of_comparator_score(score, rating.get("rating_label")),
            strength="" if abs(score) in PLAIN else f"{abs(score):g}",
            shown=SHOWN.get(rating.get("is_flipped"), ShownOrder.UNKNOWN) if ratings else ShownOrder.FOLDED,
            rationale=optional_text(rating, "rationale"),
        )


def choice_of_comparator_score(score: float, label: object) -> Choice:
    if score == 0 and label == BOTH_ARE_BAD:
        return Choice.BOTH_BAD
    return Choice.A if score > 0 else Choice.B if score < 0 else Choice.TIE


def llm_comparator_rater(rating: Mapping[str, Any], options: ReadOptions) -> str:
    fields = rating.get("custom_fields")
    named = first_candidate_name(fields, "rater") if isinstance(fields, dict) else ""
    return options.rater or named or RATER


LLM_COMPARATOR_FORMATS: Final = (
    ImportFormat(
        FileFormat.LLM_COMPARATOR,
        (COMPARISONS, VERDICTS),
        ("input_text", "output_text_a", "output_text_b"),
        llm_comparator_rows,
        note=WITHOUT_NAMES,
    ),
)
