"""Endpoints of disagreements, their discussion and mentions."""

from collections.abc import Mapping
from typing import Final

from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.form_validation import validate_filters
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, decode_cursor, encode_cursor, paginate_by_cursor
from evaluations.api.serializers import serialize_person
from evaluations.api.vote_table import AdjudicationOut, serialize_adjudication, serialize_vote_table
from evaluations.disagreements.forms import DisagreementsForm
from evaluations.disagreements.schemas import (
    AspectQuestionOut,
    CommentIn,
    CommentOut,
    DisagreementAspectOut,
    DisagreementDetailOut,
    DisagreementOut,
    DisagreementPage,
    ExplainIn,
    MentionOut,
    MentionPage,
    PostedCommentOut,
    ResolveIn,
    ReviewerChoiceOut,
    StageChoiceOut,
    WithdrawIn,
)
from evaluations.disagreements.selectors import (
    MENTION_RELATIONS,
    Disagreement,
    count_disagreements,
    get_disagreement_judge,
    get_disagreements_on,
    get_mentions,
    get_thread,
    reveal_disagreements,
    reveal_mentions,
)
from evaluations.disagreements.services import (
    add_comment,
    explain_own_choice,
    mark_mentions_seen,
    resolve_aspect,
    withdraw_own_comment,
    withdraw_resolution,
)
from evaluations.domain.roles import Scope
from evaluations.models.comparisons import Comparison
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Review
from evaluations.verdicts.reviewer_choices import ReviewerChoice, StageChoice, get_reviewer_choices
from evaluations.visibility import (
    can_see_judges,
    list_people_who_can_see,
    reveal_visible_vote_table,
    visible_comparisons,
    visible_comparisons_everywhere,
)
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["disagreements"])
DISAGREEMENT_RELATIONS: Final = (
    "query",
    "response_a__candidate",
    "response_b__candidate",
    "evaluation__review_rubric__rubric",
)
FILTER_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "state": "empty: open; `settled`",
    "kind": "`people` or `judge`",
    "aspect": "its key",
    "reason": "that somebody gave",
    "candidate": "the id of one of the two",
    "other": "the id of the other",
    "judge": "the id of the rater of a judge who differs",
    "mine": "`on`: whose discussion calls you",
}
FILTER_PARAMETERS: Final = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "description": description, "schema": {"type": "string"}}
        for name, description in FILTER_DESCRIPTIONS.items()
    ]
}
DISAGREEMENT_PATH: Final = "/evaluations/{slug:slug}/disagreements/{int:pk}"


@operations.get_one("/evaluations/{slug:slug}/disagreements", Scope.READ, DisagreementPage, extra=FILTER_PARAMETERS)
def list_disagreements(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> DisagreementPage:
    """List disagreements by the same filters as the page. Reviewers see only comparisons that they have reviewed."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    form = DisagreementsForm(request.GET, evaluation=evaluation, user=user)
    validate_filters(request, form, ("cursor", "limit"))
    wanted = form.wanted()
    found = reveal_disagreements(user, wanted, after=decode_cursor(paging), size=paging.limit)
    between_people, resolved = count_disagreements(wanted)
    items = [
        DisagreementOut(
            comparison=row.pk,
            query=row.query.text,
            candidate_a=row.response_a.candidate.name,
            candidate_b=row.response_b.candidate.name,
            differences=[disagreement_aspect_out(one) for one in differences],
        )
        for row, differences in found.rows
    ]
    more = encode_cursor(found.continues_after) if found.continues_after else None
    return DisagreementPage(items=items, next=more, between_people=between_people, resolved=resolved)


@operations.get_one(DISAGREEMENT_PATH, Scope.READ, DisagreementDetailOut)
def get_disagreement(request: AuthenticatedRequest, slug: str, pk: int) -> DisagreementDetailOut:
    """Each reviewer's choices by aspect, with the discussion."""
    comparison, user = find_open_comparison(request, slug, pk), request.user
    mark_mentions_seen(user, comparison)
    return disagreement_detail_out(user, comparison)


@operations.do(f"{DISAGREEMENT_PATH}/settle", Scope.REVIEW, AdjudicationOut)
def resolve_disagreement(request: AuthenticatedRequest, slug: str, pk: int, body: ResolveIn) -> AdjudicationOut:
    """Resolve one aspect. The resolution becomes the label."""
    comparison = find_open_comparison(request, slug, pk, Action.ADJUDICATE)
    made = resolve_aspect(
        comparison,
        find_aspect_or_404(comparison, body.aspect),
        choice=body.choice,
        reason=body.reason,
        version=body.version,
        user=request.user,
    )
    return serialize_adjudication(made)


@operations.do("/evaluations/{slug:slug}/adjudications/{int:pk}/withdraw", Scope.REVIEW, DisagreementDetailOut)
def reopen_disagreement(request: AuthenticatedRequest, slug: str, pk: int, body: WithdrawIn) -> DisagreementDetailOut:
    """Withdraw a resolution. The aspect is open again."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.ADJUDICATE)
    found = Adjudication.objects.select_related("comparison", "aspect", "user")
    adjudication = get_object_or_404(found, pk=pk, comparison__evaluation=evaluation)
    comparison = find_open_comparison(request, slug, adjudication.comparison_id, Action.ADJUDICATE)
    withdraw_resolution(adjudication, version=body.version, user=user)
    return disagreement_detail_out(user, comparison)


@operations.do(f"{DISAGREEMENT_PATH}/why", Scope.REVIEW, DisagreementDetailOut)
def explain_choice(request: AuthenticatedRequest, slug: str, pk: int, body: ExplainIn) -> DisagreementDetailOut:
    """Explain your own final choice."""
    comparison, user = find_open_comparison(request, slug, pk, Action.REVIEW), request.user
    mine = Review.objects.filter(rater__user=user, comparison=comparison).select_related("rater")
    review = get_object_or_404(mine, pk=body.review)
    review.comparison = comparison
    explain_own_choice(
        review, find_aspect_or_404(comparison, body.aspect), reason=str(body.reason), note=body.note, user=user
    )
    return disagreement_detail_out(user, comparison)


@operations.make(f"{DISAGREEMENT_PATH}/comments", Scope.REVIEW, PostedCommentOut)
def post_comment(request: AuthenticatedRequest, slug: str, pk: int, body: CommentIn) -> PostedCommentOut:
    """Comments are Markdown. Use @name to mention someone."""
    comparison, user = find_open_comparison(request, slug, pk, Action.DISCUSS), request.user
    posted = add_comment(
        comparison,
        body.text,
        aspect=find_aspect_or_404(comparison, body.aspect) if body.aspect else None,
        user=user,
        readers=list_people_who_can_see(comparison),
    )
    return PostedCommentOut(
        **comment_out(posted.comment).model_dump(),
        called=[one.username for one in posted.mentioned],
        unknown=list(posted.unknown),
    )


@operations.remove("/evaluations/{slug:slug}/comments/{int:pk}", Scope.REVIEW)
def withdraw_comment(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Withdraw your own comment. It stays in the thread without its text."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.DISCUSS)
    own = Comment.objects.filter(user=user, comparison__in=visible_comparisons(user, evaluation))
    withdraw_own_comment(get_object_or_404(own.select_related("comparison__evaluation"), pk=pk), user=user)


@operations.get_one("/mentions", Scope.READ, MentionPage, site_wide=True)
def list_mentions(request: ApiRequest, paging: Query[PageQuery]) -> MentionPage:
    """Comments that mention you, newest first."""
    user = request.user
    token = request.auth
    readable = visible_comparisons_everywhere(user)
    if token.evaluation_id is not None:
        readable = readable.filter(evaluation=token.evaluation_id)
    found, more = paginate_by_cursor(
        paging, get_mentions(user, readable).select_related(*MENTION_RELATIONS), newest_first=True
    )
    rows = reveal_mentions(user, found)
    items = [
        MentionOut(
            evaluation=row.comment.comparison.evaluation.slug,
            comparison=row.comment.comparison_id,
            is_seen=row.seen_at is not None,
            comment=comment_out(row.comment),
        )
        for row in rows
    ]
    return MentionPage(items=items, next=more)


def find_open_comparison(request: AuthenticatedRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Comparison:
    """The comparison, if this user may see the choices on it; otherwise 404."""
    user = request.user
    evaluation = require_evaluation(user, slug, action)
    visible = visible_comparisons(user, evaluation).select_related(*DISAGREEMENT_RELATIONS)
    comparison: Comparison = get_object_or_404(visible, pk=pk)
    return comparison


def find_aspect_or_404(comparison: Comparison, key: str) -> Aspect:
    aspect: Aspect = get_object_or_404(Aspect, evaluation=comparison.evaluation_id, key=key)
    return aspect


def disagreement_detail_out(user: User, comparison: Comparison) -> DisagreementDetailOut:
    evaluation = comparison.evaluation
    table = reveal_visible_vote_table(user, comparison)
    judge = get_disagreement_judge(evaluation) if can_see_judges(user, evaluation) else None
    reviewer_choices, differ = get_reviewer_choices(comparison), get_disagreements_on(comparison, judge)
    questions = [
        AspectQuestionOut(
            aspect=aspect.key,
            reviewer_choices=[reviewer_choice_out(one) for one in reviewer_choices.get(aspect, [])],
            difference=disagreement_aspect_out(differ[aspect.pk]) if aspect.pk in differ else None,
        )
        for aspect in table.aspects
    ]
    return DisagreementDetailOut(
        comparison=comparison.pk,
        questions=questions,
        labels=serialize_vote_table(table, []).labels,
        comments=[comment_out(one) for one in get_thread(comparison)],
    )


def disagreement_aspect_out(one: Disagreement) -> DisagreementAspectOut:
    return DisagreementAspectOut(
        aspect=one.aspect.key,
        votes={str(choice): number for choice, number in one.votes.items()},
        kinds=[str(kind) for kind in one.kinds],
        judge=one.judge,
        resolution=serialize_adjudication(one.resolution) if one.resolution else None,
    )


def reviewer_choice_out(one: ReviewerChoice) -> ReviewerChoiceOut:
    return ReviewerChoiceOut(
        rater=one.rater.name,
        review=one.review.pk if one.review else None,
        first=stage_choice_out(one.first),
        final=stage_choice_out(one.final),
        is_vote=one.is_vote,
    )


def stage_choice_out(choice: StageChoice | None) -> StageChoiceOut | None:
    if choice is None:
        return None
    scores = list(choice.scores) if choice.scores else None
    return StageChoiceOut(choice=choice.choice, scores=scores, reason=choice.reason, note=choice.note)


def comment_out(one: Comment) -> CommentOut:
    return CommentOut(
        id=one.pk,
        person=serialize_person(one.user),
        aspect=one.aspect.key if one.aspect else None,
        text="" if one.withdrawn_at else one.text,
        is_withdrawn=one.withdrawn_at is not None,
        created_at=one.created_at,
    )
