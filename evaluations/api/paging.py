"""Long lists a page at a time, by the last row seen: a cursor is opaque, and no page costs more than the first."""

import base64
import binascii
from typing import Annotated, Any, TypeVar

from django.db.models import Model, QuerySet
from ninja import Field, Schema

from evaluations.api.problems import Fault, Problem

RowOfPage = TypeVar("RowOfPage", bound=Model)
MOST = 200


class Paging(Schema):
    """Where a list is to go on, and how many of it are wanted."""

    cursor: Annotated[str, Field(max_length=100, description="`next` of the page before; empty: from the start")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST, description="how many at most")] = 50


def written(after: int) -> str:
    return base64.urlsafe_b64encode(f"after:{after}".encode()).decode().rstrip("=")


def after_of(paging: Paging) -> int:
    if not paging.cursor:
        return 0
    try:
        padded = paging.cursor + "=" * (-len(paging.cursor) % 4)
        word, _, number = base64.urlsafe_b64decode(padded.encode("ascii")).decode().partition(":")
    except (binascii.Error, UnicodeError, ValueError):
        word, number = "", ""
    if word != "after" or not (number.isascii() and number.isdecimal() and len(number) < 20 and int(number) < 2**63):
        fault = Fault("query.cursor", "This is no cursor of a list here: take `next` of the page before as it is.")
        raise Problem("invalid", "The cursor cannot be read.", faults=[fault])
    return int(number)


def page_of(
    paging: Paging, rows: "QuerySet[RowOfPage, Any]", *, newest_first: bool = False
) -> tuple[list[RowOfPage], str | None]:
    """The rows after the cursor, in the order of their ids or against it, and the cursor of the next page."""
    if after := after_of(paging):
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": after})
    found = list(rows.order_by("-pk" if newest_first else "pk")[: paging.limit + 1])
    shown = found[: paging.limit]
    return shown, written(shown[-1].pk) if len(found) > paging.limit else None
