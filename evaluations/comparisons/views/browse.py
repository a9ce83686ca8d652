"""Pages that list, show or add comparisons."""

from collections.abc import Mapping, Sequence, Set

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evaluations.access import Action, is_allowed, list_reviewers, require_evaluation
from evaluations.comparisons.forms import CellForm, FilterForm, ManualComparisonForm
from evaluations.comparisons.manual_comparisons import ManualComparison, add_comparison
from evaluations.comparisons.requests import (
    build_filter_form,
    get_comparison_or_404,
    list_filters,
    list_resolutions,
    pop_refused_action,
)
from evaluations.comparisons.search.services import is_index_behind
from evaluations.comparisons.selectors import (
    FoundComparisons,
    find_excluding_filters,
    reveal_found_comparisons,
)
from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.domain.roles import RaterKind
from evaluations.domain.search import ExcerptPart, SearchQuery, make_search_excerpt, parse_search_text
from evaluations.domain.texts import messages_to_text
from evaluations.models.comparison_filter import apply_comparison_filter
from evaluations.models.comparisons import Candidate, Comparison, load_tag_names
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.selection import list_finished_comparisons
from evaluations.models.text_flags import find_suspect_texts
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.rendered_texts import iter_comparison_texts, render_texts
from evaluations.reports.cells.selectors import ReportCell, reveal_comparisons_in_cell
from evaluations.reviews.selectors import put_in_order_shown
from evaluations.verdicts.vote_counts import count_raters
from evaluations.visibility import can_see_judges, can_see_names, reveal_vote_table, visible_comparisons
from evaluations.web.pagination import (
    MAX_COUNTED,
    PAGE_SIZE,
    Page,
    build_page_query,
    count_bounded,
    paginate,
    parse_after,
    parse_first_number,
)
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting


@require_http_methods(["GET", "HEAD"])
def comparison_detail(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    row = get_comparison_or_404(evaluation, pk)
    table = reveal_vote_table(user, row)
    sees_verdicts = table is not None
    stored = (row.response_a, row.response_b)
    responses = stored if sees_verdicts else put_in_order_shown(user, row, stored)
    sides = [(side, response, find_suspect_texts(response)) for side, response in zip("AB", responses, strict=True)]
    swapped_reviews = Review.objects.filter(
        rater__user=user, comparison=row, shown=ShownOrder.SWAPPED, state__in=SAVED_REVIEW_STATES
    )
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "comparison": row,
        "suspects": find_suspect_texts(row.query),
        "html": render_texts([*iter_comparison_texts(row), *(table.rationales if table else ())]),
        "sides": sides,
        "table": table,
        "shows_names": sees_verdicts and can_see_names(user, evaluation),
        "adjudications": list_resolutions(row) if sees_verdicts else (),
        "saw_swapped": sees_verdicts and swapped_reviews.exists(),
    }
    return render(request, "comparison/comparison.html", context)


MAX_NAMES_OFFERED = 100


@require_http_methods(["GET", "HEAD", "POST"])
def comparison_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    form = ManualComparisonForm(request.POST or None)
    if form.is_valid():
        try:
            comparison = add_comparison(evaluation, ManualComparison(**form.cleaned_data), user=user)
        except InputRefused as refused:
            form.add_error(None, str(refused))
        else:
            messages.success(request, "Comparison added.")
            return redirect("comparison", slug, comparison.pk)
    names = Candidate.objects.filter(evaluation=evaluation).order_by("name").values_list("name", flat=True)
    context = {"page": "comparisons", "evaluation": evaluation, "form": form, "names": names[:MAX_NAMES_OFFERED]}
    status = 422 if request.method == "POST" else 200
    return render(request, "comparison_new/comparison_new.html", context, status=status)


# Lists show no messages of queries or responses, so these are not read.
LIST_COLUMNS = (
    *("evaluation", "query__text", "query__category", "query__flags"),
    *("response_a__candidate__name", "response_a__flags", "response_b__candidate__name", "response_b__flags"),
)

# Search results show an excerpt of the text that matches. Texts with more characters are not read for it.
EXCERPT_COLUMNS = (
    *("query__messages", "query__context", "query__reference"),
    *("response_a__messages", "response_b__messages"),
)

MAX_EXCERPTED_CHARACTERS = 200_000


@require_http_methods(["GET", "HEAD"])
def comparison_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    form = build_filter_form(request, evaluation)
    cell = CellForm(request.GET) if "judge_choice" in request.GET else None
    filters = list_filters(form)
    sorting = parse_sorting(request, SortColumn("number"))
    if form.errors:  # all comparisons are not what was asked for
        page, is_whole = Page[Comparison]([], is_first=True, first_page="", next_page=None), True
    elif cell:
        counted = filter_by_form(visible_comparisons(user, evaluation), evaluation, form)
        in_cell = filter_by_cell(request, evaluation, counted, cell)
        page, is_whole = paginate(request, select_list_columns(in_cell)), True
    else:
        page, is_whole = build_page(request, evaluation, form, filters, descending=sorting.descending)
    people = list_reviewers(evaluation) if is_allowed(user, Action.MANAGE, evaluation) else []
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "form": form,
        "cell": cell,
        "comparisons": page,
        "sorting": sorting,
        "is_whole": is_whole,
        "rows": build_list_rows(user, evaluation, page, form.to_filter().text),
        "sees_judges": can_see_judges(user, evaluation),
        "is_filtered": bool(cell or filters or form.errors),
        "can_save_filter": bool(filters and not cell and not form.errors) and is_allowed(user, Action.TAG, evaluation),
        "excluding": find_excluding_filters(evaluation, filters)
        if filters and not page.rows and page.is_first and is_whole
        else [],
        "is_behind": bool(form.to_filter().text) and is_index_behind(evaluation),
        "known_tags": form.tags,
        "people": people,
        "can_act": bool(people) or is_allowed(user, Action.TAG, evaluation),
        "refused_action": pop_refused_action(request, slug),
    }
    template = "comparisons/_panel.html" if is_for_panel(request) else "comparisons/comparisons.html"
    return render(request, template, context, status=422 if form.errors else 200)


def is_for_panel(request: AuthenticatedRequest) -> bool:
    """Whether the results ask for the comparisons behind a number."""
    return request.htmx.target == "side-panel"


def filter_by_form(comparisons: QuerySet[Comparison], evaluation: Evaluation, form: FilterForm) -> QuerySet[Comparison]:
    for comparison_filter in list_filters(form):
        try:
            comparisons = apply_comparison_filter(comparisons, evaluation, comparison_filter)
        except InputRefused as refused:  # of a saved filter: what it names may be gone
            form.add_error(None, str(refused))
            return comparisons.none()
    return comparisons


def build_page(
    request: AuthenticatedRequest,
    evaluation: Evaluation,
    form: FilterForm,
    filters: Sequence[ComparisonFilter],
    *,
    descending: bool,
) -> tuple[Page[Comparison], bool]:
    """A page of comparisons in either direction, and whether everything up to its end was searched."""
    after, before = parse_after(request), parse_after(request, "before")
    try:
        user = request.user
        search = reveal_found_comparisons(
            user, evaluation, filters, after=before or after, size=PAGE_SIZE, backwards=bool(before) != descending
        )
    except InputRefused as refused:
        form.add_error(None, str(refused))
        search = FoundComparisons([], None)
    found = select_list_columns(Comparison.all_rows.filter(pk__in=search.ids))
    rows = list(found.order_by("-pk" if descending else "pk"))
    step = -1 if descending else 1
    on, back = search.continues_after, rows[0].pk if rows else after + step
    if before:
        on, back = rows[-1].pk if rows else before - step, search.continues_after or 0
    is_first = not after and not back if before else not after
    number = 1 if is_first else parse_first_number(request)
    previous_number = max(1, number - PAGE_SIZE)
    is_only = is_first and not on
    return Page(
        rows,
        is_first=is_first,
        first_page=build_page_query(request, 0),
        next_page=build_page_query(request, on, number=number + len(rows)) if on else None,
        previous_page=build_page_query(request, back, "before", number=previous_number)
        if back and (after or before)
        else None,
        first_number=number if search.is_whole else None,
        total=len(rows) if is_only else None if filters else count_bounded(list_finished_comparisons(evaluation)),
    ), search.is_whole


@require_safe
def comparisons_count(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """How many comparisons match the filter of the list, which asks for it once it is shown."""
    evaluation = require_evaluation(request.user, slug)
    form = build_filter_form(request, evaluation)
    filters = list_filters(form)
    if form.errors or "judge_choice" in request.GET:
        raise Http404
    try:
        found = reveal_found_comparisons(request.user, evaluation, filters, size=MAX_COUNTED)
    except InputRefused as refused:
        raise Http404 from refused
    more = found.continues_after is not None
    return HttpResponse(f"{len(found.ids):,}{'+' if more else ''} match{'' if more or len(found.ids) != 1 else 'es'}")


def select_list_columns(comparisons: QuerySet[Comparison]) -> QuerySet[Comparison]:
    return comparisons.select_related("query", "response_a__candidate", "response_b__candidate").only(*LIST_COLUMNS)


def filter_by_cell(
    request: AuthenticatedRequest, evaluation: Evaluation, comparisons: QuerySet[Comparison], cell: CellForm
) -> QuerySet[Comparison]:
    """The comparisons in one cell of a judge's confusion matrix, as many as a page needs."""
    user = request.user
    if not can_see_judges(user, evaluation):
        raise PermissionDenied("This evaluation does not show judges’ choices to reviewers.")
    if not cell.is_valid():
        raise Http404
    judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE)
    cell.judge_rater = get_object_or_404(judges, pk=cell.cleaned_data["judge"])
    cleaned = cell.cleaned_data
    try:
        ids = reveal_comparisons_in_cell(
            user,
            evaluation,
            comparisons,
            ReportCell(cleaned["aspect"], cell.judge_rater.pk, cleaned["judge_choice"], cleaned["human_choice"]),
            cell.rules(),
            after=parse_after(request),
            size=PAGE_SIZE,
        )
    except InputRefused as refused:
        raise Http404 from refused
    return comparisons.filter(pk__in=ids)


def build_list_rows(
    user: User, evaluation: Evaluation, page: Page[Comparison], search_text: str
) -> list[dict[str, object]]:
    ids = [comparison.pk for comparison in page.rows]
    progress = count_raters(ids)
    named = set(visible_comparisons(user, evaluation).filter(pk__in=ids).values_list("pk", flat=True))
    excerpts = build_excerpts(page.rows, parse_search_text(search_text), user, named) if search_text else {}
    shows_names = bool(named) and can_see_names(user, evaluation)
    tags = load_tag_names(ids) if is_allowed(user, Action.SEE_ALL, evaluation) else {}
    return [
        {
            "comparison": comparison,
            "progress": progress[comparison.pk],
            "is_named": comparison.pk in named and shows_names,
            "shows_labels": comparison.pk in named and progress[comparison.pk].has_labels,
            "excerpt": excerpts.get(comparison.pk),
            "tags": tags.get(comparison.pk, ()),
        }
        for comparison in page.rows
    ]


def build_excerpts(
    rows: Sequence[Comparison], search: SearchQuery, user: User, named: Set[int]
) -> Mapping[int, tuple[str, list[ExcerptPart]]]:
    """For each comparison, the first text with a hit, with the words around the hit.

    A comparison outside ``named`` is not reviewed yet: there a response has no letter, and the left one comes first.
    """
    by_id, excerpts = {row.pk: row for row in rows}, {}
    short = Comparison.all_rows.filter(
        pk__in=by_id,
        response_a__characters__lt=MAX_EXCERPTED_CHARACTERS,
        response_b__characters__lt=MAX_EXCERPTED_CHARACTERS,
    )
    for pk, query, context, reference, *responses in short.values_list("pk", *EXCERPT_COLUMNS):
        names = ("response A", "response B") if pk in named else ("response", "response")
        first, second = responses if pk in named else put_in_order_shown(user, by_id[pk], responses)
        texts = (
            ("prompt", messages_to_text(query)),
            (names[0], messages_to_text(first)),
            (names[1], messages_to_text(second)),
            ("context", context or ""),
            ("reference answer", reference or ""),
        )
        matches = ((name, make_search_excerpt(text, search)) for name, text in texts)
        hit = next((match for match in matches if match[1]), None)
        if hit:
            excerpts[pk] = hit
    return excerpts
