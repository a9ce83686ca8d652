"""Argilla: exported records of projects in which people compared two texts.

Submitted responses are people's verdicts, suggestions are a judge's. A question counts if its answer is one of the two
fields or a ranking of them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.files import FileFormat, FileRow, NoticeKind, ReadOptions
from evaluations.domain.roles import RaterKind
from evaluations.formats.annotation_fields import AnnotatedPair, find_annotated_pair
from evaluations.formats.conversations import first_candidate_name
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.label_parser import ParsedLabel, parse_label
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, parse_structured_value, value_as_text

SUGGESTION: Final = "suggestion"
SUGGESTED: Final = "-suggestion-metadata"
SUBMITTED: Final = "submitted"
COUNTED: Final = ("", SUBMITTED)
# Columns of a record other than its fields, and those that do not concern the two responses.
OWN: Final = frozenset({"id", "external_id", "_server_id", "status", "fields", "responses", "suggestions", "metadata"})
OF_RECORD: Final = frozenset({"_server_id", "status", "inserted_at", "updated_at"})
NAMES: Final = ("external_id", "id", "_server_id")


@dataclass(frozen=True)
class ArgillaAnswer:
    """One answer of a rater to a question. ``status``: of a person's response, "" where the file has none."""

    rater: str
    kind: RaterKind
    question: str
    value: object
    status: str = SUBMITTED


def argilla_record_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    fields = values.get("fields")
    if not isinstance(fields, dict):
        raise RowRefused("fields must be an object")
    key = next((values[name] for name in NAMES if values.get(name) is not None), None)
    metadata = parse_structured_value(values.get("metadata"), "metadata")
    pair = find_annotated_pair(fields, options, record.line, value_as_text(record.index if key is None else key, "id"))
    pair = replace(pair, other_fields={**(metadata if isinstance(metadata, dict) else {}), **pair.other_fields})
    rows = list(pair.material_rows())
    for answer in (*argilla_responses(values, options), *argilla_suggestions(values, options)):
        rows += argilla_verdict_rows(pair, answer, options)
    unread = [name for name in values if name not in (*OWN, *OF_RECORD) and values[name] not in (None, "", [], {})]
    return (*rows, *(pair.notice(NoticeKind.COLUMN, name) for name in unread))


def argilla_verdict_rows(pair: AnnotatedPair, answer: ArgillaAnswer, options: ReadOptions) -> Iterator[FileRow]:
    """The verdict of an answer, or a notice why it is none."""
    if answer.status not in COUNTED:
        yield pair.notice(NoticeKind.STATUS, answer.status)
        return
    if answer.value in (None, "", [], {}):
        yield pair.notice(NoticeKind.NO_ANSWER, answer.question)
        return
    if len(answer.rater) > MAX_KEY:
        raise RowRefused(f"a rater's name has {len(answer.rater):,} characters; the limit is {MAX_KEY}")
    if not answer.status:
        yield pair.notice(NoticeKind.NO_STATUS, "")
    word, label = interpret_argilla_answer(answer.value, pair, options)
    yield from pair.answer(answer.question, word, label, rater=answer.rater, rater_kind=answer.kind)


def argilla_flat_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """Rows of a record whose fields, responses and suggestions are separate columns, as in a data set."""
    fields, responses, suggestions = {}, {}, {}
    for column, value in record.values.items():
        question, _, what = column.partition(".")
        if not what:
            fields[column] = value
        elif what == "responses":
            answered = [list_in_column(record.values, f"{column}{part}") for part in (".users", ".status")]
            responses[question] = [
                {"value": answer, "user_id": user, "status": status}
                for answer, user, status in zip_longest(list_in_column(record.values, column), *answered)
            ]
        elif what == "suggestion" and value is not None:
            suggestions[question] = {"value": value, "agent": record.values.get(f"{column}.agent")}
    own = {name: fields.pop(name, None) for name in ("id", *OF_RECORD)}
    values = {**own, "fields": fields, "responses": responses, "suggestions": suggestions}
    return argilla_record_rows(replace(record, values=values), options)


def argilla_v1_flat_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """Rows of a flat record of the first version, in which a column of responses has the question's own name."""
    values = record.values
    questions = {column.removesuffix(SUGGESTED) for column in values if column.endswith(SUGGESTED)}
    responses, suggestions = {}, {}
    for question in questions:
        responses[question] = decode_objects(values.get(question), question)
        if values.get(f"{question}-suggestion") is not None:
            about = parse_structured_value(values.get(f"{question}{SUGGESTED}"), f"{question}{SUGGESTED}")
            agent = about.get("agent") if isinstance(about, dict) else None
            suggestions[question] = {"value": values[f"{question}-suggestion"], "agent": agent}
    question_columns = {
        *questions,
        *(f"{question}{ending}" for question in questions for ending in ("-suggestion", SUGGESTED)),
    }
    fields = {
        column: value
        for column, value in values.items()
        if column not in (*question_columns, "external_id", "metadata")
    }
    record_values = {"external_id": values.get("external_id"), "metadata": values.get("metadata"), "fields": fields}
    return argilla_record_rows(
        replace(record, values={**record_values, "responses": responses, "suggestions": suggestions}), options
    )


def list_in_column(values: Mapping[str, Any], column: str) -> list[Any]:
    cell = values.get(column)
    return cell if isinstance(cell, list) else []


def decode_objects(value: object, field: str) -> object:
    """A list of objects; tables may have it as an object of lists, or as JSON in a cell."""
    value = parse_structured_value(value, field) if isinstance(value, str) and value.startswith(("[", "{")) else value
    if not isinstance(value, dict) or not value or not all(isinstance(part, list) for part in value.values()):
        return value
    return [dict(zip(value, parts, strict=True)) for parts in zip_longest(*value.values())]


def argilla_responses(values: Mapping[str, Any], options: ReadOptions) -> Iterator[ArgillaAnswer]:
    """A list of responses, each with its answers; or by question a list of answers."""
    responses, kind = values.get("responses") or [], options.rater_kind or RaterKind.HUMAN
    if isinstance(responses, dict):
        for question, answers in responses.items():
            for answer in require_objects(answers, f"the responses to “{question}”"):
                yield ArgillaAnswer(
                    argilla_user(answer, options), kind, question, answer.get("value"), argilla_status(answer)
                )
        return
    for response in require_objects(responses, "responses"):
        for question, answer in (response.get("values") or {"": None}).items():
            value = answer.get("value") if isinstance(answer, dict) else answer
            yield ArgillaAnswer(argilla_user(response, options), kind, question, value, argilla_status(response))


def require_objects(value: object, what: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, (list, type(None))) or not all(isinstance(item, dict) for item in value or []):
        raise RowRefused(f"{what} must be a list of objects")
    return value or []


def argilla_status(response: Mapping[str, Any]) -> str:
    return str(response.get("status") or "").strip().lower()


def argilla_suggestions(values: Mapping[str, Any], options: ReadOptions) -> Iterator[ArgillaAnswer]:
    suggestions = values.get("suggestions") or []
    listed = (
        [
            {"question_name": question, **suggestion}
            for question, suggestion in suggestions.items()
            if isinstance(suggestion, dict)
        ]
        if isinstance(suggestions, dict)
        else require_objects(suggestions, "suggestions")
    )
    for suggestion in listed:
        agent = first_candidate_name(suggestion, "agent") or options.rater or SUGGESTION
        yield ArgillaAnswer(agent, RaterKind.JUDGE, str(suggestion.get("question_name", "")), suggestion.get("value"))


def argilla_user(response: Mapping[str, Any], options: ReadOptions) -> str:
    name = first_candidate_name(response, "user_id") or options.rater
    if not name and argilla_status(response) in COUNTED:
        raise RowRefused("a response has no rater. Set one rater for the whole file")
    return name


def interpret_argilla_answer(
    value: object, pair: AnnotatedPair, options: ReadOptions
) -> tuple[str, ParsedLabel | None]:
    """An answer in words with its meaning: a label, or a ranking of the two responses."""
    value = decode_objects(value, "a ranking")
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, (str, int, float)):
        word = value_as_text(value, "an answer")
        return word, pair.label(word, options)
    ranks, word = dict(ranked_sides(value, pair)), json.dumps(value, ensure_ascii=False)
    if set(ranks) != {Choice.A, Choice.B}:
        return word, None
    if ranks[Choice.A] == ranks[Choice.B]:
        return word, ParsedLabel(Choice.TIE)
    return word, ParsedLabel(Choice.A if ranks[Choice.A] < ranks[Choice.B] else Choice.B)


def ranked_sides(value: object, pair: AnnotatedPair) -> Iterator[tuple[Choice, float]]:
    """The rank of each side; a list without ranks is in order."""
    for place, item in enumerate(value if isinstance(value, list) else []):
        word = item.get("value") if isinstance(item, dict) else item
        rank = item.get("rank", place) if isinstance(item, dict) else place
        side = parse_label(word, *pair.sides) if isinstance(word, str) else None
        if side is not None and isinstance(rank, (int, float)):
            yield side.choice, rank


ARGILLA_FORMATS: Final = (
    ImportFormat(FileFormat.ARGILLA, (COMPARISONS, VERDICTS), ("fields", "responses"), argilla_record_rows),
    ImportFormat(
        FileFormat.ARGILLA,
        (COMPARISONS, VERDICTS),
        ("*.responses", "*.responses.users"),
        argilla_flat_rows,
        certainty=9,  # in addition to the fields, which have any names
    ),
    ImportFormat(
        FileFormat.ARGILLA,
        (COMPARISONS, VERDICTS),
        ("*-suggestion", f"*{SUGGESTED}", "external_id"),
        argilla_v1_flat_rows,
        certainty=9,
    ),
)
