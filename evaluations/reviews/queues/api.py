"""API operations of queues and calibrations."""

from django.http import Http404
from ninja import Query

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import ArchivePageQuery, PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_row, serialize_user
from evaluations.domain.reviews import QueueKind, SelectionMethod
from evaluations.domain.roles import Scope
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Queue
from evaluations.reviews.queues.calibration import (
    create_calibration,
    get_calibration_rows,
    get_own_calibration_result,
    get_reviewing_members,
    record_calibration_result_seen,
)
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
    get_default_queue_status,
    get_queue_or_404,
    get_queue_statuses,
    get_queue_work,
    get_slot_statuses,
    list_queues,
    list_slots,
)
from evaluations.reviews.queues.services import (
    archive_queue,
    assign_queue_to_reviewers,
    create_queue,
    delete_queue,
    find_reviewers,
    preview_queue,
    restore_queue,
)
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["queues"])


@operations.get_one("/evaluations/{slug:slug}/queues", Scope.READ, QueuePage)
def list_review_queues(request: AuthenticatedRequest, slug: str, paging: Query[ArchivePageQuery]) -> QueuePage:
    """Current queues, or archived ones with `archived`, newest first, with the default queue."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    queues = list_queues(evaluation, archived=paging.archived)
    rows, next_cursor = paginate_by_cursor(paging, queues, newest_first=True)
    statuses = get_queue_statuses(rows)
    return QueuePage(
        items=[queue_out(statuses[row.pk]) for row in rows],
        next=next_cursor,
        default_queue=serialize_row(DefaultQueueOut, get_default_queue_status(evaluation)),
    )


@operations.make("/evaluations/{slug:slug}/queues", Scope.WRITE, QueueDetailOut)
def create_review_queue(request: AuthenticatedRequest, slug: str, body: QueueIn) -> QueueDetailOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    queue = create_queue(evaluation, body.name, plan_queue(evaluation, body), user=user)
    return queue_detail_out(get_queue_or_404(request.user, slug, queue.pk, Action.MANAGE))


@operations.do("/evaluations/{slug:slug}/queues/preview", Scope.READ, QueuePreviewOut)
def preview_review_queue(request: AuthenticatedRequest, slug: str, body: QueueIn) -> QueuePreviewOut:
    """Preview the items of a queue. Nothing is created."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    return serialize_row(QueuePreviewOut, preview_queue(evaluation, plan_queue(evaluation, body)))


def plan_queue(evaluation: Evaluation, body: QueueIn) -> QueuePlan:
    people = find_reviewers(evaluation, body.reviewers)
    return QueuePlan(
        body.strategy, body.strata, body.size, body.random_percent, body.reviews_wanted, body.who, people, body.seed
    )


@operations.make("/evaluations/{slug:slug}/queues/calibration", Scope.WRITE, QueueDetailOut)
def create_calibration_queue(request: AuthenticatedRequest, slug: str, body: CalibrationIn) -> QueueDetailOut:
    """Create a calibration queue: comparisons with gold labels that every reviewer gets first."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    queue = create_calibration(
        evaluation, name=body.name, size=body.size, comparisons=body.comparisons, seed=body.seed, user=user
    )
    return queue_detail_out(get_queue_or_404(request.user, slug, queue.pk, Action.MANAGE))


@operations.get_one("/evaluations/{slug:slug}/queues/{int:pk}", Scope.READ, QueueDetailOut)
def get_review_queue(request: AuthenticatedRequest, slug: str, pk: int) -> QueueDetailOut:
    return queue_detail_out(get_queue_or_404(request.user, slug, pk, Action.SEE_ALL))


@operations.get_one("/evaluations/{slug:slug}/queues/{int:pk}/comparisons", Scope.READ, QueueSlotPage)
def list_queue_slots(request: AuthenticatedRequest, slug: str, pk: int, paging: Query[PageQuery]) -> QueueSlotPage:
    """The comparisons of a queue: how each was selected, with what probability, and who reviewed it."""
    queue = get_queue_or_404(request.user, slug, pk, Action.SEE_ALL)
    rows, next_cursor = paginate_by_cursor(paging, list_slots(queue))
    items = [
        QueueSlotOut(
            comparison=status.slot.item.comparison_id,
            position=status.slot.position,
            selection_method=SelectionMethod(status.slot.selection_method),
            probability=status.slot.probability,
            done=list(status.done),
            waiting=list(status.waiting),
        )
        for status in get_slot_statuses(rows)
    ]
    return QueueSlotPage(items=items, next=next_cursor)


@operations.do("/evaluations/{slug:slug}/queues/{int:pk}/assign", Scope.WRITE, AssignedOut)
def assign_review_queue(request: AuthenticatedRequest, slug: str, pk: int, body: ReviewersIn) -> AssignedOut:
    """Assign the queue's comparisons to these reviewers."""
    queue = get_queue_or_404(request.user, slug, pk, Action.MANAGE)
    people = find_reviewers(queue.evaluation, body.reviewers)
    return AssignedOut(assigned=assign_queue_to_reviewers(queue, people, request.user))


@operations.do("/evaluations/{slug:slug}/queues/{int:pk}/archive", Scope.WRITE, QueueDetailOut)
def archive_review_queue(
    request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None
) -> QueueDetailOut:
    """Archive the queue: reviewers no longer get it. Every review stays."""
    archive_queue(get_queue_or_404(request.user, slug, pk, Action.MANAGE), request.user)
    return queue_detail_out(get_queue_or_404(request.user, slug, pk, Action.MANAGE))


@operations.do("/evaluations/{slug:slug}/queues/{int:pk}/restore", Scope.WRITE, QueueDetailOut)
def restore_review_queue(
    request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None
) -> QueueDetailOut:
    """Restore an archived queue."""
    restore_queue(get_queue_or_404(request.user, slug, pk, Action.MANAGE), request.user)
    return queue_detail_out(get_queue_or_404(request.user, slug, pk, Action.MANAGE))


@operations.remove("/evaluations/{slug:slug}/queues/{int:pk}", Scope.WRITE)
def delete_review_queue(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Delete a queue in which nothing was reviewed."""
    delete_queue(get_queue_or_404(request.user, slug, pk, Action.MANAGE), request.user)


@operations.get_one("/evaluations/{slug:slug}/queues/{int:pk}/calibration", Scope.READ, CalibrationPage)
def get_calibration_of_queue(
    request: AuthenticatedRequest, slug: str, pk: int, paging: Query[PageQuery]
) -> CalibrationPage:
    """Your first choices vs. gold labels; everyone's, if you may see all."""
    user = request.user
    queue = get_queue_or_404(request.user, slug, pk, Action.LOOK)
    if queue.kind != QueueKind.CALIBRATION:
        raise Http404
    mine = get_own_calibration_result(queue, user)
    if mine.progress.is_finished:
        record_calibration_result_seen(queue, user)
    items: list[CalibrationMemberOut] = []
    next_cursor = None
    if is_allowed(user, Action.SEE_ALL, queue.evaluation):
        members, next_cursor = paginate_by_cursor(paging, get_reviewing_members(queue))
        items = [
            serialize_row(
                CalibrationMemberOut,
                row.result.progress,
                user=serialize_user(row.member.user),
                agreements=agreements_out(row.result),
            )
            for row in get_calibration_rows(queue, members)
            if row.result is not None
        ]
    return CalibrationPage(mine=calibration_out(mine), items=items, next=next_cursor)


def calibration_out(mine: CalibrationResult) -> CalibrationOut:
    """An unfinished calibration shows progress only, and no known label."""
    agreements = agreements_out(mine) if mine.progress.is_finished else []
    return serialize_row(CalibrationOut, mine.progress, skipped=mine.skipped, agreements=agreements)


def agreements_out(result: CalibrationResult) -> list[AspectAgreementOut]:
    return [
        serialize_row(AspectAgreementOut, agreement, aspect=agreement.aspect.key) for agreement in result.agreements
    ]


def queue_out(status: QueueStatus) -> QueueOut:
    queue = status.queue
    return serialize_row(
        QueueOut,
        queue,
        archived=queue.closed_at is not None,
        comparisons=status.comparisons,
        reviews=status.reviews,
        reviewers=status.people,
    )


def queue_detail_out(queue: Queue) -> QueueDetailOut:
    work = [serialize_row(ReviewerWorkOut, reviewer) for reviewer in get_queue_work(queue)]
    return QueueDetailOut(**queue_out(get_queue_statuses([queue])[queue.pk]).model_dump(), work=work)
