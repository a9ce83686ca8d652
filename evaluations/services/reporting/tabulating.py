"""What everyone said of one comparison: raters down, aspects across, and the label below."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from evaluations.domain import FAILURE_STATES, CallState, Choice, Folded, RaterKind, Shown, Stage, fold
from evaluations.models import Aspect, Call, Comparison, Judge, Rater, RubricAspect, Verdict
from evaluations.services.labelling import Label, labels
from evaluations.services.reporting.scoring import (
    Scored,
    ScoredByPerson,
    ScoredInFile,
    scores_in_files,
    scores_of,
    scores_of_people,
)

KINDS_IN_ORDER = (RaterKind.GOLD, RaterKind.HUMAN, RaterKind.JUDGE)


@dataclass(frozen=True)
class Cell:
    """One rater on one aspect. Several ``choices``: an imported rater who voted more than once.

    No choice but ``orders``: a judge that did not answer in every order it was asked in.
    ``weighted``: the mean of what the model's own probabilities say, A being 1 and B 0.
    """

    choices: tuple[Choice, ...]
    first: Choice | None = None  # a person's own, where the final one differs
    inconsistent: bool = False
    orders: tuple[tuple[Shown, Choice], ...] = ()
    note: str = ""
    weighted: float | None = None
    scored: Scored | None = None  # of a rater that scores: what its choice was derived from


@dataclass(frozen=True)
class Asking:
    """One call of a judge, or one imported answer, that has something to tell: words, or how it failed."""

    shown: Shown
    sample: int
    state: str = ""
    rationale: str = ""
    error: str = ""
    repaired: bool = False
    call_id: int | None = None
    side: str = ""  # A or B, where it was asked about one response
    is_confirmable: bool = False

    @property
    def failed(self) -> bool:
        return self.state in FAILURE_STATES


@dataclass(frozen=True)
class Row:
    name: str
    kind: RaterKind
    judge: Judge | None
    cells: tuple[Cell | None, ...]
    askings: tuple[Asking, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """``cells`` and ``labels`` stand in the order of ``aspects``."""

    aspects: tuple[Aspect, ...]
    rows: tuple[Row, ...]
    labels: tuple[Label | None, ...]

    @property
    def rationales(self) -> list[str]:
        return [asking.rationale for row in self.rows for asking in row.askings if asking.rationale]


def table_of(comparison: Comparison, *, with_judges: bool) -> Table:
    """The same few queries however many raters there are."""
    said = Verdict.objects.filter(comparison=comparison).select_related("rater__judge", "aspect", "review", "call")
    verdicts = [one for one in said.order_by("pk") if with_judges or one.rater.kind != RaterKind.JUDGE]
    scores, scored = scores_of(comparison) if with_judges else {}, scores_of_people(comparison)
    in_files = scores_in_files(comparison)
    calls = calls_on(comparison) if with_judges else []
    about = {one.aspect for one in verdicts}.union(
        *scores.values(), *(one.first for one in scored), *(one.scores for one in in_files)
    )
    aspects = aspects_of(comparison, about)
    rows = [
        *verdict_rows(verdicts, calls, aspects),
        *(scored_row(rater, given, calls, aspects, comparison) for rater, given in scores.items()),
        *(person_row(one, aspects) for one in scored),
        *(file_row(one, aspects) for one in in_files),
    ]
    silent = {call.judge for call in calls} - {row.judge for row in rows}
    rows += [unanswered(judge, calls, aspects, comparison) for judge in silent]
    rows.sort(key=lambda row: (KINDS_IN_ORDER.index(row.kind), row.name))
    label = labels(comparison.evaluation, [comparison.pk], judges=with_judges).get(comparison.pk, {})
    return Table(aspects, tuple(rows), tuple(label.get(aspect.key) for aspect in aspects))


def verdict_rows(verdicts: Iterable[Verdict], calls: Sequence[Call], aspects: Sequence[Aspect]) -> list[Row]:
    by_rater: dict[Rater, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_rater[verdict.rater].append(verdict)
    return [row_of(rater, given, calls_to(rater.judge, calls), aspects) for rater, given in by_rater.items()]


def calls_to(judge: Judge | None, calls: Iterable[Call]) -> list[Call]:
    return [call for call in calls if call.judge == judge]


def calls_on(comparison: Comparison) -> list[Call]:
    """The calls about the comparison, and those about one of its responses."""
    # One query each: joined by OR they would be looked for among all calls.
    asked = Call.objects.select_related("judge").order_by("response", "shown", "sample", "pk")
    sides = (comparison.response_a_id, comparison.response_b_id)
    return [*asked.filter(comparison=comparison), *asked.filter(response__in=sides)]


def aspects_of(comparison: Comparison, spoken_of: AbstractSet[Aspect]) -> tuple[Aspect, ...]:
    """Those of the rubric in force, in its order, and any others that someone spoke of."""
    asked = RubricAspect.objects.filter(version=comparison.evaluation.review_rubric_id).order_by("position")
    in_force = {one.aspect: None for one in asked.select_related("aspect")}
    others = spoken_of - set(in_force)
    return (*in_force, *sorted(others, key=lambda aspect: aspect.key))


def row_of(rater: Rater, verdicts: Sequence[Verdict], calls: Sequence[Call], aspects: Iterable[Aspect]) -> Row:
    by_aspect: dict[Aspect, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_aspect[verdict.aspect].append(verdict)
    orders = {Shown(call.shown) for call in calls}
    cell = (lambda given: judge_cell(given, orders)) if rater.judge else person_cell
    return Row(
        name=rater.name,
        kind=RaterKind(rater.kind),
        judge=rater.judge,
        cells=tuple(cell(by_aspect[aspect]) if aspect in by_aspect else None for aspect in aspects),
        askings=(*askings_of(calls), *imported_askings(verdicts)),
        notes=tuple({verdict.review.note: None for verdict in verdicts if verdict.review and verdict.review.note}),
    )


def scored_row(
    rater: Rater, given: Mapping[Aspect, Scored], calls: Sequence[Call], aspects: Iterable[Aspect], of: Comparison
) -> Row:
    """A judge that scores: its choices are derived."""
    cells = tuple(scored_cell(given[aspect]) if aspect in given else None for aspect in aspects)
    return Row(rater.name, RaterKind.JUDGE, rater.judge, cells, askings_of(calls_to(rater.judge, calls), of))


def person_row(one: ScoredByPerson, aspects: Iterable[Aspect]) -> Row:
    """A review by scores: the final ones where there are, and the first choice where it was another."""
    cells = tuple(scored_by_person(one, aspect) if aspect in one.first else None for aspect in aspects)
    notes = (one.review.note,) if one.review.note else ()
    return Row(one.review.rater.name, RaterKind.HUMAN, None, cells, notes=notes)


def file_row(one: ScoredInFile, aspects: Iterable[Aspect]) -> Row:
    """One sample of scores that came with an import."""
    cells = tuple(scored_cell(one.scores[aspect]) if aspect in one.scores else None for aspect in aspects)
    return Row(one.rater.name, RaterKind(one.rater.kind), None, cells)


def scored_by_person(one: ScoredByPerson, aspect: Aspect) -> Cell:
    now, before = one.final.get(aspect, one.first[aspect]), one.first[aspect].choice
    cell = scored_cell(now)
    return replace(cell, first=before if before != now.choice else None, note=one.notes.get(aspect, ""))


def scored_cell(scored: Scored) -> Cell:
    return Cell((scored.choice,) if scored.choice else (), note=scored.rationale, scored=scored)


def unanswered(judge: Judge, calls: Sequence[Call], aspects: Sequence[Aspect], of: Comparison) -> Row:
    """A judge that was asked and has given no verdict."""
    return Row(judge.name, RaterKind.JUDGE, judge, (None,) * len(aspects), askings_of(calls_to(judge, calls), of))


def person_cell(verdicts: Sequence[Verdict]) -> Cell:
    """Of several reviews, by several versions of a rubric, the newest that is confirmed."""
    first = {verdict.review_id: Choice(verdict.choice) for verdict in verdicts if verdict.stage == Stage.FIRST}
    given = [verdict for verdict in verdicts if verdict.stage == Stage.FINAL] or verdicts
    newest = max(verdict.review_id or 0 for verdict in given)
    final = [verdict for verdict in given if (verdict.review_id or 0) == newest]
    before = first.get(final[0].review_id)
    choices = tuple(Choice(verdict.choice) for verdict in final)
    note = " ".join(text for verdict in final for text in (verdict.note, verdict.rationale) if text)
    return Cell(choices, first=before if before not in choices else None, note=note)


def judge_cell(verdicts: Sequence[Verdict], orders_asked: set[Shown]) -> Cell:
    given: dict[Shown, list[Folded]] = defaultdict(list)
    for verdict in verdicts:
        given[Shown(verdict.shown)].append(Folded(Choice(verdict.choice), verdict.inconsistent))
    folded = fold(given, orders_asked)
    weights = [verdict.weighted for verdict in verdicts if verdict.weighted is not None]
    return Cell(
        choices=(folded.choice,) if folded else (),
        inconsistent=folded.inconsistent if folded else False,
        orders=tuple((shown, one.choice) for shown in sorted(given) for one in given[shown]),
        weighted=sum(weights) / len(weights) if weights else None,
    )


def askings_of(calls: Iterable[Call], of: Comparison | None = None) -> tuple[Asking, ...]:
    """Those that have something to tell; calls about one response say about which of the two."""
    sides = {of.response_a_id: "A", of.response_b_id: "B"} if of else {}
    return tuple(
        Asking(
            Shown(call.shown),
            call.sample,
            call.state,
            call.rationale,
            call.error,
            call.repaired,
            call.pk,
            sides.get(call.response_id or 0, ""),
            call.is_confirmable,
        )
        for call in calls
        if call.rationale or call.repaired or call.state != CallState.ANSWERED
    )


def imported_askings(verdicts: Iterable[Verdict]) -> tuple[Asking, ...]:
    """What an imported judge wrote: one rationale may stand on the verdicts of several aspects."""
    written: Mapping[Asking, None] = {
        Asking(Shown(verdict.shown), verdict.sample, rationale=verdict.rationale): None
        for verdict in verdicts
        if verdict.rater.kind == RaterKind.JUDGE and verdict.call_id is None and verdict.rationale
    }
    return tuple(written)
