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
    """One page of a list. The other pages are query strings that keep the filters."""

    rows: Sequence[PageRow]
    is_first: bool
    first_page: str
    next_page: str | None
    previous_page: str | None = None

    @property
    def has_other_pages(self) -> bool:
        return not self.is_first or bool(self.next_page or self.previous_page)


def paginate(request: HttpRequest, rows: "QuerySet[PageRow, Any]", *, newest_first: bool = False) -> "Page[PageRow]":
    """The rows after ``?after=<id>``, by ascending or descending id."""
    if after := parse_after(request):
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": after})
    read = list(rows.order_by("-pk" if newest_first else "pk")[: PAGE_SIZE + 1])
    page = read[:PAGE_SIZE]
    return Page(
        page,
        is_first=not after,
        first_page=build_page_query(request, 0),
        next_page=build_page_query(request, page[-1].pk) if len(read) > PAGE_SIZE else None,
    )


def parse_after(request: HttpRequest, name: str = "after") -> int:
    after = request.GET.get(name, "") or "0"
    if not (after.isdecimal() and len(after) < 19):
        raise Http404
    return int(after)


def build_page_query(request: HttpRequest, after: int, name: str = "after") -> str:
    parameters = request.GET.copy()
    for bound in ("after", "before"):
        parameters.pop(bound, None)
    if after:
        parameters[name] = str(after)
    return parameters.urlencode()
