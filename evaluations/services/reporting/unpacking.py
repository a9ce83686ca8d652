"""Ballots of judges from the database into arrays: the same few queries however many there are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.db.models import BigIntegerField, Case, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluations.domain import (
    BITS,
    FAILURE_STATES,
    PLACES_A_BLOCK,
    CallState,
    ImportState,
    block_of,
    shift_of,
)
from evaluations.models import Ballot, Call, Import, Rater, Run
from evaluations.services.reporting.columns import columns, columns_in_pieces
from evaluations.services.reporting.keeping import keep_arrays, kept_file, loaded
from evaluations.services.reporting.packing import code
from evaluations.stats.coding import MISSING, ORDERS, BoolArray, IntArray
from evaluations.stats.consolidation import STATES, Answers, Choices, Unanswered, Verdicts

ONE: Final = (1 << BITS) - 1
# Up to so many comparisons are looked up one by one; of more, everything that the rater said is read at once.
LOOKED_UP: Final = 5_000
BLOCKS: Final = 1 << 12
QUIET: Final = timedelta(minutes=1)
NOTHING: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Places:
    """The comparisons that a report is about, by id in order, and where in that order each id stands."""

    ids: IntArray

    def of(self, comparisons: IntArray) -> tuple[IntArray, BoolArray | None]:
        """The place of each id, and which of them are among these; None where all are."""
        if len(comparisons) == len(self.ids) and np.array_equal(comparisons, self.ids):
            return np.arange(len(self.ids)), None
        place = np.minimum(np.searchsorted(self.ids, comparisons), max(len(self.ids) - 1, 0))
        known = self.ids[place] == comparisons if len(self.ids) else np.zeros(len(comparisons), dtype=bool)
        return place, None if known.all() else known


@dataclass(frozen=True)
class PackedChoices:
    """The ballots of one order and block: the comparison's place and the packed choices."""

    shown: int
    block: int
    item: IntArray
    first: IntArray

    @cached_property
    def is_single(self) -> bool:
        """Whether no comparison has two of them."""
        return bool((np.bincount(self.item) <= 1).all())


@dataclass(frozen=True)
class JudgeBallots:
    """All that one judge said. ``marked``: by block, where which aspects are marked inconsistent.

    ``item``, ``shown`` and ``state``: of each call without an answer; ``answered`` by block, the choices that an
    import brought beside it all the same. ``repaired``: calls answered when asked a second time.
    """

    parts: tuple[PackedChoices, ...] = ()
    marked: tuple[PackedChoices, ...] = ()
    item: IntArray = field(default_factory=lambda: NOTHING)
    shown: IntArray = field(default_factory=lambda: NOTHING)
    state: IntArray = field(default_factory=lambda: NOTHING)
    answered: IntArray = field(default_factory=lambda: NOTHING)
    repaired: int = 0

    @cached_property
    def aspects(self) -> set[int]:
        """The places of the aspects on which it chose something."""
        found = set()
        for part in self.parts:
            bits = int(np.bitwise_or.reduce(part.first)) if len(part.first) else 0
            found |= {part.block * PLACES_A_BLOCK + at for at in range(PLACES_A_BLOCK) if bits >> at * BITS & ONE}
        return found

    @property
    def was_asked(self) -> bool:
        return bool(self.parts) or bool(len(self.item))

    def verdicts(self, place: int) -> Verdicts:
        answers = [answers_in(part, place) for part in self.parts if part.block == block_of(place)]
        bit = place % PLACES_A_BLOCK
        marked = [part.item[part.first >> bit & 1 == 1] for part in self.marked if part.block == block_of(place)]
        return Verdicts(tuple(one for one in answers if len(one.item)), np.concatenate(marked) if marked else None)

    def unanswered(self, place: int) -> Unanswered:
        """The calls without an answer on this aspect: imported verdicts stand aspect by aspect."""
        lacking = self.lacking(place)
        if lacking.all():
            return Unanswered(self.item, self.shown, self.state)
        return Unanswered(self.item[lacking], self.shown[lacking], self.state[lacking])

    def lacking(self, place: int) -> BoolArray:
        """Of each of these calls whether no choice on this aspect was imported beside it."""
        if block_of(place):
            return np.ones(len(self.item), dtype=bool)
        return np.asarray(self.answered >> shift_of(place) & ONE == 0)

    @property
    def elsewhere(self) -> int:
        """Calls without an answer that count on none of the aspects on which it chose something."""
        if not self.aspects or not self.answered.any():
            return 0
        return len(self.item) - int(np.logical_or.reduce([self.lacking(place) for place in self.aspects]).sum())


def answers_in(part: PackedChoices, place: int) -> Answers:
    choice = choices_at(part.first, place)
    given = choice != MISSING
    if given.all():
        return Answers(part.shown, part.item, choice, part.is_single)
    return Answers(part.shown, part.item[given], choice[given], part.is_single)


def choices_at(packed: IntArray, place: int) -> Choices:
    """The codes of the choices at one place, MISSING where there is none."""
    return ((packed >> shift_of(place) & ONE) - 1).astype(np.int8)


# ---- reading


def read_judges(raters: Sequence[Rater], places: Places) -> dict[int, JudgeBallots]:
    """By rater id those that were asked about pairs of responses."""
    said = said_by(raters, places)
    has_marks = any(bool((told & 1).any()) for _, _, told in said.values())
    marked = read_marked(ballots_of(raters, places), places) if has_marks else {}
    unanswered = read_unanswered(raters, places)
    found = {}
    for rater in raters:
        comparison, first, told = said[rater.pk]
        of = inside(places, comparison, first, told >> 1)
        found[rater.pk] = JudgeBallots(packed_of(*of), marked.get(rater.pk, ()), **unanswered[rater.pk])
    return found


def said_by(raters: Sequence[Rater], places: Places) -> dict[int, IntArray]:
    """By rater id everything it said, or what it said of these comparisons at least: 3 × ballots.

    The comparison's id, the packed choices, and block, order and whether it is marked as one number. What a judge
    said is kept in a file until it says more.
    """
    files = choice_files(raters) if len(places.ids) > LOOKED_UP else {}
    found = {pk: kept for pk, file in files.items() if (kept := kept_choices(file)) is not None}
    unread = [rater for rater in raters if rater.pk not in found]
    for pk, choices in read_choices(unread, places):
        found[pk] = choices
        if pk in files and choice_files([Rater.objects.get(pk=pk)]).get(pk) == files[pk]:  # it may have said more
            keep_arrays(files[pk], choices)
    return found


def choice_files(raters: Sequence[Rater]) -> dict[int, Path]:
    """By rater id; none of judges that said something just now and may go on. An import that is done shows its rows."""
    evaluations = {rater.evaluation_id for rater in raters}
    done = Import.objects.filter(evaluation__in=evaluations, state=ImportState.DONE.value).count()
    more = f"-{done}"
    before = timezone.now() - QUIET
    said = {rater.pk: rater.verdicts_changed_at for rater in raters}
    return {pk: kept_file(f"choices-{pk}", last, more) for pk, last in said.items() if last and last < before}


def kept_choices(file: Path) -> IntArray | None:
    """None where there are none to be read."""
    try:
        (choices,) = loaded(file, 1)
    except (OSError, EOFError, ValueError):
        return None
    return choices


def read_choices(raters: Sequence[Rater], places: Places) -> Iterator[tuple[int, IntArray]]:
    """By rater id; where there are many comparisons one rater after the other."""
    together = [raters] if len(places.ids) <= LOOKED_UP else [[rater] for rater in raters]
    for some in together:
        yield from choices_of(some, places)


def choices_of(raters: Sequence[Rater], places: Places) -> Iterator[tuple[int, IntArray]]:
    is_marked = Case(When(inconsistent__gt=0, then=Value(1)), default=Value(0), output_field=IntegerField())
    # One number for whose it is, its block and order, and whether it is marked.
    told = ((F("rater_id") * BLOCKS + F("block")) * len(ORDERS) + F("shown")) * 2 + is_marked
    rows = ballots_of(raters, places).values_list("comparison_id", "first", told)
    said = np.stack(columns_in_pieces(rows, 3, "comparison", places.ids))
    whose, said[2] = np.divmod(said[2], BLOCKS * len(ORDERS) * 2)
    for rater in raters:
        of_rater = whose == rater.pk
        yield rater.pk, said if of_rater.all() else said[:, of_rater]


def read_marked(ballots: "QuerySet[Ballot]", places: Places) -> dict[int, tuple[PackedChoices, ...]]:
    """By rater id, where files say that an imported judge contradicted itself."""
    rows = ballots.filter(inconsistent__gt=0).values_list("comparison_id", "inconsistent", "block", "rater_id")
    item, marks, block, whose = inside(places, *columns(rows, 4))
    return {
        rater: packed_of(*(column[whose == rater] for column in (item, marks, block * len(ORDERS))))
        for rater in np.unique(whose).tolist()
    }


def packed_of(item: IntArray, first: IntArray, told: IntArray) -> tuple[PackedChoices, ...]:
    """``told``: block and order together."""
    found = []
    for one in np.flatnonzero(np.bincount(told)).tolist():
        here = told == one
        block, shown = divmod(one, len(ORDERS))
        found.append(PackedChoices(shown, block, item[here], first[here]))
    return tuple(found)


def inside(places: Places, comparison: IntArray, *others: IntArray) -> tuple[IntArray, ...]:
    """The rows about these comparisons, by their places."""
    item, known = places.of(comparison)
    if known is None:
        return (item, *others)
    return (item[known], *(column[known] for column in others))


def ballots_of(raters: Sequence[Rater], places: Places) -> "QuerySet[Ballot]":
    """Their ballots but for those of imports that are not done; by the index alone where everything is wanted."""
    found = Ballot.all_rows.filter(rater__in=raters)
    if hidden := unfinished_imports({rater.evaluation_id for rater in raters}):
        found = found.exclude(source_import__in=hidden)
    return found.filter(comparison__in=places.ids.tolist()) if len(places.ids) <= LOOKED_UP else found


def unfinished_imports(evaluations: set[int]) -> list[int]:
    unfinished = Import.objects.filter(evaluation__in=evaluations).exclude(state=ImportState.DONE)
    return list(unfinished.values_list("pk", flat=True))


def read_unanswered(raters: Sequence[Rater], places: Places) -> dict[int, dict[str, Any]]:
    """By rater id the calls without an answer, and how many others were repaired."""
    judges = [rater.judge_id for rater in raters]
    calls = Call.all_rows.filter(judge__in=judges, is_test=False)
    found = [columns(unanswered_among(some), 5) for some in (in_sight(calls.failed()), *unfinished(judges))]
    item, *told, judge = inside(places, *(np.concatenate(parts) for parts in zip(*found, strict=True)))
    # With no word of the subject in its conditions, else SQLite takes the index of all calls by subject.
    repaired = calls.filter(repaired=True, state=CallState.ANSWERED.value)
    _, mended = inside(places, *columns(repaired.values_list(Coalesce("comparison_id", 0), "judge_id"), 2))
    names = ("item", "shown", "state", "answered")
    return {
        rater.pk: {
            **{name: column[judge == rater.judge_id] for name, column in zip(names, (item, *told), strict=True)},
            "repaired": int((mended == rater.judge_id).sum()),
        }
        for rater in raters
    }


def in_sight(calls: "QuerySet[Call]") -> "QuerySet[Call]":
    """But for those of imports that are not done."""
    return calls.filter(Q(source_import__isnull=True) | Q(source_import__state=ImportState.DONE.value))


def unfinished(judges: Sequence[int | None]) -> "list[QuerySet[Call]]":
    """Calls of their runs that wait, are asked or were cancelled, if there are any: a run that is done has none."""
    runs = list(Run.objects.filter(judge__in=judges).values_list("pk", flat=True))
    calls = Call.all_rows.filter(
        run__in=runs, is_test=False, state__in=[state.value for state in STATES if state not in FAILURE_STATES]
    )
    return [calls] if calls.exists() else []


def unanswered_among(calls: "QuerySet[Call]") -> "QuerySet[Call, Any]":
    """Comparison, order, state, the choices of imported ballots of the same order and sample, and the judge."""
    beside = Ballot.all_rows.filter(
        rater__judge=OuterRef("judge"),
        comparison=OuterRef("comparison"),
        sample=OuterRef("sample"),
        shown=OuterRef("order"),
        block=0,
    ).order_by()
    # Each aspect stands in one of them, so that the sum holds all.
    together = beside.values("rater").annotate(choices=Sum("first")).values("choices")
    imported = When(source_import__isnull=False, then=Coalesce(Subquery(together), Value(0)))
    return calls.annotate(order=code("shown", ORDERS)).values_list(
        Coalesce("comparison_id", 0),
        "order",
        code("state", STATES),
        Case(imported, default=Value(0), output_field=BigIntegerField()),
        "judge_id",
    )
