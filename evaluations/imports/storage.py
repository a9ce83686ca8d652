"""Storage of a checked file in short transactions. Its rows become visible at the end."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import BinaryIO, Final, cast

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.comparisons.pairing.selectors import build_comparison, pair_responses, pairing_seed
from evaluations.domain.disk_space import DISK_FULL_SENTENCE
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import PAIRS_WITHOUT_FILE, BadRow, FileEntry, ImportState, NewResponse
from evaluations.domain.imports import CreatedIds
from evaluations.domain.pairing import Pairing
from evaluations.domain.rubrics import RubricKind
from evaluations.domain.texts import ComparisonOrigin
from evaluations.formats.seen_index import SeenIndex
from evaluations.imports.imported_rubrics import (
    find_scores_with_changed_margin,
    update_scores_rubric,
    update_verdicts_rubric,
)
from evaluations.imports.lifecycle import (
    ABANDONED_STATES,
    INTERRUPTED_REASON,
    clean_up_import,
    enqueue_follow_ups,
    fail_import,
    find_raters_of_import,
    renew_import_claim,
)
from evaluations.imports.lookup import EntryBatch, ImportContext, load_import_context
from evaluations.imports.pair_forecast import find_keys_to_pair
from evaluations.imports.preview import check_kept
from evaluations.imports.replaced_responses import delete_replaced_responses, find_replaced_responses
from evaluations.imports.row_resolver import batch_entries, resolve_batch
from evaluations.imports.row_sketches import (
    EntryOutcome,
    OutcomeCounts,
    SkippedEntry,
    count_outcomes,
    list_good_outcomes,
)
from evaluations.imports.row_writer import PreparedRows, prepare_rows, write_prepared_rows
from evaluations.imports.source_files import read_import_rows
from evaluations.imports.sql import add_stored_rows
from evaluations.jobs.kinds import JobClaim, LeaseLost
from evaluations.models.bulk import is_unique_violation, refresh_statistics
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.free_space import require_room_for_rows
from evaluations.models.imports import Import, finished_imports
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, next_aspect_slot
from evaluations.models.runs import Call
from evaluations.models.transactions import (
    TransactionPacer,
    is_time_up,
    min_bulk_rows,
    next_bulk_rows,
    pause_after_transaction,
    rows_per_lookup,
    rows_per_transaction,
)
from evaluations.models.verdicts import PackedVotes, Score, Verdict
from evaluations.rubrics.services import lock_aspects
from evaluations.verdicts.changes import mark_raters_changed
from evaluations.verdicts.label_updates import find_score_imports, recount_labels_later
from evaluations.verdicts.score_choices import find_imported_rubric
from evaluations.web.failures import is_disk_full

MAX_TRIES: Final = 3


def build_missing_pairs(importing: Import, keys: Sequence[str], pairing: Pairing) -> Iterator[Comparison]:
    """The missing comparisons of the responses to these queries, not saved."""
    visible = finished_imports() | Q(source_import=importing)
    options = importing.options
    queries = list(Query.all_rows.filter(visible, evaluation=importing.evaluation, key__in=keys).order_by("pk"))
    responses: dict[int, list[Response]] = defaultdict(list)
    here = Response.all_rows.filter(visible, query__in=queries)
    if options.request.reading.new_response == NewResponse.REPLACE:
        here = here.exclude(pk__in=find_replaced_responses(importing, query__in=queries))
    for response in here.select_related("candidate").defer("messages"):
        responses[response.query_id].append(response)
    stored_pairs = set(Comparison.all_rows.filter(query__in=queries).values_list("response_a", "response_b"))
    for query in queries:
        query.evaluation = importing.evaluation
        for first, second in pair_responses(
            responses[query.pk], pairing, pairing_seed(importing.evaluation, query.key), options.ranking
        ):
            if not {(first.pk, second.pk), (second.pk, first.pk)} & stored_pairs:
                yield build_comparison(query, first, second, origin=ComparisonOrigin.PAIRED, source_import=importing)


def work_on_import(claim: JobClaim) -> bool:
    """Check a file, store it for a while, or remove its rows. Returns whether that is done."""
    importing = Import.objects.select_related("evaluation", "user").get(pk=claim.job.subject)
    importing.lease = claim
    if importing.state == ImportState.CHECKING:
        return check_kept(importing)
    if importing.state == ImportState.STORING:
        return store_for_a_while(importing, claim.until)
    if importing.state in ABANDONED_STATES and importing.finished_at is None:
        clean_up_import(importing, claim.until)
        return importing.finished_at is not None
    return True


def store_for_a_while(importing: Import, until: float | None) -> bool:
    """Store rows until the deadline. Returns whether all rows are stored."""
    try:
        if importing.format == PAIRS_WITHOUT_FILE:
            finished = store_pairs_of_evaluation(importing, until)
        else:
            finished = store_file_rows(importing, until) and store_pairs_of_file(importing, until)
        if finished:
            finish_import(importing)
    except LeaseLost:
        importing.refresh_from_db()
        if importing.state in ABANDONED_STATES:
            clean_up_import(importing, until)
        raise
    except InputRefused as refused:
        fail_import(importing, str(refused))
        return True
    except IntegrityError as fault:
        fail_import(importing, f"The database refused a row: {str(fault).splitlines()[0]}. Nothing was imported.")
        raise
    except BaseException as fault:
        fail_import(importing, DISK_FULL_SENTENCE if is_disk_full(fault) else INTERRUPTED_REASON)
        raise
    if finished:
        refresh_statistics(Query, Response, Comparison, Call, Verdict, Score, PackedVotes)
    return finished


def read_entries_from(
    importing: Import, file: BinaryIO, counted: SeenIndex, place: int
) -> Iterator[FileEntry | BadRow]:
    """The entries of the file from this number on; earlier ones are read too, because their samples count."""
    return islice(read_import_rows(importing, file, counted).entries, place, None)


class OpenImportFile:
    """A file that is open at an entry, so that the next task can read on from there."""

    def __init__(self, importing: Import, place: int) -> None:
        self.import_id = importing.pk
        self.place = place
        self._counted = SeenIndex()
        self._file = importing.file.open("rb")
        self.entries = read_entries_from(importing, cast(BinaryIO, self._file), self._counted, place)

    def put_back(self, items: Sequence[FileEntry | BadRow], place: int) -> None:
        """Return rows that are not stored yet, so that they are read first next time."""
        self.entries = chain(items, self.entries)
        self.place = place

    def close(self) -> None:
        self._file.close()
        self._counted.close()


# The last file that this process left open, in a list of at most one.
KEPT_OPEN: Final[list[OpenImportFile]] = []


def open_file_at(importing: Import, place: int) -> OpenImportFile:
    """The file that this process left open at this entry, or else opened and read up to it."""
    while KEPT_OPEN:
        left = KEPT_OPEN.pop()
        if (left.import_id, left.place) == (importing.pk, place):
            return left
        left.close()
    return OpenImportFile(importing, place)


def store_file_rows(importing: Import, until: float | None) -> bool:
    opened = open_file_at(importing, importing.rows_done)
    try:
        finished = store_entries_until(importing, opened, until)
    except BaseException:
        opened.close()
        raise
    if finished:
        opened.close()
    else:
        KEPT_OPEN.append(opened)
    return finished


def store_entries_until(importing: Import, opened: OpenImportFile, until: float | None) -> bool:
    storing = RowStorage(importing, until)
    for items in batch_entries(opened.entries, rows_per_lookup()):
        stored = storing.store(items)
        if storing.is_over:
            opened.put_back(items[stored:], opened.place + stored)
            return False
        opened.place += stored
    storing.pace.rest()
    return True


def load_context(importing: Import) -> ImportContext:
    return load_import_context(importing.evaluation, importing, importing.request.reading.new_response)


class RowStorage:
    """The rows of one import on their way into the database, until time is up."""

    def __init__(self, importing: Import, until: float | None) -> None:
        self.importing = importing
        self.until = until
        self.pace = TransactionPacer()
        self.context = load_context(importing)
        self.is_over = False
        self._most = min_bulk_rows()

    def store(self, items: Sequence[FileEntry | BadRow]) -> int:
        """Store entries, and return how many. If the same rows were added meanwhile, look up again what is stored."""
        done = failed = 0
        while done < len(items) and not self.is_over:
            batch = resolve_batch(self.context, items[done:])
            refuse_bad_rows(self.importing, batch)
            try:
                for stored in self.store_portions(batch):
                    done, failed = done + stored, 0
                batch.break_cycles()
            except IntegrityError as refused:
                if not is_unique_violation(refused):
                    raise
                failed += 1
                if failed == MAX_TRIES:
                    raise InputRefused(
                        "Someone else is adding the same rows. Nothing was imported; try again in a moment."
                    ) from None
                self.context = load_context(self.importing)
        return done

    def store_portions(self, batch: EntryBatch) -> Iterator[int]:
        """Store a batch in short transactions, and yield the number of entries of each."""
        named: Sequence[models.Model] = batch.named
        outcomes = batch.outcomes
        at = 0
        while at < len(outcomes) and not self.is_over:
            portion = take_portion(outcomes, at, self._most)
            ready = prepare_rows(chain.from_iterable(list_good_outcomes(portion)))
            require_room_for_rows(ready.count_characters())
            with self.pace.turn(), transaction.atomic():
                write_portion(self.importing, named, count_outcomes(portion), ready)
            named = ()
            at += len(portion)
            self._most = next_bulk_rows(self._most, self.pace.seconds)
            self.is_over = is_time_up(self.until)
            yield len(portion)


def take_portion(outcomes: Sequence[EntryOutcome], at: int, limit: int) -> Sequence[EntryOutcome]:
    """Take outcomes that add up to this many rows, but at least one."""
    rows = 0
    for end in range(at, len(outcomes)):
        outcome = outcomes[end]
        rows += 0 if isinstance(outcome, (BadRow, SkippedEntry)) else len(outcome)
        if rows >= limit:
            return outcomes[at : end + 1]
    return outcomes[at:]


def refuse_bad_rows(importing: Import, batch: EntryBatch) -> None:
    if importing.skip_bad:
        return
    for first in batch.bad:
        raise InputRefused(
            f"Line {first.line}: {first.reason}. The evaluation changed since the preview. Nothing was imported."
        )


def write_portion(
    importing: Import, named: Sequence[models.Model], counted: OutcomeCounts, ready: PreparedRows
) -> None:
    created = importing.created + write_named_rows(importing, named) if named else importing.created
    add_stored_rows(importing, counted, created)
    write_prepared_rows(importing, ready)
    importing.created_json = created.to_json()


def write_named_rows(importing: Import, named: Sequence[models.Model]) -> CreatedIds:
    """Create the new candidates, raters and aspects. Returns their ids, so that a clean-up finds them."""
    raters = [row for row in named if isinstance(row, Rater)]
    aspects = [row for row in named if isinstance(row, Aspect)]
    if aspects:
        lock_aspects(importing.evaluation_id)
        for place, aspect in enumerate(aspects, next_aspect_slot(importing.evaluation_id)):
            aspect.slot = place
    created: tuple[Sequence[models.Model], ...] = (
        Candidate.objects.bulk_create(row for row in named if isinstance(row, Candidate)),
        Aspect.objects.bulk_create(aspects),
        Judge.objects.bulk_create([rater.judge for rater in raters if rater.judge]),
        Rater.objects.bulk_create(raters),
    )
    return CreatedIds(*(tuple(row.pk for row in rows) for rows in created))


def store_pairs_of_file(importing: Import, until: float | None) -> bool:
    pairing = importing.pairing
    if pairing is None:
        return True
    with importing.file.open("rb") as file, SeenIndex() as counted:
        entries = read_entries_from(importing, cast(BinaryIO, file), counted, importing.pairs_cursor)
        for items in batch_entries(entries, rows_per_transaction()):
            store_missing_pairs(importing, sorted(find_keys_to_pair(items)), pairing)
            importing.pairs_cursor += len(items)
            Import.objects.filter(pk=importing.pk).update(pairs_cursor=importing.pairs_cursor)
            if is_time_up(until):
                return False
    return True


def store_pairs_of_evaluation(importing: Import, until: float | None) -> bool:
    """Pair the stored responses of the evaluation, query by query, without a file."""
    pairing = importing.options.request.pairing
    queries = Query.objects.filter(evaluation=importing.evaluation_id).order_by("pk")
    while batch := list(
        queries.filter(pk__gt=importing.pairs_cursor).values_list("pk", "key")[: rows_per_transaction()]
    ):
        store_missing_pairs(importing, [key for _, key in batch], pairing)
        importing.pairs_cursor = batch[-1][0]
        renew_import_claim(
            importing,
            ImportState.STORING,
            pairs_cursor=importing.pairs_cursor,
            rows_stored=F("rows_stored") + len(batch),
        )
        if is_time_up(until):
            return False
    return True


def store_missing_pairs(importing: Import, keys: Sequence[str], pairing: Pairing) -> None:
    pairs = build_missing_pairs(importing, keys, pairing)
    while portion := list(islice(pairs, rows_per_transaction())):
        require_room_for_rows()
        with pause_after_transaction(), transaction.atomic():
            renew_import_claim(importing, ImportState.STORING)
            Comparison.all_rows.bulk_create(portion)
            Import.objects.filter(pk=importing.pk).update(new_comparisons=F("new_comparisons") + len(portion))


def finish_import(importing: Import) -> None:
    """Make all rows of the import visible at once, with the rubrics for their aspects."""
    stored = Verdict.all_rows.filter(source_import=importing)
    summary, request = importing.summary, importing.request
    occurring: dict[str, set[str]] = {key: set() for key in summary.aspects}
    for key, choice in stored.filter(aspect__key__in=occurring).values_list("aspect__key", "choice").distinct():
        occurring[key].add(choice)
    raters = find_raters_of_import(importing)
    scales, margin = summary.scales, request.tie_margin
    anew = find_scores_with_changed_margin(importing.evaluation, scales, margin)
    raters.update(anew.values_list("rater", flat=True).distinct())
    recounted = find_score_imports(anew) | find_score_imports(find_earlier_scores(importing))
    with transaction.atomic():
        renew_import_claim(importing, ImportState.STORING, state=ImportState.DONE, finished_at=Now())
        if request.reading.new_response == NewResponse.REPLACE:
            delete_replaced_responses(importing)
        versions = update_verdicts_rubric(importing.evaluation, occurring, importing.user)
        versions += update_scores_rubric(importing.evaluation, scales, margin, importing.user)
        created = replace(importing.created, rubric_versions=tuple(versions))
        Import.objects.filter(pk=importing.pk).update(created_json=created.to_json())
        recount_labels_later(recounted)
        mark_raters_changed(raters)
        importing.refresh_from_db()
        Evaluation.objects.filter(pk=importing.evaluation_id).update(comparisons_changed_at=Now())
        enqueue_follow_ups(importing)
        counts = count_import_rows(importing)
        record_event("stored", importing, user=importing.user, evaluation=importing.evaluation, after=counts)


def find_earlier_scores(importing: Import) -> QuerySet[Score]:
    """Earlier scores of the responses that the import's comparisons hold."""
    if find_imported_rubric(importing.evaluation, RubricKind.POINTWISE) is None:
        return Score.objects.none()
    comparisons = Comparison.all_rows.filter(source_import=importing)
    a, b = (Q(response__in=comparisons.values(side)) for side in ("response_a", "response_b"))
    return Score.objects.filter(a | b)


def count_import_rows(importing: Import) -> dict[str, int]:
    return {
        "read": importing.rows_read,
        "stored": importing.rows_stored,
        "unchanged": importing.rows_unchanged,
        **({"skipped": importing.rows_skipped} if importing.rows_skipped else {}),
        "bad": importing.rows_bad,
    }
