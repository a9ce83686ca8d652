"""Where raters differ: open disagreements in a line, and those that were settled."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.forms.disagreements import DisagreementsForm
from evaluations.models import Comparison, Evaluation, User
from evaluations.services.adjudicating.disagreeing import Wanted, counts, differences, find
from evaluations.services.reporting.noticing import note_seen
from evaluations.web.paging import PAGE_SIZE, Page, address, after_of

# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED = ("evaluation", "query__text", "response_a__candidate__name", "response_b__candidate__name")


@require_safe
def disagreements(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    form = DisagreementsForm(request.GET, evaluation=evaluation, user=user)
    wanted = form.wanted()
    page = page_of_disagreements(request, wanted)
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, page.rows, judges=access.may_see_judges(user, evaluation))
    between_people, settled = counts(wanted)
    context = {
        "page": "disagreements",
        "evaluation": evaluation,
        "form": form,
        "wanted": wanted,
        "page_of_rows": page,
        "rows": with_differences(wanted, page.rows),
        "filter": filter_of(request.GET),
        "is_filtered": any(request.GET.get(name) for name in form.fields if name != "state"),
        "between_people": between_people,
        "settled": settled,
    }
    return render(request, "disagreements/disagreements.html", context, status=422 if form.errors else 200)


def page_of_disagreements(request: HttpRequest, wanted: Wanted) -> Page[Comparison]:
    after = after_of(request)
    found = find(wanted, after=after, size=PAGE_SIZE)
    rows = Comparison.objects.select_related("query", "response_a__candidate", "response_b__candidate").only(*LISTED)
    return Page(
        list(rows.filter(pk__in=found.ids).order_by("pk")),
        is_first=not after,
        first_page=address(request, 0),
        next_page=address(request, found.goes_on) if found.goes_on else None,
    )


def with_differences(wanted: Wanted, comparisons: Sequence[Comparison]) -> list[Mapping[str, Any]]:
    told = differences(wanted, [comparison.pk for comparison in comparisons])
    return [{"comparison": comparison, "differences": told[comparison.pk]} for comparison in comparisons]


def filter_of(query: QueryDict) -> str:
    """What was asked for, to be taken along to a disagreement and from there to the next."""
    kept = query.copy()
    kept.pop("after", None)
    for name in [name for name, value in kept.items() if not value]:
        del kept[name]
    return kept.urlencode()


def wanted_of(request: HttpRequest, evaluation: Evaluation) -> Wanted:
    """The line that a disagreement was opened from, by the filter in its address."""
    return DisagreementsForm(request.GET, evaluation=evaluation, user=cast(User, request.user)).wanted()
