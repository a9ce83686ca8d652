"""Where evaluations stand: what is in them, what was judged and reviewed, and what comes next.

Only reads, and asks the database as often for one evaluation as for fifty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Count, Exists, F, Model, OuterRef, Q, QuerySet

from evaluations.domain import (
    ACTIVE_RUN_STATES,
    FAILURE_STATES,
    ExportState,
    ImportState,
    JudgeKind,
    RaterKind,
    ReviewState,
)
from evaluations.models import Call, Comparison, Evaluation, Export, Import, Judge, Review, Run, Score, User, Verdict


class State(StrEnum):
    """How far one step of the pipe has come."""

    TO_DO = "to do"
    UNDER_WAY = "under way"
    DONE = "done"


class Next(StrEnum):
    """What a person had best do now in an evaluation."""

    IMPORT = "import"
    STORE = "store"
    JUDGE = "judge"
    REVIEW = "review"
    REPORT = "report"
    EXPORT = "export"
    WAIT = "wait"


@dataclass(frozen=True)
class Standing:
    """Counts of one evaluation.

    ``judged`` and ``reviewed`` count the comparisons on which any judge, any person, gave a verdict or scored both
    responses; of archived judges nothing counts. ``scored``: whether any response has a score.
    ``reviews`` counts what people saved here, by the rubric in force, of the ``wanted`` for each comparison.
    """

    comparisons: int = 0
    judged: int = 0
    reviewed: int = 0
    reviews: int = 0
    reviewed_by_me: int = 0
    wanted: int = 1
    imports: int = 0
    imports_to_confirm: int = 0
    imports_storing: int = 0
    judges: int = 0
    imported_judges: int = 0
    scored: int = 0
    active_runs: int = 0
    failed_calls: int = 0
    exports: int = 0

    @property
    def importing(self) -> State:
        if self.imports_storing:
            return State.UNDER_WAY
        return State.DONE if self.comparisons or self.scored else State.TO_DO

    @property
    def judging(self) -> State:
        return progressed(self.judged, self.comparisons, under_way=self.active_runs > 0)

    @property
    def reviewing(self) -> State:
        some_wanted = 0 < self.reviews < self.wanted * self.comparisons
        return progressed(self.reviewed, self.comparisons, under_way=some_wanted)

    @property
    def reporting(self) -> State:
        """A report is never finished: it can be read once people and judges both have said something."""
        return State.UNDER_WAY if (self.reviewed and self.judged) or self.is_scores_alone else State.TO_DO

    @property
    def is_scores_alone(self) -> bool:
        return bool(self.scored and not self.comparisons)

    @property
    def has_report(self) -> bool:
        return bool(self.judged or self.reviewed or self.scored)

    @property
    def exporting(self) -> State:
        return State.DONE if self.exports else State.TO_DO

    def next_step(self, *, manages: bool, reviews: bool, exports: bool) -> Next:
        """The first step of the pipe that this person can take and that is not finished."""
        if manages and (step := self.next_for_manager()):
            return step
        if reviews and self.reviewed_by_me < self.comparisons and self.reviewing != State.DONE:
            return Next.REVIEW
        if exports and self.reviewed and not self.exports:
            return Next.EXPORT
        return Next.REPORT if self.has_report else Next.WAIT

    def next_for_manager(self) -> Next | None:
        if not self.comparisons:
            if self.imports_to_confirm:
                return Next.STORE
            return None if self.scored else Next.IMPORT
        return Next.JUDGE if not self.judged and not self.active_runs else None


def progressed(done: int, total: int, *, under_way: bool = False) -> State:
    if under_way or 0 < done < total:
        return State.UNDER_WAY
    return State.DONE if total and done >= total else State.TO_DO


def standings(evaluations: Sequence[Evaluation], user: User) -> Mapping[int, Standing]:
    """Evaluation id → where it stands, for this person."""
    ids = [evaluation.pk for evaluation in evaluations]
    counted = {evaluation.pk: {"wanted": evaluation.reviews_wanted} for evaluation in evaluations}
    for rows, owner, counts in questions(ids, user):
        for row in rows.values(owner).annotate(**counts).order_by(owner):
            counted[row.pop(owner)].update(row)
    return {pk: Standing(**numbers) for pk, numbers in counted.items()}


def questions(ids: Sequence[int], user: User) -> list[tuple["QuerySet[Model]", str, dict[str, Count]]]:
    """One query each: the rows that are counted, the column with their evaluation, the counts."""
    rows, by_me = Count("pk"), Count("pk", filter=Q(rater__user=user))
    comparisons = {
        "comparisons": rows,
        "judged": Count("pk", filter=was_told_by(RaterKind.JUDGE)),
        "reviewed": Count("pk", filter=was_told_by(RaterKind.HUMAN)),
    }
    imports = {
        "imports": Count("pk", filter=Q(state=ImportState.DONE)),
        "imports_to_confirm": Count("pk", filter=Q(state=ImportState.PREVIEWED)),
        "imports_storing": Count("pk", filter=Q(state=ImportState.STORING)),
    }
    reviews = Review.objects.filter(
        comparison__evaluation__in=ids,
        state__in=(ReviewState.FIRST, ReviewState.FINAL),
        rubric_version=F("comparison__evaluation__review_rubric"),
    )
    failed = Call.objects.filter(judge__evaluation__in=ids, judge__archived_at__isnull=True, state__in=FAILURE_STATES)
    judges = {
        "judges": Count("pk", filter=~Q(kind=JudgeKind.IMPORTED)),
        "imported_judges": Count("pk", filter=Q(kind=JudgeKind.IMPORTED)),
    }
    of_evaluation = Score.objects.filter(rater__evaluation=OuterRef("pk"), rater__judge__archived_at__isnull=True)
    scored = Evaluation.objects.filter(Exists(of_evaluation), pk__in=ids)
    runs = Run.objects.filter(evaluation__in=ids, state__in=ACTIVE_RUN_STATES)
    exports = Export.objects.filter(evaluation__in=ids, state=ExportState.DONE)
    return [
        (Comparison.objects.filter(evaluation__in=ids), "evaluation", comparisons),
        (reviews, "comparison__evaluation", {"reviews": rows, "reviewed_by_me": by_me}),
        (Import.objects.filter(evaluation__in=ids), "evaluation", imports),
        (Judge.objects.current().filter(evaluation__in=ids), "evaluation", judges),
        (scored, "pk", {"scored": rows}),
        (runs, "evaluation", {"active_runs": rows}),
        (failed, "judge__evaluation", {"failed_calls": rows}),
        (exports, "evaluation", {"exports": rows}),
    ]


def was_told_by(kind: RaterKind) -> Q:
    """That somebody of this kind chose on the comparison, or scored both its responses; no archived judge counts."""
    whose = {"rater__kind": kind, "rater__judge__archived_at__isnull": True}
    chosen = Exists(Verdict.objects.filter(comparison=OuterRef("pk"), **whose))
    a, b = (Exists(Score.objects.filter(response=OuterRef(side), **whose)) for side in ("response_a", "response_b"))
    return Q(chosen) | (Q(a) & Q(b))
