"""Argilla: exported records of projects in which people compared two texts, of its first and second version.

Responses that were submitted are people's verdicts, suggestions are a judge's. Of the questions those count whose
answer is one of the two fields, or a ranking of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from evaluations.domain import Choice, RaterKind, Reading, Row
from evaluations.formats.annotated import Pair, pair_of
from evaluations.formats.conversing import candidate
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, as_text, from_json
from evaluations.formats.wording import ParsedLabel, aspect_of, parse_label, with_strength

SUGGESTION: Final = "suggestion"
SUGGESTED: Final = "-suggestion-metadata"
SUBMITTED: Final = (None, "submitted")
Answer = tuple[str, RaterKind, str, object]  # rater, kind, question, value


def record_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    fields = values.get("fields")
    if not isinstance(fields, dict):
        raise RowRefused("fields must be an object")
    key = next((values[name] for name in ("external_id", "id", "_server_id") if values.get(name) is not None), None)
    pair = pair_of(fields, reading, record.line, as_text(record.index if key is None else key, "id"))
    rows: list[Row] = [pair.row]
    for rater, kind, question, value in (*people(values, reading), *suggested(values, reading)):
        if label := label_in(value, pair):
            rows.append(
                pair.verdict(
                    rater=rater[:MAX_KEY],
                    rater_kind=kind,
                    aspect=aspect_of(question),
                    choice=label.choice,
                    note=with_strength("", label.strength),
                )
            )
    return tuple(rows)


def flat_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A record whose fields, responses and suggestions stand in columns of their own, as in a data set."""
    fields, responses, suggestions = {}, {}, {}
    for column, value in record.values.items():
        question, _, what = column.partition(".")
        if not what:
            fields[column] = value
        elif what == "responses":
            answered = [listed(record.values, f"{column}{part}") for part in (".users", ".status")]
            responses[question] = [
                {"value": one, "user_id": user, "status": status}
                for one, user, status in zip_longest(listed(record.values, column), *answered)
            ]
        elif what == "suggestion" and value is not None:
            suggestions[question] = {"value": value, "agent": record.values.get(f"{column}.agent")}
    values = {"id": fields.pop("id", None), "fields": fields, "responses": responses, "suggestions": suggestions}
    return record_rows(replace(record, values=values), reading)


def first_flat_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """The same as the first version writes it: a column of responses has the question's own name."""
    values = record.values
    questions = {column.removesuffix(SUGGESTED) for column in values if column.endswith(SUGGESTED)}
    responses, suggestions = {}, {}
    for question in questions:
        responses[question] = objects(values.get(question), question)
        if values.get(f"{question}-suggestion") is not None:
            about = from_json(values.get(f"{question}{SUGGESTED}"), f"{question}{SUGGESTED}")
            agent = about.get("agent") if isinstance(about, dict) else None
            suggestions[question] = {"value": values[f"{question}-suggestion"], "agent": agent}
    beside = {*questions, *(f"{question}{ending}" for question in questions for ending in ("-suggestion", SUGGESTED))}
    fields = {column: value for column, value in values.items() if column not in (*beside, "external_id", "metadata")}
    told = {"external_id": values.get("external_id"), "fields": fields}
    return record_rows(replace(record, values={**told, "responses": responses, "suggestions": suggestions}), reading)


def listed(values: Mapping[str, Any], column: str) -> list[Any]:
    given = values.get(column)
    return given if isinstance(given, list) else []


def objects(given: object, field: str) -> object:
    """A list of objects, which tables may have as an object of lists, or as JSON in a cell."""
    given = from_json(given, field) if isinstance(given, str) and given.startswith(("[", "{")) else given
    if not isinstance(given, dict) or not given or not all(isinstance(part, list) for part in given.values()):
        return given
    return [dict(zip(given, parts, strict=True)) for parts in zip_longest(*given.values())]


def people(values: Mapping[str, Any], reading: Reading) -> Iterator[Answer]:
    """A list of responses, each with its answers; or by question a list of answers."""
    given, kind = values.get("responses") or [], reading.rater_kind or RaterKind.HUMAN
    if isinstance(given, dict):
        for question, said in given.items():
            for one in said if isinstance(said, list) else []:
                if isinstance(one, dict) and one.get("status") in SUBMITTED:
                    yield user(one, reading), kind, question, one.get("value")
        return
    for response in given if isinstance(given, list) else []:
        if not isinstance(response, dict) or response.get("status") not in SUBMITTED:
            continue
        for question, one in (response.get("values") or {}).items():
            yield user(response, reading), kind, question, one.get("value") if isinstance(one, dict) else one


def suggested(values: Mapping[str, Any], reading: Reading) -> Iterator[Answer]:
    given = values.get("suggestions") or []
    listed = (
        [{"question_name": question, **one} for question, one in given.items() if isinstance(one, dict)]
        if isinstance(given, dict)
        else given
    )
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict):
            agent = candidate(one, "agent") or reading.rater or SUGGESTION
            yield agent, RaterKind.JUDGE, str(one.get("question_name", "")), one.get("value")


def user(given: Mapping[str, Any], reading: Reading) -> str:
    name = candidate(given, "user_id") or reading.rater
    if not name:
        raise RowRefused("a response does not say who gave it: name a rater for the whole file")
    return name


def label_in(value: object, pair: Pair) -> ParsedLabel | None:
    """A label by its words; a ranking of the two by which stands higher."""
    value = objects(value, "a ranking")
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, str):
        return parse_label(value, *pair.sides)
    ranks = dict(ranked(value, pair))
    if set(ranks) != {Choice.A, Choice.B}:
        return None
    if ranks[Choice.A] == ranks[Choice.B]:
        return ParsedLabel(Choice.TIE)
    return ParsedLabel(Choice.A if ranks[Choice.A] < ranks[Choice.B] else Choice.B)


def ranked(value: object, pair: Pair) -> Iterator[tuple[Choice, float]]:
    """Each side's place in a ranking; a list without places is in order."""
    for place, one in enumerate(value if isinstance(value, list) else []):
        word = one.get("value") if isinstance(one, dict) else one
        rank = one.get("rank", place) if isinstance(one, dict) else place
        side = parse_label(word, *pair.sides) if isinstance(word, str) else None
        if side is not None and isinstance(rank, (int, float)):
            yield side.choice, rank
