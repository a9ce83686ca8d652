"""The record: who did what, and when."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.models import Event, User
from evaluations.web.paging import page_of

# What people chose is not shown here: someone who reviews still would no longer be blind.
WITHOUT_DETAILS: Final = {"review", "verdict", "span", "comment"}
SETTLING: Final = {"adjudicated", "withdrew adjudication"}
LONGEST_VALUE: Final = 200


@dataclass(frozen=True)
class Change:
    """One value before and after; None where there was or is none."""

    name: str
    before: str | None
    after: str | None


@require_safe
def events(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.SEE_ALL)
    found = Event.objects.filter(evaluation=evaluation).select_related("user", "token")
    page = page_of(request, found, newest_first=True)
    rows = [(event, list(changes(event))) for event in page.rows]
    context = {"page": "events", "evaluation": evaluation, "rows": rows, "page_of_rows": page}
    return render(request, "events/events.html", context)


def changes(event: Event) -> Iterator[Change]:
    if event.object_type in WITHOUT_DETAILS or event.verb in SETTLING:
        return
    for name in dict.fromkeys([*event.before, *event.after]):
        change = Change(name.replace("_", " "), shown(event.before.get(name)), shown(event.after.get(name)))
        if change.before is not None or change.after is not None:
            yield change


def shown(value: Any) -> str | None:
    if value is None or value == "":
        return None
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
