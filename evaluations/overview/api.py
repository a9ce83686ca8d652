"""API operations on evaluations and their events."""

from typing import cast

from ninja import Query

from evaluations.access import Action, get_role, is_allowed, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import ArchivePageQuery, PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_user, serialize_row
from evaluations.domain.roles import Role, Scope
from evaluations.evaluation_settings.services import move_to_archive, take_from_archive
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import Membership
from evaluations.overview import deletion
from evaluations.overview import services as overview_services
from evaluations.overview.schemas import (
    EvaluationDeletionIn,
    EvaluationDeletionOut,
    EvaluationDetailOut,
    EvaluationIn,
    EvaluationOut,
    EvaluationPage,
    EvaluationProgressOut,
    EventOut,
    EventPage,
)
from evaluations.overview.selectors import count_evaluation_progress, get_next_step, has_hidden_choices
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["evaluations"])


@operations.get_one("/evaluations", Scope.READ, EvaluationPage, site_wide=True)
def list_evaluations(request: ApiRequest, paging: Query[ArchivePageQuery]) -> EvaluationPage:
    """List the evaluations of which you are a member, newest first."""
    mine = Evaluation.objects.of(request.user)
    token = request.auth
    if token.evaluation_id is not None:
        mine = mine.filter(pk=token.evaluation_id)
    listed = mine.archived() if paging.archived else mine.current()
    rows, next_cursor = paginate_by_cursor(paging, listed, newest_first=True)
    roles = dict(Membership.objects.filter(user=token.user, evaluation__in=rows).values_list("evaluation_id", "role"))
    return EvaluationPage(items=[serialize_evaluation(row, Role(roles[row.pk])) for row in rows], next=next_cursor)


@operations.make("/evaluations", Scope.ADMIN, EvaluationOut)
def create_evaluation(request: AuthenticatedRequest, body: EvaluationIn) -> EvaluationOut:
    """Create an evaluation with a built-in rubric. You are its owner."""
    slug = body.slug.strip() or overview_services.suggest_slug(body.name)
    evaluation = overview_services.create_evaluation(
        slug=slug, name=body.name, owner=request.user, by=request.user, description=body.description
    )
    return serialize_evaluation(evaluation, Role.OWNER)


@operations.get_one("/evaluations/{slug:slug}", Scope.READ, EvaluationDetailOut)
def get_evaluation(request: AuthenticatedRequest, slug: str) -> EvaluationDetailOut:
    """Get an evaluation with the progress of each step and the next one."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    role = cast(Role, get_role(user, evaluation))
    progress = count_evaluation_progress([evaluation], user)[evaluation.pk]
    counts = serialize_row(
        EvaluationProgressOut,
        progress,
        judges=progress.judges + progress.imported_judges,
        reviews_per_comparison=progress.wanted,
        open_disagreements=progress.open_disagreements if is_allowed(user, Action.SEE_ALL, evaluation) else None,
    )
    return serialize_row(
        EvaluationDetailOut,
        evaluation,
        role=role,
        archived=evaluation.archived_at is not None,
        queries=progress.queries,
        candidates=progress.candidates,
        members=progress.people,
        progress=counts,
        next_step=get_next_step(progress, role),
    )


def serialize_evaluation(evaluation: Evaluation, role: Role) -> EvaluationOut:
    return serialize_row(EvaluationOut, evaluation, role=role, archived=evaluation.archived_at is not None)


@operations.do("/evaluations/{slug:slug}/archive", Scope.ADMIN, EvaluationOut)
def archive_evaluation(request: AuthenticatedRequest, slug: str, body: EmptyIn | None = None) -> EvaluationOut:
    """Archive an evaluation. Nothing is deleted, and you can restore it."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return serialize_evaluation(move_to_archive(evaluation, user=user), cast(Role, get_role(user, evaluation)))


@operations.do("/evaluations/{slug:slug}/restore", Scope.ADMIN, EvaluationOut)
def restore_evaluation(request: AuthenticatedRequest, slug: str, body: EmptyIn | None = None) -> EvaluationOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return serialize_evaluation(take_from_archive(evaluation, user=user), cast(Role, get_role(user, evaluation)))


@operations.do("/evaluations/{slug:slug}/delete", Scope.ADMIN, EvaluationDeletionOut)
def delete_evaluation(request: AuthenticatedRequest, slug: str, body: EvaluationDeletionIn) -> EvaluationDeletionOut:
    """Delete an evaluation for good, in the background. Refused while runs or jobs are in progress."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    deletion.delete_evaluation(evaluation, body.name, user=request.user)
    return EvaluationDeletionOut(slug=slug)


@operations.get_one("/evaluations/{slug:slug}/events", Scope.READ, EventPage)
def list_events(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> EventPage:
    """List audit events, newest first. They do not include anyone's choices."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    events = Event.objects.filter(evaluation=evaluation).select_related("user", "token")
    rows, next_cursor = paginate_by_cursor(paging, events, newest_first=True)
    return EventPage(items=[serialize_event(row) for row in rows], next=next_cursor)


def serialize_event(event: Event) -> EventOut:
    is_hidden = has_hidden_choices(event)
    return serialize_row(
        EventOut,
        event,
        user=serialize_optional_user(event.user),
        through_token=event.token.name if event.token else None,
        before={} if is_hidden else event.before,
        after={} if is_hidden else event.after,
    )
