"""All comparisons of an evaluation, filtered."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, cast

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import Filter, InputRefused, RaterKind, Search, Stretch, excerpt, search_for, text_of
from evaluations.forms.comparisons import CellForm, FilterForm
from evaluations.models import Comparison, Evaluation, Rater, Tagging, User
from evaluations.models.filtering import narrowed_to
from evaluations.services.importing.indexing import is_behind
from evaluations.services.reporting.browsing import Found, find, progress
from evaluations.services.reporting.narrowing import few_of, few_told_apart
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.reporting import comparisons_in_cell
from evaluations.services.reviewing.drawing import in_order_shown
from evaluations.web.paging import PAGE_SIZE, Page, address, after_of, page_of
from evaluations.web.round_new import reviewers

ASKED: Final = "asked of comparisons"  # in the session
MOST_CHOSEN: Final = 500

# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED = (
    *("evaluation", "query__text", "query__category", "query__flags"),
    *("response_a__candidate__name", "response_a__flags", "response_b__candidate__name", "response_b__flags"),
)


# Beside what a search found stands where it found it: texts beyond so many characters are left unread for it.
TEXTS = ("query__messages", "query__context", "query__reference", "response_a__messages", "response_b__messages")
LONG = 200_000


@require_http_methods(["GET", "HEAD"])
def comparisons(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    form = filter_form(request, evaluation)
    cell = CellForm(request.GET) if "judge_choice" in request.GET else None
    wanted = asked_of(form)
    if form.errors:  # all comparisons are not what was asked for
        page, is_whole = Page[Comparison]([], is_first=True, first_page="", next_page=None), True
    elif cell:
        counted = filtered(access.open_comparisons(user, evaluation), evaluation, form)
        page, is_whole = page_of(request, listed(in_cell(request, evaluation, counted, cell))), True
    else:
        page, is_whole = page_found(request, evaluation, form, wanted)
    if access.may(user, Action.REVIEW, evaluation) and not form.errors:
        # Among few, those that are not in the cell are told apart, too.
        if cell:
            note_seen(user, evaluation, few_of(counted, evaluation, cell.rules()) or page.rows)
        elif any(one.tells_what_others_chose for one in wanted):
            note_seen(user, evaluation, few_told_apart(evaluation, wanted) or page.rows)
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "form": form,
        "cell": cell,
        "comparisons": page,
        "is_whole": is_whole,
        "rows": with_progress(user, evaluation, page, sought_by(form)),
        "sees_judges": access.may_see_judges(user, evaluation),
        "is_filtered": bool(cell or wanted or form.errors),
        "excluding": excluding(evaluation, wanted) if wanted and not page.rows and page.is_first and is_whole else [],
        "is_behind": bool(form.wanted().text) and is_behind(evaluation),
        "known_tags": form.tags,
        "people": reviewers(evaluation) if access.may(user, Action.MANAGE, evaluation) else [],
        "asked": kept_asked(request, slug),
    }
    return render(request, "comparisons/comparisons.html", context, status=422 if form.errors else 200)


def keep_asked(request: HttpRequest, slug: str) -> None:
    """What was chosen and written for an act that was refused stands on the list that comes next."""
    words = {name: request.POST.get(name, "")[:200] for name in ("which", "tag", "round")}
    ids = {name: numbers_in(request, name) for name in ("comparison", "people")}
    request.session[ASKED] = {"slug": slug, **words, **ids}


def kept_asked(request: HttpRequest, slug: str) -> dict[str, Any]:
    told: dict[str, Any] = request.session.pop(ASKED, {})
    return told if told.get("slug") == slug else {}


def numbers_in(request: HttpRequest, name: str) -> list[int]:
    given = request.POST.getlist(name)[:MOST_CHOSEN]
    return [int(one) for one in given if one.isdecimal() and len(one) < 19]


def filter_form(request: HttpRequest, evaluation: Evaluation) -> FilterForm:
    """The filter of an address, with the fields that this person may use."""
    user = cast(User, request.user)
    sees_all, sees_judges = access.may(user, Action.SEE_ALL, evaluation), access.may_see_judges(user, evaluation)
    return FilterForm(
        request.GET,
        evaluation=evaluation,
        sees_all=sees_all,
        judges_shown=sees_judges,
        in_cell="judge_choice" in request.GET,
    )


def asked_of(form: FilterForm) -> list[Filter]:
    """What must all hold: the filter, and that of the slice within which it looks."""
    sliced = form.sliced()
    return [one for one in (form.wanted(), sliced.wanted if sliced else Filter()) if one]


def filtered(found: QuerySet[Comparison], evaluation: Evaluation, form: FilterForm) -> QuerySet[Comparison]:
    for wanted in asked_of(form):
        try:
            found = narrowed_to(found, evaluation, wanted)
        except InputRefused as refused:  # of a slice: what it names may be gone
            form.add_error(None, str(refused))
            return found.none()
    return found


def page_found(
    request: HttpRequest, evaluation: Evaluation, form: FilterForm, wanted: Sequence[Filter]
) -> tuple[Page[Comparison], bool]:
    """A page in either direction, and whether everything up to its end was looked through."""
    after, before = after_of(request), after_of(request, "before")
    try:
        found = find(evaluation, wanted, after=before or after, size=PAGE_SIZE, backwards=bool(before))
    except InputRefused as refused:
        form.add_error(None, str(refused))
        found = Found([], None)
    rows = list(listed(Comparison.all_rows.filter(pk__in=found.ids)).order_by("pk"))
    on, back = found.goes_on, rows[0].pk if rows else after + 1
    if before:
        on, back = rows[-1].pk if rows else before - 1, found.goes_on or 0
    return Page(
        rows,
        is_first=not after and not back if before else not after,
        first_page=address(request, 0),
        next_page=address(request, on) if on else None,
        page_before=address(request, back, "before") if back and (after or before) else None,
    ), found.is_whole


def listed(found: QuerySet[Comparison]) -> QuerySet[Comparison]:
    return found.select_related("query", "response_a__candidate", "response_b__candidate").only(*LISTED)


def excluding(evaluation: Evaluation, wanted: Sequence[Filter]) -> list[str]:
    """In words those parts of the filter without which something would be found; empty where no single one is."""
    parts = [part for one in wanted for part in one.parts()]
    if len(parts) < 2:
        return []
    found = []
    for part in parts:
        others = [one for one in parts if one is not part]
        if find(evaluation, others, size=1, seconds=0.02).ids:
            found.append(part.in_words())
    return found


def sought_by(form: FilterForm) -> Search | None:
    text = form.wanted().text
    try:
        return search_for(text) if text else None
    except InputRefused:
        return None


def in_cell(
    request: HttpRequest, evaluation: Evaluation, found: QuerySet[Comparison], cell: CellForm
) -> QuerySet[Comparison]:
    """Those on which this judge and the majority of people chose so; as many as a page needs."""
    if not access.may_see_judges(cast(User, request.user), evaluation):
        raise PermissionDenied("The choices of judges are not shown to reviewers of this evaluation.")
    if not cell.is_valid():
        raise Http404
    judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE)
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


def with_progress(
    user: User, evaluation: Evaluation, page: Page[Comparison], search: Search | None
) -> list[dict[str, object]]:
    ids = [comparison.pk for comparison in page.rows]
    told = progress(ids)
    named = set(access.open_comparisons(user, evaluation).filter(pk__in=ids).values_list("pk", flat=True))
    excerpts = excerpts_of(page.rows, search, user, named) if search else {}
    tags = tags_of(ids) if access.may(user, Action.SEE_ALL, evaluation) else {}
    return [
        {
            "comparison": comparison,
            "progress": told[comparison.pk],
            "is_named": comparison.pk in named,
            "excerpt": excerpts.get(comparison.pk),
            "tags": tags.get(comparison.pk, ()),
        }
        for comparison in page.rows
    ]


def tags_of(ids: Sequence[int]) -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    rows = Tagging.objects.filter(comparison__in=ids).order_by("tag__name")
    for comparison, name in rows.values_list("comparison_id", "tag__name"):
        found[comparison].append(name)
    return found


def excerpts_of(
    rows: Sequence[Comparison], search: Search, user: User, named: Set[int]
) -> Mapping[int, tuple[str, list[Stretch]]]:
    """Of each the first of its texts with a hit: what it is, and the words around the hit.

    A comparison outside ``named`` is not reviewed yet: there a response has no letter, and the left one comes first.
    """
    by_id, told = {row.pk: row for row in rows}, {}
    short = Comparison.all_rows.filter(pk__in=by_id, response_a__characters__lt=LONG, response_b__characters__lt=LONG)
    for pk, query, context, reference, *responses in short.values_list("pk", *TEXTS):
        names = ("response A", "response B") if pk in named else ("response", "response")
        first, second = responses if pk in named else in_order_shown(user, by_id[pk], responses)
        texts = (
            ("query", text_of(query)),
            (names[0], text_of(first)),
            (names[1], text_of(second)),
            ("context", context or ""),
            ("reference answer", reference or ""),
        )
        found = ((name, excerpt(text, search)) for name, text in texts)
        hit = next((one for one in found if one[1]), None)
        if hit:
            told[pk] = hit
    return told
