"""The order of a list, as the headings of its columns set it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import HttpRequest

PAGE_PARAMETERS: Final = ("after", "before", "from")


@dataclass(frozen=True)
class SortColumn:
    """A column that can order a list. ``name``: in the address; ``descending``: at the first click."""

    name: str
    field: str = "pk"
    descending: bool = False


@dataclass(frozen=True)
class SortHeading:
    """``query``: of the list as a click orders it. ``state``: that of ``aria-sort``, empty for another order."""

    query: str
    state: str


@dataclass(frozen=True)
class Sorting:
    """The order of a list, and the headings of its columns by name."""

    field: str
    descending: bool
    headings: Mapping[str, SortHeading]

    def order(self, rows: "QuerySet[Any, Any]") -> "QuerySet[Any, Any]":
        fields = dict.fromkeys((self.field, "pk"))
        return rows.order_by(*(f"-{field}" if self.descending else field for field in fields))

    def select_after(self, rows: "QuerySet[Any, Any]", pk: int) -> "QuerySet[Any, Any]":
        """The rows that follow this one; all of them if it is gone."""
        beyond = "lt" if self.descending else "gt"
        follows = Q(**{f"pk__{beyond}": pk})
        if self.field == "pk":
            return rows.filter(follows)
        anchor = rows.filter(pk=pk).values_list(self.field, flat=True).first()
        if anchor is None:
            return rows
        # The first condition alone lets an index be read from the anchor on.
        return rows.filter(Q(**{f"{self.field}__{beyond}": anchor}) | follows, **{f"{self.field}__{beyond}e": anchor})


NEWEST_FIRST: Final = Sorting("pk", descending=True, headings={})
OLDEST_FIRST: Final = Sorting("pk", descending=False, headings={})


def parse_sorting(request: HttpRequest, *columns: SortColumn) -> Sorting:
    """The order that ``?sort=name`` or ``?sort=-name`` asks for; by the first column if it names none of them."""
    asked = request.GET.get("sort", "")
    chosen = next((column for column in columns if column.name == asked.removeprefix("-")), None)
    current = chosen or columns[0]
    descending = asked.startswith("-") if chosen else current.descending
    headings = {}
    for column in columns:
        is_current = column is current
        turned = not descending if is_current else column.descending
        is_default = column is columns[0] and turned == column.descending
        query = build_sort_query(request, "" if is_default else f"{'-' if turned else ''}{column.name}")
        headings[column.name] = SortHeading(query, get_sort_state(descending) if is_current else "")
    return Sorting(current.field, descending, headings)


def get_sort_state(descending: bool) -> str:
    return "descending" if descending else "ascending"


def build_sort_query(request: HttpRequest, sort: str) -> str:
    """The query of the first page in another order, with the filters."""
    parameters = request.GET.copy()
    for name in (*PAGE_PARAMETERS, "sort"):
        parameters.pop(name, None)
    if sort:
        parameters["sort"] = sort
    return parameters.urlencode()
