"""The rows, the filter and the selection of a request about comparisons."""

from typing import Final

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from evaluations.access import Action, is_allowed, require_evaluation, require_maker_or_manager
from evaluations.comparisons.forms import FilterForm
from evaluations.domain.filters import ComparisonFilter
from evaluations.models.comparisons import Comparison, SavedFilter, Tag
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication
from evaluations.visibility import can_see_judges
from evaluations.web.requests import AuthenticatedRequest

SESSION_KEY: Final = "refused bulk action"
MAX_SELECTED: Final = 500
DETAIL_RELATIONS: Final = (
    *("query", "response_a__candidate", "response_b__candidate"),
    "evaluation__review_rubric__rubric",
)


def get_comparison_or_404(evaluation: Evaluation, pk: int) -> Comparison:
    rows = Comparison.objects.select_related(*DETAIL_RELATIONS)
    comparison: Comparison = get_object_or_404(rows, evaluation=evaluation, pk=pk)
    return comparison


def list_resolutions(comparison: Comparison) -> "QuerySet[Adjudication]":
    resolutions = Adjudication.objects.filter(comparison=comparison).select_related("aspect", "user")
    return resolutions.order_by("aspect__name")


def get_tag_or_404(user: User, slug: str, pk: int) -> Tag:
    """The tag, for a user who may change it."""
    evaluation = require_evaluation(user, slug, Action.TAG)
    return get_object_or_404(Tag.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)


def get_saved_filter_or_404(user: User, slug: str, pk: int) -> SavedFilter:
    """The saved filter, for a user who may change it: its maker and managers."""
    evaluation = require_evaluation(user, slug, Action.TAG)
    saved = get_object_or_404(SavedFilter.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)
    require_maker_or_manager(user, saved.user_id, evaluation, "change this saved filter")
    return saved


def keep_refused_action(request: AuthenticatedRequest, slug: str) -> None:
    """Keep the input of a refused bulk action in the session, for the list that is shown next."""
    words = {name: request.POST.get(name, "")[:200] for name in ("which", "tag", "queue")}
    ids = {name: read_ids(request, name) for name in ("comparison", "people")}
    request.session[SESSION_KEY] = {"slug": slug, **words, **ids}


def pop_refused_action(request: AuthenticatedRequest, slug: str) -> dict[str, object]:
    refused: dict[str, object] = request.session.pop(SESSION_KEY, {})
    return refused if refused.get("slug") == slug else {}


def read_ids(request: AuthenticatedRequest, name: str) -> list[int]:
    values = request.POST.getlist(name)[:MAX_SELECTED]
    return [int(value) for value in values if value.isdecimal() and len(value) < 19]


def build_filter_form(request: AuthenticatedRequest, evaluation: Evaluation) -> FilterForm:
    """The filter form of a request, with the fields that this person may use."""
    user = request.user
    return FilterForm(
        request.GET,
        evaluation=evaluation,
        sees_all=is_allowed(user, Action.SEE_ALL, evaluation),
        sees_judges=can_see_judges(user, evaluation),
        in_cell="judge_choice" in request.GET,
    )


def list_filters(form: FilterForm) -> list[ComparisonFilter]:
    """The filters that must all match: the form's own, and the saved filter it is limited to."""
    saved_filter = form.get_saved_filter()
    filters = (form.to_filter(), saved_filter.comparison_filter if saved_filter else ComparisonFilter())
    return [comparison_filter for comparison_filter in filters if comparison_filter]
