"""Rows of several tables that one written-out statement reads.

To put a join of four tables together takes Django's query builder several times as long as the database to answer it.
What every request reads, and the review page, is therefore selected by statements with the columns named here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

Built = TypeVar("Built", bound=models.Model)


@dataclass(frozen=True)
class JoinedRow(Generic[Built]):
    """A model by the alias of its table. ``names``: what is read of it, by default all its columns."""

    model: type[Built]
    alias: str
    names: tuple[str, ...] = ()

    @cached_property
    def fields(self) -> "tuple[models.Field[Any, Any], ...]":
        fields = self.model._meta.concrete_fields
        return tuple(field for field in fields if not self.names or field.attname in self.names)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        return tuple(field.attname for field in self.fields)

    @cached_property
    def columns(self) -> str:
        return ", ".join(f'{self.alias}."{field.column}"' for field in self.fields)

    def build(self, values: Iterator[Any]) -> Built:
        """The instance of the next values of a row, which it takes."""
        database = connections[DEFAULT_DB_ALIAS]
        converted = [convert_value(field, next(values), database) for field in self.fields]
        return self.model.from_db(database.alias, self.attributes, converted)

    def build_if_any(self, values: Iterator[Any]) -> Built | None:
        """As `build`; None if an outer join found no row."""
        own = list(islice(values, len(self.fields)))
        is_any = any(field.primary_key and value is not None for field, value in zip(self.fields, own, strict=True))
        return self.build(iter(own)) if is_any else None


def convert_value(field: "models.Field[Any, Any]", value: Any, database: BaseDatabaseWrapper) -> Any:
    """A value of the database as the field has it in Python."""
    column = field.cached_col
    for convert in (*database.ops.get_db_converters(column), *field.get_db_converters(database)):
        value = convert(value, column, database)
    return value
