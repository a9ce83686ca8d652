"""Queries that are near-duplicates or occur in other data, with responses that repeat."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, Final

from django.db.models import Count, Min, QuerySet, Window
from django.db.models.functions import RowNumber

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileFormat, QueryPart
from evaluations.domain.groups import group_values
from evaluations.domain.texts import messages_to_text, near_duplicate_key
from evaluations.formats.record_streams import Record
from evaluations.formats.sources import open_source
from evaluations.imports.columns.column_guess import guess_columns
from evaluations.imports.source_files import get_file_limits, read_sheet
from evaluations.models.comparisons import Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User

GROUPS_PER_PAGE: Final = 50
QUERIES_PER_GROUP: Final = 8
KEYS_PER_LOOKUP: Final = 20_000  # each lookup scans all queries of the evaluation
MAX_CHECKED_ROWS: Final = 200_000
SHOWN_EXAMPLES: Final = 5


@dataclass(frozen=True)
class NearDuplicates:
    """Queries that differ only in case, blank space and punctuation, or in nothing if ``exact``."""

    key: int
    number: int
    exact: bool
    clusters: int
    queries: list[Query]


@dataclass(frozen=True)
class IdenticalResponses:
    text: str
    number: int
    key: str = ""


@dataclass(frozen=True)
class QueryOverlap:
    where: str
    number: int
    examples: list[str]


def find_near_duplicates(evaluation: Evaluation, after: int = 0) -> list[NearDuplicates]:
    """Groups of at least two near-duplicate queries, in the order of their key."""
    here = Query.objects.filter(evaluation=evaluation)
    groups = (
        here.filter(near_duplicate_key__gt=after)
        .values("near_duplicate_key")
        .order_by("near_duplicate_key")
        .annotate(number=Count("pk"))
    )
    numbers = [group["near_duplicate_key"] for group in groups.filter(number__gt=1)[:GROUPS_PER_PAGE]]
    members = here.filter(near_duplicate_key__in=numbers)
    counted = (
        members.values("near_duplicate_key")
        .order_by("near_duplicate_key")
        .annotate(
            number=Count("pk"),
            texts=Count("sha256", distinct=True),
            clusters=Count("cluster_number", distinct=True),
        )
    )
    shown = load_first_of_groups(members, "near_duplicate_key", QUERIES_PER_GROUP)
    return [
        NearDuplicates(
            group["near_duplicate_key"],
            group["number"],
            group["texts"] == 1,
            group["clusters"],
            shown[group["near_duplicate_key"]],
        )
        for group in counted
    ]


def load_first_of_groups(queries: "QuerySet[Query]", column: str, number: int) -> dict[int, list[Query]]:
    """The oldest queries of each group that shares a column."""
    place = Window(RowNumber(), partition_by=column, order_by="pk")
    ids = queries.annotate(place=place).filter(place__lte=number).values("pk")
    oldest = Query.objects.filter(pk__in=ids).only("key", "cluster", "text", column).order_by("pk")
    return group_values((getattr(query, column), query) for query in oldest)


def find_identical_responses(evaluation: Evaluation) -> list[IdenticalResponses]:
    """Texts that several candidates gave to one query."""
    return find_shared_texts(evaluation, "candidate", "query__key")


def find_repeated_responses(evaluation: Evaluation) -> list[IdenticalResponses]:
    """Texts that were given to several queries."""
    return find_shared_texts(evaluation, "query")


def find_shared_texts(evaluation: Evaluation, counted: str, *within: str) -> list[IdenticalResponses]:
    rows = Response.objects.filter(query__evaluation=evaluation).values("sha256", *within).order_by()
    groups = rows.annotate(number=Count(counted, distinct=True), first=Min("pk")).filter(number__gt=1)
    shown = list(groups.order_by("-number", "first")[:GROUPS_PER_PAGE].values_list("first", "number", *within))
    texts = Response.objects.in_bulk([pk for pk, *_ in shown])
    return [IdenticalResponses(texts[pk].text, number, *key) for pk, number, *key in shown]


def find_overlap_with_evaluations(evaluation: Evaluation, user: User) -> list[QueryOverlap]:
    """Other evaluations of this person that hold queries of this one."""
    mine = Query.objects.filter(evaluation=evaluation).exclude(near_duplicate_key=0)
    others = Evaluation.objects.of(user).exclude(pk=evaluation.pk)
    shared = Query.objects.filter(evaluation__in=others, near_duplicate_key__in=mine.values("near_duplicate_key"))
    groups = (
        shared.values("evaluation", "evaluation__name")
        .annotate(number=Count("near_duplicate_key", distinct=True))
        .order_by("-number")[:GROUPS_PER_PAGE]
    )
    examples = load_first_of_groups(shared, "evaluation_id", SHOWN_EXAMPLES)
    return [
        QueryOverlap(row["evaluation__name"], row["number"], [query.text for query in examples[row["evaluation"]]])
        for row in groups
    ]


def find_overlap_with_file(evaluation: Evaluation, file: BinaryIO, name: str) -> QueryOverlap:
    """How many queries of this evaluation occur in a file, such as a test set. The file is not kept."""
    columns = guess_columns(read_sheet(file, name), FileFormat.RESPONSES).columns
    column = columns.get("query") or columns.get("messages")
    if column is None:
        raise InputRefused(f"{name} has no prompt column. Name it “query” or “prompt”.")
    records = (record for record in open_source(file, name, get_file_limits()).records if isinstance(record, Record))
    shared: dict[int, str] = {}
    texts = (read_cell_text(record.values.get(column)) for record in islice(records, MAX_CHECKED_ROWS))
    while batch := {near_duplicate_key(text): text for text in islice(texts, KEYS_PER_LOOKUP)}:
        shared.update({number: batch[number] for number in find_stored_keys(evaluation, batch)})
    return QueryOverlap(name, len(shared), [text[:300] for text in islice(shared.values(), SHOWN_EXAMPLES)])


def read_cell_text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(turn, dict) and "content" in turn for turn in value) and value:
        return messages_to_text([{"role": str(turn.get("role")), "content": str(turn["content"])} for turn in value])
    return value if isinstance(value, str) else ""


def find_overlap_with_examples(evaluation: Evaluation) -> list[QueryOverlap]:
    """Rubric versions whose worked examples are queries of this evaluation."""
    versions = RubricVersion.objects.filter(rubric__evaluation=evaluation).select_related("rubric").exclude(few_shot=[])
    by_version = {
        version: {
            near_duplicate_key(text): text for example in version.few_shot for text in list_example_texts(example)
        }
        for version in versions
    }
    here = find_stored_keys(evaluation, set().union(*by_version.values()))
    overlaps = []
    for version, texts in by_version.items():
        if shared := [text for number, text in texts.items() if number in here]:
            overlaps.append(QueryOverlap(str(version), len(shared), shared[:SHOWN_EXAMPLES]))
    return overlaps


def list_example_texts(example: object) -> list[str]:
    """Every text of a worked example, one of which is the query."""
    if isinstance(example, str):
        return [example] if example.strip() else []
    parts = example.values() if isinstance(example, dict) else example if isinstance(example, list) else ()
    return [text for part in parts for text in list_example_texts(part)]


class KnownQueryCounter:
    """Counts the new queries of a file that are stored already under another id."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._waiting: list[int] = []
        self._number = 0

    def add(self, queries: Iterable[QueryPart]) -> None:
        self._waiting += [near_duplicate_key(messages_to_text(part.messages), part.context) for part in queries]
        if len(self._waiting) >= KEYS_PER_LOOKUP:
            self._look()

    def _look(self) -> None:
        here = find_stored_keys(self._evaluation, set(self._waiting))
        self._number += sum(number in here for number in self._waiting)
        self._waiting.clear()

    @property
    def number(self) -> int:
        self._look()
        return self._number


def find_stored_keys(evaluation: Evaluation, numbers: Collection[int]) -> set[int]:
    """The given near-duplicate keys that occur in the evaluation."""
    if not numbers:
        return set()
    return set(
        Query.objects.filter(evaluation=evaluation, near_duplicate_key__in=list(numbers)).values_list(
            "near_duplicate_key", flat=True
        )
    )
