"""API operations of queues and calibrations."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import ALLOWED_ROLES, Action, is_allowed, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_person
from evaluations.domain.reviews import QueueKind, SelectionMethod
from evaluations.domain.roles import Scope
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import Queue
from evaluations.models.users import Membership
from evaluations.reviews.queues.calibration import create_calibration, record_calibration_result_seen
from evaluations.reviews.queues.sampler import QueuePlan
from evaluations.reviews.queues.schemas import (
    AspectAgreementOut,
    AssignedOut,
    CalibrationIn,
    CalibrationMemberOut,
    CalibrationOut,
    CalibrationPage,
    DefaultQueueOut,
    QueueDetailOut,
    QueueIn,
    QueueOut,
    QueuePage,
    QueuePreviewOut,
    QueueSlotOut,
    QueueSlotPage,
    ReviewersIn,
    ReviewerWorkOut,
)
from evaluations.reviews.queues.selectors import (
    CalibrationResult,
    QueueStatus,
    get_calibration_result,
    get_calibration_results,
    get_default_queue_status,
    get_queue_statuses,
    get_queue_work,
    get_slot_statuses,
)
from evaluations.reviews.queues.services import (
    assign_queue_to_reviewers,
    close_queue,
    create_queue,
    find_reviewers,
    preview_queue,
    reopen_queue,
)
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["queues"])
# Lists show neither the messages of a query nor those of its responses: they are left unread.
SLOT_COLUMNS = (
    "queue",
    "position",
    "selection_method",
    "probability",
    "item__comparison__query__text",
    "item__comparison__evaluation",
)


@operations.get_one("/evaluations/{slug:slug}/rounds", Scope.READ, QueuePage)
def list_review_queues(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> QueuePage:
    """Queues, newest first, with the default queue."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    queues = Queue.objects.filter(evaluation=evaluation).select_related("evaluation", "rubric_version__rubric")
    rows, more = paginate_by_cursor(paging, queues, newest_first=True)
    how_far, default = get_queue_statuses(rows), get_default_queue_status(evaluation)
    return QueuePage(
        items=[queue_out(row, how_far[row.pk]) for row in rows],
        next=more,
        default_queue=DefaultQueueOut(
            comparisons=default.comparisons, drawn=default.drawn, reviews=default.reviews, wanted=default.wanted
        ),
    )


@operations.make("/evaluations/{slug:slug}/rounds", Scope.WRITE, QueueDetailOut)
def create_review_queue(request: AuthenticatedRequest, slug: str, body: QueueIn) -> QueueDetailOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    queue = create_queue(evaluation, body.name, plan_queue(evaluation, body), user=user)
    return queue_detail_out(find_queue_or_404(request, slug, queue.pk, Action.MANAGE))


@operations.do("/evaluations/{slug:slug}/rounds/preview", Scope.READ, QueuePreviewOut)
def preview_review_queue(request: AuthenticatedRequest, slug: str, body: QueueIn) -> QueuePreviewOut:
    """Preview the items of a queue. Nothing is created."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    ahead = preview_queue(evaluation, plan_queue(evaluation, body))
    return QueuePreviewOut(matching=ahead.matching, at_random=ahead.at_random, by_strategy=ahead.by_strategy)


def plan_queue(evaluation: Evaluation, body: QueueIn) -> QueuePlan:
    people = find_reviewers(evaluation, body.people)
    return QueuePlan(
        body.strategy, body.strata, body.size, body.random_percent, body.reviews_wanted, body.who, people, body.seed
    )


@operations.make("/evaluations/{slug:slug}/rounds/calibration", Scope.WRITE, QueueDetailOut)
def create_calibration_queue(request: AuthenticatedRequest, slug: str, body: CalibrationIn) -> QueueDetailOut:
    """Create a calibration queue: comparisons with known labels that every reviewer gets first."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    queue = create_calibration(
        evaluation, name=body.name, size=body.size, comparisons=body.comparisons, seed=body.seed, user=user
    )
    return queue_detail_out(find_queue_or_404(request, slug, queue.pk, Action.MANAGE))


@operations.get_one("/evaluations/{slug:slug}/rounds/{int:pk}", Scope.READ, QueueDetailOut)
def get_review_queue(request: AuthenticatedRequest, slug: str, pk: int) -> QueueDetailOut:
    return queue_detail_out(find_queue_or_404(request, slug, pk, Action.SEE_ALL))


@operations.get_one("/evaluations/{slug:slug}/rounds/{int:pk}/comparisons", Scope.READ, QueueSlotPage)
def list_queue_slots(request: AuthenticatedRequest, slug: str, pk: int, paging: Query[PageQuery]) -> QueueSlotPage:
    """The comparisons of a queue: how each was selected, with what probability, and who reviewed it."""
    queue = find_queue_or_404(request, slug, pk, Action.SEE_ALL)
    slots = queue.slots.select_related("queue", "item__comparison__query").only(*SLOT_COLUMNS)
    rows, more = paginate_by_cursor(paging, slots)
    items = [
        QueueSlotOut(
            comparison=status.slot.item.comparison_id,
            position=status.slot.position,
            picked_by=SelectionMethod(status.slot.selection_method),
            probability=status.slot.probability,
            done=list(status.done),
            waiting=list(status.waiting),
        )
        for status in get_slot_statuses(rows)
    ]
    return QueueSlotPage(items=items, next=more)


@operations.do("/evaluations/{slug:slug}/rounds/{int:pk}/people", Scope.WRITE, AssignedOut)
def assign_review_queue(request: AuthenticatedRequest, slug: str, pk: int, body: ReviewersIn) -> AssignedOut:
    """Assign the queue's comparisons to these reviewers."""
    queue = find_queue_or_404(request, slug, pk, Action.MANAGE)
    people = find_reviewers(queue.evaluation, body.people)
    return AssignedOut(assigned=assign_queue_to_reviewers(queue, people, request.user))


@operations.do("/evaluations/{slug:slug}/rounds/{int:pk}/close", Scope.WRITE, QueueDetailOut)
def close_review_queue(
    request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None
) -> QueueDetailOut:
    """Close the queue to reviewers. Every review stays."""
    close_queue(find_queue_or_404(request, slug, pk, Action.MANAGE), request.user)
    return queue_detail_out(find_queue_or_404(request, slug, pk, Action.MANAGE))


@operations.do("/evaluations/{slug:slug}/rounds/{int:pk}/open", Scope.WRITE, QueueDetailOut)
def reopen_review_queue(
    request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None
) -> QueueDetailOut:
    reopen_queue(find_queue_or_404(request, slug, pk, Action.MANAGE), request.user)
    return queue_detail_out(find_queue_or_404(request, slug, pk, Action.MANAGE))


@operations.get_one("/evaluations/{slug:slug}/rounds/{int:pk}/calibration", Scope.READ, CalibrationPage)
def get_calibration_of_queue(
    request: AuthenticatedRequest, slug: str, pk: int, paging: Query[PageQuery]
) -> CalibrationPage:
    """Your first choices compared with the known labels; everyone's, if you may see all."""
    user = request.user
    queue = find_queue_or_404(request, slug, pk, Action.LOOK)
    if queue.kind != QueueKind.CALIBRATION:
        raise Http404
    mine = get_calibration_result(
        queue, Rater.objects.filter(evaluation=queue.evaluation, user=user).first() or Rater(pk=0)
    )
    if mine.progress.is_finished:
        record_calibration_result_seen(queue, user)
    rows: list[CalibrationMemberOut] = []
    more = None
    if is_allowed(user, Action.SEE_ALL, queue.evaluation):
        members = Membership.objects.filter(evaluation=queue.evaluation, role__in=ALLOWED_ROLES[Action.REVIEW])
        page, more = paginate_by_cursor(paging, members.select_related("user"))
        rows = calibration_members_out(queue, page)
    return CalibrationPage(mine=calibration_out(mine), items=rows, next=more)


def calibration_out(mine: CalibrationResult) -> CalibrationOut:
    """An unfinished calibration shows progress only, and no known label."""
    whole_now = mine.progress.is_finished
    return CalibrationOut(
        done=mine.progress.done,
        total=mine.progress.total,
        is_finished=whole_now,
        skipped=mine.skipped,
        agreements=agreements_out(mine) if whole_now else [],
    )


def agreements_out(one: CalibrationResult) -> list[AspectAgreementOut]:
    return [
        AspectAgreementOut(aspect=each.aspect.key, compared=each.compared, agreed=each.agreed)
        for each in one.agreements
    ]


def calibration_members_out(queue: Queue, page: list[Membership]) -> list[CalibrationMemberOut]:
    users = [member.user_id for member in page]
    raters = {rater.user_id: rater for rater in Rater.objects.filter(evaluation=queue.evaluation, user__in=users)}
    found = get_calibration_results(queue, list(raters.values()))
    rows = []
    for member in page:
        rater = raters.get(member.user_id)
        if rater is None or not found[rater.pk].progress.done:
            continue
        one = found[rater.pk]
        rows.append(
            CalibrationMemberOut(
                person=serialize_person(member.user),
                done=one.progress.done,
                total=one.progress.total,
                agreements=agreements_out(one),
            )
        )
    return rows


def find_queue_or_404(request: AuthenticatedRequest, slug: str, pk: int, action: Action) -> Queue:
    evaluation = require_evaluation(request.user, slug, action)
    found = Queue.objects.select_related("user", "rubric_version__rubric")
    queue = get_object_or_404(found, evaluation=evaluation, pk=pk)
    queue.evaluation = evaluation
    return queue


def queue_out(queue: Queue, how_far: QueueStatus) -> QueueOut:
    return QueueOut(
        id=queue.pk,
        name=queue.name,
        kind=QueueKind(queue.kind),
        strategy=SelectionMethod(queue.strategy),
        random_percent=queue.random_percent,
        reviews_wanted=queue.reviews_wanted,
        assigned_only=queue.assigned_only,
        is_closed=queue.closed_at is not None,
        is_outdated=queue.is_outdated,
        comparisons=how_far.comparisons,
        reviews=how_far.reviews,
        people=how_far.people,
        created_at=queue.created_at,
    )


def queue_detail_out(queue: Queue) -> QueueDetailOut:
    work = [
        ReviewerWorkOut(
            name=one.name,
            done=one.done,
            assigned=one.assigned,
            open=one.open,
            skipped=one.skipped,
            median_seconds=one.median_seconds,
        )
        for one in get_queue_work(queue)
    ]
    return QueueDetailOut(**queue_out(queue, get_queue_statuses([queue])[queue.pk]).model_dump(), work=work)
