"""Long lists a page at a time, by the last row seen: no page costs more than the first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

PAGE_SIZE: Final = 50
RowOfPage = TypeVar("RowOfPage", bound=Model)


@dataclass(frozen=True)
class Page(Generic[RowOfPage]):
    """``first_page``, ``next_page`` and ``page_before`` are query strings, filters kept."""

    rows: Sequence[RowOfPage]
    is_first: bool
    first_page: str
    next_page: str | None
    page_before: str | None = None


def page_of(
    request: HttpRequest, rows: "QuerySet[RowOfPage, Any]", size: int = PAGE_SIZE, *, newest_first: bool = False
) -> "Page[RowOfPage]":
    """The rows after ``?after=<id>``, in the order of their ids or against it."""
    if after := after_of(request):
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": after})
    found = list(rows.order_by("-pk" if newest_first else "pk")[: size + 1])
    shown = found[:size]
    return Page(
        shown,
        is_first=not after,
        first_page=address(request, 0),
        next_page=address(request, shown[-1].pk) if len(found) > size else None,
    )


def after_of(request: HttpRequest, name: str = "after") -> int:
    after = request.GET.get(name, "") or "0"
    if not (after.isdecimal() and len(after) < 19):
        raise Http404
    return int(after)


def address(request: HttpRequest, after: int, name: str = "after") -> str:
    parameters = request.GET.copy()
    for place in ("after", "before"):
        parameters.pop(place, None)
    if after:
        parameters[name] = str(after)
    return parameters.urlencode()
