"""Questions about an evaluation's settings."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet
from django.utils import timezone

from evaluations.domain.reviews import AssignmentState
from evaluations.domain.rubrics import RubricKind, RubricOrigin
from evaluations.judge_prompts.builtin_rubrics import put_overall_first
from evaluations.models.comparisons import Candidate, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.queues import Assignment, Queue
from evaluations.models.rubrics import RubricVersion


@dataclass(frozen=True)
class RubricChangeImpact:
    """The open queues and assigned comparisons that a new rubric version would close."""

    queues: tuple[str, ...]
    given: int


def get_rubric_change_impact(evaluation: Evaluation) -> RubricChangeImpact:
    version = evaluation.review_rubric_id
    queues = Queue.objects.filter(rubric_version=version, closed_at__isnull=True).order_by("pk")
    assignments = Assignment.objects.filter(item__rubric_version=version, state=AssignmentState.ASSIGNED)
    return RubricChangeImpact(tuple(queues.values_list("name", flat=True)), assignments.count())


def list_review_rubrics(evaluation: Evaluation) -> QuerySet[RubricVersion]:
    """The rubric versions by which people can review."""
    versions = RubricVersion.objects.filter(rubric__evaluation=evaluation).exclude(
        # It describes imported scores, of which lower ones may be better.
        rubric__origin=RubricOrigin.IMPORTED,
        rubric__kind=RubricKind.POINTWISE,
    )
    return versions.select_related("rubric").order_by("rubric__name", "-number")


def can_ask_for_overall(evaluation: Evaluation) -> bool:
    """Whether the rubric for reviews is the newest version of one that Overall can be added to."""
    version = evaluation.review_rubric
    if version is None or not version.rubric.is_editable or put_overall_first(version.spec()) is None:
        return False
    return not version.rubric.versions.filter(number__gt=version.number).exists()


def list_showable_judges(evaluation: Evaluation) -> QuerySet[Judge]:
    """The judges whose choices reviewers can be shown."""
    return Judge.objects.current().filter(evaluation=evaluation).order_by("name")


def list_candidates_and_judges(evaluation: Evaluation) -> tuple[list[Candidate], list[Judge]]:
    """All candidates and judges, by name."""
    candidates = Candidate.objects.filter(evaluation=evaluation).order_by("name")
    return list(candidates), list(Judge.objects.filter(evaluation=evaluation).order_by("name"))


def count_responses_by_candidate(evaluation: Evaluation) -> dict[int, int]:
    responses = Response.objects.filter(candidate__evaluation=evaluation).order_by()
    return dict(responses.values_list("candidate").annotate(number=Count("pk")))


def get_bars_set_at(evaluation: Evaluation) -> datetime:
    """Since when the bars of decisions hold."""
    return evaluation.bars_changed_at or evaluation.created_at


def describe_bar_change(evaluation: Evaluation) -> str | None:
    """A sentence if the bars were changed after somebody had looked at decisions, else None."""
    changed, seen = evaluation.bars_changed_at, evaluation.results_seen_at
    if changed is None or seen is None or changed <= seen:
        return None
    changed, seen = timezone.localtime(changed), timezone.localtime(seen)
    if changed.date() == seen.date():
        return f"The decision limits were changed on {format_day(changed)}, after the results were first seen that day."
    first = format_day(seen, with_year=seen.year != changed.year)
    return f"The decision limits were changed on {format_day(changed)}, after the results were first seen on {first}."


def format_day(moment: datetime, *, with_year: bool = True) -> str:
    return f"{moment:%b} {moment.day}{f', {moment.year}' if with_year else ''}"
