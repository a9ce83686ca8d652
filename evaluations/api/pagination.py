"""Cursor pagination of lists in the API."""

import base64
import binascii
from typing import Annotated, Any, TypeVar

from django.db.models import Model, QuerySet
from ninja import Field, Schema

from evaluations.api.problems import FieldError, Problem

ApiPageRow = TypeVar("ApiPageRow", bound=Model)
MAX_PAGE_SIZE = 200


class PageQuery(Schema):
    """Where a list is to go on, and how many of it are wanted."""

    cursor: Annotated[
        str, Field(max_length=100, description="`next` of the previous page; default: from the start")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE, description="maximum number of items")] = 50


class ArchivePageQuery(PageQuery):
    archived: bool = Field(False, description="archived ones instead of current ones")


def encode_cursor(after: int) -> str:
    return base64.urlsafe_b64encode(f"after:{after}".encode()).decode().rstrip("=")


def decode_cursor(paging: PageQuery) -> int:
    if not paging.cursor:
        return 0
    try:
        padded = paging.cursor + "=" * (-len(paging.cursor) % 4)
        word, _, number = base64.urlsafe_b64decode(padded.encode("ascii")).decode().partition(":")
    except (binascii.Error, UnicodeError, ValueError):
        word, number = "", ""
    if word != "after" or not (number.isascii() and number.isdecimal() and len(number) < 20 and int(number) < 2**63):
        fault = FieldError("query.cursor", "Not a cursor of this list. Use `next` of the previous page unchanged.")
        raise Problem("invalid", "Invalid cursor.", faults=[fault])
    return int(number)


def paginate_by_cursor(
    paging: PageQuery, rows: "QuerySet[ApiPageRow, Any]", *, newest_first: bool = False
) -> tuple[list[ApiPageRow], str | None]:
    """The rows after the cursor, in the order of their ids or against it, and the cursor of the next page."""
    if after := decode_cursor(paging):
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": after})
    fetched = list(rows.order_by("-pk" if newest_first else "pk")[: paging.limit + 1])
    shown = fetched[: paging.limit]
    return shown, encode_cursor(shown[-1].pk) if len(fetched) > paging.limit else None
