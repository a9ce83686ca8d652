"""Label Studio: exports of projects in which people compared two texts.

A cancelled annotation is ignored, a ground-truth annotation is gold, a prediction is a judge's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.files import FileFormat, FileRow, NoticeKind, ReadOptions, ScoreRow
from evaluations.domain.roles import RaterKind
from evaluations.formats.annotation_fields import QUESTIONS, AnnotatedPair, aspect_from_question, find_annotated_pair
from evaluations.formats.conversations import first_candidate_name
from evaluations.formats.import_format import COMPARISONS, VERDICTS, ImportFormat
from evaluations.formats.label_parser import MAX_LABEL_CHARACTERS, parse_label
from evaluations.formats.native_rows import DEFAULT_ASPECT
from evaluations.formats.record_streams import Record
from evaluations.formats.values import (
    MAX_ASPECT,
    MAX_KEY,
    RowRefused,
    iso_time,
    optional_text,
    parse_structured_value,
    required_number,
    value_as_text,
)

GOLD: Final = "gold"
PREDICTION: Final = "prediction"
SIDES: Final = (Choice.A, Choice.B)
RATING: Final = "_rating"
STARS: Final = ("rating", "stars", "score")  # questions that name no aspect
ASKED_OF_A_SIDE: Final = re.compile(
    "(?P<question>.+?)(?:[_ -]?(?P<number>[12])|[_ -](?P<letter>a|b|left|right|first|second))", re.IGNORECASE
)
# Columns of JSON-MIN other than the fields of a task and the answers to its questions.
OWN_COLUMNS: Final = frozenset(
    {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "meta"}
)


def label_studio_task_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A task: a comparison, and the answers of all who annotated it."""
    values = record.values
    data = values.get("data")
    if not isinstance(data, dict):
        raise RowRefused("data must be an object")
    pair = find_annotated_pair(data, options, record.line, value_as_text(values.get("id", record.index), "id"))
    rows: list[FileRow] = list(pair.material_rows())
    for annotation in list_annotation_objects(pair, values, "annotations", rows):
        if annotation.get("was_cancelled"):
            rows.append(pair.notice(NoticeKind.STATUS, "cancelled"))
        else:
            rows += label_studio_answers(pair, annotation, options, *label_studio_annotator(annotation, options))
    for prediction in list_annotation_objects(pair, values, "predictions", rows):
        name = first_candidate_name(prediction, "model_version") or options.rater or PREDICTION
        rows += label_studio_answers(pair, prediction, options, name, RaterKind.JUDGE)
    rows += [pair.notice(NoticeKind.STATUS, "draft") for _ in list_annotation_objects(pair, values, "drafts", rows)]
    return tuple(rows)


def list_annotation_objects(
    pair: AnnotatedPair, values: Mapping[str, Any], field: str, rows: list[FileRow]
) -> list[Mapping[str, Any]]:
    """A list of objects. Some exports have mere ids there, of what they left out: those are noted."""
    items = values.get(field) or []
    if not isinstance(items, list):
        raise RowRefused(f"{field} must be a list")
    objects: list[Mapping[str, Any]] = [item for item in items if isinstance(item, dict)]
    rows += [pair.notice(NoticeKind.NOT_STORED, f"{field} given as IDs only")] * (len(items) - len(objects))
    return objects


def label_studio_annotator(annotation: Mapping[str, Any], options: ReadOptions) -> tuple[str, RaterKind]:
    if annotation.get("ground_truth"):
        return GOLD, RaterKind.GOLD
    return label_studio_person(annotation.get("completed_by"), options), options.rater_kind or RaterKind.HUMAN


def label_studio_person(person: object, options: ReadOptions) -> str:
    """A person by e-mail address, or by number where the export has none."""
    if isinstance(person, dict):
        return label_studio_person(person.get("email") or person.get("username") or person.get("id"), options)
    if isinstance(person, bool) or person in (None, ""):
        if not options.rater:
            raise RowRefused("an annotation has no annotator. Set one rater for the whole file")
        return options.rater
    name = f"annotator {person}" if isinstance(person, int) or str(person).isdecimal() else str(person)
    if len(name) > MAX_KEY:
        raise RowRefused(f"an annotator's name has {len(name):,} characters; the limit is {MAX_KEY}")
    return name


def label_studio_answers(
    pair: AnnotatedPair, annotation: Mapping[str, Any], options: ReadOptions, rater: str, kind: RaterKind
) -> Iterator[FileRow]:
    """A verdict for each question that was answered by one of the two, and a score for each rated text."""
    notices: list[FileRow] = []
    results = list_annotation_objects(pair, annotation, "result", notices)
    if not results:
        yield pair.notice(NoticeKind.NO_ANSWER, "")
    yield from notices
    of_one_side = questions_about_one_side(pair, results)
    for result in results:
        question = optional_text(result, "from_name")
        is_turned = shows_second_first(pair, optional_text(result, "to_name"))
        value = result.get("value")
        word = chosen_label(value) if isinstance(value, dict) else None
        if result.get("meta"):
            yield pair.notice(NoticeKind.NOT_STORED, f"notes on answers to “{question}”")
        if word is not None and question in of_one_side:
            yield pair.notice(NoticeKind.NOT_STORED, f"choices of “{question}” about one response")
        elif word is not None:
            yield from pair.answer(
                question,
                word,
                pair.label(word, options),
                is_turned=is_turned,
                rater=rater,
                rater_kind=kind,
                shown=(ShownOrder.SWAPPED if is_turned else ShownOrder.AS_STORED)
                if kind == RaterKind.HUMAN
                else ShownOrder.UNKNOWN,
                created_at=iso_time(annotation, "created_at"),
            )
        elif isinstance(value, dict) and value.get("rating") is not None:
            yield from star_rating_rows(pair, result, value["rating"], rater, kind)
        else:
            kind_of_answer = optional_text(result, "type") or "unknown"
            yield pair.notice(NoticeKind.NOT_STORED, f"answers of the type {kind_of_answer} to “{question}”")


def questions_about_one_side(pair: AnnotatedPair, results: Sequence[Mapping[str, Any]]) -> set[str]:
    """The questions that are asked about each response separately."""
    questions_of: dict[Choice, set[str]] = {side: set() for side in SIDES}
    for result in results:
        label = parse_label(optional_text(result, "to_name"), *pair.sides)
        if result.get("type") == "choices" and label and label.choice in SIDES:
            questions_of[label.choice].add(optional_text(result, "from_name"))
    return questions_of[SIDES[0]] | questions_of[SIDES[1]] if all(questions_of.values()) else set()


def shows_second_first(pair: AnnotatedPair, to_name: str) -> bool:
    """Whether the project shows the second text on the left, because it names that one first."""
    labels = [parse_label(name, *pair.sides) for name in to_name.split(",")]
    return [label.choice for label in labels if label] == [Choice.B, Choice.A]


def chosen_label(value: Mapping[str, Any]) -> str | None:
    """The chosen label; several choices are joined to a text that no label matches."""
    selected, choices = value.get("selected"), value.get("choices")
    if isinstance(selected, str):
        return selected
    if isinstance(choices, list) and choices and all(isinstance(choice, str) for choice in choices):
        return " + ".join(choices)
    return choices if isinstance(choices, str) else None


def star_rating_rows(
    pair: AnnotatedPair, answer: Mapping[str, Any], rated: object, rater: str, kind: RaterKind
) -> Iterator[FileRow]:
    """Stars under one of the two texts, by the name of its tag or of its field."""
    question, to_name = optional_text(answer, "from_name"), optional_text(answer, "to_name")
    label = parse_label(to_name, *pair.sides)
    if label is None or label.choice not in SIDES:
        what = f"stars of “{question}” under “{to_name}”, which is neither response"
        yield pair.notice(NoticeKind.NOT_STORED, what)
        return
    aspect = aspect_of_rating(question, label.choice)
    yield ScoreRow(
        line=pair.row.line,
        query_key=pair.row.query.key,
        candidate=pair.row.candidate_a if label.choice == Choice.A else pair.row.candidate_b,
        rater=rater,
        rater_kind=kind,
        aspect=aspect,
        value=required_number({"rating": rated}, "rating"),
    )
    yield from pair.rename_notices(question, aspect)


def aspect_of_rating(question: str, side: Choice) -> str:
    """The aspect of a rating. ``quality_a`` and ``quality_b`` ask the same of one text each."""
    match = ASKED_OF_A_SIDE.fullmatch(question)
    label = parse_label(f"response {match['number'] or match['letter']}") if match else None
    about = match["question"] if match and label and label.choice == side else question
    aspect = DEFAULT_ASPECT if about.lower() in STARS else aspect_from_question(about)
    return f"{aspect[: MAX_ASPECT - len(RATING)]}{RATING}"


def decode_cell_answer(answer: object) -> object:
    """An answer that is an object, decoded from JSON in a table."""
    if not isinstance(answer, str) or not answer.startswith(("[{", "{")):
        return answer
    try:
        return parse_structured_value(answer, "an answer")
    except RowRefused:
        return answer


def label_studio_min_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """Rows of one annotation in JSON-MIN, whose answers share the object with the fields of the task."""
    values = record.values
    fields = {column: value for column, value in values.items() if column not in OWN_COLUMNS}
    pair = find_annotated_pair(fields, options, record.line, value_as_text(values.get("id", record.index), "id"))
    rater = label_studio_person(values.get("annotator"), options)
    rows: list[FileRow] = [pair.row]
    for question, cell in pair.other_fields.items():
        answer = decode_cell_answer(cell)
        single = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
        word = chosen_label(single) if isinstance(single, dict) else single if isinstance(single, str) else None
        if word is None or len(word) > MAX_LABEL_CHARACTERS or question in QUESTIONS:
            rows.append(pair.notice(NoticeKind.COLUMN, question))
        else:
            rows += pair.answer(
                question,
                word,
                pair.label(word, options),
                rater=rater,
                rater_kind=options.rater_kind or RaterKind.HUMAN,
                shown=ShownOrder.AS_STORED,
                created_at=iso_time(values, "created_at"),
            )
    return tuple(rows)


LABEL_STUDIO_FORMATS: Final = (
    ImportFormat(FileFormat.LABEL_STUDIO, (COMPARISONS, VERDICTS), ("data", "annotations"), label_studio_task_rows),
    ImportFormat(
        FileFormat.LABEL_STUDIO,
        (COMPARISONS, VERDICTS),
        ("annotation_id", "annotator", "lead_time"),
        label_studio_min_rows,
        certainty=9,  # in addition to the columns of tasks, which have any names
    ),
)
