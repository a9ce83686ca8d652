"""The progress of evaluations and the next step in each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from django.db.models import Count, Exists, OuterRef, QuerySet, Value

from evaluations.access import ALLOWED_ROLES, Action
from evaluations.domain.files import ExportState, ImportState
from evaluations.domain.judges import ACTIVE_RUN_STATES, FAILURE_STATES, JudgeKind
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Score
from evaluations.verdicts.progress_counters import read_progress_counts, saved_reviews


class StepState(StrEnum):
    """The state of one step of the pipeline."""

    TO_DO = "to do"
    UNDER_WAY = "under way"
    DONE = "done"


class NextStep(StrEnum):
    """The suggested next step of a member in an evaluation."""

    IMPORT = "import"
    STORE = "store"
    JUDGE = "judge"
    REVIEW = "review"
    REPORT = "report"
    EXPORT = "export"
    WAIT = "wait"


@dataclass(frozen=True)
class EvaluationProgress:
    """Counts of one evaluation.

    ``judged`` and ``reviewed`` count the comparisons with a verdict, or scores of both responses, by any judge or any
    reviewer; archived judges do not count. ``scored``: whether any response has a score. ``reviews`` counts the reviews
    saved by the current rubric version; ``wanted`` of these are wanted for each comparison. ``is_counting``: these
    are those of the last count, and what has changed since is being counted.
    """

    queries: int = 0
    candidates: int = 0
    people: int = 0
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
    is_counting: bool = False
    active_runs: int = 0
    failed_calls: int = 0
    exports: int = 0

    @property
    def importing(self) -> StepState:
        if self.imports_storing:
            return StepState.UNDER_WAY
        return StepState.DONE if self.comparisons or self.scored else StepState.TO_DO

    @property
    def judging(self) -> StepState:
        return get_step_state(self.judged, self.comparisons, under_way=self.active_runs > 0)

    @property
    def reviewing(self) -> StepState:
        is_partly_reviewed = 0 < self.reviews < self.wanted * self.comparisons
        return get_step_state(self.reviewed, self.comparisons, under_way=is_partly_reviewed)

    @property
    def reporting(self) -> StepState:
        """The state of the report, which is never finished: it needs both reviews and verdicts."""
        return StepState.UNDER_WAY if (self.reviewed and self.judged) or self.is_scores_alone else StepState.TO_DO

    @property
    def is_scores_alone(self) -> bool:
        return bool(self.scored and not self.comparisons)

    @property
    def has_report(self) -> bool:
        return bool(self.judged or self.reviewed or self.scored)

    @property
    def exporting(self) -> StepState:
        return StepState.DONE if self.exports else StepState.TO_DO

    def next_step(self, *, manages: bool, reviews: bool, exports: bool) -> NextStep:
        """The first unfinished step of the pipeline that this member can take."""
        if manages and (step := self.next_for_manager()):
            return step
        if reviews and self.reviewed_by_me < self.comparisons and self.reviewing != StepState.DONE:
            return NextStep.REVIEW
        if exports and self.reviewed and not self.exports:
            return NextStep.EXPORT
        return NextStep.REPORT if self.has_report else NextStep.WAIT

    def next_for_manager(self) -> NextStep | None:
        if not self.comparisons:
            if self.imports_to_confirm:
                return NextStep.STORE
            return None if self.scored else NextStep.IMPORT
        return NextStep.JUDGE if not self.judged and not self.active_runs else None


def get_step_state(done: int, total: int, *, under_way: bool = False) -> StepState:
    if under_way or 0 < done < total:
        return StepState.UNDER_WAY
    return StepState.DONE if total and done >= total else StepState.TO_DO


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
        "scored": (Evaluation.objects.filter(Exists(of_evaluation), pk__in=ids), "pk"),
        "active_runs": (Run.objects.filter(evaluation__in=ids, state__in=ACTIVE_RUN_STATES), "evaluation"),
        "failed_calls": (failed, "judge__evaluation"),
        "exports": (Export.objects.filter(evaluation__in=ids, state=ExportState.DONE), "evaluation"),
    }
    counts = [count_rows_by(rows, owner, Value(name)) for name, (rows, owner) in named.items()]
    by_word = [count_rows_by(imports, "evaluation", "state"), count_rows_by(judges, "evaluation", "kind")]
    names = {**IMPORT_COUNTS, **JUDGE_COUNTS}
    for pk, name, number in counts[0].union(*counts[1:], *by_word, all=True):
        yield pk, names.get(name, name), number


def count_rows_by(rows: "QuerySet[Any, Any]", owner: str, name: str | Value) -> "QuerySet[Any, Any]":
    """Evaluation, name and number: by the column ``owner``, and by the column or constant ``name``."""
    counted: QuerySet[Any, Any] = rows.order_by().values_list(owner, name).annotate(number=Count("pk"))
    return counted


@dataclass(frozen=True)
class EvaluationRow:
    evaluation: Evaluation
    role: Role
    progress: EvaluationProgress
    next: NextStep


def list_evaluation_rows(rows: Sequence[Evaluation], user: User) -> list[EvaluationRow]:
    roles = dict(Membership.objects.filter(user=user, evaluation__in=rows).values_list("evaluation_id", "role"))
    progress = count_evaluation_progress(rows, user)
    return [
        EvaluationRow(row, Role(roles[row.pk]), progress[row.pk], get_next_step(progress[row.pk], Role(roles[row.pk])))
        for row in rows
    ]


def get_next_step(progress: EvaluationProgress, role: Role) -> NextStep:
    return progress.next_step(
        manages=role in ALLOWED_ROLES[Action.MANAGE],
        reviews=role in ALLOWED_ROLES[Action.REVIEW],
        exports=role in ALLOWED_ROLES[Action.EXPORT],
    )


HIDDEN_OBJECT_TYPES: Final = {"review", "verdict", "span", "comment"}
RESOLUTION_VERBS: Final = {"adjudicated", "withdrew adjudication"}
MAX_VALUE_CHARACTERS: Final = 200


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
        change = EventChange(
            name.replace("_", " "),
            shorten_event_value(event.before.get(name)),
            shorten_event_value(event.after.get(name)),
        )
        if change.before is not None or change.after is not None:
            yield change


def shorten_event_value(value: object) -> str | None:
    if value is None or value == "":
        return None
    text = str(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:MAX_VALUE_CHARACTERS]}…"
