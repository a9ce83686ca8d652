"""SQuALITY: questions on stories, and human scores of the responses."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain.files import (
    FileFormat,
    FileRow,
    Notice,
    NoticeKind,
    QueryPart,
    QueryRow,
    ReadOptions,
    ResponseRow,
    ScoreRow,
)
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.import_format import COMPARISONS, SCORES, ImportFormat
from evaluations.formats.native_rows import prefix_key
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, required_number, required_text

ASPECTS: Final = ("correctness", "selection", "overall")
# The scores of an aspect: the ending of the column, the ending of the aspect here, and whether lower is better.
GIVEN: Final = (("-rank", "", True), ("-rating", "_rating", False))


def squality_passage_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """One story: its questions with a response of each system, and three reviewers' scores of every response."""
    passage = required_text(record.values, "passage-id")
    cluster = prefix_key(passage, options)
    rows: list[FileRow] = []
    for number, question in object_entries(record.values.get("questions"), "questions"):
        query = squality_query(passage, number, cluster, prefix_key(f"{passage}-{number}", options))
        for system, answer in object_entries(question, f"question {number}"):
            rows += squality_response_rows(record, query, system, answer)
    return tuple(rows)


def squality_query(passage: str, number: str, cluster: str, key: str) -> QueryPart:
    """A query without its text: the file of scores has only the number of the question, from 0."""
    words = f"Question {number}, counted from 0, on the story {passage}. Its words are not in the file of scores."
    return QueryPart(key=key, cluster=cluster, messages=[{"role": "user", "content": words}], is_stand_in=True)


def squality_question_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """The words of a story's questions, in the order in which the scores count them. The story is the context."""
    about = record.values.get("metadata")
    passage = required_text(about if isinstance(about, dict) else {}, "passage_id")
    questions = record.values.get("questions")
    if not isinstance(questions, list) or not all(isinstance(question, dict) for question in questions):
        raise RowRefused("questions must be a list of objects")
    queries = (
        QueryRow(
            record.line,
            QueryPart(
                key=prefix_key(f"{passage}-{number}", options),
                cluster=prefix_key(passage, options),
                messages=[{"role": "user", "content": required_text(question, "question_text")}],
                context=required_text(record.values, "document"),
            ),
        )
        for number, question in enumerate(questions)
    )
    notices = (
        Notice(record.line, NoticeKind.NOT_STORED, "the written answers to a question")
        for question in questions
        if question.get("responses")
    )
    return *queries, *notices


def squality_response_rows(
    record: Record, query: QueryPart, system: str, answer: Mapping[str, Any]
) -> Iterator[FileRow]:
    if len(system) > MAX_KEY:
        raise RowRefused(f"a system's name has {len(system)} characters; the limit is {MAX_KEY}")
    yield ResponseRow(record.line, query, system, parse_response(answer, "response"))
    reviews = answer.get("reviews")
    if not isinstance(reviews, list) or not all(isinstance(review, dict) for review in reviews):
        raise RowRefused(f"reviews of {system} on question {query.key} must be a list of objects")
    for review in reviews:
        yield from squality_scores(record, query, system, review)
        if review.get("annotations"):
            yield Notice(record.line, NoticeKind.NOT_STORED, "passages that a reviewer marked")


def squality_scores(record: Record, query: QueryPart, system: str, review: Mapping[str, Any]) -> Iterator[ScoreRow]:
    reviewer = required_text(review, "worker_id", MAX_KEY)
    for aspect in ASPECTS:
        for column, ending, lower_is_better in GIVEN:
            yield ScoreRow(
                line=record.line,
                query_key=query.key,
                candidate=system,
                rater=reviewer,
                rater_kind=RaterKind.HUMAN,
                aspect=f"{aspect}{ending}",
                value=required_number(review, f"{aspect}{column}"),
                lower_is_better=lower_is_better,
            )


def object_entries(value: object, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, dict) or not value or not all(isinstance(entry, dict) for entry in value.values()):
        raise RowRefused(f"{where} must be an object of objects")
    yield from value.items()


SQUALITY_FORMATS: Final = (
    ImportFormat(FileFormat.SQUALITY, (SCORES, COMPARISONS), ("passage-id", "questions"), squality_passage_rows),
    ImportFormat(FileFormat.SQUALITY, (COMPARISONS,), ("metadata", "document", "questions"), squality_question_rows),
)
