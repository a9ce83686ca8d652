"""AlpacaEval: the outputs of one generator, and annotations of which of two outputs is preferred."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluations.domain import (
    CallState,
    Choice,
    ComparisonRow,
    Messages,
    Notice,
    NoticeKind,
    QueryPart,
    RaterKind,
    Reading,
    ResponseRow,
    Row,
    VerdictRow,
)
from evaluations.formats.candidates import candidate_of
from evaluations.formats.conversing import asked, candidate, left_out, named_by_text, query_of, remainder
from evaluations.formats.file_sample import FileSample, mostly
from evaluations.formats.messages import response
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import (
    NUMBER,
    RowRefused,
    optional_text,
    required_number,
    whole_number,
)

TIE: Final = 1.5
ROUND: Final = (1.0, TIE, 2.0)  # every other preference says how sure the annotator was
NOT_KEPT: Final = ("time_per_example", "price_per_example")
# Columns, or parts of a completion, in which an annotator says why.
EXPLANATIONS: Final = ("concise_explanation", "explanation", "rationale", "annotator_explanation")
KNOWN_OUTPUTS: Final = frozenset({"query_id", "instruction", "input", "output", "generator", "dataset", "id"})
# What only AlpacaEval's annotations have.
OF_ANNOTATIONS: Final = frozenset({"annotator", "annotator_index", "generator_1", "generator_2", "raw_completion"})
KNOWN: Final = frozenset(
    {"query_id", "instruction", "input", "dataset", "preference", "annotator", "annotator_index", "raw_completion"}
    | {"output_1", "output_2", "generator_1", "generator_2", *NOT_KEPT, *EXPLANATIONS}
)


def query_part(values: Mapping[str, Any], reading: Reading) -> QueryPart:
    """The same words have the same id, whichever generator's file they stand in."""
    parts = [optional_text(values, "instruction"), optional_text(values, "input")]
    text = "\n\n".join(one for one in parts if one.strip())
    key = candidate(values, "query_id")
    return query_of(asked(text), reading, key=key, category=optional_text(values, "dataset"))


def output_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    name, other = candidate_of(record, reading, "generator")
    return (
        ResponseRow(
            line=record.line,
            query=query_part(values, reading),
            candidate=name,
            overruled=other,
            response=response(values, "output"),
            metadata=remainder(values, KNOWN_OUTPUTS),
        ),
    )


def has_preferences(sample: FileSample) -> bool:
    """Whether preferences are AlpacaEval's: from 1 to 2, with 0 for a tie only where its other columns are there."""
    return not OF_ANNOTATIONS.isdisjoint(sample.columns) or mostly(map(is_preference, sample.values("preference")))


def is_preference(value: object) -> bool:
    text = str(value).strip()
    return NUMBER.fullmatch(text) is not None and 1 <= float(text) <= 2


def annotation_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A comparison and what an annotator preferred. A preference of null is a failure of the annotator."""
    values = record.values
    first, second = response(values, "output_1"), response(values, "output_2")
    names = generators(values, first, second)
    rationale, has_more = completion(values)
    comparison = ComparisonRow(
        line=record.line,
        query=query_part(values, reading),
        candidate_a=names[0],
        response_a=first,
        candidate_b=names[1],
        response_b=second,
        metadata=remainder(values, KNOWN),
    )
    rater, kind = annotator(values, reading)
    choice, strength = preferred(values)
    if choice not in tuple(Choice) and kind != RaterKind.JUDGE:
        raise RowRefused("preference is empty, and a person has no failures")
    verdict = VerdictRow(
        line=record.line,
        query_key=comparison.query.key,
        candidate_a=names[0],
        candidate_b=names[1],
        rater=rater,
        rater_kind=kind,
        aspect=DEFAULT_ASPECT,
        choice=choice,
        rationale=rationale,
        note=note_on(strength, names),
    )
    more = [Notice(record.line, NoticeKind.NOT_STORED, "raw_completion beyond its text")] if has_more else []
    return comparison, verdict, *more, *left_out(values, NOT_KEPT, record.line)


def generators(values: Mapping[str, Any], first: Messages, second: Messages) -> tuple[str, str]:
    names = candidate(values, "generator_1"), candidate(values, "generator_2")
    if not all(names):
        return named_by_text(first, second)
    if names[0] == names[1]:
        raise RowRefused(f"both generators are “{names[0]}”: give the two sides different names")
    return names


def annotator(values: Mapping[str, Any], reading: Reading) -> tuple[str, RaterKind]:
    """A judge with its name, or one of the people whom the file counts."""
    place = whole_number(values, "annotator_index", 1_000_000) if "annotator_index" in values else None
    if place is not None and not candidate(values, "annotator"):
        return reading.rater or f"annotator {place}", reading.rater_kind or RaterKind.HUMAN
    name = reading.rater or candidate(values, "annotator")
    if not name:
        raise RowRefused("annotator is missing: name a rater for the whole file")
    return name, reading.rater_kind or RaterKind.JUDGE


def preferred(values: Mapping[str, Any]) -> tuple[str, str]:
    """The choice, and a note where the preference says more than that."""
    if values.get("preference") in (None, ""):
        return CallState.UNREADABLE, ""
    value = required_number(values, "preference") or TIE  # older files have 0 for a tie
    if not 1 <= value <= 2:
        raise RowRefused(f"preference is {value:g} where a number from 1 to 2 is expected")
    choice = Choice.TIE if value == TIE else Choice.A if value < TIE else Choice.B
    return choice, "" if value in ROUND else f"preference {value!r}"


@dataclass(frozen=True)
class AnnotationNote:
    """What a verdict's note keeps of an annotation: its preference where it is not 1, 1.5 or 2, and its output_1."""

    preference: float | None = None
    output_1: str = ""
    rest: str = ""


NOTE: Final = re.compile(r"(?:preference (?P<preference>[0-9.e-]+))?(?:; )?(?:output_1: (?P<output_1>.+))?", re.DOTALL)


def note_on(strength: str, names: tuple[str, str]) -> str:
    """The first output is named where it is not the candidate that a comparison stores first."""
    return "; ".join(part for part in (strength, f"output_1: {names[0]}" if names[0] > names[1] else "") if part)


def note_read(note: str) -> AnnotationNote:
    """A note that an annotation left, taken apart; any other is all rest."""
    found = NOTE.fullmatch(note)
    if found is None:
        return AnnotationNote(rest=note)
    try:
        preference = float(found["preference"]) if found["preference"] else None
    except ValueError:
        return AnnotationNote(rest=note)
    if preference is not None and not 1 <= preference <= 2:
        return AnnotationNote(rest=note)
    return AnnotationNote(preference, found["output_1"] or "")


def completion(values: Mapping[str, Any]) -> tuple[str, bool]:
    """What the annotator wrote and why, and whether its completion holds more than text, such as probabilities."""
    given = values.get("raw_completion")
    texts = [*(optional_text(values, column) for column in EXPLANATIONS), *texts_in(given)]
    return "\n\n".join(dict.fromkeys(text for text in texts if text.strip())), isinstance(given, (dict, list))


def texts_in(completion: object) -> Iterator[str]:
    if isinstance(completion, str):
        yield completion
    elif isinstance(completion, dict):
        for part in (*EXPLANATIONS, "text", "content", "message"):
            yield from texts_in(completion.get(part))
    elif isinstance(completion, list):
        for one in completion:
            yield from texts_in(one)
