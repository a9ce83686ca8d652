"""Label Studio: exports of projects in which people compared two texts, as JSON and as JSON-MIN.

An annotation that was cancelled says nothing; one that is ground truth is gold; a prediction is a judge's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain import FLIPPED, Choice, RaterKind, Reading, Row, ScoreRow, Shown
from evaluations.formats.annotated import OF_MATERIAL, Pair, pair_of
from evaluations.formats.conversing import candidate
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, as_text, from_json, moment, optional_text, required_number
from evaluations.formats.wording import aspect_of, parse_label, with_strength

GOLD: Final = "gold"
PREDICTION: Final = "prediction"
# What JSON-MIN has beside the fields of a task and the answers to its questions.
OWN_COLUMNS: Final = frozenset(
    {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "meta"}
)


def task_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A task: a comparison, and the answers of all who annotated it."""
    values = record.values
    data = values.get("data")
    if not isinstance(data, dict):
        raise RowRefused("data must be an object")
    pair = pair_of(data, reading, record.line, as_text(values.get("id", record.index), "id"))
    rows: list[Row] = [pair.row]
    for one in objects(values, "annotations"):
        if not one.get("was_cancelled"):
            rows += answers(pair, one, *annotator(one, reading))
    for one in objects(values, "predictions"):
        name = candidate(one, "model_version") or reading.rater or PREDICTION
        rows += answers(pair, one, name, RaterKind.JUDGE)
    return tuple(rows)


def objects(values: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    """A list of objects. Some exports have mere ids there, of what they left out."""
    given = values.get(field) or []
    if not isinstance(given, list):
        raise RowRefused(f"{field} must be a list")
    return [one for one in given if isinstance(one, dict)]


def annotator(annotation: Mapping[str, Any], reading: Reading) -> tuple[str, RaterKind]:
    if annotation.get("ground_truth"):
        return GOLD, RaterKind.GOLD
    return person(annotation.get("completed_by"), reading), reading.rater_kind or RaterKind.HUMAN


def person(given: object, reading: Reading) -> str:
    """By e-mail address where the export has it, else by number."""
    if isinstance(given, dict):
        return person(given.get("email") or given.get("username") or given.get("id"), reading)
    if isinstance(given, bool) or given in (None, ""):
        if not reading.rater:
            raise RowRefused("an annotation does not say who made it: name a rater for the whole file")
        return reading.rater
    name = f"annotator {given}" if isinstance(given, int) or str(given).isdecimal() else str(given)
    return name[:MAX_KEY]


def answers(pair: Pair, annotation: Mapping[str, Any], rater: str, kind: RaterKind) -> Iterator[Row]:
    """A verdict for each question that was answered by one of the two, and a score for each rated text."""
    for one in objects(annotation, "result"):
        value, question = one.get("value"), optional_text(one, "from_name")
        if not isinstance(value, dict):
            continue
        yield from scores(pair, one, value, rater, kind)
        turned = is_turned(pair, optional_text(one, "to_name"))
        for word in chosen_words(value):
            if label := parse_label(word, *pair.sides):
                yield pair.verdict(
                    rater=rater,
                    rater_kind=kind,
                    aspect=aspect_of(question),
                    choice=FLIPPED[label.choice] if turned and label.by_place else label.choice,
                    note=with_strength("", label.strength),
                    shown=(Shown.SWAPPED if turned else Shown.AS_STORED) if kind == RaterKind.HUMAN else Shown.UNKNOWN,
                    created_at=moment(annotation, "created_at"),
                )


def is_turned(pair: Pair, to_name: str) -> bool:
    """Whether the project puts the second text on the left: the first of the two that are named stands there."""
    told = [parse_label(name, *pair.sides) for name in to_name.split(",")]
    return [label.choice for label in told if label] == [Choice.B, Choice.A]


def chosen_words(value: Mapping[str, Any]) -> Iterator[str]:
    """The one thing that was chosen; of several choices none is the one."""
    selected, choices = value.get("selected"), value.get("choices")
    if isinstance(selected, str):
        yield selected
    elif isinstance(choices, str):
        yield choices
    elif isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], str):
        yield choices[0]


def scores(
    pair: Pair, answer: Mapping[str, Any], value: Mapping[str, Any], rater: str, kind: RaterKind
) -> Iterator[ScoreRow]:
    """Stars that stand under one of the two texts."""
    rated = value.get("rating")
    names = dict(zip(pair.fields, (pair.row.candidate_a, pair.row.candidate_b), strict=True))
    name = names.get(optional_text(answer, "to_name"))
    if name is None or rated is None:
        return
    yield ScoreRow(
        line=pair.row.line,
        query_key=pair.row.query.key,
        candidate=name,
        rater=rater,
        rater_kind=kind,
        aspect=f"{aspect_of(optional_text(answer, 'from_name'))}_rating"[:60],
        value=required_number({"rating": rated}, "rating"),
    )


def in_a_cell(answer: object) -> object:
    """An answer that is an object, as JSON where it stands in a table."""
    if not isinstance(answer, str) or not answer.startswith(("[{", "{")):
        return answer
    try:
        return from_json(answer, "an answer")
    except RowRefused:
        return answer


def min_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """One annotation, with its answers beside the fields of the task."""
    values = record.values
    fields = {column: value for column, value in values.items() if column not in OWN_COLUMNS}
    pair = pair_of(fields, reading, record.line, as_text(values.get("id", record.index), "id"))
    rater = person(values.get("annotator"), reading)
    rows: list[Row] = [pair.row]
    for question, answer in fields.items():
        answer = in_a_cell(answer)
        told = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
        words = list(chosen_words(told)) if isinstance(told, dict) else [told] if isinstance(told, str) else []
        for word in words if question not in (*pair.fields, *OF_MATERIAL) else ():
            if label := parse_label(word, *pair.sides):
                rows.append(
                    pair.verdict(
                        rater=rater,
                        rater_kind=reading.rater_kind or RaterKind.HUMAN,
                        aspect=aspect_of(question),
                        choice=label.choice,
                        note=with_strength("", label.strength),
                        shown=Shown.AS_STORED,
                        created_at=moment(values, "created_at"),
                    )
                )
    return tuple(rows)
