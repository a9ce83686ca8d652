"""The writer of prepared rows, which bypasses the ORM."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

from django.utils import timezone

from evaluations.domain.choices import INCONSISTENT, Choice, Stage
from evaluations.domain.groups import group_values
from evaluations.domain.texts import (
    ComparisonOrigin,
    cluster_number,
    detect_markup,
    messages_to_json,
    messages_to_text,
    near_duplicate_key,
)
from evaluations.imports.row_sketches import (
    ComparisonSketch,
    FailureSketch,
    QuerySketch,
    ResponseSketch,
    RowSketch,
    ScoreSketch,
    VerdictSketch,
)
from evaluations.models.bulk import insert_prepared, prepare_time, reserve_row_ids, to_json_text
from evaluations.models.comparisons import Comparison, Query, Response, draw_random_order
from evaluations.models.imports import Import
from evaluations.models.runs import Call
from evaluations.models.text_flags import encode_flags
from evaluations.models.verdicts import Score, Verdict
from evaluations.verdicts.packed_votes import ImportedVerdict, pack_imported_verdicts

# Columns without a default in the database are named, even if they are empty.
QUERY_COLUMNS: Final = (
    *("id", "created_at", "evaluation_id", "source_import_id", "key", "cluster", "cluster_number", "messages", "text"),
    *("context", "reference", "category", "metadata", "flags", "sha256", "near_duplicate_key"),
)
RESPONSE_COLUMNS: Final = (
    *("id", "created_at", "source_import_id", "query_id", "candidate_id", "messages", "sha256", "characters"),
    *("markup", "metadata", "flags"),
)
COMPARISON_COLUMNS: Final = (
    *("id", "created_at", "evaluation_id", "source_import_id", "query_id", "response_a_id", "response_b_id"),
    *("candidate_a", "candidate_b", "category", "origin", "swapped", "random_order", "metadata"),
)
VERDICT_COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "stage", "shown", "choice", "inconsistent"),
    *("source_import_id", "rationale", "note", "reason"),
)
SCORE_COLUMNS: Final = (
    *("created_at", "rater_id", "response_id", "aspect_id", "value", "sample", "stage", "source_import_id"),
    *("rationale", "note", "reason"),
)
ColumnValues = tuple[Any, ...]


@dataclass
class PreparedRows:
    """New rows without the ids that they refer to: the slow part, which needs no database."""

    now: Any
    queries: list[tuple[QuerySketch, ColumnValues]] = field(default_factory=list)
    responses: list[tuple[ResponseSketch, ColumnValues]] = field(default_factory=list)
    comparisons: list[tuple[ComparisonSketch, ColumnValues]] = field(default_factory=list)
    verdicts: list[VerdictSketch] = field(default_factory=list)
    failures: list[FailureSketch] = field(default_factory=list)
    scores: list[ScoreSketch] = field(default_factory=list)

    def count_characters(self) -> int:
        """The length of all texts, which is about the size of the rows."""
        columns = (value for _, columns in chain(self.queries, self.responses, self.comparisons) for value in columns)
        rows: Iterable[VerdictSketch | ScoreSketch] = [*self.verdicts, *self.scores]
        rationales = (rated.row.rationale for rated in rows)
        return sum(len(value) for value in chain(columns, rationales) if isinstance(value, str))


def prepare_rows(sketches: Iterable[RowSketch]) -> PreparedRows:
    by_kind: dict[type, list[Any]] = group_values((type(sketch), sketch) for sketch in sketches)
    ready = PreparedRows(timezone.now())
    ready.queries = prepare_queries(by_kind[QuerySketch])
    ready.responses = prepare_responses(by_kind[ResponseSketch])
    ready.comparisons = [
        (sketch, (ComparisonOrigin.IMPORTED.value, sketch.swapped, draw_random_order(), to_json_text(sketch.metadata)))
        for sketch in by_kind[ComparisonSketch]
    ]
    ready.verdicts = by_kind[VerdictSketch]
    ready.failures = by_kind[FailureSketch]
    ready.scores = by_kind[ScoreSketch]
    return ready


def prepare_queries(queries: Sequence[QuerySketch]) -> list[tuple[QuerySketch, ColumnValues]]:
    parts = [part for query in queries if (part := query.part)]
    flags = encode_flags(
        [[*list_message_texts(part.messages), part.context or "", part.reference or ""] for part in parts]
    )
    ready = []
    for query, part, flagged in zip(queries, parts, flags, strict=True):
        text = messages_to_text(part.messages)
        cluster = (query.cluster, cluster_number(query.cluster))
        texts = (messages_to_json(part.messages), text, part.context, part.reference)
        sums = (query.sha256, near_duplicate_key(text, part.context))
        columns = (query.key, *cluster, *texts, query.category, to_json_text(part.metadata), flagged, *sums)
        ready.append((query, columns))
    return ready


def prepare_responses(responses: Sequence[ResponseSketch]) -> list[tuple[ResponseSketch, ColumnValues]]:
    flags = encode_flags([list_message_texts(response.messages) for response in responses])
    ready = []
    for response, flagged in zip(responses, flags, strict=True):
        text = messages_to_text(response.messages)
        columns = (messages_to_json(response.messages), response.sha256, len(text), int(detect_markup(text)))
        ready.append((response, (*columns, to_json_text(response.metadata), flagged)))
    return ready


# ---- inside the transaction: what points at a row comes after it ---------------------------------


def write_prepared_rows(importing: Import, ready: PreparedRows) -> None:
    write_queries(importing, ready)
    write_responses(importing, ready)
    write_comparisons(importing, ready)
    write_failures(importing, ready.failures)
    write_verdict_rows(importing, ready.verdicts, ready.now)
    write_score_rows(importing, ready.scores, ready.now)


def write_queries(importing: Import, ready: PreparedRows) -> None:
    about = (prepare_time(ready.now), importing.evaluation_id, importing.pk)
    rows = []
    for pk, (query, columns) in zip(reserve_row_ids(Query, len(ready.queries)), ready.queries, strict=True):
        query.pk = pk
        rows.append((pk, *about, *columns))
    insert_prepared(Query, QUERY_COLUMNS, rows)


def write_responses(importing: Import, ready: PreparedRows) -> None:
    about = (prepare_time(ready.now), importing.pk)
    rows = []
    for pk, (response, columns) in zip(reserve_row_ids(Response, len(ready.responses)), ready.responses, strict=True):
        response.pk = pk
        rows.append((pk, *about, response.query.pk, response.candidate.pk, *columns))
    insert_prepared(Response, RESPONSE_COLUMNS, rows)


def write_comparisons(importing: Import, ready: PreparedRows) -> None:
    about = (prepare_time(ready.now), importing.evaluation_id, importing.pk)
    rows, ids = [], reserve_row_ids(Comparison, len(ready.comparisons))
    for pk, (comparison, columns) in zip(ids, ready.comparisons, strict=True):
        comparison.pk = pk
        copied = (comparison.a.candidate.pk, comparison.b.candidate.pk, comparison.query.category)
        rows.append((pk, *about, comparison.query.pk, comparison.a.pk, comparison.b.pk, *copied, *columns))
    insert_prepared(Comparison, COMPARISON_COLUMNS, rows)


def write_failures(importing: Import, failures: Sequence[FailureSketch]) -> None:
    Call.all_rows.bulk_create(
        Call(
            judge=failure.rater.judge,
            comparison_id=failure.subject.pk if isinstance(failure.subject, ComparisonSketch) else None,
            response_id=failure.subject.pk if isinstance(failure.subject, ResponseSketch) else None,
            shown=failure.shown,
            sample=failure.sample,
            source_import=importing,
            state=failure.state,
            rationale=failure.rationale,
        )
        for failure in failures
    )


def write_verdict_rows(importing: Import, verdicts: Sequence[VerdictSketch], now: datetime) -> None:
    rows, kept, now_ready = [], [], prepare_time(now)
    for verdict in verdicts:
        row, at = verdict.row, parse_verdict_time(verdict.row.created_at) or now
        at_ready = now_ready if at is now else prepare_time(at)
        inconsistent = row.choice == INCONSISTENT
        choice, shown = Choice.TIE.value if inconsistent else str(row.choice), str(row.shown)
        on, sample = verdict.comparison.pk or 0, row.sample or 0
        rows.append(
            (
                *(at_ready, verdict.rater.pk, on, verdict.aspect.pk, sample, Stage.FIRST.value, shown, choice),
                *(inconsistent, importing.pk, row.rationale, row.note, ""),
            )
        )
        kept.append(ImportedVerdict(verdict.rater.pk, on, verdict.aspect.pk, shown, sample, choice, inconsistent, at))
    insert_prepared(Verdict, VERDICT_COLUMNS, rows)
    pack_imported_verdicts(importing, kept)


def write_score_rows(importing: Import, scores: Sequence[ScoreSketch], now: datetime) -> None:
    at = prepare_time(now)
    rows = [
        (
            *(at, score.rater.pk, score.response.pk, score.aspect.pk, score.value, score.row.sample or 0),
            *(Stage.FIRST.value, importing.pk, score.row.rationale, "", ""),
        )
        for score in scores
    ]
    insert_prepared(Score, SCORE_COLUMNS, rows)


def list_message_texts(messages: Sequence[Any]) -> list[str]:
    return [turn["content"] for turn in messages]


def parse_verdict_time(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
