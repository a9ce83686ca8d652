"""Judges' packed votes as arrays, read with the same few queries however many there are."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.db.models import BigIntegerField, Case, F, IntegerField, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluations.domain.choices import PACKED_ORDERS
from evaluations.domain.files import ImportState
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import FAILURE_STATES, CallState
from evaluations.domain.packed_votes import BITS_PER_CHOICE, SLOTS_PER_BLOCK, block_of_slot, shift_of_slot
from evaluations.models.imports import Import, finished_imports
from evaluations.models.judges import Rater
from evaluations.models.runs import Call, Run
from evaluations.models.verdicts import PackedVotes
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.judge_verdicts import STATES, Choices, JudgeAnswers, JudgeVerdicts, UnansweredCalls
from evaluations.verdicts.array_files import get_array_file, load_arrays, save_arrays
from evaluations.verdicts.changes import read_rater_states
from evaluations.verdicts.sql import encode_word, read_columns, read_columns_in_pieces

CHOICE_MASK: Final = (1 << BITS_PER_CHOICE) - 1
# Up to so many comparisons are looked up one by one; of more, everything that the rater said is read at once.
MAX_LOOKUPS: Final = 5_000
MAX_BLOCKS: Final = 1 << 12
QUIET_TIME: Final = timedelta(minutes=1)
NO_NUMBERS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class ComparisonPositions:
    """The comparisons that a report is about, by id in order, and where in that order each id stands."""

    ids: IntArray

    def of(self, comparisons: IntArray) -> tuple[IntArray, BoolArray | None]:
        """The place of each id, and which of them are among these; None where all are."""
        if len(comparisons) == len(self.ids) and np.array_equal(comparisons, self.ids):
            return np.arange(len(self.ids)), None
        place = np.minimum(np.searchsorted(self.ids, comparisons), max(len(self.ids) - 1, 0))
        is_known = self.ids[place] == comparisons if len(self.ids) else np.zeros(len(comparisons), dtype=bool)
        return place, None if is_known.all() else is_known


@dataclass(frozen=True)
class PackedChoices:
    """The packed votes of one order and block: the comparison's place and the packed choices."""

    shown: int
    block: int
    item: IntArray
    first: IntArray

    @cached_property
    def is_single(self) -> bool:
        """Whether no comparison has two of them."""
        return bool((np.bincount(self.item) <= 1).all())


@dataclass(frozen=True)
class JudgeArrays:
    """All that one judge said. ``marked``: by block, where which aspects are marked inconsistent.

    ``item``, ``shown`` and ``state``: of each call without an answer; ``answered`` by block, the choices that an
    import brought beside it all the same. ``repaired``: calls answered when asked a second time.
    """

    parts: tuple[PackedChoices, ...] = ()
    marked: tuple[PackedChoices, ...] = ()
    item: IntArray = field(default_factory=lambda: NO_NUMBERS)
    shown: IntArray = field(default_factory=lambda: NO_NUMBERS)
    state: IntArray = field(default_factory=lambda: NO_NUMBERS)
    answered: IntArray = field(default_factory=lambda: NO_NUMBERS)
    repaired: int = 0

    @cached_property
    def aspects(self) -> set[int]:
        """The places of the aspects on which it chose something."""
        places = set()
        for part in self.parts:
            bits = int(np.bitwise_or.reduce(part.first)) if len(part.first) else 0
            places |= {
                part.block * SLOTS_PER_BLOCK + at
                for at in range(SLOTS_PER_BLOCK)
                if bits >> at * BITS_PER_CHOICE & CHOICE_MASK
            }
        return places

    @property
    def was_asked(self) -> bool:
        return bool(self.parts) or bool(len(self.item))

    def verdicts(self, place: int) -> JudgeVerdicts:
        answers = [unpack_answers(part, place) for part in self.parts if part.block == block_of_slot(place)]
        bit = place % SLOTS_PER_BLOCK
        marked = [part.item[part.first >> bit & 1 == 1] for part in self.marked if part.block == block_of_slot(place)]
        inconsistent = np.concatenate(marked) if marked else None
        return JudgeVerdicts(tuple(answer for answer in answers if len(answer.item)), inconsistent)

    def unanswered(self, place: int) -> UnansweredCalls:
        """The calls without an answer on this aspect: imported verdicts stand aspect by aspect."""
        lacking = self.lacking(place)
        if lacking.all():
            return UnansweredCalls(self.item, self.shown, self.state)
        return UnansweredCalls(self.item[lacking], self.shown[lacking], self.state[lacking])

    def lacking(self, place: int) -> BoolArray:
        """Whether each call lacks an imported choice on this aspect."""
        if block_of_slot(place):
            return np.ones(len(self.item), dtype=bool)
        return np.asarray(self.answered >> shift_of_slot(place) & CHOICE_MASK == 0)

    @property
    def elsewhere(self) -> int:
        """Calls without an answer that count on none of the aspects on which it chose something."""
        if not self.aspects or not self.answered.any():
            return 0
        return len(self.item) - int(np.logical_or.reduce([self.lacking(place) for place in self.aspects]).sum())


def unpack_answers(part: PackedChoices, place: int) -> JudgeAnswers:
    choice = unpack_choices(part.first, place)
    is_answered = choice != MISSING
    if is_answered.all():
        return JudgeAnswers(part.shown, part.item, choice, part.is_single)
    return JudgeAnswers(part.shown, part.item[is_answered], choice[is_answered], part.is_single)


def unpack_choices(packed: IntArray, place: int) -> Choices:
    """The codes of the choices at one place, MISSING where there is none."""
    return ((packed >> shift_of_slot(place) & CHOICE_MASK) - 1).astype(np.int8)


# ---- reading


def read_judge_arrays(raters: Sequence[Rater], places: ComparisonPositions) -> dict[int, JudgeArrays]:
    """By rater id those that were asked about pairs of responses."""
    packed = load_packed_choices(raters, places)
    has_marks = any(bool((code & 1).any()) for _, _, code in packed.values())
    marked = read_inconsistent_marks(packed_votes_of_raters(raters, places), places) if has_marks else {}
    unanswered = read_unanswered_calls(raters, places)
    arrays = {}
    for rater in raters:
        comparison, first, code = packed[rater.pk]
        of = select_positions(places, comparison, first, code >> 1)
        arrays[rater.pk] = JudgeArrays(split_by_block_and_order(*of), marked.get(rater.pk, ()), **unanswered[rater.pk])
    return arrays


def load_packed_choices(raters: Sequence[Rater], places: ComparisonPositions) -> dict[int, IntArray]:
    """By rater id everything it said, or what it said of these comparisons at least: 3 × rows.

    The comparison's id, the packed choices, and block, order and whether it is marked as one number. What a judge
    said is kept in a file until it says more.
    """
    files = get_choice_files(raters) if len(places.ids) > MAX_LOOKUPS else {}
    loaded: dict[int, IntArray] = {}
    for pk, file in files.items():
        with suppress(OSError, EOFError, ValueError):  # no file, or one that cannot be read
            (loaded[pk],) = load_arrays(file, 1)
    unread = [rater for rater in raters if rater.pk not in loaded]
    batches = [unread] if len(places.ids) <= MAX_LOOKUPS else [[rater] for rater in unread]
    for pk, choices in (row for batch in batches for row in read_packed_choices(batch, places)):
        loaded[pk] = choices
        # The rater may have voted since.
        if pk in files and get_choice_files([rater for rater in raters if rater.pk == pk]).get(pk) == files[pk]:
            save_arrays(files[pk], choices)
    return loaded


def get_choice_files(raters: Sequence[Rater]) -> dict[int, Path]:
    """By rater id; none of judges that said something just now and may go on. An import that is done shows its rows."""
    evaluations = {rater.evaluation_id for rater in raters}
    done = Import.objects.filter(evaluation__in=evaluations, state=ImportState.DONE.value).count()
    before = timezone.now() - QUIET_TIME
    states = read_rater_states(Rater.objects.filter(pk__in=[rater.pk for rater in raters]))
    return {
        pk: get_array_file(f"choices-{pk}", state.changed_at, f"-{done}-{state.changes}")
        for pk, state in states.items()
        if state.changed_at and state.changed_at < before
    }


def read_packed_choices(raters: Sequence[Rater], places: ComparisonPositions) -> Iterator[tuple[int, IntArray]]:
    is_marked = Case(When(inconsistent_aspects__gt=0, then=Value(1)), default=Value(0), output_field=IntegerField())
    # One number for whose it is, its block and order, and whether it is marked.
    code = ((F("rater_id") * MAX_BLOCKS + F("aspect_block")) * len(PACKED_ORDERS) + F("shown")) * 2 + is_marked
    rows = packed_votes_of_raters(raters, places).values_list("comparison_id", "first_choices", code)
    columns = np.stack(read_columns_in_pieces(rows, 3, "comparison", places.ids))
    whose, columns[2] = np.divmod(columns[2], MAX_BLOCKS * len(PACKED_ORDERS) * 2)
    for rater in raters:
        of_rater = whose == rater.pk
        yield rater.pk, columns if of_rater.all() else columns[:, of_rater]


def read_inconsistent_marks(
    votes: "QuerySet[PackedVotes]", places: ComparisonPositions
) -> dict[int, tuple[PackedChoices, ...]]:
    """By rater id, where files say that an imported judge contradicted itself."""
    rows = votes.filter(inconsistent_aspects__gt=0).values_list(
        "comparison_id", "inconsistent_aspects", "aspect_block", "rater_id"
    )
    item, marks, block, whose = select_positions(places, *read_columns(rows, 4))
    return {
        rater: split_by_block_and_order(
            *(column[whose == rater] for column in (item, marks, block * len(PACKED_ORDERS)))
        )
        for rater in np.unique(whose).tolist()
    }


def split_by_block_and_order(item: IntArray, first: IntArray, codes: IntArray) -> tuple[PackedChoices, ...]:
    """``codes``: block and order together."""
    parts = []
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        here = codes == code
        block, shown = divmod(code, len(PACKED_ORDERS))
        parts.append(PackedChoices(shown, block, item[here], first[here]))
    return tuple(parts)


def select_positions(places: ComparisonPositions, comparison: IntArray, *others: IntArray) -> tuple[IntArray, ...]:
    item, is_known = places.of(comparison)
    if is_known is None:
        return (item, *others)
    return (item[is_known], *(column[is_known] for column in others))


def packed_votes_of_raters(raters: Sequence[Rater], places: ComparisonPositions) -> "QuerySet[PackedVotes]":
    """Their packed votes but for those of imports that are not done; by the index alone where everything is wanted."""
    votes = PackedVotes.all_rows.filter(rater__in=raters)
    if hidden := find_unfinished_imports({rater.evaluation_id for rater in raters}):
        votes = votes.exclude(source_import__in=hidden)
    return votes.filter(comparison__in=places.ids.tolist()) if len(places.ids) <= MAX_LOOKUPS else votes


def find_unfinished_imports(evaluations: set[int]) -> list[int]:
    unfinished = Import.objects.filter(evaluation__in=evaluations).exclude(state=ImportState.DONE)
    return list(unfinished.values_list("pk", flat=True))


def read_unanswered_calls(raters: Sequence[Rater], places: ComparisonPositions) -> dict[int, JsonDict]:
    """By rater id the calls without an answer, and how many others were repaired."""
    judges = [rater.judge_id for rater in raters]
    calls = Call.all_rows.filter(judge__in=judges, is_test=False)
    pieces = [
        read_columns(select_unanswered_columns(some), 5)
        for some in (calls.failed().filter(finished_imports()), *find_unfinished_calls(judges))
    ]
    item, *columns, judge = select_positions(places, *(np.concatenate(parts) for parts in zip(*pieces, strict=True)))
    # With no word of the subject in its conditions, else SQLite takes the index of all calls by subject.
    repaired = calls.filter(repaired=True, state=CallState.ANSWERED.value)
    _, repaired_judges = select_positions(
        places, *read_columns(repaired.values_list(Coalesce("comparison_id", 0), "judge_id"), 2)
    )
    names = ("item", "shown", "state", "answered")
    return {
        rater.pk: {
            **{name: column[judge == rater.judge_id] for name, column in zip(names, (item, *columns), strict=True)},
            "repaired": int((repaired_judges == rater.judge_id).sum()),
        }
        for rater in raters
    }


def find_unfinished_calls(judges: Sequence[int | None]) -> "list[QuerySet[Call]]":
    """Calls of their runs that wait, are asked or were cancelled, if there are any: a run that is done has none."""
    runs = list(Run.objects.filter(judge__in=judges).values_list("pk", flat=True))
    waiting = Call.all_rows.filter(
        run__in=runs, state__in=[state.value for state in STATES if state not in FAILURE_STATES]
    )
    # Asked without a word of tests, which are not in the index of runs and states: SQLite would scan all calls.
    return [waiting.filter(is_test=False)] if waiting.exists() else []


def select_unanswered_columns(calls: "QuerySet[Call]") -> "QuerySet[Call, Any]":
    """Comparison, order, state, the choices of imported votes of the same order and sample, and the judge."""
    beside = PackedVotes.all_rows.filter(
        rater__judge=OuterRef("judge"),
        comparison=OuterRef("comparison"),
        sample=OuterRef("sample"),
        shown=OuterRef("order"),
        aspect_block=0,
    ).order_by()
    # Each aspect is in exactly one of them, so the sum has them all.
    together = beside.values("rater").annotate(choices=Sum("first_choices")).values("choices")
    imported = When(source_import__isnull=False, then=Coalesce(Subquery(together), Value(0)))
    return calls.annotate(order=encode_word("shown", PACKED_ORDERS)).values_list(
        Coalesce("comparison_id", 0),
        "order",
        encode_word("state", STATES),
        Case(imported, default=Value(0), output_field=BigIntegerField()),
        "judge_id",
    )
