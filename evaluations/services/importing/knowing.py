"""What is there already: everything that the rows of a batch speak of, looked up at once."""

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from django.db import models
from django.db.models import Q

from evaluations.domain import (
    INCONSISTENT,
    BadRow,
    ComparisonRow,
    NewResponse,
    QueryPart,
    QueryRow,
    ResponseRow,
    Row,
    RubricKind,
    RubricOrigin,
    ScoreRow,
    VerdictRow,
)
from evaluations.formats.reading import Entry
from evaluations.formats.seen import Seen
from evaluations.models import (
    Aspect,
    Call,
    Candidate,
    Comparison,
    Evaluation,
    Import,
    Judge,
    Query,
    Rater,
    Response,
    RubricAspect,
    Score,
    Verdict,
)
from evaluations.models.many import among
from evaluations.models.material import finished_imports
from evaluations.services.importing.scaling import Scale
from evaluations.services.importing.sketching import (
    ComparisonSketch,
    FailureSketch,
    QuerySketch,
    ResponseSketch,
    SaidKey,
    ScoreSketch,
    Sketch,
    VerdictSketch,
)


@dataclass
class Around:
    """What an evaluation holds that rows speak of by name: few enough to keep in memory."""

    evaluation: Evaluation
    importing: Import | None  # None while a file is only checked
    candidates: dict[str, Candidate]
    raters: dict[tuple[str, str], Rater]
    judge_names: set[str]
    aspects: dict[str, Aspect]
    offered: Mapping[str, set[str]]  # by aspect key, in rubrics that no import brought
    imported_aspects: set[str] = field(default_factory=set)
    scales: dict[str, Scale] = field(default_factory=dict)  # by aspect key, of the scores that rows bring
    candidates_by_id: dict[int, Candidate] = field(default_factory=dict)
    new_response: NewResponse = NewResponse.REFUSE
    spoken: dict[tuple[int, int], bool] = field(default_factory=dict)  # see `naming.refuse_second_way`

    @property
    def visible(self) -> Q:
        """Rows of finished imports, and of the one that is being stored."""
        own = Q(source_import=self.importing) if self.importing else Q(pk__in=[])
        return finished_imports() | own

    def candidate(self, pk: int) -> Candidate:
        """Also one that another door brought since these were looked up."""
        if pk not in self.candidates_by_id:
            for row in Candidate.objects.filter(evaluation=self.evaluation):
                self.candidates_by_id[row.pk] = self.candidates.setdefault(row.name, row)
        return self.candidates_by_id[pk]


def look_around(
    evaluation: Evaluation, importing: Import | None = None, new_response: NewResponse = NewResponse.REFUSE
) -> Around:
    return Around(
        evaluation=evaluation,
        importing=importing,
        candidates={row.name: row for row in Candidate.objects.filter(evaluation=evaluation)},
        raters={
            (row.kind, row.name): row for row in Rater.objects.filter(evaluation=evaluation).select_related("judge")
        },
        judge_names=set(Judge.objects.filter(evaluation=evaluation).values_list("name", flat=True)),
        aspects={row.key: row for row in Aspect.objects.filter(evaluation=evaluation)},
        offered=choices_offered(evaluation),
        new_response=new_response,
    )


def choices_offered(evaluation: Evaluation) -> dict[str, set[str]]:
    offered: dict[str, set[str]] = {}
    asked = RubricAspect.objects.filter(
        version__rubric__evaluation=evaluation, version__rubric__kind=RubricKind.PAIRWISE
    )
    for one in asked.exclude(version__rubric__origin=RubricOrigin.IMPORTED).select_related("aspect"):
        offered.setdefault(one.aspect.key, set()).update(one.choices)
    return offered


@dataclass(frozen=True)
class Skipped:
    """An entry that is left out, as a person decided of such."""

    line: int


# What an entry came to: the reason why it is bad, or what it brings; nothing where all of it is here already.
Outcome = BadRow | Skipped | Sequence[Sketch]
COUNTED: Final[Mapping[type, str]] = {
    QuerySketch: "queries",
    ResponseSketch: "responses",
    ComparisonSketch: "comparisons",
    VerdictSketch: "verdicts",
    ScoreSketch: "scores",
    FailureSketch: "failures",
}


@dataclass
class Batch:
    """What is known of everything a batch speaks of, and what each of its entries comes to.

    ``seen`` stands for the rows of this file that are not in the database: those before this
    batch while a file is checked, none while it is stored.
    """

    around: Around
    seen: Seen | None
    queries: dict[str, QuerySketch] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    named: list[models.Model] = field(default_factory=list)  # new candidates, raters and aspects
    turned: int = 0
    used: set[int] | None = None  # see `second_responses.used_in_batch`

    def before(self, query: QuerySketch, key: Hashable) -> tuple[str, int] | None:
        """What an earlier batch of this file said of that query: a word, and the line."""
        if self.seen is None or query.fresh:
            return None
        return self.seen.find(query.owner, key)

    def fall_apart(self) -> None:
        """Queries and what belongs to them point at each other: the collector of garbage need not find that out."""
        for query in self.queries.values():
            query.responses.clear()
            query.comparisons.clear()

    @property
    def new_queries(self) -> list[QueryPart]:
        """Those that an entry brings which is not bad: what a bad one brought was taken out."""
        return [query.part for query in self.queries.values() if query.part]

    @property
    def new(self) -> Iterator[Sketch]:
        """All that its entries bring."""
        return chain.from_iterable(brought(self.outcomes))

    @property
    def bad(self) -> list[BadRow]:
        return [one for one in self.outcomes if isinstance(one, BadRow)]


@dataclass(frozen=True)
class Tally:
    """How many entries bring something, nothing, are left out or bad; how much of each is new, in people's words."""

    stored: int
    unchanged: int
    skipped: int
    bad: int
    new: Counter[str]


def brought(outcomes: Iterable[Outcome]) -> Iterator[Sequence[Sketch]]:
    """What those bring that are stored, or here already."""
    return (one for one in outcomes if not isinstance(one, (BadRow, Skipped)))


def tally(outcomes: Sequence[Outcome]) -> Tally:
    good = list(brought(outcomes))
    stored = sum(1 for one in good if one)
    skipped = sum(isinstance(one, Skipped) for one in outcomes)
    new = Counter(map(type, chain.from_iterable(good)))
    counted = Counter({COUNTED[kind]: number for kind, number in new.items()})
    return Tally(stored, len(good) - stored, skipped, len(outcomes) - len(good) - skipped, counted)


# ---- looking up what the database has --------------------------------------------------------


def look_up(around: Around, items: Sequence[Entry | BadRow], seen: Seen | None) -> Batch:
    rows = [row for item in items if isinstance(item, Entry) for row in item.rows]
    batch = Batch(around, seen)
    keys = {key_of_query(row) for row in rows}
    know_queries(batch, keys, rows)
    by_id = {query.pk: query for query in batch.queries.values() if query.pk}
    if by_id:
        kinds = set(map(type, rows))
        responses = known_responses(around, by_id) if kinds & {ComparisonRow, ResponseRow, ScoreRow} else {}
        comparisons = known_comparisons(around, by_id, responses) if kinds & {ComparisonRow, VerdictRow} else {}
        know_verdicts(around, comparisons, rows)
        know_scores(around, responses, rows)
    if seen:
        know_seen(batch, seen, keys)
    return batch


def key_of_query(row: Row) -> str:
    return row.query.key if isinstance(row, (QueryRow, ComparisonRow, ResponseRow)) else getattr(row, "query_key", "")


def know_queries(batch: Batch, keys: Collection[str], rows: Sequence[Row]) -> None:
    around = batch.around
    visible = Query.all_rows.filter(around.visible, evaluation=around.evaluation).order_by()
    found = among(visible, "key", keys)
    # Where rows say which texts they are about; else they are not read, for they are long.
    texts = any(isinstance(row, VerdictRow) and row.expected_texts is not None for row in rows)
    columns = ("key", "cluster", "category", "sha256", "pk", *(["text"] if texts else []))
    for key, cluster, category, sha256, pk, *text in found.values_list(*columns):
        batch.queries[key] = QuerySketch(
            key, cluster, category, sha256, pk=pk, stored_text="".join(text), owner=pk, fresh=is_fresh(batch, pk)
        )


def is_fresh(batch: Batch, owner: int) -> bool:
    return batch.seen is None or not batch.seen.has_said(owner)


def know_seen(batch: Batch, seen: Seen, keys: Collection[str]) -> None:
    """Queries of earlier lines: as much of them as later lines ask for. They are never written."""
    for key, (owner, word, line) in seen.owners(keys).items():
        if key not in batch.queries:
            sha256, cluster, category = json.loads(word)
            batch.queries[key] = QuerySketch(key, cluster, category, sha256, line=line, owner=owner)


def known_responses(around: Around, queries: Mapping[int, QuerySketch]) -> dict[int, ResponseSketch]:
    found = Response.all_rows.filter(around.visible, query__in=list(queries)).order_by("pk")
    by_id = {}
    for pk, query_id, candidate_id, sha256 in found.values_list("pk", "query_id", "candidate_id", "sha256"):
        by_id[pk] = known_response(around, queries[query_id], pk, candidate_id, sha256)
    return by_id


def known_response(around: Around, query: QuerySketch, pk: int, candidate_id: int, sha256: str) -> ResponseSketch:
    response = ResponseSketch(query, around.candidate(candidate_id), sha256, pk=pk)
    query.responses[response.key] = response
    return response


def known_comparisons(
    around: Around, queries: Mapping[int, QuerySketch], responses: Mapping[int, ResponseSketch]
) -> dict[int, ComparisonSketch]:
    found = Comparison.all_rows.filter(around.visible, query__in=list(queries)).order_by("pk")
    sides = (f"response_{side}{part}" for side in "ab" for part in ("_id", "__candidate_id", "__sha256"))
    by_id = {}
    for pk, query_id, turned, *both in found.values_list("pk", "query_id", "turned", *sides):
        query = queries[query_id]
        a, b = (responses.get(side[0]) or known_response(around, query, *side) for side in (both[:3], both[3:]))
        by_id[pk] = comparison = ComparisonSketch(query, a, b, turned, pk=pk)
        query.comparisons[comparison.key] = comparison
    return by_id


def raters_of(around: Around, rows: Sequence[Row], kind: type[VerdictRow] | type[ScoreRow]) -> dict[int, Rater]:
    told = {(row.rater_kind, row.rater) for row in rows if isinstance(row, kind)}
    return {rater.pk: rater for name in told if (rater := around.raters.get(name)) and rater.pk}


def know_verdicts(around: Around, comparisons: Mapping[int, ComparisonSketch], rows: Sequence[Row]) -> None:
    """The imported verdicts and failures of the raters of this batch on its comparisons."""
    raters = raters_of(around, rows, VerdictRow)
    if not raters or not comparisons:
        return
    given = Verdict.all_rows.filter(around.visible, rater__in=list(raters), comparison__in=list(comparisons)).order_by()
    for on, rater, aspect, shown, sample, choice, inconsistent in given.values_list(
        *("comparison_id", "rater_id", "aspect__key", "shown", "sample", "choice", "inconsistent")
    ):
        key = key_of_verdict(raters[rater], aspect, shown, sample)
        comparisons[on].said[key] = (INCONSISTENT if inconsistent else choice, None)
    judges = {rater.judge_id: rater for rater in raters.values() if rater.judge_id}
    failed = Call.all_rows.filter(around.visible, judge__in=list(judges), comparison__in=list(comparisons)).order_by()
    for on_id, judge, shown, sample, state in failed.values_list(
        "comparison_id", "judge_id", "shown", "sample", "state"
    ):
        comparisons[on_id or 0].said[key_of_failure(judges[judge], shown, sample)] = (state, None)


def know_scores(around: Around, responses: Mapping[int, ResponseSketch], rows: Sequence[Row]) -> None:
    """The imported scores and failures that the raters of this batch gave to its responses."""
    raters = raters_of(around, rows, ScoreRow)
    if not raters or not responses:
        return
    given = Score.all_rows.filter(around.visible, rater__in=list(raters), response__in=list(responses)).order_by()
    given = given.filter(source_import__isnull=False)
    for on, rater, aspect, sample, value in given.values_list(
        "response_id", "rater_id", "aspect__key", "sample", "value"
    ):
        responses[on].said[key_of_score(raters[rater], aspect, sample)] = (score_word(value), None)
    judges = {rater.judge_id: rater for rater in raters.values() if rater.judge_id}
    failed = Call.all_rows.filter(around.visible, judge__in=list(judges), response__in=list(responses)).order_by()
    for on_id, judge, shown, sample, state in failed.values_list("response_id", "judge_id", "shown", "sample", "state"):
        responses[on_id or 0].said[key_of_failure(judges[judge], shown, sample)] = (state, None)


# ---- keys: the same for a row of the database and a line of the file -------------------------


def query_word(query: QuerySketch) -> str:
    return json.dumps([query.sha256, query.cluster, query.category])


def key_of_verdict(rater: Rater, aspect: str, shown: str, sample: int) -> SaidKey:
    return rater.kind, rater.name, aspect, str(shown), sample


def key_of_failure(rater: Rater, shown: str, sample: int) -> SaidKey:
    return "failure", rater.name, str(shown), sample


def key_of_score(rater: Rater, aspect: str, sample: int) -> SaidKey:
    return rater.kind, rater.name, aspect, sample


def score_word(value: float) -> str:
    """Its value with every digit, whole ones without the point."""
    return repr(value).removesuffix(".0")
