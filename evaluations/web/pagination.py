"""Keyset pagination of lists on pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

PAGE_SIZE: Final = 50
PageRow = TypeVar("PageRow", bound=Model)


@dataclass(frozen=True)
class Page(Generic[PageRow]):
    """``first_page``, ``next_page`` and ``page_before`` are query strings, filters kept."""

    rows: Sequence[PageRow]
    is_first: bool
    first_page: str
    next_page: str | None
    page_before: str | None = None


def paginate(
    request: HttpRequest, rows: "QuerySet[PageRow, Any]", size: int = PAGE_SIZE, *, newest_first: bool = False
) -> "Page[PageRow]":
    """The rows after ``?after=<id>``, in the order of their ids or against it."""
    if after := parse_after(request):
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": after})
    found = list(rows.order_by("-pk" if newest_first else "pk")[: size + 1])
    shown = found[:size]
    return Page(
        shown,
        is_first=not after,
        first_page=page_query(request, 0),
        next_page=page_query(request, shown[-1].pk) if len(found) > size else None,
    )


def parse_after(request: HttpRequest, name: str = "after") -> int:
    after = request.GET.get(name, "") or "0"
    if not (after.isdecimal() and len(after) < 19):
        raise Http404
    return int(after)


def page_query(request: HttpRequest, after: int, name: str = "after") -> str:
    parameters = request.GET.copy()
    for place in ("after", "before"):
        parameters.pop(place, None)
    if after:
        parameters[name] = str(after)
    return parameters.urlencode()
