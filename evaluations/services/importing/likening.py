"""Queries and responses that are there more than once, or stand in another data set too."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final

from django.db import transaction
from django.db.models import Count, Min, QuerySet, Window
from django.db.models.functions import Now, RowNumber

from evaluations.domain import FileFormat, InputRefused, QueryPart, cluster_number, likeness, text_of
from evaluations.formats.sources import open_source
from evaluations.formats.streams import Record
from evaluations.models import Evaluation, Query, Response, RubricVersion, User
from evaluations.services.importing.fetching import limits
from evaluations.services.importing.guessing import guess
from evaluations.services.importing.mapping import look_at
from evaluations.services.recording import record

AT_ONCE: Final = 50  # groups on a page
OF_EACH: Final = 8  # queries of a group
LOOKED_UP: Final = 20_000  # at each look every query that is here is passed by
NAMED: Final = 500  # clusters on the record
CHECKED_ROWS: Final = 200_000
EXAMPLES: Final = 5


@dataclass(frozen=True)
class Alike:
    """Queries that differ at most in case, blank space and punctuation; ``exact``: in nothing."""

    likeness: int
    number: int
    exact: bool
    clusters: int
    queries: list[Query]


@dataclass(frozen=True)
class Same:
    """One text as several responses."""

    text: str
    number: int
    key: str = ""


@dataclass(frozen=True)
class Overlap:
    where: str
    number: int
    examples: list[str]


def alike(evaluation: Evaluation, after: int = 0) -> list[Alike]:
    """Groups of at least two, in the order of their number.

    Their numbers first: an index alone says these, of as many queries as there are.
    """
    here = Query.objects.filter(evaluation=evaluation)
    told = here.filter(likeness__gt=after).values("likeness").order_by("likeness").annotate(number=Count("pk"))
    numbers = [group["likeness"] for group in told.filter(number__gt=1)[:AT_ONCE]]
    members = here.filter(likeness__in=numbers)
    counted = (
        members.values("likeness")
        .order_by("likeness")
        .annotate(
            number=Count("pk"),
            texts=Count("sha256", distinct=True),
            clusters=Count("cluster_number", distinct=True),
        )
    )
    shown = first_of_each(members, "likeness", OF_EACH)
    return [
        Alike(one["likeness"], one["number"], one["texts"] == 1, one["clusters"], shown[one["likeness"]])
        for one in counted
    ]


def first_of_each(queries: "QuerySet[Query]", column: str, number: int) -> dict[int, list[Query]]:
    """The oldest queries of each group that shares a column."""
    place = Window(RowNumber(), partition_by=column, order_by="pk")
    ids = queries.annotate(place=place).filter(place__lte=number).values("pk")
    found: dict[int, list[Query]] = defaultdict(list)
    for one in Query.objects.filter(pk__in=ids).only("key", "cluster", "text", column).order_by("pk"):
        found[getattr(one, column)].append(one)
    return found


def same_responses(evaluation: Evaluation) -> list[Same]:
    """One text given by several candidates to one query."""
    rows = Response.objects.filter(query__evaluation=evaluation).values("sha256", "query__key").order_by()
    found = rows.annotate(number=Count("candidate", distinct=True), one=Min("pk")).filter(number__gt=1)
    some = list(found.order_by("-number", "one")[:AT_ONCE])
    texts = Response.objects.in_bulk([group["one"] for group in some])
    return [Same(texts[group["one"]].text, group["number"], group["query__key"]) for group in some]


def repeated_responses(evaluation: Evaluation) -> list[Same]:
    """One text given to several queries, whatever they ask."""
    rows = Response.objects.filter(query__evaluation=evaluation).values("sha256").order_by()
    found = rows.annotate(number=Count("query", distinct=True), one=Min("pk")).filter(number__gt=1)
    some = list(found.order_by("-number", "one")[:AT_ONCE])
    texts = Response.objects.in_bulk([group["one"] for group in some])
    return [Same(texts[group["one"]].text, group["number"]) for group in some]


def put_together(evaluation: Evaluation, number: int, *, user: User | None) -> str:
    """Give these queries, and all that were in a cluster with one of them, one cluster. Returns its name."""
    with transaction.atomic():
        members = Query.objects.filter(evaluation=evaluation, likeness=number).order_by("pk")
        clusters = list(dict.fromkeys(members.values_list("cluster", flat=True)))
        if len(clusters) < 2:
            raise InputRefused("These queries are in one cluster already.")
        name = clusters[0]
        moved = Query.objects.filter(evaluation=evaluation, cluster__in=clusters[1:])
        changed = moved.update(cluster=name, cluster_number=cluster_number(name))
        # What was reckoned by cluster, reports and splits, is out of date.
        Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
        before = {"clusters": clusters[:NAMED]}
        record(
            "put in one cluster",
            evaluation,
            user=user,
            evaluation=evaluation,
            before=before,
            after={
                "cluster": name,
                "queries": changed,
            },
        )
    return name


# ---- in other places ------------------------------------------------------------------------------


def in_other_evaluations(evaluation: Evaluation, user: User) -> list[Overlap]:
    """Which of those that this person takes part in hold queries of this one."""
    mine = Query.objects.filter(evaluation=evaluation).exclude(likeness=0)
    others = Evaluation.objects.of(user).exclude(pk=evaluation.pk)
    shared = Query.objects.filter(evaluation__in=others, likeness__in=mine.values("likeness"))
    found = (
        shared.values("evaluation", "evaluation__name")
        .annotate(number=Count("likeness", distinct=True))
        .order_by("-number")[:AT_ONCE]
    )
    examples = first_of_each(shared, "evaluation_id", EXAMPLES)
    return [
        Overlap(one["evaluation__name"], one["number"], [query.text for query in examples[one["evaluation"]]])
        for one in found
    ]


def in_file(evaluation: Evaluation, file: BinaryIO, name: str) -> Overlap:
    """How many queries of this evaluation stand in a file, such as a benchmark's test set. Nothing of it is kept."""
    columns = guess(look_at(file, name), FileFormat.RESPONSES).columns
    column = columns.get("query") or columns.get("messages")
    if column is None:
        raise InputRefused(f"{name} has no column that looks like a query: call it query or prompt.")
    records = (one for one in open_source(file, name, limits()).records if isinstance(one, Record))
    found: dict[int, str] = {}
    told = (text_in(one.values.get(column)) for one in islice(records, CHECKED_ROWS))
    while some := {likeness(text): text for text in islice(told, LOOKED_UP)}:
        found.update({number: some[number] for number in stand_here(evaluation, some)})
    return Overlap(name, len(found), [text[:300] for text in islice(found.values(), EXAMPLES)])


def text_in(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(turn, dict) and "content" in turn for turn in value) and value:
        return text_of([{"role": str(turn.get("role")), "content": str(turn["content"])} for turn in value])
    return value if isinstance(value, str) else ""


def in_examples(evaluation: Evaluation) -> list[Overlap]:
    """Rubric versions whose worked examples are queries of this evaluation: the judge was told the answer."""
    versions = RubricVersion.objects.filter(rubric__evaluation=evaluation).select_related("rubric").exclude(few_shot=[])
    told = {
        version: {likeness(text): text for example in version.few_shot for text in texts_of(example)}
        for version in versions
    }
    here = stand_here(evaluation, set().union(*told.values()))
    found = []
    for version, texts in told.items():
        if shared := [text for number, text in texts.items() if number in here]:
            found.append(Overlap(str(version), len(shared), shared[:EXAMPLES]))
    return found


def texts_of(example: Any) -> list[str]:
    """Every text of a worked example: whichever of them is the query."""
    if isinstance(example, str):
        return [example] if example.strip() else []
    parts = example.values() if isinstance(example, dict) else example if isinstance(example, list) else ()
    return [text for part in parts for text in texts_of(part)]


class Elsewhere:
    """Counts the queries of a file that are here under another id already.

    Those are looked for among its new queries alone, many at once: all numbers that are here are read each time.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._waiting: list[int] = []
        self._number = 0

    def add(self, queries: Iterable[QueryPart]) -> None:
        self._waiting += [likeness(text_of(part.messages), part.context) for part in queries]
        if len(self._waiting) >= LOOKED_UP:
            self._look()

    def _look(self) -> None:
        here = stand_here(self._evaluation, set(self._waiting))
        self._number += sum(number in here for number in self._waiting)
        self._waiting.clear()

    @property
    def number(self) -> int:
        self._look()
        return self._number


def stand_here(evaluation: Evaluation, numbers: Collection[int]) -> set[int]:
    """Which of these numbers queries of the evaluation have."""
    if not numbers:
        return set()
    return set(
        Query.objects.filter(evaluation=evaluation, likeness__in=list(numbers)).values_list("likeness", flat=True)
    )
