"""What is there already: everything that the rows of a batch speak of, looked up at once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import models
from django.db.models import Q

from evaluations.domain import (
    INCONSISTENT,
    BadRow,
    ComparisonRow,
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
from evaluations.models.material import finished_imports
from evaluations.services.importing.scaling import Scale

Key = tuple[str, ...]
AnyRow = TypeVar("AnyRow", bound=models.Model)


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
    spoken: dict[tuple[int, int], bool] = field(default_factory=dict)  # see `naming.refuse_second_way`

    @property
    def visible(self) -> Q:
        """Rows of finished imports, and of the one that is being stored."""
        own = Q(source_import=self.importing) if self.importing else Q(pk__in=[])
        return finished_imports() | own


def look_around(evaluation: Evaluation, importing: Import | None = None) -> Around:
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
class Found:
    """Something that is there already: in the database, or in a line of this file."""

    row: models.Model | None  # None for what is only seen in the file, not stored
    word: str
    line: int | None = None

    @property
    def where(self) -> str:
        return f"in line {self.line}" if self.line else "here already"


@dataclass
class Batch:
    """What is known of everything a batch speaks of, and what it adds.

    ``seen`` stands for the rows of this file that are not in the database: those before this
    batch while a file is checked, none while it is stored.
    """

    around: Around
    seen: Seen | None
    known: dict[Key, Found]
    comparisons: dict[str, list[Comparison]]
    responses: dict[tuple[str, str], list[Response]]  # by query key and candidate
    new: dict[Key, models.Model] = field(default_factory=dict)
    bad: list[BadRow] = field(default_factory=list)
    stored: int = 0
    unchanged: int = 0
    turned: int = 0

    def find(self, key: Key) -> Found | None:
        if key in self.known:
            return self.known[key]
        before = self.seen.find(key) if self.seen else None
        return Found(self.stand_in(key, before[0]), *before) if before else None

    def stand_in(self, key: Key, word: str) -> Query | None:
        """A query of an earlier line, as much of it as later lines ask for; it is never written."""
        if key[0] != "query":
            return None
        sha256, cluster, category = json.loads(word)
        return Query(evaluation=self.around.evaluation, key=key[1], sha256=sha256, cluster=cluster, category=category)

    def rows(self, model: type[AnyRow]) -> list[AnyRow]:
        return [row for row in self.new.values() if isinstance(row, model)]

    @property
    def counts(self) -> dict[str, int]:
        """How much of each is new, in the words in which people are told."""
        new = {
            "queries": len(self.rows(Query)),
            "responses": len(self.rows(Response)),
            "comparisons": len(self.rows(Comparison)),
            "verdicts": len(self.rows(Verdict)),
            "scores": len(self.rows(Score)),
            "failures": len(self.rows(Call)),
        }
        return {word: number for word, number in new.items() if number}


# ---- looking up what the database has --------------------------------------------------------


def look_up(around: Around, items: Sequence[Entry | BadRow], seen: Seen | None) -> Batch:
    rows = [row for item in items if isinstance(item, Entry) for row in item.rows]
    keys = {key_of_query(row) for row in rows}
    queries = Query.all_rows.filter(around.visible, evaluation=around.evaluation, key__in=keys)
    by_id = {query.pk: query for query in queries.only("key", "cluster", "category", "sha256", "text", "evaluation")}
    for query in by_id.values():
        query.evaluation = around.evaluation
    batch = Batch(around, seen, known={}, comparisons={}, responses={})
    for query in by_id.values():
        batch.known["query", query.key] = Found(query, query_word(query))
    responses = known_responses(batch, by_id, rows)
    for comparison in known_comparisons(around, by_id, rows):
        comparison.query = by_id[comparison.query_id]
        comparison.response_a = responses.get(comparison.response_a_id, comparison.response_a)
        comparison.response_b = responses.get(comparison.response_b_id, comparison.response_b)
        batch.known[key_of_comparison(comparison)] = Found(comparison, "")
        batch.comparisons.setdefault(comparison.query.key, []).append(comparison)
    know_verdicts(batch, rows)
    know_scores(batch, responses, rows)
    return batch


def key_of_query(row: Row) -> str:
    return row.query.key if isinstance(row, (ComparisonRow, ResponseRow)) else getattr(row, "query_key", "")


def known_responses(batch: Batch, queries: Mapping[int, Query], rows: Sequence[Row]) -> dict[int, Response]:
    if not queries or not any(isinstance(row, (ComparisonRow, ResponseRow, ScoreRow)) for row in rows):
        return {}
    names = {candidate.pk: candidate for candidate in batch.around.candidates.values() if candidate.pk}
    found = Response.all_rows.filter(batch.around.visible, query__in=list(queries))
    by_id = {response.pk: response for response in found.only("query", "candidate", "sha256")}
    for response in by_id.values():
        response.candidate = names[response.candidate_id]
        response.query = queries[response.query_id]
        batch.known[key_of_response(response)] = Found(response, "")
        batch.responses.setdefault((response.query.key, response.candidate.name), []).append(response)
    return by_id


def known_comparisons(around: Around, queries: Mapping[int, Query], rows: Sequence[Row]) -> Iterable[Comparison]:
    if not queries or not any(isinstance(row, (ComparisonRow, VerdictRow)) for row in rows):
        return []
    found = Comparison.all_rows.filter(around.visible, query__in=list(queries))
    return found.select_related("response_a__candidate", "response_b__candidate").only(
        "query",
        "turned",
        "response_a__candidate__name",
        "response_a__sha256",
        "response_b__candidate__name",
        "response_b__sha256",
    )


def know_verdicts(batch: Batch, rows: Sequence[Row]) -> None:
    """The imported verdicts and failures of the raters of this batch on its comparisons."""
    told = {(row.rater_kind, row.rater) for row in rows if isinstance(row, VerdictRow)}
    raters = [rater for name in told if (rater := batch.around.raters.get(name)) and rater.pk]
    by_id = {one.pk: one for comparisons in batch.comparisons.values() for one in comparisons}
    if not raters or not by_id:
        return
    people = {rater.pk: rater for rater in raters}
    aspects = {aspect.pk: aspect for aspect in batch.around.aspects.values()}
    for verdict in Verdict.all_rows.filter(batch.around.visible, rater__in=raters, comparison__in=list(by_id)):
        verdict.rater = people[verdict.rater_id]
        verdict.aspect = aspects[verdict.aspect_id]
        verdict.comparison = by_id[verdict.comparison_id]
        batch.known[key_of_verdict(verdict)] = Found(verdict, verdict_word(verdict))
    judges = {rater.judge_id: rater for rater in raters if rater.judge_id}
    for call in Call.all_rows.filter(batch.around.visible, judge__in=list(judges), comparison__in=list(by_id)):
        comparison = by_id[call.comparison_id or 0]
        key = key_of_call(comparison, judges[call.judge_id], call.shown, call.sample)
        batch.known[key] = Found(call, call.state)


def know_scores(batch: Batch, responses: Mapping[int, Response], rows: Sequence[Row]) -> None:
    """The imported scores that the raters of this batch gave to its responses."""
    told = {(row.rater_kind, row.rater) for row in rows if isinstance(row, ScoreRow)}
    raters = {rater.pk: rater for name in told if (rater := batch.around.raters.get(name)) and rater.pk}
    if not raters or not responses:
        return
    aspects = {aspect.pk: aspect for aspect in batch.around.aspects.values()}
    given = Score.all_rows.filter(batch.around.visible, rater__in=list(raters), response__in=list(responses))
    for score in given.filter(source_import__isnull=False):
        score.rater = raters[score.rater_id]
        score.aspect = aspects[score.aspect_id]
        score.response = responses[score.response_id]
        batch.known[key_of_score(score)] = Found(score, score_word(score))


# ---- keys: the same for a row of the database and a line of the file -------------------------


def query_word(query: Query) -> str:
    return json.dumps([query.sha256, query.cluster, query.category])


def key_of_response(response: Response) -> Key:
    return "response", response.query.key, response.candidate.name, response.sha256


def key_of_comparison(comparison: Comparison) -> Key:
    a, b = comparison.response_a, comparison.response_b
    return "comparison", comparison.query.key, a.candidate.name, a.sha256, b.candidate.name, b.sha256


def key_of_verdict(verdict: Verdict) -> Key:
    rater = verdict.rater
    place = (rater.kind, rater.name, verdict.aspect.key, verdict.shown, str(verdict.sample))
    return "verdict", *key_of_comparison(verdict.comparison)[1:], *place


def key_of_call(comparison: Comparison, rater: Rater, shown: str, sample: int) -> Key:
    return "call", *key_of_comparison(comparison)[1:], rater.name, shown, str(sample)


def key_of_score(score: Score) -> Key:
    rater = score.rater
    place = (rater.kind, rater.name, score.aspect.key, str(score.sample))
    return "score", *key_of_response(score.response)[1:], *place


def score_word(score: Score) -> str:
    """Its value with every digit, whole ones without the point."""
    return repr(score.value).removesuffix(".0")


def verdict_word(verdict: Verdict) -> str:
    return INCONSISTENT if verdict.inconsistent else verdict.choice
