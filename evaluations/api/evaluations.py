"""Evaluations: the list, one, its rules, its record, and its kin."""

from collections.abc import Mapping
from typing import Any, Final, cast

from django.http import HttpRequest
from ninja import Query

from evaluations import access
from evaluations.access import ALLOWED, Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, sent
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.evaluations import (
    EvaluationNew,
    EvaluationPage,
    EvaluationTold,
    EvaluationWhole,
    EventPage,
    EventTold,
    FamiliesChange,
    FamiliesTold,
    GuidelinesTold,
    Kin,
    SettingsChange,
    SettingsTold,
    StandingTold,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import anyone_told
from evaluations.domain import Role, Scope
from evaluations.forms.evaluation_new import EvaluationForm
from evaluations.forms.evaluation_settings import COLUMNS, SettingsForm
from evaluations.models import ApiToken, Candidate, Evaluation, Event, Judge, Membership
from evaluations.models import Query as AskedQuery
from evaluations.services.preparing import preparing
from evaluations.services.preparing.relating import candidates_and_judges, set_families
from evaluations.services.preparing.surveying import Standing, standings

operations = Operations(tags=["evaluations"])
# What people chose is not told here: someone who reviews still would no longer be blind.
WITHOUT_DETAILS: Final = {"review", "verdict", "span", "comment"}
SETTLING: Final = {"adjudicated", "withdrew adjudication"}


class Listed(Paging):
    archived: bool = False


@operations.get_one("/evaluations", Scope.READ, EvaluationPage, site_wide=True)
def list_evaluations(request: HttpRequest, paging: Query[Listed]) -> EvaluationPage:
    """Those in which you take part, newest first."""
    mine = Evaluation.objects.of(person(request))
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    if token.evaluation_id is not None:
        mine = mine.filter(pk=token.evaluation_id)
    rows, more = page_of(paging, mine.archived() if paging.archived else mine.current(), newest_first=True)
    roles = dict(Membership.objects.filter(user=token.user, evaluation__in=rows).values_list("evaluation_id", "role"))
    return EvaluationPage(items=[told(row, Role(roles[row.pk])) for row in rows], next=more)


@operations.make("/evaluations", Scope.ADMIN, EvaluationTold)
def create_evaluation(request: HttpRequest, body: EvaluationNew) -> EvaluationTold:
    """A new study with a built-in rubric to begin with; you own it."""
    given = checked(EvaluationForm(sent(body)))
    made = preparing.create_evaluation(
        slug=given["slug"], name=given["name"], owner=person(request), description=given["description"]
    )
    return told(made, Role.OWNER)


@operations.get_one("/evaluations/{slug:slug}", Scope.READ, EvaluationWhole)
def get_evaluation(request: HttpRequest, slug: str) -> EvaluationWhole:
    """One at a glance: how far each step has come, and what to do now."""
    user = person(request)
    found = access.evaluation_for(user, slug)
    role = cast(Role, access.role_in(user, found))
    standing = standings([found], user)[found.pk]
    return EvaluationWhole(
        **told(found, role).model_dump(),
        guidelines=found.guidelines,
        queries=AskedQuery.objects.filter(evaluation=found).count(),
        candidates=Candidate.objects.filter(evaluation=found).count(),
        people=Membership.objects.filter(evaluation=found).count(),
        standing=standing_told(standing),
        next_step=standing.next_step(
            manages=role in ALLOWED[Action.MANAGE],
            reviews=role in ALLOWED[Action.REVIEW],
            exports=role in ALLOWED[Action.EXPORT],
        ),
    )


def told(evaluation: Evaluation, role: Role) -> EvaluationTold:
    return EvaluationTold(
        slug=evaluation.slug,
        name=evaluation.name,
        description=evaluation.description,
        role=role,
        archived=evaluation.archived_at is not None,
        created_at=evaluation.created_at,
    )


def standing_told(standing: Standing) -> StandingTold:
    return StandingTold(
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


@operations.get_one("/evaluations/{slug:slug}/settings", Scope.READ, SettingsTold)
def get_settings(request: HttpRequest, slug: str) -> SettingsTold:
    """By which rules it is reviewed and labelled; for those who may change them."""
    return settings_told(access.evaluation_for(person(request), slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/settings", Scope.ADMIN, SettingsTold)
def change_settings(request: HttpRequest, slug: str, body: SettingsChange) -> SettingsTold:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    stands = settings_told(evaluation).model_dump(mode="json")
    form = SettingsForm(stands | sent(body), evaluation=evaluation)  # type: ignore[arg-type]
    return settings_told(preparing.change_evaluation(evaluation, checked(form), user=user))


def settings_told(evaluation: Evaluation) -> SettingsTold:
    values = {name: getattr(evaluation, name) for name in COLUMNS}
    values |= {"review_rubric": evaluation.review_rubric_id, "shown_judge": evaluation.shown_judge_id}
    return SettingsTold(**values)


@operations.do("/evaluations/{slug:slug}/archive", Scope.ADMIN, EvaluationTold)
def archive_evaluation(request: HttpRequest, slug: str, body: NothingSent | None = None) -> EvaluationTold:
    """Nothing is deleted: it leaves the list, and can be brought back."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    return told(preparing.archive(evaluation, user=user), cast(Role, access.role_in(user, evaluation)))


@operations.do("/evaluations/{slug:slug}/bring-back", Scope.ADMIN, EvaluationTold)
def bring_back_evaluation(request: HttpRequest, slug: str, body: NothingSent | None = None) -> EvaluationTold:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    return told(preparing.bring_back(evaluation, user=user), cast(Role, access.role_in(user, evaluation)))


@operations.get_one("/evaluations/{slug:slug}/guidelines", Scope.READ, GuidelinesTold)
def get_guidelines(request: HttpRequest, slug: str) -> GuidelinesTold:
    """What reviewers should know beforehand, as Markdown."""
    evaluation = access.evaluation_for(person(request), slug)
    return GuidelinesTold(guidelines=evaluation.guidelines, changed_at=evaluation.guidelines_changed_at)


# ---- record --------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/events", Scope.READ, EventPage)
def list_events(request: HttpRequest, slug: str, paging: Query[Paging]) -> EventPage:
    """Who did what, newest first. What people chose is not told here."""
    evaluation = access.evaluation_for(person(request), slug, Action.SEE_ALL)
    found = Event.objects.filter(evaluation=evaluation).select_related("user", "token")
    rows, more = page_of(paging, found, newest_first=True)
    return EventPage(items=[event_told(row) for row in rows], next=more)


def event_told(event: Event) -> EventTold:
    hides = event.object_type in WITHOUT_DETAILS or event.verb in SETTLING
    return EventTold(
        id=event.pk,
        created_at=event.created_at,
        verb=event.verb,
        object_type=event.object_type,
        object_id=event.object_id,
        person=anyone_told(event.user),
        through_token=event.token.name if event.token else None,
        before={} if hides else event.before,
        after={} if hides else event.after,
    )


# ---- kin -----------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/families", Scope.READ, FamiliesTold)
def get_families(request: HttpRequest, slug: str) -> FamiliesTold:
    """Who made the candidates and the models of the judges."""
    return families_told(access.evaluation_for(person(request), slug, Action.MANAGE))


@operations.change("/evaluations/{slug:slug}/families", Scope.WRITE, FamiliesTold)
def change_families(request: HttpRequest, slug: str, body: FamiliesChange) -> FamiliesTold:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    candidates, judges = candidates_and_judges(evaluation)
    of_candidates = families_of(body.candidates, {row.pk: row for row in candidates}, "candidates")
    of_judges = families_of(body.judges, {row.pk: row for row in judges}, "judges")
    set_families(evaluation, of_candidates, of_judges, user=user)
    return families_told(evaluation)


def families_of(given: Mapping[str, str], rows: Mapping[int, Candidate | Judge], where: str) -> dict[int, str]:
    known = {str(pk): pk for pk in rows}
    for name in given:
        if name not in known:
            fault = Fault(f"body.{where}.{name}", "There is nobody of this id here.")
            raise Problem("invalid", f"There is nobody of the id “{name[:40]}” here. Nothing was done.", faults=[fault])
    changed = {known[name]: family.strip() for name, family in given.items()}
    return {pk: changed.get(pk, row.family) for pk, row in rows.items()}


def families_told(evaluation: Evaluation) -> FamiliesTold:
    candidates, judges = candidates_and_judges(evaluation)

    def kin(rows: Any) -> list[Kin]:
        return [Kin(id=row.pk, name=row.name, family=row.family) for row in rows]

    return FamiliesTold(candidates=kin(candidates), judges=kin(judges))
