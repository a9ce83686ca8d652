"""The progress of evaluations and the next step in each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from django.db.models import Count, Exists, OuterRef, QuerySet, Value

from evaluations.access import ALLOWED_ROLES, Action
from evaluations.domain.choices import LabelSource
from evaluations.domain.files import ExportState, ImportState
from evaluations.domain.judges import ACTIVE_RUN_STATES, FAILURE_STATES, JudgeKind
from evaluations.domain.roles import Role
from evaluations.models.comparisons import IS_SINGLE, Candidate, Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.selection import SMALL_REPORT_COMPARISONS
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Label, Score
from evaluations.overview.event_texts import name_field, write_value
from evaluations.overview.results import Results
from evaluations.overview.stored_results import find_results_on_everything
from evaluations.verdicts.progress_counters import read_progress_counts, saved_reviews


class NextStep(StrEnum):
    """The suggested next step of a member in an evaluation."""

    IMPORT = "import"
    STORE = "store"
    JUDGE = "judge"
    REVIEW = "review"
    RESOLVE = "resolve"
    REPORT = "report"
    EXPORT = "export"
    WAIT = "wait"


@dataclass(frozen=True)
class EvaluationProgress:
    """Counts of one evaluation.

    ``comparisons``: what is to be reviewed; ``single_responses`` of these are scored by themselves. ``judged`` and
    ``reviewed`` count those with a verdict, or a score of every response, by any judge or any reviewer; archived
    judges do not count. ``scored``: whether any response has a score. ``reviews`` counts the reviews saved by the
    current rubric version; ``wanted`` of these are wanted for each comparison. ``is_counting``: these are those of the
    last count, and what has changed since is being counted.
    """

    queries: int = 0
    candidates: int = 0
    people: int = 0
    comparisons: int = 0
    single_responses: int = 0
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
    is_counting: bool = False
    active_runs: int = 0
    failed_calls: int = 0
    exports: int = 0
    open_disagreements: int = 0

    @property
    def pairs(self) -> int:
        """The comparisons of two responses."""
        return max(self.comparisons - self.single_responses, 0)

    @property
    def subject(self) -> str:
        """What each review is about."""
        return "response" if self.single_responses and not self.pairs else "comparison"

    @property
    def reviews_total(self) -> int:
        """How many reviews are wanted of all comparisons."""
        return self.wanted * self.comparisons

    @property
    def review_percent(self) -> int:
        """Rounded down: 100 says that all are there."""
        return min(self.reviews, self.reviews_total) * 100 // self.reviews_total if self.reviews_total else 0

    @property
    def imported_reviews(self) -> bool:
        """Whether more comparisons have votes of people than reviews can account for."""
        return self.reviewed > self.reviews

    @property
    def has_all_reviews(self) -> bool:
        return 0 < self.reviews_total <= self.reviews

    @property
    def has_reviewed_all(self) -> bool:
        """Whether nothing is left to review for this person, who has reviewed."""
        return self.reviewed_by_me > 0 and (self.has_all_reviews or self.reviewed_by_me >= self.comparisons)

    @property
    def is_review_open(self) -> bool:
        """Whether comparisons want more reviews; imported votes count as a review too."""
        return self.reviewed < self.comparisons or 0 < self.reviews < self.reviews_total

    @property
    def has_report(self) -> bool:
        return bool(self.judged or self.reviewed or self.scored)

    def next_step(self, *, manages: bool, reviews: bool, resolves: bool, exports: bool) -> NextStep:
        """The first unfinished step of the pipeline that this member can take."""
        if manages and (step := self.next_for_manager()):
            return step
        if reviews and self.reviewed_by_me < self.comparisons and self.is_review_open:
            return NextStep.REVIEW
        if resolves and self.open_disagreements:
            return NextStep.RESOLVE
        if exports and self.reviewed and self.pairs and not self.exports:
            return NextStep.EXPORT
        return NextStep.REPORT if self.has_report else NextStep.WAIT

    def next_for_manager(self) -> NextStep | None:
        if not self.comparisons:
            if self.imports_to_confirm:
                return NextStep.STORE
            return None if self.scored else NextStep.IMPORT
        return NextStep.JUDGE if not self.judged and not self.active_runs else None


def count_evaluation_progress(evaluations: Sequence[Evaluation], user: User) -> Mapping[int, EvaluationProgress]:
    """Progress of each evaluation by id, for this person."""
    ids = [evaluation.pk for evaluation in evaluations]
    counts_by_id: dict[int, dict[str, Any]] = {pk: asdict(counts) for pk, counts in read_progress_counts(ids).items()}
    for evaluation in evaluations:
        counts_by_id[evaluation.pk]["wanted"] = evaluation.reviews_wanted
    for pk, name, number in count_rows(ids, user):
        counts_by_id[pk][name] = counts_by_id[pk].get(name, 0) + number
    return {pk: EvaluationProgress(**numbers) for pk, numbers in counts_by_id.items()}


IMPORT_COUNTS: Final[Mapping[str, str]] = {
    ImportState.DONE: "imports",
    ImportState.PREVIEWED: "imports_to_confirm",
    ImportState.STORING: "imports_storing",
}
JUDGE_COUNTS: Final[Mapping[str, str]] = {
    JudgeKind.LLM: "judges",
    JudgeKind.RULE: "judges",
    JudgeKind.IMPORTED: "imported_judges",
}


def count_rows(ids: Sequence[int], user: User) -> Iterator[tuple[int, str, int]]:
    """Evaluation, name and number of all counts, by one statement for any number of evaluations."""
    imports = Import.objects.filter(evaluation__in=ids, state__in=IMPORT_COUNTS)
    judges = Judge.objects.current().filter(evaluation__in=ids)
    failed = Call.objects.filter(judge__evaluation__in=ids, judge__archived_at__isnull=True, state__in=FAILURE_STATES)
    of_evaluation = Score.objects.filter(rater__evaluation=OuterRef("pk"), rater__judge__archived_at__isnull=True)
    named = {
        "candidates": (Candidate.objects.filter(evaluation__in=ids), "evaluation"),
        "people": (Membership.objects.filter(evaluation__in=ids), "evaluation"),
        "reviewed_by_me": (saved_reviews().filter(rater__user=user, rater__evaluation__in=ids), "rater__evaluation"),
        "single_responses": (Comparison.reviewable.filter(IS_SINGLE, evaluation__in=ids), "evaluation"),
        "scored": (Evaluation.objects.filter(Exists(of_evaluation), pk__in=ids), "pk"),
        "active_runs": (Run.objects.filter(evaluation__in=ids, state__in=ACTIVE_RUN_STATES), "evaluation"),
        "failed_calls": (failed, "judge__evaluation"),
        "exports": (Export.objects.filter(evaluation__in=ids, state=ExportState.DONE), "evaluation"),
    }
    counts = [count_rows_by(rows, owner, Value(name)) for name, (rows, owner) in named.items()]
    by_word = [count_rows_by(imports, "evaluation", "state"), count_rows_by(judges, "evaluation", "kind")]
    names = {**IMPORT_COUNTS, **JUDGE_COUNTS}
    # By aspect, because SQLite would otherwise look up the labels of every comparison.
    conflicts = Label.objects.filter(aspect__evaluation__in=ids, unanimous=False)
    unresolved = conflicts.exclude(source=LabelSource.ADJUDICATED).order_by()
    disagreements = unresolved.values_list("aspect__evaluation", Value("open_disagreements"))
    by_word.append(disagreements.annotate(number=Count("comparison", distinct=True)))
    for pk, name, number in counts[0].union(*counts[1:], *by_word, all=True):
        yield pk, names.get(name, name), number


def count_rows_by(rows: "QuerySet[Any, Any]", owner: str, name: str | Value) -> "QuerySet[Any, Any]":
    """Evaluation, name and number: by the column ``owner``, and by the column or constant ``name``."""
    counted: QuerySet[Any, Any] = rows.order_by().values_list(owner, name).annotate(number=Count("pk"))
    return counted


class ResultsAccess(StrEnum):
    """Which results an overview shows a member."""

    ALL = "all"
    OWN = "own"  # on the comparisons that they reviewed
    AFTER_REVIEWS = "after reviews"
    ON_RESULTS_PAGE = "on results page"  # on so few comparisons that they would give single choices away
    NONE = "none"


def get_results_access(progress: EvaluationProgress, role: Role) -> ResultsAccess:
    """Before their reviews are complete, reviewers see progress only."""
    if not progress.comparisons or not progress.has_report:
        return ResultsAccess.NONE
    if role in ALLOWED_ROLES[Action.SEE_ALL]:
        is_small = role in ALLOWED_ROLES[Action.REVIEW] and progress.comparisons <= SMALL_REPORT_COMPARISONS
        return ResultsAccess.ON_RESULTS_PAGE if is_small else ResultsAccess.ALL
    if not progress.has_reviewed_all:
        return ResultsAccess.AFTER_REVIEWS
    return ResultsAccess.OWN if progress.reviewed_by_me > SMALL_REPORT_COMPARISONS else ResultsAccess.ON_RESULTS_PAGE


@dataclass(frozen=True)
class EvaluationRow:
    evaluation: Evaluation
    role: Role
    progress: EvaluationProgress
    next: NextStep
    access: ResultsAccess
    results: Results | None

    @property
    def sees_disagreements(self) -> bool:
        return self.role in ALLOWED_ROLES[Action.SEE_ALL]


def list_evaluation_rows(rows: Sequence[Evaluation], user: User) -> list[EvaluationRow]:
    memberships = Membership.objects.filter(user=user, evaluation__in=rows).values_list("evaluation_id", "role")
    roles = {pk: Role(role) for pk, role in memberships}
    progress = count_evaluation_progress(rows, user)
    access = {pk: get_results_access(progress[pk], role) for pk, role in roles.items()}
    stored = find_results_on_everything([pk for pk in access if access[pk] == ResultsAccess.ALL])
    return [
        EvaluationRow(
            evaluation=row,
            role=roles[row.pk],
            progress=progress[row.pk],
            next=get_next_step(progress[row.pk], roles[row.pk]),
            access=access[row.pk],
            results=stored[row.pk].results if row.pk in stored else None,
        )
        for row in rows
    ]


def get_next_step(progress: EvaluationProgress, role: Role) -> NextStep:
    return progress.next_step(
        manages=role in ALLOWED_ROLES[Action.MANAGE],
        reviews=role in ALLOWED_ROLES[Action.REVIEW],
        resolves=role in ALLOWED_ROLES[Action.ADJUDICATE],
        exports=role in ALLOWED_ROLES[Action.EXPORT],
    )


def find_single_comparisons(events: Sequence[Event]) -> set[int]:
    """The events about single comparisons, which have no page of their own."""
    about = {event.pk: event.object_id for event in events if event.object_type == Comparison._meta.model_name}
    singles = (
        Comparison.with_singles.filter(IS_SINGLE, pk__in=set(about.values())) if about else Comparison.objects.none()
    )
    ids = set(singles.values_list("pk", flat=True))
    return {event for event, comparison in about.items() if comparison in ids}


HIDDEN_OBJECT_TYPES: Final = {"review", "verdict", "span", "comment"}
RESOLUTION_VERBS: Final = {"adjudicated", "withdrew adjudication"}


def has_hidden_choices(event: Event) -> bool:
    """Whether the event holds choices, which are hidden so that people who still review stay blind."""
    return event.object_type in HIDDEN_OBJECT_TYPES or event.verb in RESOLUTION_VERBS


@dataclass(frozen=True)
class EventChange:
    """One value before and after; None if there is none."""

    name: str
    before: str | None
    after: str | None


def list_event_changes(event: Event) -> Iterator[EventChange]:
    if has_hidden_choices(event):
        return
    for name in dict.fromkeys([*event.before, *event.after]):
        before, after = (write_value(name, values.get(name)) for values in (event.before, event.after))
        if before is not None or after is not None:
            yield EventChange(name_field(name), before, after)
