"""A checked file into an evaluation: stored in small steps that nobody sees until the last is done."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from time import monotonic
from typing import BinaryIO, Final, cast

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import PAIRS, BadRow, ImportState, InputRefused, NewResponse
from evaluations.formats.reading import Entry, read_rows
from evaluations.formats.seen import Seen
from evaluations.models import (
    Aspect,
    Ballot,
    Call,
    Candidate,
    Comparison,
    Evaluation,
    Event,
    Import,
    Judge,
    Query,
    Rater,
    Response,
    Score,
    User,
    Verdict,
)
from evaluations.models.many import refresh_statistics, says_twice
from evaluations.models.rubrics import next_place
from evaluations.services.importing.bringing import bring_rubric
from evaluations.services.importing.foreseeing import keys_to_pair
from evaluations.services.importing.knowing import Batch, Outcome, Skipped, Tally, brought, look_around, tally
from evaluations.services.importing.pairing import Pairing, new_pairs, read_pairing
from evaluations.services.importing.previewing import (
    check_received,
    margin_of,
    new_response_of,
    pairing_of,
    reading_of,
    refuse_archived,
)
from evaluations.services.importing.recounting import imports_of, recount_later
from evaluations.services.importing.replacements import remove_replaced
from evaluations.services.importing.resolving import in_batches, resolve
from evaluations.services.importing.scaling import bring_scales, from_told, scores_rubric, weighed_anew
from evaluations.services.importing.sweeping import (
    ABANDONED,
    INTERRUPTED,
    NAMED,
    VERSIONS,
    Stopped,
    claim,
    fitting,
    give_up,
    hand_over,
    least_at_once,
    looked_up_at_once,
    rows_at_once,
    still_at_it,
    still_storing,
    sweep,
    sweep_imports,
)
from evaluations.services.importing.writing import Ready, made_ready, write_ready
from evaluations.services.pacing import Pace, paced, time_is_up
from evaluations.services.preparing.preparing import lock_aspects
from evaluations.services.recording import record

BEGAN_STORING: Final = "began storing"
CLEARING_SECONDS: Final = 5
TRIES: Final = 3


def begin(importing: Import, *, skip_bad: bool, user: User | None) -> None:
    """Decide that a checked file is to be stored; `store` then does it."""
    if not importing.is_checked:
        raise InputRefused(f"{importing.file_name} is not checked yet.")
    if importing.rows_bad and not skip_bad:
        rows = "row" if importing.rows_bad == 1 else "rows"
        raise InputRefused(
            f"{importing.file_name} has {importing.rows_bad:,} bad {rows}: mend the file, or store it without."
        )
    refuse_archived(importing.evaluation)
    refuse_beside_another(importing.evaluation)
    ready = Q(state=ImportState.PREVIEWED) | Q(state=ImportState.FAILED, finished_at__isnull=False)
    with transaction.atomic():
        begun = Import.objects.filter(ready, pk=importing.pk).update(
            state=ImportState.STORING,
            options={**importing.options, "skip_bad": skip_bad},
            summary={**importing.summary, "new": {}, "made": {}, "paired": 0},
            rows_stored=0,
            rows_unchanged=0,
            rows_bad=0,
            rows_skipped=0,
            reason="",
            seen_at=None,
            finished_at=None,
        )
        if not begun:
            raise InputRefused(f"{importing.file_name} was stored or discarded already.")
        record(BEGAN_STORING, importing, user=user, evaluation=importing.evaluation, after={"skip_bad": skip_bad})
    importing.refresh_from_db()


def refuse_beside_another(evaluation: Evaluation) -> None:
    """One import of an evaluation is stored at a time, and only where no other has left rows behind."""
    sweep_imports(evaluation, seconds=CLEARING_SECONDS)
    others = Import.objects.filter(evaluation=evaluation)
    if others.filter(state=ImportState.STORING).exists():
        raise InputRefused("Another import of this evaluation is being stored: wait until it is done.")
    if others.filter(state=ImportState.UNDOING).exists():
        raise InputRefused("Another import of this evaluation is being undone: try again in a moment.")
    if others.filter(state__in=ABANDONED, finished_at__isnull=True).exists():
        raise InputRefused("What another import left behind is still being cleared away: try again in a moment.")


def go_on(importing: Import, *, seconds: float | None = None) -> bool:
    """Do what is left to do with a file: check it, or store it for a while. True where more is left."""
    if importing.state == ImportState.CHECKING:
        return check_received(importing)
    return store(importing, seconds=seconds)


def store(importing: Import, *, seconds: float | None = None) -> bool:
    """Store what is left, for at most so long. True where more is left to do by another call.

    A second one who is told to store the same import meanwhile does nothing.
    """
    if not claim(importing, ImportState.STORING):
        return False
    until = None if seconds is None else monotonic() + seconds
    try:
        if importing.format == PAIRS:
            finished = pair_what_is_here(importing, until)
        else:
            finished = store_rows(importing, until) and store_pairs(importing, until)
        if finished:
            finish(importing)
        else:
            hand_over(importing)
    except Stopped:
        sweep(importing, until)
        return False
    except InputRefused as refused:
        give_up(importing, str(refused))
        return False
    except IntegrityError as fault:
        give_up(importing, f"The database refused a row: {str(fault).splitlines()[0]}. Nothing of the file was stored.")
        raise
    except BaseException:
        give_up(importing, INTERRUPTED)
        raise
    if finished:
        refresh_statistics(Query, Response, Comparison, Call, Verdict, Score, Ballot)
    return not finished


def entries_after(importing: Import, file: BinaryIO, counted: Seen, place: int) -> Iterator[Entry | BadRow]:
    """The file's entries from that place on; those before it are read too, for their samples count."""
    return islice(read_rows(file, importing.file_name, reading_of(importing), counted).entries, place, None)


class Opened:
    """A file that is read up to a place. Left open between two turns, it need not be read up to there again."""

    def __init__(self, importing: Import, place: int) -> None:
        self.import_id = importing.pk
        self.place = place
        self._counted = Seen()
        self._file = importing.file.open("rb")
        self.entries = entries_after(importing, cast(BinaryIO, self._file), self._counted, place)

    def put_back(self, items: Sequence[Entry | BadRow], place: int) -> None:
        """What was read and is not stored yet comes first next time."""
        self.entries = chain(items, self.entries)
        self.place = place

    def close(self) -> None:
        self._file.close()
        self._counted.close()


# Of this process; the last one that was put down, in a list of at most one.
LEFT_OPEN: Final[list[Opened]] = []


def opened_at(importing: Import, place: int) -> Opened:
    """The file as this process left it, where it did; else opened, and read up to that place."""
    while LEFT_OPEN:
        left = LEFT_OPEN.pop()
        if (left.import_id, left.place) == (importing.pk, place):
            return left
        left.close()
    return Opened(importing, place)


def store_rows(importing: Import, until: float | None) -> bool:
    opened = opened_at(importing, importing.rows_done)
    try:
        finished = store_entries(importing, opened, until)
    except BaseException:
        opened.close()
        raise
    if finished:
        opened.close()
    else:
        LEFT_OPEN.append(opened)
    return finished


def store_entries(importing: Import, opened: Opened, until: float | None) -> bool:
    storing = Storing(importing, until)
    for items in in_batches(opened.entries, looked_up_at_once()):
        stored = storing.store(items)
        if storing.is_over:
            opened.put_back(items[stored:], opened.place + stored)
            return False
        opened.place += stored
    storing.pace.rest()
    return True


class Storing:
    """The rows of one import on their way into the database, for as long as there is time."""

    def __init__(self, importing: Import, until: float | None) -> None:
        self.importing = importing
        self.until = until
        self.pace = Pace()
        self.around = look_around(importing.evaluation, importing, new_response_of(importing))
        self.is_over = False
        self._most = least_at_once()

    def store(self, items: Sequence[Entry | BadRow]) -> int:
        """How many of these were stored. Where another door was quicker with the same row, look again what is there."""
        done = failed = 0
        while done < len(items) and not self.is_over:
            batch = resolve(self.around, items[done:])
            refuse_bad(self.importing, batch)
            try:
                for stored in self.portions(batch):
                    done, failed = done + stored, 0
                batch.fall_apart()
            except IntegrityError as refused:
                if not says_twice(refused):
                    raise
                failed += 1
                if failed == TRIES:
                    raise InputRefused(
                        "The same rows are being added by someone else: nothing was stored, try again in a moment."
                    ) from None
                self.around = look_around(self.importing.evaluation, self.importing, new_response_of(self.importing))
        return done

    def portions(self, batch: Batch) -> Iterator[int]:
        """Store a batch in short transactions, and say of each how many entries it held."""
        named: Sequence[models.Model] = batch.named
        outcomes = batch.outcomes
        at = 0
        while at < len(outcomes) and not self.is_over:
            some = first_of(outcomes, at, self._most)
            ready = made_ready(chain.from_iterable(brought(some)))
            with self.pace.turn(), transaction.atomic():
                write(self.importing, named, tally(some), ready)
            named = ()
            at += len(some)
            self._most = fitting(self._most, self.pace.seconds)
            self.is_over = time_is_up(self.until)
            yield len(some)


def first_of(outcomes: Sequence[Outcome], at: int, most: int) -> Sequence[Outcome]:
    """From that place on so many as bring about so many rows; at least one."""
    rows = 0
    for end in range(at, len(outcomes)):
        one = outcomes[end]
        rows += 0 if isinstance(one, (BadRow, Skipped)) else len(one)
        if rows >= most:
            return outcomes[at : end + 1]
    return outcomes[at:]


def refuse_bad(importing: Import, batch: Batch) -> None:
    if importing.options["skip_bad"]:
        return
    for first in batch.bad:
        raise InputRefused(
            f"Line {first.line}: {first.reason}. The evaluation changed since the file was checked; nothing was stored."
        )


def written(importing: Import, write_rows: Callable[[], None]) -> None:
    """One short transaction that first makes sure that the import is still to be stored."""
    with paced(), transaction.atomic():
        still_at_it(importing, ImportState.STORING)
        write_rows()


def write(importing: Import, named: Sequence[models.Model], counted: Tally, ready: Ready) -> None:
    made = write_names(importing, named) if named else {}
    summary = {
        **importing.summary,
        "new": Counter(importing.summary["new"]) + counted.new,
        "made": {name: [*importing.summary["made"].get(name, []), *made.get(name, ())] for name in NAMED},
    }
    still_storing(importing, counted, summary)
    write_ready(importing, ready)
    importing.summary = summary


def write_names(importing: Import, named: Sequence[models.Model]) -> dict[str, list[int]]:
    """The candidates, raters and aspects that are new. They are noted, for a sweep must find them."""
    raters = [row for row in named if isinstance(row, Rater)]
    aspects = [row for row in named if isinstance(row, Aspect)]
    if aspects:
        lock_aspects(importing.evaluation_id)
        for place, aspect in enumerate(aspects, next_place(importing.evaluation_id)):
            aspect.place = place
    new: dict[str, Sequence[models.Model]] = {
        "candidate": Candidate.objects.bulk_create(row for row in named if isinstance(row, Candidate)),
        "aspect": Aspect.objects.bulk_create(aspects),
        "judge": Judge.objects.bulk_create([rater.judge for rater in raters if rater.judge]),
        "rater": Rater.objects.bulk_create(raters),
    }
    return {name: [row.pk for row in rows] for name, rows in new.items()}


def store_pairs(importing: Import, until: float | None) -> bool:
    pairing = pairing_of(importing)
    if pairing is None:
        return True
    with importing.file.open("rb") as file, Seen() as counted:
        entries = entries_after(importing, cast(BinaryIO, file), counted, importing.summary["paired"])
        for items in in_batches(entries, rows_at_once()):
            pair_batch(importing, items, pairing)
            if time_is_up(until):
                return False
    return True


def pair_what_is_here(importing: Import, until: float | None) -> bool:
    """Without a file: the queries of the evaluation one after another."""
    pairing = read_pairing(importing.options["pair"])
    queries = Query.objects.filter(evaluation=importing.evaluation_id).order_by("pk")
    while some := list(queries.filter(pk__gt=importing.summary["paired"]).values_list("pk", "key")[: rows_at_once()]):
        pairs = new_pairs(importing, [key for _, key in some], pairing)
        while made := list(islice(pairs, rows_at_once())):
            written(importing, partial(write_pairs, importing, made))
        importing.summary["paired"] = some[-1][0]
        still_at_it(importing, ImportState.STORING, summary=importing.summary, rows_stored=F("rows_stored") + len(some))
        if time_is_up(until):
            return False
    return True


def pair_batch(importing: Import, items: Sequence[Entry | BadRow], pairing: Pairing) -> None:
    pairs = new_pairs(importing, sorted(keys_to_pair(items)), pairing)
    while some := list(islice(pairs, rows_at_once())):
        written(importing, partial(write_pairs, importing, some))
    importing.summary["paired"] += len(items)
    Import.objects.filter(pk=importing.pk).update(summary=importing.summary)


def write_pairs(importing: Import, pairs: Sequence[Comparison]) -> None:
    Comparison.all_rows.bulk_create(pairs)
    importing.summary["new"]["comparisons"] = importing.summary["new"].get("comparisons", 0) + len(pairs)
    Import.objects.filter(pk=importing.pk).update(summary=importing.summary)


def finish(importing: Import) -> None:
    """Show everything at once, with the rubric that its aspects need."""
    stored = Verdict.all_rows.filter(source_import=importing)
    occurring: dict[str, set[str]] = {key: set() for key in importing.summary["aspects"]}
    for key, choice in stored.filter(aspect__key__in=occurring).values_list("aspect__key", "choice").distinct():
        occurring[key].add(choice)
    raters = raters_in(importing)
    scales, margin = from_told(importing.summary.get("scales", {})), margin_of(importing)
    anew = weighed_anew(importing.evaluation, scales, margin)
    raters.update(anew.values_list("rater", flat=True).distinct())
    recounted = imports_of(anew) | imports_of(scores_beside(importing))
    with transaction.atomic():
        still_at_it(importing, ImportState.STORING, state=ImportState.DONE, finished_at=Now())
        if new_response_of(importing) == NewResponse.REPLACE:
            remove_replaced(importing)
        versions = bring_rubric(importing.evaluation, occurring, importing.user)
        versions += bring_scales(importing.evaluation, scales, margin, importing.user)
        made = {**importing.summary.get("made", {}), VERSIONS: versions}
        Import.objects.filter(pk=importing.pk).update(summary={**importing.summary, "made": made})
        recount_later(recounted)
        Rater.objects.filter(pk__in=raters).update(verdicts_changed_at=Now())
        importing.refresh_from_db()
        Evaluation.objects.filter(pk=importing.evaluation_id).update(comparisons_changed_at=Now())
        record("stored", importing, user=importing.user, evaluation=importing.evaluation, after=counts(importing))


def raters_in(importing: Import) -> set[int]:
    """The raters whose verdicts, scores or failures it brought."""
    verdicts, scores = (model.all_rows.filter(source_import=importing).order_by() for model in (Verdict, Score))
    failures = Call.all_rows.filter(source_import=importing).order_by()
    found = set(verdicts.values_list("rater", flat=True).distinct())
    found.update(scores.values_list("rater", flat=True).distinct())
    return found | {pk for pk in failures.values_list("judge__raters", flat=True).distinct() if pk}


def scores_beside(importing: Import) -> QuerySet[Score]:
    """Of the responses that its comparisons hold against each other, by files before it."""
    if scores_rubric(importing.evaluation) is None:
        return Score.objects.none()
    made = Comparison.all_rows.filter(source_import=importing)
    return Score.objects.filter(Q(response__in=made.values("response_a")) | Q(response__in=made.values("response_b")))


def counts(importing: Import) -> dict[str, int]:
    return {
        "read": importing.rows_read,
        "stored": importing.rows_stored,
        "unchanged": importing.rows_unchanged,
        **({"skipped": importing.rows_skipped} if importing.rows_skipped else {}),
        "bad": importing.rows_bad,
    }


@dataclass(frozen=True)
class Progress:
    """How far an import is. ``of`` is None while the file is checked: its length is not known yet."""

    rows: int
    of: int | None
    rows_per_second: float | None
    seconds_left: float | None


def progress(importing: Import) -> Progress:
    if importing.state == ImportState.CHECKING:
        return Progress(importing.rows_read, None, None, None)
    rows = importing.rows_done
    begun = Event.objects.filter(object_type="import", object_id=importing.pk, verb=BEGAN_STORING).last()
    seconds = (timezone.now() - begun.created_at).total_seconds() if begun else 0
    if not rows or not seconds:
        return Progress(rows, importing.rows_read, None, None)
    return Progress(rows, importing.rows_read, rows / seconds, (importing.rows_read - rows) * seconds / rows)
