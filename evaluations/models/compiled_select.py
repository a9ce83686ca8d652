"""Selects that Django's query builder puts together once, and that are run again with other ids."""

from collections.abc import Callable, Collection
from typing import Any, Final

from django.db import connection, models

from evaluations.models.bulk import filter_by_values, values_parameter

# Ids that no row has: where the compiled statement has them, each run has its own.
PLACEHOLDER_IDS: Final = (-(2**31) + 1, -(2**31) + 2)


class CompiledSelect:
    """``build``: the rows to read, as `values_list` of columns, in the order wanted.

    ``column``: the column, of the rows' own table, that holds the ids. The conditions stay where their home is, and
    are put together as a statement at the first use: that takes several times as long as it takes to run it.
    """

    def __init__(self, column: str, build: "Callable[[], models.QuerySet[Any, Any]]") -> None:
        self.column, self.build = column, build
        self.compiled: dict[str, tuple[str, tuple[Any, ...], dict[int, Any]]] = {}

    def read(self, ids: Collection[int]) -> list[tuple[Any, ...]]:
        sql, parameters, converters = self.compiled.get(connection.vendor) or self.compile()
        placeholder, value = values_parameter(PLACEHOLDER_IDS), values_parameter(ids)
        with connection.cursor() as cursor:
            cursor.execute(sql, [value if parameter == placeholder else parameter for parameter in parameters])
            rows = cursor.fetchall()
        return [convert_row(row, converters) for row in rows] if converters else rows

    def compile(self) -> tuple[str, tuple[Any, ...], dict[int, Any]]:
        rows = filter_by_values(self.build(), self.column, PLACEHOLDER_IDS)
        compiler = rows.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        converters = compiler.get_converters([expression for expression, *_ in compiler.select])
        self.compiled[connection.vendor] = compiled = sql, tuple(parameters), converters
        return compiled


def convert_row(row: tuple[Any, ...], converters: dict[int, Any]) -> tuple[Any, ...]:
    values = list(row)
    for place, (converts, expression) in converters.items():
        for convert in converts:
            values[place] = convert(values[place], expression, connection)
    return tuple(values)
