"""The stored rows that a batch of a file refers to, looked up at once."""

import json
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from django.db import models
from django.db.models import Q

from evaluations.domain.choices import INCONSISTENT
from evaluations.domain.files import (
    BadRow,
    ComparisonRow,
    FileEntry,
    FileRow,
    NewResponse,
    QueryPart,
    QueryRow,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.imports import ScoreScale
from evaluations.domain.rubrics import RubricKind, RubricOrigin
from evaluations.formats.seen_index import SeenIndex
from evaluations.imports.row_sketches import (
    ComparisonSketch,
    EntryOutcome,
    QuerySketch,
    ResponseSketch,
    RowSketch,
    StatementKey,
    list_good_outcomes,
)
from evaluations.models.bulk import filter_by_values
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import, finished_imports
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score, Verdict


@dataclass
class ImportContext:
    """The named rows of an evaluation that a file can refer to, few enough to keep in memory."""

    evaluation: Evaluation
    importing: Import | None  # None while a file is only checked
    candidates: dict[str, Candidate]
    raters: dict[tuple[str, str], Rater]
    judge_names: set[str]
    aspects: dict[str, Aspect]
    offered: Mapping[str, set[str]]  # by aspect key, in rubrics that no import brought
    imported_aspects: set[str] = field(default_factory=set)
    scales: dict[str, ScoreScale] = field(default_factory=dict)  # by aspect key, of the scores that rows bring
    candidates_by_id: dict[int, Candidate] = field(default_factory=dict)
    new_response: NewResponse = NewResponse.REFUSE
    # By rater and aspect: see `additions.refuse_verdicts_and_scores`.
    rated_otherwise: dict[tuple[int, int], bool] = field(default_factory=dict)

    @property
    def visible(self) -> Q:
        """Rows of finished imports, and of the one that is being stored."""
        own = Q(source_import=self.importing) if self.importing else Q(pk__in=[])
        return finished_imports() | own

    def candidate(self, pk: int) -> Candidate:
        """A candidate by id, also one that was created since these were loaded."""
        if pk not in self.candidates_by_id:
            for row in Candidate.objects.filter(evaluation=self.evaluation):
                self.candidates_by_id[row.pk] = self.candidates.setdefault(row.name, row)
        return self.candidates_by_id[pk]


def load_import_context(
    evaluation: Evaluation, importing: Import | None = None, new_response: NewResponse = NewResponse.REFUSE
) -> ImportContext:
    return ImportContext(
        evaluation=evaluation,
        importing=importing,
        candidates={row.name: row for row in Candidate.objects.filter(evaluation=evaluation)},
        raters={
            (row.kind, row.name): row for row in Rater.objects.filter(evaluation=evaluation).select_related("judge")
        },
        judge_names=set(Judge.objects.filter(evaluation=evaluation).values_list("name", flat=True)),
        aspects={row.key: row for row in Aspect.objects.filter(evaluation=evaluation)},
        offered=load_offered_choices(evaluation),
        new_response=new_response,
    )


def load_offered_choices(evaluation: Evaluation) -> dict[str, set[str]]:
    offered: dict[str, set[str]] = {}
    rows = RubricAspect.objects.filter(
        version__rubric__evaluation=evaluation, version__rubric__kind=RubricKind.PAIRWISE
    )
    for row in rows.exclude(version__rubric__origin=RubricOrigin.IMPORTED).select_related("aspect"):
        offered.setdefault(row.aspect.key, set()).update(row.choices)
    return offered


@dataclass
class EntryBatch:
    """The stored rows that a batch of entries refers to, with the outcome of each entry.

    ``seen``: while a file is checked, the rows of earlier batches, which are not in the database; else None.
    """

    context: ImportContext
    seen: SeenIndex | None
    queries: dict[str, QuerySketch] = field(default_factory=dict)
    outcomes: list[EntryOutcome] = field(default_factory=list)
    named: list[models.Model] = field(default_factory=list)  # new candidates, raters and aspects
    swapped: int = 0
    conflicts: int = 0  # entries refused because their model has another response to the same query
    used_responses: set[int] | None = None  # see `response_conflicts.find_used_in_batch`

    def find_earlier(self, query: QuerySketch, key: Hashable) -> tuple[str, int] | None:
        """The value and the line of an entry about that query in an earlier batch of this file."""
        if self.seen is None or query.is_unseen:
            return None
        return self.seen.find(query.owner, key)

    def break_cycles(self) -> None:
        """Clear the references between queries and their rows, so that no garbage collection is needed."""
        for query in self.queries.values():
            query.responses.clear()
            query.comparisons.clear()

    @property
    def new_queries(self) -> list[QueryPart]:
        return [query.part for query in self.queries.values() if query.part]

    @property
    def new(self) -> Iterator[RowSketch]:
        return chain.from_iterable(list_good_outcomes(self.outcomes))

    @property
    def bad(self) -> list[BadRow]:
        return [outcome for outcome in self.outcomes if isinstance(outcome, BadRow)]


def look_up_batch(context: ImportContext, items: Sequence[FileEntry | BadRow], seen: SeenIndex | None) -> EntryBatch:
    rows = [row for item in items if isinstance(item, FileEntry) for row in item.rows]
    batch = EntryBatch(context, seen)
    keys = {get_query_key(row) for row in rows}
    load_queries(batch, keys, rows)
    by_id = {query.pk: query for query in batch.queries.values() if query.pk}
    if by_id:
        kinds = set(map(type, rows))
        responses = load_responses(context, by_id) if kinds & {ComparisonRow, ResponseRow, ScoreRow} else {}
        comparisons = load_comparisons(context, by_id, responses) if kinds & {ComparisonRow, VerdictRow} else {}
        load_verdicts(context, comparisons, rows)
        load_scores(context, responses, rows)
    if seen:
        load_seen_queries(batch, seen, keys)
    return batch


def get_query_key(row: FileRow) -> str:
    return row.query.key if isinstance(row, (QueryRow, ComparisonRow, ResponseRow)) else getattr(row, "query_key", "")


def load_queries(batch: EntryBatch, keys: Collection[str], rows: Sequence[FileRow]) -> None:
    context = batch.context
    visible = Query.all_rows.filter(context.visible, evaluation=context.evaluation).order_by()
    queries = filter_by_values(visible, "key", keys)
    # Only if rows name their texts, because texts are long.
    texts = any(isinstance(row, VerdictRow) and row.expected_texts is not None for row in rows)
    columns = ("key", "cluster", "category", "sha256", "pk", *(["text"] if texts else []))
    for key, cluster, category, sha256, pk, *text in queries.values_list(*columns):
        batch.queries[key] = QuerySketch(
            key,
            cluster,
            category,
            sha256,
            pk=pk,
            stored_text="".join(text),
            owner=pk,
            is_unseen=batch.seen is None or not batch.seen.has_entries(pk),
        )


def load_seen_queries(batch: EntryBatch, seen: SeenIndex, keys: Collection[str]) -> None:
    """Add queries of earlier lines of the file, with the columns that later lines need. They are never written."""
    for key, (owner, word, line) in seen.owners(keys).items():
        if key not in batch.queries:
            sha256, cluster, category = json.loads(word)
            batch.queries[key] = QuerySketch(key, cluster, category, sha256, line=line, owner=owner)


def load_responses(context: ImportContext, queries: Mapping[int, QuerySketch]) -> dict[int, ResponseSketch]:
    responses = Response.all_rows.filter(context.visible, query__in=list(queries)).order_by("pk")
    by_id = {}
    for pk, query_id, candidate_id, sha256 in responses.values_list("pk", "query_id", "candidate_id", "sha256"):
        by_id[pk] = add_known_response(context, queries[query_id], pk, candidate_id, sha256)
    return by_id


def add_known_response(
    context: ImportContext, query: QuerySketch, pk: int, candidate_id: int, sha256: str
) -> ResponseSketch:
    response = ResponseSketch(query, context.candidate(candidate_id), sha256, pk=pk)
    query.responses[response.key] = response
    return response


def load_comparisons(
    context: ImportContext, queries: Mapping[int, QuerySketch], responses: Mapping[int, ResponseSketch]
) -> dict[int, ComparisonSketch]:
    comparisons = Comparison.all_rows.filter(context.visible, query__in=list(queries)).order_by("pk")
    sides = (f"response_{side}{part}" for side in "ab" for part in ("_id", "__candidate_id", "__sha256"))
    by_id = {}
    for pk, query_id, swapped, *both in comparisons.values_list("pk", "query_id", "swapped", *sides):
        query = queries[query_id]
        a, b = (responses.get(side[0]) or add_known_response(context, query, *side) for side in (both[:3], both[3:]))
        by_id[pk] = comparison = ComparisonSketch(query, a, b, swapped, pk=pk)
        query.comparisons[comparison.key] = comparison
    return by_id


def find_stored_raters(
    context: ImportContext, rows: Sequence[FileRow], kind: type[VerdictRow] | type[ScoreRow]
) -> dict[int, Rater]:
    names = {(row.rater_kind, row.rater) for row in rows if isinstance(row, kind)}
    return {rater.pk: rater for name in names if (rater := context.raters.get(name)) and rater.pk}


def load_verdicts(context: ImportContext, comparisons: Mapping[int, ComparisonSketch], rows: Sequence[FileRow]) -> None:
    """The imported verdicts and failures of the raters of this batch on its comparisons."""
    raters = find_stored_raters(context, rows, VerdictRow)
    if not raters or not comparisons:
        return
    verdicts = Verdict.all_rows.filter(context.visible, rater__in=list(raters), comparison__in=list(comparisons))
    columns = ("comparison_id", "rater_id", "aspect__key", "shown", "sample", "choice", "inconsistent")
    for pk, rater, aspect, shown, sample, choice, inconsistent in verdicts.order_by().values_list(*columns):
        key = build_verdict_key(raters[rater], aspect, shown, sample)
        comparisons[pk].statements[key] = (INCONSISTENT if inconsistent else choice, None)
    load_failures(context, raters, "comparison", comparisons)


def load_scores(context: ImportContext, responses: Mapping[int, ResponseSketch], rows: Sequence[FileRow]) -> None:
    """The imported scores and failures that the raters of this batch gave to its responses."""
    raters = find_stored_raters(context, rows, ScoreRow)
    if not raters or not responses:
        return
    scores = Score.all_rows.filter(context.visible, rater__in=list(raters), response__in=list(responses)).order_by()
    rows_of_files = scores.filter(source_import__isnull=False)
    columns = ("response_id", "rater_id", "aspect__key", "sample", "value")
    for pk, rater, aspect, sample, value in rows_of_files.values_list(*columns):
        responses[pk].statements[build_score_key(raters[rater], aspect, sample)] = (encode_score(value), None)
    load_failures(context, raters, "response", responses)


def load_failures(
    context: ImportContext,
    raters: Mapping[int, Rater],
    column: str,
    subjects: Mapping[int, ComparisonSketch] | Mapping[int, ResponseSketch],
) -> None:
    judges = {rater.judge_id: rater for rater in raters.values() if rater.judge_id}
    failed = Call.all_rows.filter(context.visible, judge__in=list(judges), **{f"{column}__in": list(subjects)})
    columns = (f"{column}_id", "judge_id", "shown", "sample", "state")
    for pk, judge, shown, sample, state in failed.order_by().values_list(*columns):
        subjects[pk].statements[build_failure_key(judges[judge], shown, sample)] = (state, None)


# ---- keys: the same for a row of the database and a line of the file -------------------------


def encode_query(query: QuerySketch) -> str:
    return json.dumps([query.sha256, query.cluster, query.category])


def build_verdict_key(rater: Rater, aspect: str, shown: str, sample: int) -> StatementKey:
    return rater.kind, rater.name, aspect, str(shown), sample


def build_failure_key(rater: Rater, shown: str, sample: int) -> StatementKey:
    return "failure", rater.name, str(shown), sample


def build_score_key(rater: Rater, aspect: str, sample: int) -> StatementKey:
    return rater.kind, rater.name, aspect, sample


def encode_score(value: float) -> str:
    """Its value with every digit, whole ones without the point."""
    return repr(value).removesuffix(".0")
