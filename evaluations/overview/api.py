"""API operations on evaluations, their settings and their events."""

from collections.abc import Mapping
from typing import Any, Final, cast

from ninja import Query

from evaluations.access import ALLOWED_ROLES, Action, get_role, require_evaluation
from evaluations.api.form_validation import clean_form, dump_sent_fields
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_optional_person
from evaluations.domain.roles import Role, Scope
from evaluations.evaluation_settings.forms import SETTINGS_COLUMNS, SettingsForm
from evaluations.evaluation_settings.schemas import (
    EvaluationSettingsOut,
    EvaluationSettingsPatch,
    FamiliesOut,
    FamiliesPatch,
    FamilyOut,
)
from evaluations.evaluation_settings.selectors import list_candidates_and_judges
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive, set_families, take_from_archive
from evaluations.models import comparisons
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.users import Membership
from evaluations.overview import services as overview_services
from evaluations.overview.forms import NewEvaluationForm
from evaluations.overview.schemas import (
    EvaluationDetailOut,
    EvaluationIn,
    EvaluationOut,
    EvaluationPage,
    EvaluationProgressOut,
    EventOut,
    EventPage,
    GuidelinesOut,
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
    """Those in which you take part, newest first."""
    mine = Evaluation.objects.of(request.user)
    token = request.auth
    if token.evaluation_id is not None:
        mine = mine.filter(pk=token.evaluation_id)
    rows, more = paginate_by_cursor(paging, mine.archived() if paging.archived else mine.current(), newest_first=True)
    roles = dict(Membership.objects.filter(user=token.user, evaluation__in=rows).values_list("evaluation_id", "role"))
    return EvaluationPage(items=[serialize_evaluation(row, Role(roles[row.pk])) for row in rows], next=more)


@operations.make("/evaluations", Scope.ADMIN, EvaluationOut)
def create_evaluation(request: AuthenticatedRequest, body: EvaluationIn) -> EvaluationOut:
    """A new study with a built-in rubric to begin with; you own it."""
    given = clean_form(NewEvaluationForm(dump_sent_fields(body)))
    made = overview_services.create_evaluation(
        slug=given["slug"], name=given["name"], owner=request.user, description=given["description"]
    )
    return serialize_evaluation(made, Role.OWNER)


@operations.get_one("/evaluations/{slug:slug}", Scope.READ, EvaluationDetailOut)
def get_evaluation(request: AuthenticatedRequest, slug: str) -> EvaluationDetailOut:
    """One at a glance: how far each step has come, and what to do now."""
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


# ---- rules ---------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/settings", Scope.READ, EvaluationSettingsOut)
def get_settings(request: AuthenticatedRequest, slug: str) -> EvaluationSettingsOut:
    """By which rules it is reviewed and labelled; for those who may change them."""
    return serialize_settings(require_evaluation(request.user, slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/settings", Scope.ADMIN, EvaluationSettingsOut)
def change_settings(request: AuthenticatedRequest, slug: str, body: EvaluationSettingsPatch) -> EvaluationSettingsOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    stands = serialize_settings(evaluation).model_dump(mode="json")
    form = SettingsForm(stands | dump_sent_fields(body), evaluation=evaluation)  # type: ignore[arg-type]
    return serialize_settings(change_evaluation(evaluation, clean_form(form), user=user))


def serialize_settings(evaluation: Evaluation) -> EvaluationSettingsOut:
    values = {name: getattr(evaluation, name) for name in SETTINGS_COLUMNS}
    values |= {"review_rubric": evaluation.review_rubric_id, "shown_judge": evaluation.shown_judge_id}
    return EvaluationSettingsOut(**values)


@operations.do("/evaluations/{slug:slug}/archive", Scope.ADMIN, EvaluationOut)
def archive_evaluation(request: AuthenticatedRequest, slug: str, body: EmptyIn | None = None) -> EvaluationOut:
    """Nothing is deleted: it leaves the list, and can be brought back."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return serialize_evaluation(move_to_archive(evaluation, user=user), cast(Role, get_role(user, evaluation)))


@operations.do("/evaluations/{slug:slug}/bring-back", Scope.ADMIN, EvaluationOut)
def bring_back_evaluation(request: AuthenticatedRequest, slug: str, body: EmptyIn | None = None) -> EvaluationOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    return serialize_evaluation(take_from_archive(evaluation, user=user), cast(Role, get_role(user, evaluation)))


@operations.get_one("/evaluations/{slug:slug}/guidelines", Scope.READ, GuidelinesOut)
def get_guidelines(request: AuthenticatedRequest, slug: str) -> GuidelinesOut:
    """What reviewers should know beforehand, as Markdown."""
    evaluation = require_evaluation(request.user, slug)
    return GuidelinesOut(guidelines=evaluation.guidelines, changed_at=evaluation.guidelines_changed_at)


# ---- record --------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/events", Scope.READ, EventPage)
def list_events(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> EventPage:
    """Who did what, newest first. What people chose is not told here."""
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


# ---- kin -----------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/families", Scope.READ, FamiliesOut)
def get_families(request: AuthenticatedRequest, slug: str) -> FamiliesOut:
    """Who made the candidates and the models of the judges."""
    return serialize_families(require_evaluation(request.user, slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/families", Scope.WRITE, FamiliesOut)
def change_families(request: AuthenticatedRequest, slug: str, body: FamiliesPatch) -> FamiliesOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    candidates, judges = list_candidates_and_judges(evaluation)
    of_candidates = merge_families(body.candidates, {row.pk: row for row in candidates}, "candidates")
    of_judges = merge_families(body.judges, {row.pk: row for row in judges}, "judges")
    set_families(evaluation, of_candidates, of_judges, user=user)
    return serialize_families(evaluation)


def merge_families(given: Mapping[str, str], rows: Mapping[int, Candidate | Judge], where: str) -> dict[int, str]:
    known = {str(pk): pk for pk in rows}
    for name in given:
        if name not in known:
            fault = FieldError(f"body.{where}.{name}", "There is nobody of this id here.")
            raise Problem("invalid", f"There is nobody of the id “{name[:40]}” here. Nothing was done.", faults=[fault])
    changed = {known[name]: family.strip() for name, family in given.items()}
    return {pk: changed.get(pk, row.family) for pk, row in rows.items()}


def serialize_families(evaluation: Evaluation) -> FamiliesOut:
    candidates, judges = list_candidates_and_judges(evaluation)

    def kin(rows: Any) -> list[FamilyOut]:
        return [FamilyOut(id=row.pk, name=row.name, family=row.family) for row in rows]

    return FamiliesOut(candidates=kin(candidates), judges=kin(judges))
