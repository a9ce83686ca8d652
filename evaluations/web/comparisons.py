"""All comparisons of an evaluation, filtered."""

from bisect import bisect_right
from typing import cast

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused, RaterKind
from evaluations.forms.comparisons import CellForm, FilterForm
from evaluations.models import Comparison, Evaluation, Rater, User
from evaluations.services.reporting.browsing import matching, progress
from evaluations.services.reporting.narrowing import few_where
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.reporting import comparisons_in_cell
from evaluations.web.paging import PAGE_SIZE, Page, after_of, page_of
from evaluations.web.round_new import reviewers

# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED = (
    *("evaluation", "query__text", "query__category", "query__flags"),
    *("response_a__candidate__name", "response_a__flags", "response_b__candidate__name", "response_b__flags"),
)


@require_http_methods(["GET", "HEAD"])
def comparisons(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    sees_all = access.may(user, Action.SEE_ALL, evaluation)
    sees_judges = access.may_see_judges(user, evaluation)
    form = FilterForm(request.GET, evaluation=evaluation, names_shown=sees_all, judges_shown=sees_judges)
    wanted = form.wanted()
    cell = CellForm(request.GET) if "judge_choice" in request.GET else None
    if cell:
        counted = matching(access.open_comparisons(user, evaluation), **wanted)
        found = in_cell(request, evaluation, counted, cell)
    else:
        found = matching(Comparison.objects.filter(evaluation=evaluation), **wanted)
    page = page_of(
        request, found.select_related("query", "response_a__candidate", "response_b__candidate").only(*LISTED)
    )
    if cell and access.may(user, Action.REVIEW, evaluation):
        # Among few, those that are not in the cell are told apart, too.
        note_seen(user, evaluation, few_where(counted, cell.rules().where) or page.rows)
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "form": form,
        "cell": cell,
        "comparisons": page,
        "rows": with_progress(user, evaluation, page),
        "sees_judges": sees_judges,
        "is_filtered": bool(cell or wanted),
        "people": reviewers(evaluation) if access.may(user, Action.MANAGE, evaluation) else [],
    }
    return render(request, "comparisons/comparisons.html", context, status=422 if form.errors else 200)


def in_cell(
    request: HttpRequest, evaluation: Evaluation, found: QuerySet[Comparison], cell: CellForm
) -> QuerySet[Comparison]:
    """Those on which this judge and the majority of people chose so; as many as a page needs."""
    if not access.may_see_judges(cast(User, request.user), evaluation):
        raise PermissionDenied("The choices of judges are not shown to reviewers of this evaluation.")
    if not cell.is_valid():
        raise Http404
    judges = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.JUDGE)
    cell.judge_rater = get_object_or_404(judges, pk=cell.cleaned_data["judge"])
    asked = cell.cleaned_data
    try:
        ids = comparisons_in_cell(
            evaluation,
            found,
            asked["aspect"],
            cell.judge_rater.pk,
            asked["judge_choice"],
            asked["human_choice"],
            cell.rules(),
        )
    except InputRefused as refused:
        raise Http404 from refused
    start = bisect_right(ids, after_of(request))
    return found.filter(pk__in=ids[start : start + PAGE_SIZE + 1])


def with_progress(user: User, evaluation: Evaluation, page: Page[Comparison]) -> list[dict[str, object]]:
    ids = [comparison.pk for comparison in page.rows]
    told = progress(ids)
    named = set(access.open_comparisons(user, evaluation).filter(pk__in=ids).values_list("pk", flat=True))
    return [
        {"comparison": comparison, "progress": told[comparison.pk], "is_named": comparison.pk in named}
        for comparison in page.rows
    ]
