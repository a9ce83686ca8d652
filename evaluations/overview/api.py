"""API operations on evaluations and their events."""

from typing import Final, cast

from ninja import Query

from evaluations.access import ALLOWED_ROLES, Action, get_role, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_person
from evaluations.domain.roles import Role, Scope
from evaluations.evaluation_settings.services import move_to_archive, take_from_archive
from evaluations.models import comparisons
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import Membership
from evaluations.overview import services as overview_services
from evaluations.overview.schemas import (
    EvaluationDetailOut,
    EvaluationIn,
    EvaluationOut,
    EvaluationPage,
    EvaluationProgressOut,
    EventOut,
    EventPage,
)
from evaluations.overview.selectors import EvaluationProgress, count_evaluation_progress
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["evaluations"])
# What people chose is not told here: someone who reviews still would no longer be blind.
API_HIDDEN_OBJECT_TYPES: Final = {"review", "verdict", "span", "comment"}
API_RESOLUTION_VERBS: Final = {"adjudicated", "withdrew adjudication"}


class EvaluationQuery(PageQuery):
    archived: bool = False


@operations.get_one("/evaluations", Scope.READ, EvaluationPage, site_wide=True)
def list_evaluations(request: ApiRequest, paging: Query[EvaluationQuery]) -> EvaluationPage:
    """List the evaluations of which you are a member, newest first."""
    mine = Evaluation.objects.of(request.user)
    token = request.auth
    if token.evaluation_id is not None:
        mine = mine.filter(pk=token.evaluation_id)
    rows, more = paginate_by_cursor(paging, mine.archived() if paging.archived else mine.current(), newest_first=True)
    roles = dict(Membership.objects.filter(user=token.user, evaluation__in=rows).values_list("evaluation_id", "role"))
    return EvaluationPage(items=[serialize_evaluation(row, Role(roles[row.pk])) for row in rows], next=more)


@operations.make("/evaluations", Scope.ADMIN, EvaluationOut)
def create_evaluation(request: AuthenticatedRequest, body: EvaluationIn) -> EvaluationOut:
    """Create an evaluation with a built-in rubric. You are its owner."""
    slug = body.slug.strip() or overview_services.suggest_slug(body.name)
    made = overview_services.create_evaluation(
        slug=slug, name=body.name, owner=request.user, description=body.description
    )
    return serialize_evaluation(made, Role.OWNER)


@operations.get_one("/evaluations/{slug:slug}", Scope.READ, EvaluationDetailOut)
def get_evaluation(request: AuthenticatedRequest, slug: str) -> EvaluationDetailOut:
    """Get an evaluation with the progress of each step and the next one."""
    user = request.user
    found = require_evaluation(user, slug)
    role = cast(Role, get_role(user, found))
    standing = count_evaluation_progress([found], user)[found.pk]
    return EvaluationDetailOut(
        **serialize_evaluation(found, role).model_dump(),
        guidelines=found.guidelines,
        queries=comparisons.Query.objects.filter(evaluation=found).count(),
        candidates=Candidate.objects.filter(evaluation=found).count(),
        people=Membership.objects.filter(evaluation=found).count(),
        standing=serialize_progress(standing),
        next_step=standing.next_step(
            manages=role in ALLOWED_ROLES[Action.MANAGE],
            reviews=role in ALLOWED_ROLES[Action.REVIEW],
            exports=role in ALLOWED_ROLES[Action.EXPORT],
        ),
    )


def serialize_evaluation(evaluation: Evaluation, role: Role) -> EvaluationOut:
    return EvaluationOut(
        slug=evaluation.slug,
        name=evaluation.name,
        description=evaluation.description,
        role=role,
        archived=evaluation.archived_at is not None,
        created_at=evaluation.created_at,
    )


def serialize_progress(standing: EvaluationProgress) -> EvaluationProgressOut:
    return EvaluationProgressOut(
        comparisons=standing.comparisons,
        judged=standing.judged,
        reviewed=standing.reviewed,
        reviews=standing.reviews,
        reviews_wanted_of_each=standing.wanted,
        judges=standing.judges + standing.imported_judges,
        active_runs=standing.active_runs,
        failed_calls=standing.failed_calls,
        exports=standing.exports,
    )


@operations.do("/evaluations/{slug:slug}/archive", Scope.ADMIN, EvaluationOut)
def archive_evaluation(request: AuthenticatedRequest, slug: str, body: EmptyIn | None = None) -> EvaluationOut:
    """Archive an evaluation. Nothing is deleted, and you can restore it."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return serialize_evaluation(move_to_archive(evaluation, user=user), cast(Role, get_role(user, evaluation)))


@operations.do("/evaluations/{slug:slug}/bring-back", Scope.ADMIN, EvaluationOut)
def bring_back_evaluation(request: AuthenticatedRequest, slug: str, body: EmptyIn | None = None) -> EvaluationOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return serialize_evaluation(take_from_archive(evaluation, user=user), cast(Role, get_role(user, evaluation)))


# ---- record --------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/events", Scope.READ, EventPage)
def list_events(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> EventPage:
    """List audit events, newest first. They do not include anyone's choices."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    found = Event.objects.filter(evaluation=evaluation).select_related("user", "token")
    rows, more = paginate_by_cursor(paging, found, newest_first=True)
    return EventPage(items=[serialize_event(row) for row in rows], next=more)


def serialize_event(event: Event) -> EventOut:
    hides = event.object_type in API_HIDDEN_OBJECT_TYPES or event.verb in API_RESOLUTION_VERBS
    return EventOut(
        id=event.pk,
        created_at=event.created_at,
        verb=event.verb,
        object_type=event.object_type,
        object_id=event.object_id,
        person=serialize_optional_person(event.user),
        through_token=event.token.name if event.token else None,
        before={} if hides else event.before,
        after={} if hides else event.after,
    )
