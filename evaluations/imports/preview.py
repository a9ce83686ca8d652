"""The check of a file against the evaluation, row by row, before any of it is stored."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import SEEK_END
from itertools import islice
from pathlib import PurePath
from typing import BinaryIO, Final, cast

from django.core.files import File
from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.comparisons.pairing.selectors import CONFIRMED_ABOVE, rank_by_results
from evaluations.domain.errors import ColumnsUnknown, InputRefused
from evaluations.domain.files import BadRow, FileEntry, ImportState, ScoreRow, VerdictRow
from evaluations.domain.imports import (
    CandidateNaming,
    ImportOptions,
    ImportRequest,
    ImportSummary,
    ModelPair,
    SampleRow,
    ScoreScales,
)
from evaluations.domain.pairing import Pairing, PairingWay
from evaluations.domain.roles import RaterKind
from evaluations.formats.conversations import UNNAMED
from evaluations.formats.notices import ImportNotices
from evaluations.formats.record_streams import BlankCounts
from evaluations.formats.seen_index import SeenIndex
from evaluations.formats.sources import HEAD_BYTES, is_packed
from evaluations.imports.columns.column_memory import apply_remembered_mapping, get_names_for_all_rows
from evaluations.imports.duplicates.selectors import KnownQueryCounter
from evaluations.imports.imported_rubrics import (
    VERDICTS_RUBRIC_NAME,
    list_scale_notes,
    list_scale_warnings,
    load_imported_choices,
    refuse_conflicting_scales,
    refuse_invalid_margin,
)
from evaluations.imports.lifecycle import (
    ABANDONED_STATES,
    IMPORT_JOB,
    INTERRUPTED_REASON,
    clean_up_import,
    fail_import,
    refuse_archived_evaluation,
    renew_import_claim,
)
from evaluations.imports.lookup import EntryBatch, load_import_context
from evaluations.imports.pair_forecast import ModelNames, PairForecast, find_keys_to_pair
from evaluations.imports.preview_summary import ModelCounts, sample_entry
from evaluations.imports.row_resolver import CHECKED_ROWS_PER_BATCH, batch_entries, resolve_batch
from evaluations.imports.row_sketches import count_outcomes
from evaluations.imports.source_files import read_import_rows
from evaluations.imports.waiting_files import add_waiting_file, find_waiting_imports
from evaluations.jobs.kinds import LeaseLost
from evaluations.jobs.queue import enqueue_job
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Judge
from evaluations.models.transactions import PROCESS_STOPPING
from evaluations.models.users import User

QUICK_CHECK_BYTES: Final = 4 * 1024 * 1024  # take a second
MAX_LISTED_BAD_ROWS: Final = 1_000  # all are counted
MAX_LISTED_PAIRS: Final = 5
SAMPLE_ENTRIES: Final = 3


class CheckInterrupted(Exception):
    """The process must stop: another one starts the check again."""


@dataclass
class CheckResult:
    """The effects that storing a file would have, found without storing any of it."""

    format: str
    brings: str
    needs_pairing: bool = False
    note: str = ""
    read: int = 0
    stored: int = 0
    unchanged: int = 0
    skipped: int = 0
    bad: int = 0
    swapped: int = 0
    paired: Counter[ModelNames] = field(default_factory=Counter)  # comparisons that will be made of responses
    queries: int = 0  # that the responses are about
    conflicts: int = 0
    elsewhere: int = 0  # queries that are here already under another id
    models: ModelCounts = field(default_factory=lambda: ModelCounts(CandidateNaming.COLUMN))
    new: Counter[str] = field(default_factory=Counter)
    bad_rows: list[BadRow] = field(default_factory=list)
    samples: list[SampleRow] = field(default_factory=list)
    aspects: set[str] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    scales: ScoreScales = field(default_factory=dict)
    blank: BlankCounts = field(default_factory=BlankCounts)
    notices: ImportNotices = field(default_factory=ImportNotices)

    def count(self, items: Sequence[FileEntry | BadRow], batch: EntryBatch) -> None:
        for item, outcome in zip(items, batch.outcomes, strict=True):
            if isinstance(item, FileEntry) and not isinstance(outcome, BadRow):
                self.notices.count(item.rows, item.notices)
                rated = (row for row in item.rows if isinstance(row, VerdictRow | ScoreRow))
                self.judges.update(row.rater for row in rated if row.rater_kind == RaterKind.JUDGE)
        counted = count_outcomes(batch.outcomes)
        self.stored += counted.stored
        self.unchanged += counted.unchanged
        self.skipped += counted.skipped
        self.bad += counted.bad
        self.swapped += batch.swapped
        self.conflicts += batch.conflicts
        self.new.update(counted.new)
        self.bad_rows += batch.bad[: MAX_LISTED_BAD_ROWS - len(self.bad_rows)]


def preview_file(
    evaluation: Evaluation, file: BinaryIO, file_name: str, request: ImportRequest, *, user: User | None
) -> Import:
    """Check a file and keep it. Raises InputRefused, and keeps nothing, if it cannot be read."""
    importing = build_import(evaluation, file, file_name, request, user)
    write_check_result(importing, check_file(importing, file))
    save_import_with_file(importing, file)
    return importing


def is_quick_to_check(file: BinaryIO, waiting: Sequence[Import] = ()) -> bool:
    """Whether a file can be checked while a person waits, after those that wait before it.

    Packed or columnar files may hold any number of rows.
    """
    for other in waiting:
        with other.file.open("rb") as other_file:
            if is_packed(other_file.read(HEAD_BYTES)):
                return False
    size = file.seek(0, SEEK_END) + sum(other.file.size for other in waiting)
    file.seek(0)
    return size <= QUICK_CHECK_BYTES and not is_packed(file.read(HEAD_BYTES))


def check_kept(importing: Import) -> bool:
    """Check the file of an import in its job. Returns whether the check is done."""
    try:
        with importing.file.open("rb") as file:
            write_check_result(importing, check_file(importing, cast(BinaryIO, file)))
    except LeaseLost:
        importing.refresh_from_db()
        if importing.state in ABANDONED_STATES:
            clean_up_import(importing)
        raise
    except CheckInterrupted:
        return False
    except InputRefused as refused:
        if isinstance(refused, ColumnsUnknown) or importing.options.is_mapped:
            await_column_mapping(importing, str(refused))
        else:
            fail_import(importing, str(refused))
    except BaseException:
        fail_import(importing, INTERRUPTED_REASON)
        raise
    else:
        renew_import_claim(importing, ImportState.CHECKING)
        importing.state = ImportState.PREVIEWED
        importing.save()
    return True


def await_column_mapping(importing: Import, reason: str) -> None:
    """Keep the file until somebody maps its columns or discards it."""
    Import.objects.filter(pk=importing.pk, state=ImportState.CHECKING).update(
        state=ImportState.MAPPING, reason=reason, rows_read=0
    )
    importing.refresh_from_db()


def build_import(
    evaluation: Evaluation,
    file: BinaryIO,
    file_name: str,
    request: ImportRequest,
    user: User | None,
    *,
    in_batch: bool = False,
) -> Import:
    refuse_archived_evaluation(evaluation)
    refuse_invalid_margin(request.tie_margin)
    reading = apply_remembered_mapping(evaluation, file, file_name, request.reading)
    importing = Import(
        evaluation=evaluation,
        user=user,
        file_name=PurePath(file_name).name.encode(errors="replace").decode()[-255:],
        sha256=hash_file(file),
        format=reading.format,
    )
    importing.options = ImportOptions(
        request=replace(request, reading=reading),
        ranking=rank_models(evaluation, request.pairing),
        is_remembered=reading is not request.reading,
        in_batch=in_batch,
    )
    return importing


def rank_models(evaluation: Evaluation, pairing: Pairing) -> tuple[str, ...]:
    """The rated models, the best first, if pairs of neighbors are made."""
    return tuple(rank_by_results(evaluation).names) if pairing.way == PairingWay.ADJACENT else ()


def save_import_with_file(importing: Import, file: BinaryIO) -> None:
    """Save the import with its file. A temporary file is renamed, any other is copied."""
    file.seek(0)
    content = file if hasattr(file, "temporary_file_path") else File(file)
    importing.file.save(importing.file_name, cast("File[bytes]", content), save=False)
    try:
        with transaction.atomic():
            importing.save()
            if importing.state == ImportState.CHECKING:
                enqueue_job(IMPORT_JOB, importing.pk, evaluation=importing.evaluation)
            after = {"file": importing.file_name, "sha256": importing.sha256}
            record_event("received", importing, user=importing.user, evaluation=importing.evaluation, after=after)
    except BaseException:
        importing.file.delete(save=False)
        raise


def write_check_result(importing: Import, checked: CheckResult) -> None:
    importing.format = checked.format
    importing.brings = checked.brings
    importing.rows_read = checked.read
    importing.rows_stored = checked.stored
    importing.rows_unchanged = checked.unchanged
    importing.rows_skipped = checked.skipped
    importing.rows_bad = checked.bad
    importing.bad_rows = [asdict(bad) for bad in checked.bad_rows]
    for kind, number in (checked.new + Counter(comparisons=checked.paired.total())).items():
        setattr(importing, f"new_{kind}", number)
    importing.summary = ImportSummary(
        models=tuple(checked.models.list_counts()),
        models_number=len(checked.models.names),
        named_by=checked.models.find_naming(get_requested_model_name(importing)),
        needs_pairing=checked.needs_pairing,
        pairs_expected=checked.paired.total(),
        pairs=tuple(ModelPair(*names, number) for names, number in checked.paired.most_common(MAX_LISTED_PAIRS)),
        queries=checked.queries,
        queries_matched=max(checked.queries - checked.new["queries"], 0),
        conflicts=checked.conflicts,
        samples=tuple(checked.samples),
        aspects=tuple(sorted(checked.aspects)),
        scales=dict(sorted(checked.scales.items())),
        warnings=tuple(list_preview_warnings(importing, checked)),
        notes=tuple(list_preview_notes(importing, checked)),
        notices=tuple(checked.notices.sentences()),
    )


def hash_file(file: BinaryIO) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(1024 * 1024):
        digest.update(chunk)
    return digest.hexdigest()


def check_file(importing: Import, file: BinaryIO) -> CheckResult:
    options = importing.options
    request = options.request
    context = load_import_context(importing.evaluation, new_response=request.reading.new_response)
    known_queries = KnownQueryCounter(importing.evaluation)
    with SeenIndex() as counted, SeenIndex() as seen, PairForecast() as forecast:
        contents = read_import_rows(importing, file, counted)
        file_format = contents.format
        checked = CheckResult(
            file_format.name,
            file_format.brings[0],
            file_format.needs_pairing,
            file_format.note,
            models=ModelCounts(contents.named_by),
            blank=contents.blank,
        )
        may_pair = file_format.needs_pairing or request.tie_margin is not None
        for waiting in find_waiting_imports(importing):
            add_waiting_file(waiting, context, seen, forecast)
            record_check_progress(importing, checked)
        for items in batch_entries(contents.entries, CHECKED_ROWS_PER_BATCH):
            checked.read += len(items)
            batch = resolve_batch(context, items, seen)
            checked.count(items, batch)
            checked.models.count(items, batch.outcomes)
            if may_pair:
                forecast.add(find_keys_to_pair(items), batch.new)
            known_queries.add(batch.new_queries)
            batch.break_cycles()
            entries = (item for item in items if isinstance(item, FileEntry))
            checked.samples += map(sample_entry, islice(entries, SAMPLE_ENTRIES - len(checked.samples)))
            record_check_progress(importing, checked)
        checked.aspects, checked.scales = context.imported_aspects, context.scales
        if checked.needs_pairing:
            refuse_unknown_baseline(request.pairing, sorted(context.candidates))
        refuse_conflicting_scales(importing.evaluation, checked.scales, request.tie_margin)
        if checked.needs_pairing or (request.tie_margin is not None and checked.scales):
            pairing = request.pairing if checked.needs_pairing else Pairing()
            for number in forecast.count_comparisons(importing.evaluation, pairing, options.ranking):
                checked.paired.update(number)
                record_check_progress(importing, checked)
        checked.queries = forecast.count_queries()
    checked.elsewhere = known_queries.number
    if not set(UNNAMED) & set(context.candidates):
        checked.note = ""
    return checked


def record_check_progress(importing: Import, checked: CheckResult) -> None:
    """Record how many rows were checked. Raises LeaseLost or CheckInterrupted if the check must end."""
    if importing.state == ImportState.CHECKING:
        renew_import_claim(importing, ImportState.CHECKING, rows_read=checked.read)
        if PROCESS_STOPPING.is_set():
            raise CheckInterrupted


def refuse_unknown_baseline(pairing: Pairing, candidates: Sequence[str]) -> None:
    if pairing.way == PairingWay.BASELINE and pairing.baseline not in candidates:
        raise InputRefused(
            f"The baseline model “{pairing.baseline}” does not exist. Choose one of: {', '.join(candidates[:8])}.",
            field="baseline",
        )


def get_requested_model_name(importing: Import) -> str:
    """The model name that was given for the whole file."""
    return get_names_for_all_rows(importing.request.reading).get("candidate", "").strip()


def list_preview_warnings(importing: Import, checked: CheckResult) -> Iterator[str]:
    stored = Import.objects.filter(evaluation=importing.evaluation, state=ImportState.DONE)
    before = stored.filter(sha256=importing.sha256).first()
    if before is not None and before.finished_at is not None:
        yield f"This file was already imported on {before.finished_at:%Y-%m-%d}."
    names = Candidate.objects.filter(evaluation=importing.evaluation).values_list("name", flat=True)
    yield from checked.models.list_warnings(get_requested_model_name(importing), list(names))
    judges = Judge.objects.archived().filter(evaluation=importing.evaluation)
    for name in sorted(checked.judges & set(judges.values_list("name", flat=True))):
        yield (f"The judge “{name}” is archived. Reports leave its verdicts out until you restore it.")
    if checked.elsewhere:
        prompts = "1 prompt exists" if checked.elsewhere == 1 else f"{checked.elsewhere:,} prompts exist"
        yield f"{prompts} under another id, with the same words."
    if brought := sorted(checked.aspects - set(load_imported_choices(importing.evaluation))):
        yield (
            f"No rubric of this evaluation has the aspect {', '.join(brought)}. "
            f"The import adds a rubric named “{VERDICTS_RUBRIC_NAME}” for it."
        )
    if (number := checked.paired.total()) > CONFIRMED_ABOVE:
        yield f"This creates {number:,} comparisons. For fewer, pair with a baseline or at random."
    yield from list_scale_warnings(importing.evaluation, checked.scales, importing.options.request.tie_margin)


def list_preview_notes(importing: Import, checked: CheckResult) -> Iterator[str]:
    if importing.options.is_remembered:
        yield "Using the column mapping that is remembered for files with these columns."
    if checked.swapped:
        rows = "1 row names" if checked.swapped == 1 else f"{checked.swapped:,} rows name"
        yield f"{rows} the models in reverse order and will be swapped: A is always the model whose name sorts first."
    if skipped := str(checked.blank):
        yield f"Skipped {skipped}."
    if checked.note:
        yield checked.note
    yield from list_scale_notes(checked.scales, importing.options.request.tie_margin)
