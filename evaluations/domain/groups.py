"""Values grouped by key, or cut into slices."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def group_values(pairs: Iterable[tuple[Key, Value]]) -> defaultdict[Key, list[Value]]:
    groups: defaultdict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def split_into_slices(values: Sequence[Value], size: int) -> Iterator[Sequence[Value]]:
    return (values[start : start + size] for start in range(0, len(values), size))
