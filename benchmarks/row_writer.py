"""Rows written past the ORM, for studies too large to make one object for each row."""

from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import NOT_PROVIDED

from evaluations.models.bulk import insert_many


def insert_rows(model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert the rows, with the default of the model in every column that is not named.

    A column that is added to the product therefore needs no change here as long as it has a default.
    """
    placeholders = [
        field
        for field in model._meta.local_concrete_fields
        if field.column not in columns and not (field.primary_key or field.null or has_database_default(field))
    ]
    defaults = tuple(field.get_default() for field in placeholders)
    names = (*columns, *(field.column for field in placeholders))
    insert_many(model, names, [(*row, *defaults) for row in rows])


def has_database_default(field: "models.Field[Any, Any]") -> bool:
    return field.db_default is not NOT_PROVIDED
