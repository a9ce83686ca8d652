"""Where others call me: over all evaluations, what I have not seen yet first."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.models import Comparison, User
from evaluations.services.adjudicating.discussing import mentions_of
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reviewing.typesetting import html_of
from evaluations.web.paging import page_of

MOST_UNSEEN: Final = 100
SAID: Final = ("comment__user", "comment__aspect", "comment__comparison__evaluation", "comment__comparison__query")


@require_safe
def mentions(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    calls = mentions_of(user, access.open_comparisons_everywhere(user)).select_related(*SAID)
    unseen = list(calls.filter(seen_at__isnull=True).order_by("-pk")[:MOST_UNSEEN])
    page = page_of(request, calls.filter(seen_at__isnull=False), newest_first=True)
    note_words_seen(user, [mention.comment.comparison for mention in (*unseen, *page.rows)])
    html = html_of(mention.comment.text for mention in [*unseen, *page.rows])
    context = {"page": "mentions", "unseen": unseen, "page_of_rows": page, "html": html}
    return render(request, "mentions/mentions.html", context)


def note_words_seen(user: User, comparisons: Iterable[Comparison]) -> None:
    """What is said of a comparison tells what others chose on it, here as on its own page."""
    in_order = sorted(comparisons, key=lambda comparison: comparison.evaluation_id)
    for evaluation, called_on in groupby(in_order, key=lambda comparison: comparison.evaluation):
        if access.may(user, Action.REVIEW, evaluation):
            note_seen(user, evaluation, called_on, judges=access.may_see_judges(user, evaluation))
