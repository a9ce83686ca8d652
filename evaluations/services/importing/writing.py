"""Sketched rows into the tables, past the ORM. Numbers are reserved first: each row knows those that it points at."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.utils import timezone

from evaluations.domain import (
    INCONSISTENT,
    Choice,
    ComparisonOrigin,
    Stage,
    cluster_number,
    likeness,
    markup_of,
    messages_as_json,
    text_of,
)
from evaluations.models import Call, Comparison, Import, Query, Response, Score, Verdict
from evaluations.models.many import as_json, insert_ready, reserve_ids, time_ready
from evaluations.services.balloting import Imported, keep_imported
from evaluations.services.importing.flagging import flags_for
from evaluations.services.importing.pairing import draw_shuffle
from evaluations.services.importing.sketching import (
    ComparisonSketch,
    FailureSketch,
    QuerySketch,
    ResponseSketch,
    ScoreSketch,
    Sketch,
    VerdictSketch,
)

# Columns that have no default of the database's own are named, empty ones too.
QUERY_COLUMNS: Final = (
    *("id", "created_at", "evaluation_id", "source_import_id", "key", "cluster", "cluster_number", "messages", "text"),
    *("context", "reference", "category", "metadata", "flags", "sha256", "likeness"),
)
RESPONSE_COLUMNS: Final = (
    *("id", "created_at", "source_import_id", "query_id", "candidate_id", "messages", "sha256", "characters"),
    *("markup", "metadata", "flags"),
)
COMPARISON_COLUMNS: Final = (
    *("id", "created_at", "evaluation_id", "source_import_id", "query_id", "response_a_id", "response_b_id"),
    *("candidate_a", "candidate_b", "category", "origin", "turned", "shuffle", "metadata"),
)
VERDICT_COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "stage", "shown", "choice", "inconsistent"),
    *("source_import_id", "rationale", "note", "reason"),
)
SCORE_COLUMNS: Final = (
    *("created_at", "rater_id", "response_id", "aspect_id", "value", "sample", "stage", "source_import_id"),
    *("rationale", "note", "reason"),
)
Columns = tuple[Any, ...]


@dataclass
class Ready:
    """New rows with all but the numbers of what they point at. To make them takes longest, and no database."""

    now: Any
    queries: list[tuple[QuerySketch, Columns]] = field(default_factory=list)
    responses: list[tuple[ResponseSketch, Columns]] = field(default_factory=list)
    comparisons: list[tuple[ComparisonSketch, Columns]] = field(default_factory=list)
    verdicts: list[VerdictSketch] = field(default_factory=list)
    failures: list[FailureSketch] = field(default_factory=list)
    scores: list[ScoreSketch] = field(default_factory=list)


def made_ready(sketches: Iterable[Sketch]) -> Ready:
    by_kind: dict[type, list[Any]] = defaultdict(list)
    for sketch in sketches:
        by_kind[type(sketch)].append(sketch)
    ready = Ready(timezone.now())
    ready.queries = queries_ready(by_kind[QuerySketch])
    ready.responses = responses_ready(by_kind[ResponseSketch])
    ready.comparisons = [
        (one, (ComparisonOrigin.IMPORTED.value, one.turned, draw_shuffle(), as_json(one.metadata)))
        for one in by_kind[ComparisonSketch]
    ]
    ready.verdicts = by_kind[VerdictSketch]
    ready.failures = by_kind[FailureSketch]
    ready.scores = by_kind[ScoreSketch]
    return ready


def queries_ready(queries: Sequence[QuerySketch]) -> list[tuple[QuerySketch, Columns]]:
    parts = [part for query in queries if (part := query.part)]
    flags = flags_for([[*texts_of(part.messages), part.context or "", part.reference or ""] for part in parts])
    return [
        (
            query,
            (
                *(query.key, query.cluster, cluster_number(query.cluster)),
                *(messages_as_json(part.messages), text := text_of(part.messages), part.context, part.reference),
                *(query.category, as_json(part.metadata), flagged, query.sha256, likeness(text, part.context)),
            ),
        )
        for query, part, flagged in zip(queries, parts, flags, strict=True)
    ]


def responses_ready(responses: Sequence[ResponseSketch]) -> list[tuple[ResponseSketch, Columns]]:
    flags = flags_for([texts_of(response.messages) for response in responses])
    ready = []
    for response, flagged in zip(responses, flags, strict=True):
        text = text_of(response.messages)
        told = (messages_as_json(response.messages), response.sha256, len(text), int(markup_of(text)))
        ready.append((response, (*told, as_json(response.metadata), flagged)))
    return ready


# ---- inside the transaction: what points at a row comes after it ---------------------------------


def write_ready(importing: Import, ready: Ready) -> None:
    write_queries(importing, ready)
    write_responses(importing, ready)
    write_comparisons(importing, ready)
    write_failures(importing, ready.failures)
    write_verdicts(importing, ready.verdicts, ready.now)
    write_scores(importing, ready.scores, ready.now)


def write_queries(importing: Import, ready: Ready) -> None:
    about = (time_ready(ready.now), importing.evaluation_id, importing.pk)
    rows = []
    for pk, (query, columns) in zip(reserve_ids(Query, len(ready.queries)), ready.queries, strict=True):
        query.pk = pk
        rows.append((pk, *about, *columns))
    insert_ready(Query, QUERY_COLUMNS, rows)


def write_responses(importing: Import, ready: Ready) -> None:
    about = (time_ready(ready.now), importing.pk)
    rows = []
    for pk, (response, columns) in zip(reserve_ids(Response, len(ready.responses)), ready.responses, strict=True):
        response.pk = pk
        rows.append((pk, *about, response.query.pk, response.candidate.pk, *columns))
    insert_ready(Response, RESPONSE_COLUMNS, rows)


def write_comparisons(importing: Import, ready: Ready) -> None:
    about = (time_ready(ready.now), importing.evaluation_id, importing.pk)
    rows = []
    for pk, (one, columns) in zip(reserve_ids(Comparison, len(ready.comparisons)), ready.comparisons, strict=True):
        one.pk = pk
        said_again = (one.a.candidate.pk, one.b.candidate.pk, one.query.category)
        rows.append((pk, *about, one.query.pk, one.a.pk, one.b.pk, *said_again, *columns))
    insert_ready(Comparison, COMPARISON_COLUMNS, rows)


def write_failures(importing: Import, failures: Sequence[FailureSketch]) -> None:
    Call.all_rows.bulk_create(
        Call(
            judge=one.rater.judge,
            comparison_id=one.subject.pk if isinstance(one.subject, ComparisonSketch) else None,
            response_id=one.subject.pk if isinstance(one.subject, ResponseSketch) else None,
            shown=one.shown,
            sample=one.sample,
            source_import=importing,
            state=one.state,
            rationale=one.rationale,
        )
        for one in failures
    )


def write_verdicts(importing: Import, verdicts: Sequence[VerdictSketch], now: datetime) -> None:
    rows, kept, now_ready = [], [], time_ready(now)
    for one in verdicts:
        told, at = one.told, moment(one.told.created_at) or now
        at_ready = now_ready if at is now else time_ready(at)
        inconsistent = told.choice == INCONSISTENT
        choice, shown = Choice.TIE.value if inconsistent else str(told.choice), str(told.shown)
        on, sample = one.comparison.pk or 0, told.sample or 0
        rows.append(
            (
                *(at_ready, one.rater.pk, on, one.aspect.pk, sample, Stage.FIRST.value, shown, choice, inconsistent),
                *(importing.pk, told.rationale, told.note, ""),
            )
        )
        kept.append(Imported(one.rater.pk, on, one.aspect.pk, shown, sample, choice, inconsistent, at))
    insert_ready(Verdict, VERDICT_COLUMNS, rows)
    keep_imported(importing, kept)


def write_scores(importing: Import, scores: Sequence[ScoreSketch], now: datetime) -> None:
    at = time_ready(now)
    rows = [
        (
            *(at, one.rater.pk, one.response.pk, one.aspect.pk, one.value, one.told.sample or 0),
            *(Stage.FIRST.value, importing.pk, one.told.rationale, "", ""),
        )
        for one in scores
    ]
    insert_ready(Score, SCORE_COLUMNS, rows)


def texts_of(messages: Sequence[Any]) -> list[str]:
    return [turn["content"] for turn in messages]


def moment(text: str | None) -> datetime | None:
    if not text:
        return None
    told = datetime.fromisoformat(text)
    return told if told.tzinfo else told.replace(tzinfo=UTC)
