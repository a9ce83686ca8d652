"""Comparisons, tags, saved filters in the API."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.api.comparison_rows import ComparisonPageOut, select_row_columns, serialize_comparisons
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, decode_cursor, encode_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.serializers import serialize_messages, serialize_row
from evaluations.api.vote_table import VoteTableOut, serialize_vote_table
from evaluations.comparisons.manual_comparisons import ManualComparison, add_comparison
from evaluations.comparisons.requests import (
    DETAIL_RELATIONS,
    get_comparison_or_404,
    get_saved_filter_or_404,
    get_tag_or_404,
    list_resolutions,
)
from evaluations.comparisons.schemas import (
    AssignedOut,
    AssignIn,
    ComparisonDetailOut,
    ComparisonIn,
    NamePatch,
    ResponseOut,
    SavedFilterIn,
    SavedFilterListOut,
    SavedFilterOut,
    TaggingIn,
    TagJobIn,
    TagJobOut,
    TagListOut,
    TagOut,
    TagStepOut,
    TagUndoIn,
)
from evaluations.comparisons.selectors import get_saved_filter, list_tags_with_counts, reveal_found_comparisons
from evaluations.comparisons.services import (
    change_tag_name,
    create_saved_filter,
    delete_saved_filter,
    delete_unused_tag,
    rename_saved_filter,
    start_tag_job,
    tag_comparisons,
    undo_tagging,
    untag_comparisons,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import (
    PARAMETER_DESCRIPTIONS,
    REPEATABLE_PARAMETERS,
    ComparisonFilter,
    list_usable_parameters,
    parse_filter,
)
from evaluations.domain.roles import Scope
from evaluations.models.comparisons import Comparison, SavedFilter, TagChange
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.reviews.queues.services import assign_comparisons, find_reviewers
from evaluations.reviews.selectors import put_in_order_shown
from evaluations.visibility import (
    can_see_judges,
    can_see_names,
    can_see_verdicts,
    reveal_visible_vote_table,
    visible_comparisons,
)
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["comparisons"])
PAGING_PARAMETERS: Final = ("cursor", "limit")
SAVED_FILTER_PARAMETER: Final = "saved_filter"
QUERY_PARAMETERS: Final = [
    {
        "name": name,
        "in": "query",
        "required": False,
        "description": words,
        "schema": {"type": "array", "items": {"type": "string"}}
        if name in REPEATABLE_PARAMETERS
        else {"type": "string"},
    }
    for name, words in {**PARAMETER_DESCRIPTIONS, SAVED_FILTER_PARAMETER: "the name of a saved filter"}.items()
]


@operations.get_one(
    "/evaluations/{slug:slug}/comparisons", Scope.READ, ComparisonPageOut, extra={"parameters": QUERY_PARAMETERS}
)
def list_comparisons(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> ComparisonPageOut:
    """List comparisons by id. The filters are those of the page; one that you may not use is refused."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    filters = parse_filters(request, evaluation)
    page = reveal_found_comparisons(user, evaluation, filters, after=decode_cursor(paging), size=paging.limit)
    rows = list(select_row_columns(Comparison.all_rows.filter(pk__in=page.ids)))
    return ComparisonPageOut(
        items=serialize_comparisons(user, evaluation, rows),
        next=encode_cursor(page.continues_after) if page.continues_after else None,
        is_whole=page.is_whole,
    )


def parse_filters(request: AuthenticatedRequest, evaluation: Evaluation) -> list[ComparisonFilter]:
    """The filters that must all match. One that this person may not use would silently find something else."""
    user, sent = request.user, request.GET.copy()
    for name in PAGING_PARAMETERS:
        sent.pop(name, None)
    sees_all, sees_judges = is_allowed(user, Action.SEE_ALL, evaluation), can_see_judges(user, evaluation)
    saved = str(sent.pop(SAVED_FILTER_PARAMETER, [""])[-1]) if sees_all else ""
    for name in sent.keys() - list_usable_parameters(sees_all=sees_all, sees_judges=sees_judges):
        raise InputRefused(f"You cannot use a filter “{name[:60]}” here.", field=name)
    comparison_filter = parse_filter(
        {name: sent.getlist(name) if name in REPEATABLE_PARAMETERS else sent[name] for name in sent}
    )
    of_category = Comparison.objects.filter(evaluation=evaluation, category=comparison_filter.category)
    if comparison_filter.category and not of_category.exists():
        raise InputRefused(f"There is no category “{comparison_filter.category}” here.", field="category")
    named = [get_saved_filter(evaluation, saved).named.comparison_filter] if saved else []
    return list(filter(None, (comparison_filter, *named)))


@operations.make("/evaluations/{slug:slug}/comparisons", Scope.WRITE, ComparisonDetailOut)
def add_one_comparison(request: AuthenticatedRequest, slug: str, body: ComparisonIn) -> ComparisonDetailOut:
    """Add a comparison by hand. A is the candidate whose name sorts first."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    comparison = add_comparison(evaluation, ManualComparison(**dict(body)), user=user)
    return serialize_comparison_detail(user, get_comparison_or_404(evaluation, comparison.pk))


@operations.get_one("/evaluations/{slug:slug}/comparisons/{int:pk}", Scope.READ, ComparisonDetailOut)
def get_comparison(request: AuthenticatedRequest, slug: str, pk: int) -> ComparisonDetailOut:
    """Get the texts of a comparison. Its verdicts show what others chose."""
    user = request.user
    return serialize_comparison_detail(user, get_comparison_or_404(require_evaluation(user, slug), pk))


def serialize_comparison_detail(user: User, row: Comparison) -> ComparisonDetailOut:
    is_open = can_see_verdicts(user, row)
    is_named = is_open and can_see_names(user, row.evaluation)
    stored = (row.response_a, row.response_b)
    responses = stored if is_open else put_in_order_shown(user, row, stored)
    return ComparisonDetailOut(
        id=row.pk,
        query_id=row.query.key,
        messages=serialize_messages(row.query.messages),
        context=row.query.context,
        reference=row.query.reference,
        category=row.query.category,
        flags=split_flags(row.query.flags),
        responses=[
            ResponseOut(
                side=side,
                candidate=response.candidate.name if is_named else None,
                messages=serialize_messages(response.messages),
                flags=split_flags(response.flags),
                metadata=response.metadata if is_named else None,
            )
            for side, response in zip("AB", responses, strict=True)
        ],
        is_open=is_open,
    )


def split_flags(flags: str) -> list[str]:
    return flags.split(",") if flags else []


@operations.get_one("/evaluations/{slug:slug}/comparisons/{int:pk}/verdicts", Scope.READ, VoteTableOut)
def get_verdicts(request: AuthenticatedRequest, slug: str, pk: int) -> VoteTableOut:
    """Verdicts of all raters, labels and resolutions. Hidden until you have saved your own review."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    row: Comparison = get_object_or_404(
        visible_comparisons(user, evaluation).select_related(*DETAIL_RELATIONS), evaluation=evaluation, pk=pk
    )
    return serialize_vote_table(reveal_visible_vote_table(user, row), list(list_resolutions(row)))


@operations.do("/evaluations/{slug:slug}/comparisons/assign", Scope.WRITE, AssignedOut)
def assign_to_reviewers(request: AuthenticatedRequest, slug: str, body: AssignIn) -> AssignedOut:
    """Assign comparisons to reviewers. They get these next."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    people = find_reviewers(evaluation, body.reviewers)
    refuse_unknown_comparisons(evaluation, body.comparisons)
    comparisons = list(Comparison.objects.filter(evaluation=evaluation, pk__in=body.comparisons))
    count = assign_comparisons(evaluation, comparisons, people, user)
    return AssignedOut(comparisons=count.number, reviewed_already=count.reviewed, waiting_already=count.waiting)


def refuse_unknown_comparisons(evaluation: Evaluation, ids: Sequence[int]) -> None:
    if Comparison.objects.filter(evaluation=evaluation, pk__in=ids).count() < len(set(ids)):
        fault = FieldError("body.comparisons", "One of these comparisons does not exist here.")
        raise Problem("invalid", "One of these comparisons does not exist here. Nothing was done.", faults=[fault])


# ---- tags ----------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/tags", Scope.READ, TagListOut)
def list_tags(request: AuthenticatedRequest, slug: str) -> TagListOut:
    """List all tags by name, up to 500."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    counted: Any = list_tags_with_counts(evaluation)
    return TagListOut(items=[serialize_row(TagOut, tag, comparisons=tag.number) for tag in counted])


@operations.do("/evaluations/{slug:slug}/tags/put", Scope.WRITE, TagStepOut)
def put_tag(request: AuthenticatedRequest, slug: str, body: TaggingIn) -> TagStepOut:
    """Tag comparisons. The tag is created if it is new."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    refuse_unknown_comparisons(evaluation, body.comparisons)
    return serialize_tag_change(tag_comparisons(evaluation, body.comparisons, body.name, user=user))


@operations.do("/evaluations/{slug:slug}/tags/take", Scope.WRITE, TagStepOut)
def take_tag(request: AuthenticatedRequest, slug: str, body: TaggingIn) -> TagStepOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    refuse_unknown_comparisons(evaluation, body.comparisons)
    return serialize_tag_change(untag_comparisons(evaluation, body.comparisons, body.name, user=user))


@operations.do("/evaluations/{slug:slug}/tags/undo", Scope.WRITE, TagStepOut)
def undo_tag(request: AuthenticatedRequest, slug: str, body: TagUndoIn) -> TagStepOut:
    """Undo one tagging step, for exactly the comparisons that it changed."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    return serialize_tag_change(undo_tagging(evaluation, body.step, user=user))


@operations.do("/evaluations/{slug:slug}/tags/put-all", Scope.WRITE, TagJobOut)
def put_tag_on_all(request: AuthenticatedRequest, slug: str, body: TagJobIn) -> TagJobOut:
    """Tag all comparisons that match a filter, or remove the tag from them, in the background."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    comparison_filter = parse_filter_json(body.filter)
    change = start_tag_job(
        evaluation, [comparison_filter] if comparison_filter else [], body.name, removes=body.takes_away, user=user
    )
    return serialize_row(TagJobOut, change)


@operations.change("/evaluations/{slug:slug}/tags/{int:pk}", Scope.WRITE, TagOut)
def rename_tag(request: AuthenticatedRequest, slug: str, pk: int, body: NamePatch) -> TagOut:
    tag = get_tag_or_404(request.user, slug, pk)
    change_tag_name(tag, body.name, user=request.user)
    return serialize_row(TagOut, tag, comparisons=tag.taggings.count())


@operations.remove("/evaluations/{slug:slug}/tags/{int:pk}", Scope.WRITE)
def delete_tag(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Delete a tag that no comparison has."""
    delete_unused_tag(get_tag_or_404(request.user, slug, pk), user=request.user)


def serialize_tag_change(change: TagChange) -> TagStepOut:
    return serialize_row(TagStepOut, change, step=change.pk)


# ---- saved filters --------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/saved-filters", Scope.READ, SavedFilterListOut)
def list_saved_filters(request: AuthenticatedRequest, slug: str) -> SavedFilterListOut:
    """List saved filters, which reports and exports can use."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    rows = SavedFilter.objects.filter(evaluation=evaluation).order_by("name")
    return SavedFilterListOut(items=[serialize_saved_filter(row) for row in rows])


@operations.make("/evaluations/{slug:slug}/saved-filters", Scope.WRITE, SavedFilterOut)
def save_filter(request: AuthenticatedRequest, slug: str, body: SavedFilterIn) -> SavedFilterOut:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    return serialize_saved_filter(create_saved_filter(evaluation, body.name, parse_filter_json(body.filter), user=user))


def parse_filter_json(body: Mapping[str, object]) -> ComparisonFilter:
    """The filter of a JSON object. Values of a wrong type are refused."""
    for name, value in body.items():
        is_tags = name == "tag" and isinstance(value, list) and all(isinstance(tag, str) for tag in value)
        if not (is_tags or isinstance(value, str | bool | int)):
            fault = FieldError(
                f"body.filter.{name}", "A value must be a string, true or a number; for tags a list of strings."
            )
            raise Problem("invalid", "The filter is invalid. Nothing was done.", faults=[fault])
    texts = {name: value if name == "tag" or value is True else str(value) for name, value in body.items()}
    try:
        return parse_filter(texts)
    except InputRefused as refused:
        raise InputRefused(str(refused), field=refused.field and f"filter.{refused.field}") from None


@operations.change("/evaluations/{slug:slug}/saved-filters/{int:pk}", Scope.WRITE, SavedFilterOut)
def rename_filter(request: AuthenticatedRequest, slug: str, pk: int, body: NamePatch) -> SavedFilterOut:
    saved = get_saved_filter_or_404(request.user, slug, pk)
    rename_saved_filter(saved, body.name, user=request.user)
    return serialize_saved_filter(saved)


@operations.remove("/evaluations/{slug:slug}/saved-filters/{int:pk}", Scope.WRITE)
def delete_filter(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    delete_saved_filter(get_saved_filter_or_404(request.user, slug, pk), user=request.user)


def serialize_saved_filter(saved: SavedFilter) -> SavedFilterOut:
    return serialize_row(SavedFilterOut, saved, in_words=saved.comparison_filter.in_words())
