"""Endpoints of disagreements, their discussion and mentions."""

from collections.abc import Mapping
from typing import Final

from ninja import Query

from evaluations.access import Action, require_evaluation
from evaluations.api.form_validation import validate_filters
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, decode_cursor, encode_cursor, paginate_by_cursor
from evaluations.api.serializers import serialize_row, serialize_user
from evaluations.api.vote_table import AdjudicationOut, serialize_adjudication, serialize_vote_table
from evaluations.disagreements.forms import DisagreementsForm
from evaluations.disagreements.majorities import accept_majorities, undo_resolutions
from evaluations.disagreements.requests import (
    get_aspect_or_404,
    get_open_comparison_or_404,
    get_own_comment_or_404,
    get_own_review_or_404,
    get_resolution_or_404,
)
from evaluations.disagreements.schemas import (
    AspectQuestionOut,
    BulkResultOut,
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
    UndoIn,
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
from evaluations.models.users import User
from evaluations.models.verdicts import Comment
from evaluations.verdicts.reviewer_choices import ReviewerChoice, StageChoice, get_reviewer_choices
from evaluations.visibility import (
    can_see_judges,
    can_see_names,
    list_people_who_can_see,
    reveal_visible_vote_table,
    visible_comparisons_everywhere,
)
from evaluations.web.requests import ApiRequest, AuthenticatedRequest

operations = OperationRouter(tags=["disagreements"])
FILTER_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "state": "`resolved`, or empty for open",
    "kind": "`reviewers` or `judge`",
    "aspect": "aspect key",
    "reason": "reason that a reviewer gave",
    "candidate": "id of one of the two candidates",
    "other": "id of the other candidate",
    "judge": "rater id of a judge that disagrees",
    "mine": "`on`: only discussions that mention you",
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
    filters = form.to_filter()
    disagreements = reveal_disagreements(user, filters, after=decode_cursor(paging), size=paging.limit)
    between_reviewers, resolved = count_disagreements(filters)
    sees_names = can_see_names(user, evaluation)
    items = [
        DisagreementOut(
            comparison=row.pk,
            query=row.query.text,
            candidate_a=row.response_a.candidate.name if sees_names else None,
            candidate_b=row.response_b.candidate.name if sees_names else None,
            differences=[disagreement_aspect_out(difference) for difference in differences],
        )
        for row, differences in disagreements.rows
    ]
    next_cursor = encode_cursor(disagreements.continues_after) if disagreements.continues_after else None
    return DisagreementPage(items=items, next=next_cursor, between_reviewers=between_reviewers, resolved=resolved)


@operations.do(
    "/evaluations/{slug:slug}/disagreements/accept-majority", Scope.REVIEW, BulkResultOut, extra=FILTER_PARAMETERS
)
def accept_majority(request: AuthenticatedRequest, slug: str) -> BulkResultOut:
    """Resolve every open disagreement among reviewers that has a majority, by the filters of the list."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.ADJUDICATE)
    form = DisagreementsForm(request.GET, evaluation=evaluation, user=user)
    validate_filters(request, form, ())
    return serialize_row(BulkResultOut, accept_majorities(form.to_filter(), user=user))


@operations.do("/evaluations/{slug:slug}/disagreements/undo", Scope.REVIEW, BulkResultOut)
def undo_resolved_batch(request: AuthenticatedRequest, slug: str, body: UndoIn) -> BulkResultOut:
    """Reopen everything that one action resolved, except for what was changed since."""
    evaluation = require_evaluation(request.user, slug, Action.ADJUDICATE)
    return serialize_row(BulkResultOut, undo_resolutions(evaluation, body.batch, user=request.user))


@operations.get_one(DISAGREEMENT_PATH, Scope.READ, DisagreementDetailOut)
def get_disagreement(request: AuthenticatedRequest, slug: str, pk: int) -> DisagreementDetailOut:
    """Each reviewer's choices by aspect, with the discussion."""
    user = request.user
    comparison = get_open_comparison_or_404(user, slug, pk)
    mark_mentions_seen(user, comparison)
    return disagreement_detail_out(user, comparison)


@operations.do(f"{DISAGREEMENT_PATH}/resolve", Scope.REVIEW, AdjudicationOut)
def resolve_disagreement(request: AuthenticatedRequest, slug: str, pk: int, body: ResolveIn) -> AdjudicationOut:
    """Resolve one aspect. The resolution becomes its label."""
    user = request.user
    comparison = get_open_comparison_or_404(user, slug, pk, Action.ADJUDICATE)
    aspect = get_aspect_or_404(comparison, body.aspect)
    resolution = resolve_aspect(
        comparison,
        aspect,
        choice=body.choice,
        reason=body.reason,
        version=body.version,
        user=user,
        category=str(body.category),
    )
    return serialize_adjudication(resolution)


@operations.do("/evaluations/{slug:slug}/adjudications/{int:pk}/withdraw", Scope.REVIEW, DisagreementDetailOut)
def reopen_disagreement(request: AuthenticatedRequest, slug: str, pk: int, body: WithdrawIn) -> DisagreementDetailOut:
    """Withdraw a resolution to reopen the aspect."""
    user = request.user
    resolution = get_resolution_or_404(user, slug, pk)
    withdraw_resolution(resolution, version=body.version, user=user)
    return disagreement_detail_out(user, resolution.comparison)


@operations.do(f"{DISAGREEMENT_PATH}/explain", Scope.REVIEW, DisagreementDetailOut)
def explain_choice(request: AuthenticatedRequest, slug: str, pk: int, body: ExplainIn) -> DisagreementDetailOut:
    """Explain your own final choice."""
    user = request.user
    comparison = get_open_comparison_or_404(user, slug, pk, Action.REVIEW)
    review, aspect = get_own_review_or_404(user, comparison, body.review), get_aspect_or_404(comparison, body.aspect)
    explain_own_choice(review, aspect, reason=str(body.reason), note=body.note, user=user)
    return disagreement_detail_out(user, comparison)


@operations.make(f"{DISAGREEMENT_PATH}/comments", Scope.REVIEW, PostedCommentOut)
def post_comment(request: AuthenticatedRequest, slug: str, pk: int, body: CommentIn) -> PostedCommentOut:
    """Comments are Markdown. Use @name to mention someone."""
    user = request.user
    comparison = get_open_comparison_or_404(user, slug, pk, Action.DISCUSS)
    posted = add_comment(
        comparison,
        body.text,
        aspect=get_aspect_or_404(comparison, body.aspect) if body.aspect else None,
        user=user,
        readers=list_people_who_can_see(comparison),
    )
    return PostedCommentOut(
        **comment_out(posted.comment).model_dump(),
        mentioned=[reader.username for reader in posted.mentioned],
        unknown=list(posted.unknown),
    )


@operations.remove("/evaluations/{slug:slug}/comments/{int:pk}", Scope.REVIEW)
def withdraw_comment(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Delete the text of your own comment. Its place in the thread stays."""
    withdraw_own_comment(get_own_comment_or_404(request.user, slug, pk), user=request.user)


@operations.get_one("/mentions", Scope.READ, MentionPage, site_wide=True)
def list_mentions(request: ApiRequest, paging: Query[PageQuery]) -> MentionPage:
    """Comments that mention you, newest first."""
    user = request.user
    readable = visible_comparisons_everywhere(user)
    if request.auth.evaluation_id is not None:
        readable = readable.filter(evaluation=request.auth.evaluation_id)
    mentions, next_cursor = paginate_by_cursor(
        paging, get_mentions(user, readable).select_related(*MENTION_RELATIONS), newest_first=True
    )
    items = [
        MentionOut(
            evaluation=mention.comment.comparison.evaluation.slug,
            comparison=mention.comment.comparison_id,
            is_seen=mention.seen_at is not None,
            comment=comment_out(mention.comment),
        )
        for mention in reveal_mentions(user, mentions)
    ]
    return MentionPage(items=items, next=next_cursor)


def disagreement_detail_out(user: User, comparison: Comparison) -> DisagreementDetailOut:
    evaluation = comparison.evaluation
    table = reveal_visible_vote_table(user, comparison)
    judge = get_disagreement_judge(evaluation) if can_see_judges(user, evaluation) else None
    reviewer_choices, differ = get_reviewer_choices(comparison), get_disagreements_on(comparison, judge)
    questions = [
        AspectQuestionOut(
            aspect=aspect.key,
            reviewer_choices=[reviewer_choice_out(choice) for choice in reviewer_choices.get(aspect, [])],
            difference=disagreement_aspect_out(differ[aspect.pk]) if aspect.pk in differ else None,
        )
        for aspect in table.aspects
    ]
    return DisagreementDetailOut(
        comparison=comparison.pk,
        questions=questions,
        labels=serialize_vote_table(table, []).labels,
        comments=[comment_out(comment) for comment in get_thread(comparison)],
    )


def disagreement_aspect_out(difference: Disagreement) -> DisagreementAspectOut:
    return DisagreementAspectOut(
        aspect=difference.aspect.key,
        votes={str(choice): number for choice, number in difference.votes.items()},
        kinds=[str(kind) for kind in difference.kinds],
        judge=difference.judge,
        resolution=serialize_adjudication(difference.resolution) if difference.resolution else None,
    )


def reviewer_choice_out(choice: ReviewerChoice) -> ReviewerChoiceOut:
    return ReviewerChoiceOut(
        rater=choice.rater.name,
        review=choice.review.pk if choice.review else None,
        first=stage_choice_out(choice.first),
        final=stage_choice_out(choice.final),
        is_vote=choice.is_vote,
    )


def stage_choice_out(choice: StageChoice | None) -> StageChoiceOut | None:
    if choice is None:
        return None
    return serialize_row(StageChoiceOut, choice, scores=list(choice.scores) if choice.scores else None)


def comment_out(comment: Comment) -> CommentOut:
    return CommentOut(
        id=comment.pk,
        author=serialize_user(comment.user),
        aspect=comment.aspect.key if comment.aspect else None,
        text="" if comment.withdrawn_at else comment.text,
        is_withdrawn=comment.withdrawn_at is not None,
        created_at=comment.created_at,
    )
