"""What storing a file would do: every row held against the evaluation, and nothing stored yet."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath
from typing import Any, BinaryIO, Final, cast

from django.core.files import File
from django.db import transaction

from evaluations.domain import (
    BadRow,
    ColumnsUnknown,
    FileFormat,
    ImportState,
    InputRefused,
    NewResponse,
    RaterKind,
    Reading,
    ScoreRow,
    VerdictRow,
)
from evaluations.formats.conversing import UNNAMED
from evaluations.formats.notices import Notices
from evaluations.formats.reading import Entry, NamedBy, read_rows
from evaluations.formats.seen import Seen
from evaluations.formats.sources import HEAD_BYTES, is_packed
from evaluations.formats.streams import Blank
from evaluations.models import Candidate, Evaluation, Import, Judge, User
from evaluations.services.importing import scaling
from evaluations.services.importing.bringing import IMPORTED, imported_offers
from evaluations.services.importing.counting import CONFIRMED_ABOVE
from evaluations.services.importing.fetching import limits
from evaluations.services.importing.foreseeing import Foreseen, keys_to_pair
from evaluations.services.importing.knowing import Around, Batch, look_around, tally
from evaluations.services.importing.likening import Elsewhere
from evaluations.services.importing.mapping import as_remembered, names_for_all_rows
from evaluations.services.importing.model_counts import ModelCounts
from evaluations.services.importing.pairing import ADJACENT, BASELINE, Pairing, read_pairing
from evaluations.services.importing.rating import ranking_of
from evaluations.services.importing.resolving import in_batches, resolve
from evaluations.services.importing.sampling import sample
from evaluations.services.importing.scaling import Scales, as_told, refuse_odd_margin, refuse_unfitting
from evaluations.services.importing.sweeping import (
    INTERRUPTED,
    Stopped,
    claim,
    give_up,
    hand_over,
    still_at_it,
    sweep,
)
from evaluations.services.pacing import LEAVING
from evaluations.services.recording import record

CHECKED_AT_ONCE: Final = 4_000
QUICKLY_CHECKED_BYTES: Final = 4 * 1024 * 1024  # in a second
LISTED: Final = 1_000  # bad rows are all counted, and so many of them listed
SAMPLES: Final = 3


class Leaving(Exception):
    """This process is told to stop: another begins the check again."""


@dataclass(frozen=True)
class Pairs:
    """Which comparisons are to be made: of responses, and of scored responses with the margin of a tie."""

    pair: str
    margin: float | None


@dataclass
class Checked:
    """What storing a file would do, found out without storing any of it."""

    format: str
    brings: str
    pairs: bool = False
    note: str = ""
    read: int = 0
    stored: int = 0
    unchanged: int = 0
    skipped: int = 0
    bad: int = 0
    turned: int = 0
    paired: int = 0  # comparisons that will be made of responses
    elsewhere: int = 0  # queries that are here already under another id
    models: ModelCounts = field(default_factory=lambda: ModelCounts(NamedBy.COLUMN))
    new: Counter[str] = field(default_factory=Counter)
    bad_rows: list[BadRow] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    aspects: set[str] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    scales: Scales = field(default_factory=dict)
    blank: Blank = field(default_factory=Blank)
    notices: Notices = field(default_factory=Notices)

    def count(self, items: Sequence[Entry | BadRow], batch: Batch) -> None:
        for item, outcome in zip(items, batch.outcomes, strict=True):
            if isinstance(item, Entry) and not isinstance(outcome, BadRow):
                self.notices.count(item.rows, item.notices)
                said = (row for row in item.rows if isinstance(row, VerdictRow | ScoreRow))
                self.judges.update(row.rater for row in said if row.rater_kind == RaterKind.JUDGE)
        counted = tally(batch.outcomes)
        self.stored += counted.stored
        self.unchanged += counted.unchanged
        self.skipped += counted.skipped
        self.bad += counted.bad
        self.turned += batch.turned
        self.new.update(counted.new)
        self.bad_rows += batch.bad[: LISTED - len(self.bad_rows)]


def preview(
    evaluation: Evaluation,
    file: BinaryIO,
    *,
    file_name: str,
    reading: Reading,
    user: User | None,
    pair: str = "all",
    derive_pairs: float | None = None,
    brings: str = "",
) -> Import:
    """Check a file and keep it. Raises InputRefused, and keeps nothing, where it cannot be read at all.

    ``derive_pairs``: the margin of a tie, where scores are to make choices between all responses to a query.
    """
    importing = unsaved(evaluation, file, file_name, reading, user, Pairs(pair, derive_pairs), brings)
    tell(importing, check(importing, file))
    keep(importing, file)
    return importing


def is_quickly_checked(file: BinaryIO, size: int) -> bool:
    """A short text is checked while a person waits; how much a packed file or a table in columns holds is unknown."""
    file.seek(0)
    return size <= QUICKLY_CHECKED_BYTES and not is_packed(file.read(HEAD_BYTES))


def receive(
    evaluation: Evaluation,
    file: BinaryIO,
    *,
    file_name: str,
    reading: Reading,
    user: User | None,
    pair: str = "all",
    derive_pairs: float | None = None,
) -> Import:
    """Keep a file that is too long to be checked while a person waits; `check_received` does it later."""
    importing = unsaved(evaluation, file, file_name, reading, user, Pairs(pair, derive_pairs), brings="")
    importing.state = ImportState.CHECKING
    keep(importing, file)
    return importing


def check_received(importing: Import) -> bool:
    """Whether it must be begun again: this process was told to stop."""
    if not claim(importing, ImportState.CHECKING):
        return False
    try:
        with importing.file.open("rb") as file:
            tell(importing, check(importing, cast(BinaryIO, file)))
    except Stopped:
        sweep(importing)
    except Leaving:
        hand_over(importing)
        return True
    except InputRefused as refused:
        if isinstance(refused, ColumnsUnknown) or importing.options.get("mapped"):
            ask_for_columns(importing, str(refused))
        else:
            give_up(importing, str(refused))
    except BaseException:
        give_up(importing, INTERRUPTED)
        raise
    else:
        importing.state, importing.seen_at = ImportState.PREVIEWED, None
        importing.save()
    return False


def ask_for_columns(importing: Import, reason: str) -> None:
    """The file stays, until somebody says what its columns mean, or discards it."""
    Import.objects.filter(pk=importing.pk, state=ImportState.CHECKING).update(
        state=ImportState.MAPPING, reason=reason, seen_at=None, rows_read=0
    )
    importing.refresh_from_db()


def unsaved(
    evaluation: Evaluation,
    file: BinaryIO,
    file_name: str,
    reading: Reading,
    user: User | None,
    pairs: Pairs,
    brings: str,
) -> Import:
    refuse_archived(evaluation)
    refuse_odd_margin(pairs.margin)
    asked, reading = reading, as_remembered(evaluation, file, file_name, reading)
    pairing = read_pairing(pairs.pair)
    options = {
        "id_prefix": reading.id_prefix,
        "rater": reading.rater,
        "rater_kind": reading.rater_kind,
        "lower_is_better": reading.lower_is_better,
        "candidate": reading.candidate,
        "new_response": str(reading.new_response),
        "pair": str(pairing),
        "ranking": list(ranking_of(evaluation).names) if pairing.way == ADJACENT else [],
        "derive_pairs": pairs.margin,
        "brings": brings,
        "constants": dict(reading.constants),
        "choices": dict(reading.choices),
        "remembered": reading is not asked,
    }
    return Import(
        evaluation=evaluation,
        user=user,
        file_name=PurePath(file_name).name.encode(errors="replace").decode()[-255:],
        sha256=sum_of(file),
        format=reading.format,
        mapping=dict(reading.mapping),
        options=options,
    )


def refuse_archived(evaluation: Evaluation) -> None:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be imported until it is brought back.")


def keep(importing: Import, file: BinaryIO) -> None:
    """What lies in a temporary file already is renamed, whatever else is copied piece by piece."""
    file.seek(0)
    content = file if hasattr(file, "temporary_file_path") else File(file)
    importing.file.save(importing.file_name, cast("File[bytes]", content), save=False)
    try:
        with transaction.atomic():
            importing.save()
            told = {"file": importing.file_name, "sha256": importing.sha256}
            record("received", importing, user=importing.user, evaluation=importing.evaluation, after=told)
    except BaseException:
        importing.file.delete(save=False)
        raise


def margin_of(importing: Import) -> float | None:
    """Within which two of its scores make a tie, where choices are to be derived from them."""
    margin: float | None = importing.options.get("derive_pairs")
    return margin


def new_response_of(importing: Import) -> NewResponse:
    """What happens where a candidate has another response to a query already."""
    return NewResponse(importing.options.get("new_response") or NewResponse.REFUSE)


def pairs_scored(importing: Import) -> bool:
    """Whether comparisons are made of the responses that it scores, by storing it even where its rows are here."""
    return bool(importing.summary.get("scales")) and margin_of(importing) is not None


def pairing_of(importing: Import) -> Pairing | None:
    """Which pairs it makes: of responses as was asked for, of scored responses all."""
    if importing.summary.get("pairs", importing.format == FileFormat.RESPONSES):
        return read_pairing(importing.options["pair"])
    return Pairing() if pairs_scored(importing) else None


def reading_of(importing: Import) -> Reading:
    kind = importing.options["rater_kind"]
    return Reading(
        format=importing.format,
        id_prefix=importing.options["id_prefix"],
        mapping=importing.mapping,
        constants=importing.options.get("constants", {}),
        choices=importing.options.get("choices", {}),
        rater=importing.options["rater"],
        rater_kind=RaterKind(kind) if kind else None,
        lower_is_better=importing.options.get("lower_is_better", False),
        limits=limits(),
        candidate=importing.options.get("candidate", ""),
        new_response=new_response_of(importing),
    )


def tell(importing: Import, checked: Checked) -> None:
    """Write down what was found out."""
    importing.format = checked.format
    importing.rows_read = checked.read
    importing.rows_stored = checked.stored
    importing.rows_unchanged = checked.unchanged
    importing.rows_skipped = checked.skipped
    importing.rows_bad = checked.bad
    importing.bad_rows = [{"line": bad.line, "reason": bad.reason} for bad in checked.bad_rows]
    importing.summary = {
        "models": checked.models.listed(),
        "models_number": len(checked.models.names),
        "named_by": str(checked.models.named_as(name_asked(importing))),
        "brings": checked.brings,
        "pairs": checked.pairs,
        "new": +(checked.new + Counter(comparisons=checked.paired)),
        "foreseen": checked.paired,
        "samples": checked.samples,
        "aspects": sorted(checked.aspects),
        "scales": as_told(checked.scales),
        "warnings": list(warnings(importing, checked)),
        "notes": list(notes(importing, checked)),
        "notices": checked.notices.sentences(),
    }


def sum_of(file: BinaryIO) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(1024 * 1024):
        digest.update(chunk)
    return digest.hexdigest()


def check(importing: Import, file: BinaryIO) -> Checked:
    around = look_around(importing.evaluation, new_response=new_response_of(importing))
    elsewhere = Elsewhere(importing.evaluation)
    with Seen() as counted, Seen() as seen, Foreseen() as foreseen:
        reading = reading_of(importing)
        contents = read_rows(file, importing.file_name, reading, counted, importing.options["brings"])
        form = contents.format
        checked = Checked(
            form.name,
            form.brings,
            form.pairs,
            form.note,
            models=ModelCounts(contents.named_by),
            blank=contents.blank,
        )
        may_pair = form.pairs or margin_of(importing) is not None
        for items in in_batches(contents.entries, CHECKED_AT_ONCE):
            checked.read += len(items)
            batch = resolve(around, items, seen)
            checked.count(items, batch)
            checked.models.count(items, batch.outcomes)
            if may_pair:
                foreseen.add(keys_to_pair(items), batch.new)
            elsewhere.add(batch.new_queries)
            batch.fall_apart()
            wanted = SAMPLES - len(checked.samples)
            checked.samples += map(sample, islice((item for item in items if isinstance(item, Entry)), wanted))
            say_how_far(importing, checked)
        checked.aspects, checked.scales = around.imported_aspects, around.scales
        refuse_unknown_baseline(read_pairing(importing.options["pair"]), checked, around)
        refuse_unfitting(importing.evaluation, checked.scales, margin_of(importing))
        foresee(importing, checked, foreseen)
    checked.elsewhere = elsewhere.number
    if not set(UNNAMED) & set(around.candidates):
        checked.note = ""
    return checked


def foresee(importing: Import, checked: Checked, foreseen: Foreseen) -> None:
    """Count the comparisons that `pairing_of` will have made."""
    if not checked.pairs and (margin_of(importing) is None or not checked.scales):
        return
    pairing = read_pairing(importing.options["pair"]) if checked.pairs else Pairing()
    for number in foreseen.counts(importing.evaluation, pairing, importing.options["ranking"]):
        checked.paired += number
        say_how_far(importing, checked)


def say_how_far(importing: Import, checked: Checked) -> None:
    """Raises Stopped where somebody cancelled it, and Leaving."""
    if importing.pk:
        still_at_it(importing, ImportState.CHECKING, rows_read=checked.read)
        if LEAVING.is_set():
            raise Leaving


def refuse_unknown_baseline(pairing: Pairing, checked: Checked, around: Around) -> None:
    known = sorted(around.candidates)
    if checked.pairs and pairing.way == BASELINE and pairing.baseline not in known:
        raise InputRefused(
            f"There is no candidate “{pairing.baseline}” to pair the others with. Known: {', '.join(known[:8])}."
        )


def name_asked(importing: Import) -> str:
    """The model's name that was given for the whole file."""
    return names_for_all_rows(reading_of(importing)).get("candidate", "").strip()


def warnings(importing: Import, checked: Checked) -> Iterator[str]:
    stored = Import.objects.filter(evaluation=importing.evaluation, state=ImportState.DONE)
    before = stored.filter(sha256=importing.sha256).first()
    if before is not None and before.finished_at is not None:
        yield f"This very file was stored before, on {before.finished_at:%Y-%m-%d}."
    known = Candidate.objects.filter(evaluation=importing.evaluation).values_list("name", flat=True)
    yield from checked.models.warnings(name_asked(importing), list(known))
    judges = Judge.objects.archived().filter(evaluation=importing.evaluation)
    for name in sorted(checked.judges & set(judges.values_list("name", flat=True))):
        yield (
            f"The judge “{name}” is archived. Its answers are stored, but reports leave them out until you restore it."
        )
    if checked.elsewhere:
        queries = "1 query is" if checked.elsewhere == 1 else f"{checked.elsewhere:,} queries are"
        yield f"{queries} here already under another id, but for case, blank space and punctuation at most."
    if brought := sorted(checked.aspects - set(imported_offers(importing.evaluation))):
        yield (
            f"No rubric of this evaluation asks about {', '.join(brought)}: "
            f"a rubric named {IMPORTED} comes with these verdicts."
        )
    if checked.paired > CONFIRMED_ABOVE:
        yield f"That makes {checked.paired:,} comparisons at once: pair against a baseline or at random for fewer."
    yield from scaling.warnings_about(importing.evaluation, checked.scales, margin_of(importing))


def notes(importing: Import, checked: Checked) -> Iterator[str]:
    if importing.options.get("remembered"):
        yield "The columns are read as for an earlier file with the same ones, as this evaluation remembers."
    if checked.turned:
        rows = "1 row names" if checked.turned == 1 else f"{checked.turned:,} rows name"
        yield (
            f"{rows} the candidates in the other order. Such rows are turned round: "
            "A is always the candidate whose name sorts first."
        )
    if skipped := str(checked.blank):
        yield f"Skipped {skipped}."
    if checked.note:
        yield checked.note
    yield from scaling.notes_about(checked.scales, margin_of(importing))
