"""Rounds: comparisons put before people together, in a stated order of work; calibration before it."""

from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations import access
from evaluations.access import ALLOWED, Action
from evaluations.api.admission import person
from evaluations.api.forms import checked
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.schemas.reviewing import (
    AgreementTold,
    CalibrationNew,
    CalibrationPage,
    CalibrationRow,
    CalibrationTold,
    GivenTold,
    PeopleSent,
    PickPage,
    PickTold,
    PoolTold,
    RoundNew,
    RoundPage,
    RoundPreview,
    RoundTold,
    RoundWhole,
    WorkTold,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import person_told
from evaluations.domain import PickedBy, RoundKind, Scope
from evaluations.forms.calibration_new import CalibrationForm
from evaluations.forms.people_chosen import PeopleForm
from evaluations.forms.round_new import RoundForm
from evaluations.models import Evaluation, Membership, Rater, Round
from evaluations.services.reviewing.assigning import close_round, make_round, preview
from evaluations.services.reviewing.calibrating import CalibrationResult, note_result_seen, result, results
from evaluations.services.reviewing.extending import add_people, reopen_round
from evaluations.services.reviewing.overseeing import RoundProgress, pool_of, progress_of, said_on, work_in
from evaluations.services.reviewing.posing import begin

operations = Operations(tags=["rounds"])
# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED = ("round", "place", "picked_by", "probability", "item__comparison__query__text", "item__comparison__evaluation")


@operations.get_one("/evaluations/{slug:slug}/rounds", Scope.READ, RoundPage)
def list_rounds(request: HttpRequest, slug: str, paging: Query[Paging]) -> RoundPage:
    """Newest first, and the pool beside them."""
    evaluation = access.evaluation_for(person(request), slug, Action.SEE_ALL)
    made = Round.objects.filter(evaluation=evaluation).select_related("evaluation", "rubric_version__rubric")
    rows, more = page_of(paging, made, newest_first=True)
    how_far, pool = progress_of(rows), pool_of(evaluation)
    return RoundPage(
        items=[told(row, how_far[row.pk]) for row in rows],
        next=more,
        pool=PoolTold(comparisons=pool.comparisons, drawn=pool.drawn, reviews=pool.reviews, wanted=pool.wanted),
    )


@operations.make("/evaluations/{slug:slug}/rounds", Scope.WRITE, RoundWhole)
def make_one_round(request: HttpRequest, slug: str, body: RoundNew) -> RoundWhole:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = form_of(evaluation, body)
    checked(form)
    made = make_round(evaluation, user=user, **form.options())
    return whole(round_for(request, slug, made.pk, Action.MANAGE))


@operations.do("/evaluations/{slug:slug}/rounds/preview", Scope.READ, RoundPreview)
def preview_round(request: HttpRequest, slug: str, body: RoundNew) -> RoundPreview:
    """What such a round would hold. Nothing is made."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    form = form_of(evaluation, body)
    checked(form)
    ahead = preview(evaluation, **form.drawing(form.cleaned_data))
    return RoundPreview(matching=ahead.matching, at_random=ahead.at_random, by_strategy=ahead.by_strategy)


def form_of(evaluation: Evaluation, body: RoundNew) -> RoundForm:
    given: Any = body.model_dump(mode="json", exclude_none=True)
    return RoundForm(given, evaluation=evaluation, people=access.reviewers(evaluation))


@operations.make("/evaluations/{slug:slug}/rounds/calibration", Scope.WRITE, RoundWhole)
def make_calibration(request: HttpRequest, slug: str, body: CalibrationNew) -> RoundWhole:
    """A round of comparisons with known labels, which everyone who reviews here meets first."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    given = body.model_dump(mode="json", exclude_none=True)
    form = CalibrationForm(given | {"comparisons": " ".join(map(str, body.comparisons))})
    made = begin(evaluation, user=user, **checked(form))
    return whole(round_for(request, slug, made.pk, Action.MANAGE))


@operations.get_one("/evaluations/{slug:slug}/rounds/{int:pk}", Scope.READ, RoundWhole)
def get_round(request: HttpRequest, slug: str, pk: int) -> RoundWhole:
    return whole(round_for(request, slug, pk, Action.SEE_ALL))


@operations.get_one("/evaluations/{slug:slug}/rounds/{int:pk}/comparisons", Scope.READ, PickPage)
def list_picks(request: HttpRequest, slug: str, pk: int, paging: Query[Paging]) -> PickPage:
    """What it holds, how each was picked and with what probability, and who has done it."""
    made = round_for(request, slug, pk, Action.SEE_ALL)
    picks = made.picks.select_related("round", "item__comparison__query").only(*LISTED)
    rows, more = page_of(paging, picks)
    items = [
        PickTold(
            comparison=said.pick.item.comparison_id,
            place=said.pick.place,
            picked_by=PickedBy(said.pick.picked_by),
            probability=said.pick.probability,
            done=list(said.done),
            waiting=list(said.waiting),
        )
        for said in said_on(rows)
    ]
    return PickPage(items=items, next=more)


@operations.do("/evaluations/{slug:slug}/rounds/{int:pk}/people", Scope.WRITE, GivenTold)
def give_round(request: HttpRequest, slug: str, pk: int, body: PeopleSent) -> GivenTold:
    """Give its comparisons to these people by name."""
    made = round_for(request, slug, pk, Action.MANAGE)
    people = PeopleForm({"people": body.people}, people=access.reviewers(made.evaluation)).chosen()
    return GivenTold(given=add_people(made, people, person(request)))


@operations.do("/evaluations/{slug:slug}/rounds/{int:pk}/close", Scope.WRITE, RoundWhole)
def close_one_round(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> RoundWhole:
    """Nobody is led to it any more. Every review stays."""
    close_round(round_for(request, slug, pk, Action.MANAGE), person(request))
    return whole(round_for(request, slug, pk, Action.MANAGE))


@operations.do("/evaluations/{slug:slug}/rounds/{int:pk}/open", Scope.WRITE, RoundWhole)
def open_round(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> RoundWhole:
    reopen_round(round_for(request, slug, pk, Action.MANAGE), person(request))
    return whole(round_for(request, slug, pk, Action.MANAGE))


@operations.get_one("/evaluations/{slug:slug}/rounds/{int:pk}/calibration", Scope.READ, CalibrationPage)
def get_calibration(request: HttpRequest, slug: str, pk: int, paging: Query[Paging]) -> CalibrationPage:
    """How one's first choices compare with the known labels; for those who see all, everybody's."""
    user = person(request)
    made = round_for(request, slug, pk, Action.LOOK)
    if made.kind != RoundKind.CALIBRATION:
        raise Http404
    mine = result(made, Rater.objects.filter(evaluation=made.evaluation, user=user).first() or Rater(pk=0))
    if mine.standing.is_finished:
        note_result_seen(made, user)
    rows: list[CalibrationRow] = []
    more = None
    if access.may(user, Action.SEE_ALL, made.evaluation):
        members = Membership.objects.filter(evaluation=made.evaluation, role__in=ALLOWED[Action.REVIEW])
        page, more = page_of(paging, members.select_related("user"))
        rows = rows_of(made, page)
    return CalibrationPage(mine=mine_told(mine), items=rows, next=more)


def mine_told(mine: CalibrationResult) -> CalibrationTold:
    """Before it is whole it says how far one is, and nothing of what is known."""
    whole_now = mine.standing.is_finished
    return CalibrationTold(
        done=mine.standing.done,
        total=mine.standing.total,
        is_finished=whole_now,
        skipped=mine.skipped,
        agreements=agreements_told(mine) if whole_now else [],
    )


def agreements_told(one: CalibrationResult) -> list[AgreementTold]:
    return [
        AgreementTold(aspect=each.aspect.key, compared=each.compared, agreed=each.agreed) for each in one.agreements
    ]


def rows_of(made: Round, page: list[Membership]) -> list[CalibrationRow]:
    users = [member.user_id for member in page]
    raters = {rater.user_id: rater for rater in Rater.objects.filter(evaluation=made.evaluation, user__in=users)}
    found = results(made, list(raters.values()))
    rows = []
    for member in page:
        rater = raters.get(member.user_id)
        if rater is None or not found[rater.pk].standing.done:
            continue
        one = found[rater.pk]
        rows.append(
            CalibrationRow(
                person=person_told(member.user),
                done=one.standing.done,
                total=one.standing.total,
                agreements=agreements_told(one),
            )
        )
    return rows


def round_for(request: HttpRequest, slug: str, pk: int, action: Action) -> Round:
    evaluation = access.evaluation_for(person(request), slug, action)
    found = Round.objects.select_related("user", "rubric_version__rubric")
    made = get_object_or_404(found, evaluation=evaluation, pk=pk)
    made.evaluation = evaluation
    return made


def told(made: Round, how_far: RoundProgress) -> RoundTold:
    return RoundTold(
        id=made.pk,
        name=made.name,
        kind=RoundKind(made.kind),
        strategy=PickedBy(made.strategy),
        random_percent=made.random_percent,
        reviews_wanted=made.reviews_wanted,
        by_name=made.by_name,
        is_closed=made.closed_at is not None,
        is_outdated=made.is_outdated,
        comparisons=how_far.comparisons,
        reviews=how_far.reviews,
        people=how_far.people,
        created_at=made.created_at,
    )


def whole(made: Round) -> RoundWhole:
    work = [
        WorkTold(
            name=one.name,
            done=one.done,
            given=one.given,
            open=one.open,
            skipped=one.skipped,
            median_seconds=one.median_seconds,
        )
        for one in work_in(made)
    ]
    return RoundWhole(**told(made, progress_of([made])[made.pk]).model_dump(), work=work)
