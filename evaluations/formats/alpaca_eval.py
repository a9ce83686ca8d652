"""AlpacaEval: outputs of one generator, and annotations of which output is preferred."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.files import FileFormat, FileRow, Notice, NoticeKind, QueryPart, ReadOptions
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Messages
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import (
    WITHOUT_NAMES,
    first_candidate_name,
    left_out_notices,
    make_comparison,
    make_query,
    make_response,
    make_verdict,
    names_from_texts,
    remaining_metadata,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import NUMBER, RowRefused, optional_text, required_number, whole_number

TIE: Final = 1.5
ROUND: Final = (1.0, TIE, 2.0)  # all others also express the certainty of the annotator
NOT_KEPT: Final = ("time_per_example", "price_per_example")
# Columns, or parts of a completion, with the explanation of an annotator.
EXPLANATIONS: Final = ("concise_explanation", "explanation", "rationale", "annotator_explanation")
KNOWN_OUTPUTS: Final = frozenset({"query_id", "instruction", "input", "output", "generator", "dataset", "id"})
# Columns that only AlpacaEval's annotations have.
OF_ANNOTATIONS: Final = frozenset({"annotator", "annotator_index", "generator_1", "generator_2", "raw_completion"})
KNOWN: Final = frozenset(
    {"query_id", "instruction", "input", "dataset", "preference", "annotator", "annotator_index", "raw_completion"}
    | {"output_1", "output_2", "generator_1", "generator_2", *NOT_KEPT, *EXPLANATIONS}
)


def alpaca_query(values: Mapping[str, Any], options: ReadOptions) -> QueryPart:
    """The query, whose id depends on the prompt alone, so that it is the same in the files of all generators."""
    parts = [optional_text(values, "instruction"), optional_text(values, "input")]
    text = "\n\n".join(part for part in parts if part.strip())
    key = first_candidate_name(values, "query_id")
    return make_query(user_turn(text), options, key=key, category=optional_text(values, "dataset"))


def alpaca_output_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    query, response = alpaca_query(record.values, options), parse_response(record.values, "output")
    return (make_response(record, options, query, "generator", response, KNOWN_OUTPUTS),)


def has_alpaca_preferences(sample: FileSample) -> bool:
    """Whether preferences are AlpacaEval's: from 1 to 2, with 0 for a tie only where its other columns are there."""
    return not OF_ANNOTATIONS.isdisjoint(sample.columns) or fits_mostly(
        map(is_alpaca_preference, sample.values("preference"))
    )


def is_alpaca_preference(value: object) -> bool:
    text = str(value).strip()
    return NUMBER.fullmatch(text) is not None and 1 <= float(text) <= 2


def alpaca_annotation_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison and the verdict of an annotator; a preference of null is a failure."""
    values = record.values
    first, second = parse_response(values, "output_1"), parse_response(values, "output_2")
    names = generator_names(values, first, second)
    rationale, has_more = annotator_completion(values)
    query = alpaca_query(values, options)
    comparison = make_comparison(record, query, names, (first, second), remaining_metadata(values, KNOWN))
    rater, kind = alpaca_annotator(values, options)
    choice, strength = alpaca_choice(values)
    if choice not in tuple(Choice) and kind != RaterKind.JUDGE:
        raise RowRefused("preference is empty, and reviewers have no failures")
    verdict = make_verdict(comparison, rater, kind, choice, rationale=rationale)
    verdict = replace(verdict, note=make_annotation_note(strength, names))
    more = [Notice(record.line, NoticeKind.NOT_STORED, "raw_completion beyond its text")] if has_more else []
    return comparison, verdict, *more, *left_out_notices(values, NOT_KEPT, record.line)


def generator_names(values: Mapping[str, Any], first: Messages, second: Messages) -> tuple[str, str]:
    names = first_candidate_name(values, "generator_1"), first_candidate_name(values, "generator_2")
    if not all(names):
        return names_from_texts(first, second)
    if names[0] == names[1]:
        raise RowRefused(f"both generators are “{names[0]}”. Give the two models different names")
    return names


def alpaca_annotator(values: Mapping[str, Any], options: ReadOptions) -> tuple[str, RaterKind]:
    """A judge with its name, or one of the people whom the file counts."""
    place = whole_number(values, "annotator_index", 1_000_000) if "annotator_index" in values else None
    if place is not None and not first_candidate_name(values, "annotator"):
        return options.rater or f"annotator {place}", options.rater_kind or RaterKind.HUMAN
    name = options.rater or first_candidate_name(values, "annotator")
    if not name:
        raise RowRefused("annotator is missing. Set one rater for the whole file")
    return name, options.rater_kind or RaterKind.JUDGE


def alpaca_choice(values: Mapping[str, Any]) -> tuple[str, str]:
    """The choice, with a note where the preference is more precise than a choice."""
    if values.get("preference") in (None, ""):
        return CallState.UNREADABLE, ""
    value = required_number(values, "preference") or TIE  # older files have 0 for a tie
    if not 1 <= value <= 2:
        raise RowRefused(f"preference is {value:g} where a number from 1 to 2 is expected")
    choice = Choice.TIE if value == TIE else Choice.A if value < TIE else Choice.B
    return choice, "" if value in ROUND else f"preference {value!r}"


@dataclass(frozen=True)
class AnnotationNote:
    """The parts of an annotation in a verdict's note: its preference, if not 1, 1.5 or 2, and its output_1."""

    preference: float | None = None
    output_1: str = ""
    rest: str = ""


NOTE: Final = re.compile(r"(?:preference (?P<preference>[0-9.e-]+))?(?:; )?(?:output_1: (?P<output_1>.+))?", re.DOTALL)


def make_annotation_note(strength: str, names: tuple[str, str]) -> str:
    """A note with the strength, and with output_1 if it is not the candidate that a comparison stores first."""
    return "; ".join(part for part in (strength, f"output_1: {names[0]}" if names[0] > names[1] else "") if part)


def parse_annotation_note(note: str) -> AnnotationNote:
    """The parts of a note that an annotation left; any other note is all rest."""
    match = NOTE.fullmatch(note)
    if match is None or not is_alpaca_preference(match["preference"] or TIE):
        return AnnotationNote(rest=note)
    return AnnotationNote(float(match["preference"]) if match["preference"] else None, match["output_1"] or "")


def annotator_completion(values: Mapping[str, Any]) -> tuple[str, bool]:
    """The annotator's explanation, and whether its completion holds more than text, such as probabilities."""
    completion = values.get("raw_completion")
    texts = [*(optional_text(values, column) for column in EXPLANATIONS), *completion_texts(completion)]
    return "\n\n".join(dict.fromkeys(text for text in texts if text.strip())), isinstance(completion, (dict, list))


def completion_texts(completion: object) -> Iterator[str]:
    if isinstance(completion, str):
        yield completion
    elif isinstance(completion, dict):
        for part in (*EXPLANATIONS, "text", "content", "message"):
            yield from completion_texts(completion.get(part))
    elif isinstance(completion, list):
        for item in completion:
            yield from completion_texts(item)


ALPACA_EVAL_FORMATS: Final = (
    ImportFormat(
        FileFormat.ALPACA_EVAL,
        (COMPARISONS, VERDICTS),
        ("instruction", "output_1", "output_2", "preference"),
        alpaca_annotation_rows,
        note=WITHOUT_NAMES,
        is_match=has_alpaca_preferences,
    ),
    ImportFormat(
        FileFormat.ALPACA_EVAL,
        (COMPARISONS,),
        ("instruction", "output", "generator"),
        alpaca_output_rows,
        needs_pairing=True,
    ),
)
