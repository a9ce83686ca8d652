"""Keyset pagination of lists on pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from evaluations.web.sorting import OLDEST_FIRST, PAGE_PARAMETERS, Sorting

PAGE_SIZE: Final = 50
MAX_COUNTED: Final = 50_000
PageRow = TypeVar("PageRow", bound=Model)


@dataclass(frozen=True)
class Page(Generic[PageRow]):
    """One page of a list. The other pages are query strings that keep the filters."""

    rows: Sequence[PageRow]
    is_first: bool
    first_page: str
    next_page: str | None
    previous_page: str | None = None
    first_number: int | None = None
    total: int | None = None

    @property
    def has_other_pages(self) -> bool:
        return not self.is_first or bool(self.next_page or self.previous_page)

    @property
    def range_text(self) -> str:
        """``1–50 of 1,204``; ``1–50 of 50,000+`` where counting on would be slow; empty if the position is unknown."""
        if self.first_number is None:
            return ""
        last = self.first_number + len(self.rows) - 1
        shown = f"{self.first_number:,}–{last:,}" if last > self.first_number else f"{self.first_number:,}"
        if self.total is None:
            return shown
        return f"{shown} of {format_total(max(self.total, last))}"


def format_total(total: int) -> str:
    return f"{MAX_COUNTED:,}+" if total > MAX_COUNTED else f"{total:,}"


def count_bounded(rows: "QuerySet[Any, Any]") -> int:
    """How many rows there are; ``MAX_COUNTED`` + 1 where there are more."""
    return rows.order_by()[: MAX_COUNTED + 1].count()


def paginate(
    request: HttpRequest, rows: "QuerySet[PageRow, Any]", *, sorting: Sorting = OLDEST_FIRST
) -> "Page[PageRow]":
    """The rows after ``?after=<id>`` in this order. A list of one page is not counted."""
    listed = rows
    if after := parse_after(request):
        rows = sorting.select_after(rows, after)
    read = list(sorting.order(rows)[: PAGE_SIZE + 1])
    page, has_next = read[:PAGE_SIZE], len(read) > PAGE_SIZE
    number = parse_first_number(request) if after else 1
    return Page(
        page,
        is_first=not after,
        first_page=build_page_query(request, 0),
        next_page=build_page_query(request, page[-1].pk, number=number + len(page)) if has_next else None,
        first_number=number,
        total=count_bounded(listed) if after or has_next else len(page),
    )


def parse_first_number(request: HttpRequest) -> int:
    """The position of the first row of this page in the list, as the link to the page says."""
    number = request.GET.get("from", "")
    return max(1, int(number)) if number.isdecimal() and len(number) < 19 else 1


def parse_after(request: HttpRequest, name: str = "after") -> int:
    after = request.GET.get(name, "") or "0"
    if not (after.isdecimal() and len(after) < 19):
        raise Http404
    return int(after)


def build_page_query(request: HttpRequest, after: int, name: str = "after", *, number: int = 1) -> str:
    """The query of another page: the filters, the row that it follows, and the position of its first row."""
    parameters = request.GET.copy()
    for name_of_page in PAGE_PARAMETERS:
        parameters.pop(name_of_page, None)
    if after:
        parameters[name] = str(after)
    if after and number > 1:
        parameters["from"] = str(number)
    return parameters.urlencode()
