"""How many comparisons storing a file makes of its responses, and of those here, before any of them is made."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from types import TracebackType
from typing import Final

from evaluations.domain import ResponseRow, ScoreRow
from evaluations.formats.reading import Entry
from evaluations.models import Candidate, Comparison, Evaluation, Response
from evaluations.services.importing.pairing import Pairing, Side, pairs_of, seed_of
from evaluations.services.importing.sketching import ComparisonSketch, ResponseSketch, Sketch

QUERIES_AT_ONCE: Final = 500
Named = tuple[str, str]  # a response to a query: its candidate's name, and the sum of its text
Pair = frozenset[Named]


def keys_to_pair(items: Iterable[object]) -> set[str]:
    """The queries among whose responses these entries ask for pairs, those that proved bad included."""
    rows = [row for item in items if isinstance(item, Entry) for row in item.rows]
    keys = {row.query.key for row in rows if isinstance(row, ResponseRow)}
    return keys | {row.query_key for row in rows if isinstance(row, ScoreRow)}


class Foreseen:
    """What a file brings to each of its queries, in a temporary file that removes itself."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("PRAGMA synchronous=OFF")
        # A query that pairs are made of has a row of its own; those of its responses have one side, of pairs two.
        self._database.execute("CREATE TABLE brought (query TEXT, name TEXT, sum TEXT, other TEXT, other_sum TEXT)")
        self._database.execute("BEGIN")
        self._replaced: dict[str, set[Named]] = defaultdict(set)

    def __enter__(self) -> "Foreseen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, keys: Collection[str], new: Iterable[Sketch]) -> None:
        """The queries that a batch asks pairs of, and what of all that it brings is new."""
        rows: list[tuple[str | None, ...]] = [(key, None, None, None, None) for key in keys]
        for one in new:
            if isinstance(one, ResponseSketch):
                rows.append((one.query.key, *one.key, None, None))
                if one.replaces:
                    self._replaced[one.query.key].add(one.replaces)
            elif isinstance(one, ComparisonSketch):
                rows.append((one.query.key, *one.key))
        self._database.executemany("INSERT INTO brought VALUES (?, ?, ?, ?, ?)", rows)

    def counts(self, evaluation: Evaluation, pairing: Pairing, ranking: Sequence[str]) -> Iterator[int]:
        """How many comparisons will be made, of a few hundred queries at a time."""
        told = self._database.execute("SELECT * FROM brought ORDER BY query")
        queries = (Brought(key, [row[1:] for row in rows]) for key, rows in groupby(told, key=itemgetter(0)))
        asked = (one for one in queries if one.is_asked)
        while some := list(islice(asked, QUERIES_AT_ONCE)):
            stored = stored_responses(evaluation, [one.key for one in some])
            made = stored_pairs(evaluation, list(stored))
            for one in some:
                one.responses |= stored.get(one.key, set()) - self._replaced.get(one.key, set())
                one.pairs |= made.get(one.key, set())
            yield sum(one.missing(pairing, seed_of(evaluation, one.key), ranking) for one in some)


class Brought:
    """What a file brings to one query."""

    def __init__(self, key: str, rows: Sequence[tuple[str | None, ...]]) -> None:
        self.key = key
        self.is_asked = any(name is None for name, *_ in rows)
        self.responses: set[Named] = {(name, of) for name, of, other, _ in rows if name and of and other is None}
        self.pairs: set[Pair] = {
            frozenset(((name, of), (other, other_of)))
            for name, of, other, other_of in rows
            if name and of and other and other_of
        }

    def missing(self, pairing: Pairing, seed: str, ranking: Sequence[str]) -> int:
        sides = [Side(0, candidate_named(name), of) for name, of in self.responses]
        pairs = pairs_of(sides, pairing, seed, ranking)
        return sum(frozenset(map(named, pair)) not in self.pairs for pair in pairs)


@lru_cache(maxsize=1_000)
def candidate_named(name: str) -> Candidate:
    return Candidate(name=name)


def named(side: Side) -> Named:
    return side.candidate.name, side.sha256


def stored_responses(evaluation: Evaluation, keys: Sequence[str]) -> dict[str, set[Named]]:
    found: dict[str, set[Named]] = defaultdict(set)
    rows = Response.objects.filter(query__evaluation=evaluation, query__key__in=keys).order_by()
    for key, *side in rows.values_list("query__key", "candidate__name", "sha256"):
        found[key].add((side[0], side[1]))
    return found


def stored_pairs(evaluation: Evaluation, keys: Sequence[str]) -> dict[str, set[Pair]]:
    found: dict[str, set[Pair]] = defaultdict(set)
    if not keys:
        return found
    rows = Comparison.objects.filter(evaluation=evaluation, query__key__in=keys).order_by()
    sides = (f"response_{side}__{part}" for side in "ab" for part in ("candidate__name", "sha256"))
    for key, name, of, other, other_of in rows.values_list("query__key", *sides):
        found[key].add(frozenset(((name, of), (other, other_of))))
    return found
