"""The abstract row, the constraints and the indexes that tables share."""

from enum import StrEnum
from typing import Self, TypeVar

from django.db import models
from django.db.models import Q

ArchivableRow = TypeVar("ArchivableRow", bound=models.Model, covariant=True)


class Row(models.Model):
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        """The row's name if it has one, else its kind and number."""
        return str(getattr(self, "name", "") or f"{self._meta.verbose_name} {self.pk}")


class ArchivableQuerySet(models.QuerySet[ArchivableRow]):
    """Rows with a column ``archived_at``."""

    def current(self) -> Self:
        return self.filter(archived_at__isnull=True)

    def archived(self) -> Self:
        return self.filter(archived_at__isnull=False)


def enum_choices(words: type[StrEnum]) -> list[tuple[str, str]]:
    """The choices of a column that holds one of a closed list of words."""
    return [(word.value, word.value.replace("_", " ")) for word in words]


def enum_constraint(column: str, words: type[StrEnum], name: str, *, or_empty: bool = False) -> models.CheckConstraint:
    """Constrain a column to the words of an enum, or also to the empty string."""
    allowed = [*([""] if or_empty else []), *(word.value for word in words)]
    return models.CheckConstraint(condition=Q(**{f"{column}__in": allowed}), name=name)


def exactly_one_of(*columns: str) -> Q:
    """True where one of the nullable columns is filled and the others are null."""
    condition = Q()
    for filled in columns:
        condition |= Q(**{f"{column}__isnull": column != filled for column in columns})
    return condition


def not_null_index(column: str, table: str) -> models.Index:
    """An index of the rows in which a nullable column is filled, and of no others."""
    return models.Index(fields=[column], condition=Q(**{f"{column}__isnull": False}), name=f"{table}_by_{column}")
