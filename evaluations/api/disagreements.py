"""Disagreements: where raters differ, what people say of it, and what settles it."""

from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.comparisons import adjudication_told, verdicts_told
from evaluations.api.forms import checked, refuse_unknown
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, after_of, page_of, written
from evaluations.api.schemas.comparisons import AdjudicationTold
from evaluations.api.schemas.reviewing import (
    Commenting,
    CommentMade,
    CommentTold,
    DifferenceTold,
    DisagreementPage,
    DisagreementTold,
    DisagreementWhole,
    Explaining,
    MentionPage,
    MentionTold,
    QuestionTold,
    Settling,
    VoiceSaid,
    VoiceTold,
    Withdrawing,
)
from evaluations.api.telling import person_told
from evaluations.domain import Scope
from evaluations.forms.disagreements import DisagreementsForm
from evaluations.models import Adjudication, ApiToken, Aspect, Comment, Comparison, Evaluation, Review, User
from evaluations.services.adjudicating import adjudicating, discussing
from evaluations.services.adjudicating.disagreeing import Difference, counts, differences, find, on_comparison
from evaluations.services.adjudicating.explaining import explain
from evaluations.services.adjudicating.hearing import Said, Voice, voices_on
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.tabulating import table_of

operations = Operations(tags=["disagreements"])
WHOLE: Final = ("query", "response_a__candidate", "response_b__candidate", "evaluation__review_rubric__rubric")
LISTED: Final = ("evaluation", "query__text", "response_a__candidate__name", "response_b__candidate__name")
SAID: Final = ("comment__user", "comment__aspect", "comment__comparison__evaluation", "comment__comparison__query")
FILTERS: Final[Mapping[str, str]] = {
    "state": "empty: open; `settled`",
    "kind": "`people` or `judge`",
    "aspect": "its key",
    "reason": "that somebody gave",
    "candidate": "the id of one of the two",
    "other": "the id of the other",
    "judge": "the id of the rater of a judge who differs",
    "mine": "`on`: whose discussion calls you",
}
ASKED: Final = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "description": said, "schema": {"type": "string"}}
        for name, said in FILTERS.items()
    ]
}
AT: Final = "/evaluations/{slug:slug}/disagreements/{int:pk}"


def form_for(request: HttpRequest, evaluation: Evaluation) -> DisagreementsForm:
    form = DisagreementsForm(request.GET, evaluation=evaluation, user=person(request))
    refuse_unknown(request.GET.dict(), form, ("cursor", "limit"))
    checked(form, "query")
    return form


@operations.get_one("/evaluations/{slug:slug}/disagreements", Scope.READ, DisagreementPage, extra=ASKED)
def list_disagreements(request: HttpRequest, slug: str, paging: Query[Paging]) -> DisagreementPage:
    """By the filters of the page; of what you have not reviewed yourself nothing, if you review here."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    wanted = form_for(request, evaluation).wanted()
    found = find(wanted, after=after_of(paging), size=paging.limit)
    related = Comparison.objects.select_related("query", "response_a__candidate", "response_b__candidate")
    rows = list(related.only(*LISTED).filter(pk__in=found.ids).order_by("pk"))
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, rows, judges=access.may_see_judges(user, evaluation))
    told, (between_people, settled) = differences(wanted, [row.pk for row in rows]), counts(wanted)
    items = [
        DisagreementTold(
            comparison=row.pk,
            query=row.query.text,
            candidate_a=row.response_a.candidate.name,
            candidate_b=row.response_b.candidate.name,
            differences=[difference_told(one) for one in told[row.pk]],
        )
        for row in rows
    ]
    more = written(found.goes_on) if found.goes_on else None
    return DisagreementPage(items=items, next=more, between_people=between_people, settled=settled)


@operations.get_one(AT, Scope.READ, DisagreementWhole)
def get_disagreement(request: HttpRequest, slug: str, pk: int) -> DisagreementWhole:
    """Aspect by aspect what each person said, and the discussion."""
    comparison, user = opened(request, slug, pk), person(request)
    evaluation = comparison.evaluation
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, [comparison], judges=access.may_see_judges(user, evaluation))
    discussing.note_read(user, comparison)
    return whole(user, comparison)


@operations.do(f"{AT}/settle", Scope.REVIEW, AdjudicationTold)
def settle_disagreement(request: HttpRequest, slug: str, pk: int, body: Settling) -> AdjudicationTold:
    """The decision on one aspect: it becomes the label."""
    comparison = opened(request, slug, pk, Action.ADJUDICATE)
    made = adjudicating.adjudicate(
        comparison,
        aspect_named(comparison, body.aspect),
        choice=body.choice,
        reason=body.reason,
        version=body.version,
        user=person(request),
    )
    return adjudication_told(made)


@operations.do("/evaluations/{slug:slug}/adjudications/{int:pk}/withdraw", Scope.REVIEW, DisagreementWhole)
def withdraw_adjudication(request: HttpRequest, slug: str, pk: int, body: Withdrawing) -> DisagreementWhole:
    """Its aspect is open again."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.ADJUDICATE)
    found = Adjudication.objects.select_related("comparison", "aspect", "user")
    adjudication = get_object_or_404(found, pk=pk, comparison__evaluation=evaluation)
    comparison = opened(request, slug, adjudication.comparison_id, Action.ADJUDICATE)
    adjudicating.withdraw(adjudication, version=body.version, user=user)
    return whole(user, comparison)


@operations.do(f"{AT}/why", Scope.REVIEW, DisagreementWhole)
def explain_choice(request: HttpRequest, slug: str, pk: int, body: Explaining) -> DisagreementWhole:
    """Why you chose otherwise, on your own review."""
    comparison, user = opened(request, slug, pk, Action.REVIEW), person(request)
    mine = Review.objects.filter(rater__user=user, comparison=comparison).select_related("rater")
    review = get_object_or_404(mine, pk=body.review)
    review.comparison = comparison
    explain(review, aspect_named(comparison, body.aspect), reason=str(body.reason), note=body.note, user=user)
    return whole(user, comparison)


@operations.make(f"{AT}/comments", Scope.REVIEW, CommentMade)
def post_comment(request: HttpRequest, slug: str, pk: int, body: Commenting) -> CommentMade:
    """Markdown is understood. Write @ and a username to call somebody."""
    comparison, user = opened(request, slug, pk, Action.DISCUSS), person(request)
    posted = discussing.post(
        comparison,
        body.text,
        aspect=aspect_named(comparison, body.aspect) if body.aspect else None,
        user=user,
        readers=access.who_may_see(comparison),
    )
    return CommentMade(
        **comment_told(posted.comment).model_dump(),
        called=[one.username for one in posted.called],
        unknown=list(posted.unknown),
    )


@operations.remove("/evaluations/{slug:slug}/comments/{int:pk}", Scope.REVIEW)
def withdraw_comment(request: HttpRequest, slug: str, pk: int) -> None:
    """One of your own: it keeps its place, and its words are not shown any more."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.DISCUSS)
    own = Comment.objects.filter(user=user, comparison__in=access.open_comparisons(user, evaluation))
    discussing.withdraw(get_object_or_404(own.select_related("comparison__evaluation"), pk=pk), user=user)


@operations.get_one("/mentions", Scope.READ, MentionPage, site_wide=True)
def list_mentions(request: HttpRequest, paging: Query[Paging]) -> MentionPage:
    """Comments that call you, newest first."""
    user = person(request)
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    readable = access.open_comparisons_everywhere(user)
    if token.evaluation_id is not None:
        readable = readable.filter(evaluation=token.evaluation_id)
    rows, more = page_of(paging, discussing.mentions_of(user, readable).select_related(*SAID), newest_first=True)
    called_on: dict[Evaluation, list[Comparison]] = {}
    for row in rows:
        called_on.setdefault(row.comment.comparison.evaluation, []).append(row.comment.comparison)
    for evaluation, comparisons in called_on.items():
        if access.may(user, Action.REVIEW, evaluation):
            note_seen(user, evaluation, comparisons, judges=access.may_see_judges(user, evaluation))
    items = [
        MentionTold(
            evaluation=row.comment.comparison.evaluation.slug,
            comparison=row.comment.comparison_id,
            is_seen=row.seen_at is not None,
            comment=comment_told(row.comment),
        )
        for row in rows
    ]
    return MentionPage(items=items, next=more)


def opened(request: HttpRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Comparison:
    """The comparison, for who may see what others chose on it; to all others it is not here."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, action)
    visible = access.open_comparisons(user, evaluation).select_related(*WHOLE)
    comparison: Comparison = get_object_or_404(visible, pk=pk)
    return comparison


def aspect_named(comparison: Comparison, key: str) -> Aspect:
    aspect: Aspect = get_object_or_404(Aspect, evaluation=comparison.evaluation_id, key=key)
    return aspect


def whole(user: User, comparison: Comparison) -> DisagreementWhole:
    evaluation = comparison.evaluation
    table = table_of(comparison, with_judges=access.may_see_judges(user, evaluation))
    wanted = DisagreementsForm({}, evaluation=evaluation, user=user).wanted()
    voices, differ = voices_on(comparison), on_comparison(comparison, wanted.judge)
    questions = [
        QuestionTold(
            aspect=aspect.key,
            voices=[voice_told(one) for one in voices.get(aspect, [])],
            difference=difference_told(differ[aspect.pk]) if aspect.pk in differ else None,
        )
        for aspect in table.aspects
    ]
    return DisagreementWhole(
        comparison=comparison.pk,
        questions=questions,
        labels=verdicts_told(table, []).labels,
        comments=[comment_told(one) for one in discussing.thread(comparison)],
    )


def difference_told(one: Difference) -> DifferenceTold:
    return DifferenceTold(
        aspect=one.aspect.key,
        votes={str(choice): number for choice, number in one.votes.items()},
        kinds=[str(kind) for kind in one.kinds],
        judge=one.judge,
        settled=adjudication_told(one.settled) if one.settled else None,
    )


def voice_told(one: Voice) -> VoiceTold:
    return VoiceTold(
        rater=one.rater.name,
        review=one.review.pk if one.review else None,
        first=said_told(one.first),
        final=said_told(one.final),
        is_vote=one.is_vote,
    )


def said_told(said: Said | None) -> VoiceSaid | None:
    if said is None:
        return None
    scores = list(said.scores) if said.scores else None
    return VoiceSaid(choice=said.choice, scores=scores, reason=said.reason, note=said.note)


def comment_told(one: Comment) -> CommentTold:
    return CommentTold(
        id=one.pk,
        person=person_told(one.user),
        aspect=one.aspect.key if one.aspect else None,
        text="" if one.withdrawn_at else one.text,
        is_withdrawn=one.withdrawn_at is not None,
        created_at=one.created_at,
    )
