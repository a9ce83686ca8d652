"""A forecast of the comparisons that will be made of the responses in a file."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Final

from evaluations.comparisons.pairing.selectors import PairSide, pair_responses, pairing_seed
from evaluations.domain.files import FileEntry, ResponseRow, ScoreRow
from evaluations.domain.pairing import Pairing
from evaluations.formats.seen_index import TemporaryDatabase
from evaluations.imports.row_sketches import ComparisonSketch, ResponseSketch, RowSketch
from evaluations.models.comparisons import Candidate, Comparison, Response
from evaluations.models.evaluations import Evaluation

QUERIES_AT_ONCE: Final = 500
NamedResponse = tuple[str, str]  # a response to a query: its candidate's name and its SHA-256
NamedPair = frozenset[NamedResponse]
ModelNames = tuple[str, str]


def find_keys_to_pair(items: Iterable[object]) -> set[str]:
    """The keys of the queries whose responses are to be paired, those of bad entries included."""
    rows = [row for item in items if isinstance(item, FileEntry) for row in item.rows]
    keys = {row.query.key for row in rows if isinstance(row, ResponseRow)}
    return keys | {row.query_key for row in rows if isinstance(row, ScoreRow)}


class PairForecast(TemporaryDatabase):
    """The responses that a file brings to each query, with those of files that wait before it, in a temporary
    database.
    """

    def __init__(self) -> None:
        # A query to be paired has a row without sides, a response a row with one side, a pair a row with two.
        super().__init__(
            "CREATE TABLE brought (query TEXT, name TEXT, sum TEXT, other TEXT, other_sum TEXT, waiting INTEGER)"
        )
        self._replaced: dict[str, set[NamedResponse]] = defaultdict(set)

    def add(self, keys: Collection[str], new: Iterable[RowSketch], *, is_waiting: bool = False) -> None:
        """Add the keys of queries to be paired and the new rows of a batch."""
        rows: list[tuple[str | int | None, ...]] = [(key, None, None, None, None, 0) for key in keys]
        for sketch in new:
            if isinstance(sketch, ResponseSketch):
                rows.append((sketch.query.key, *sketch.key, None, None, is_waiting))
                if sketch.replaces:
                    self._replaced[sketch.query.key].add(sketch.replaces)
            elif isinstance(sketch, ComparisonSketch):
                rows.append((sketch.query.key, *sketch.key, is_waiting))
        self.database.executemany("INSERT INTO brought VALUES (?, ?, ?, ?, ?, ?)", rows)

    def count_queries(self) -> int:
        """How many queries are to be paired."""
        counted = self.database.execute("SELECT COUNT(DISTINCT query) FROM brought WHERE name IS NULL")
        return int(counted.fetchone()[0])

    def count_comparisons(
        self, evaluation: Evaluation, pairing: Pairing, ranking: Sequence[str]
    ) -> Iterator[Counter[ModelNames]]:
        """Yield how many comparisons will be made, by their models, for some hundred queries at a time."""
        rows = self.database.execute("SELECT * FROM brought ORDER BY query")
        queries = (QueryForecast(key, [row[1:] for row in group]) for key, group in groupby(rows, key=itemgetter(0)))
        forecasts = (query for query in queries if query.is_asked)
        while batch := list(islice(forecasts, QUERIES_AT_ONCE)):
            stored = load_stored_responses(evaluation, [query.key for query in batch])
            pairs = load_stored_pairs(evaluation, list(stored))
            for query in batch:
                query.responses |= stored.get(query.key, set()) - self._replaced.get(query.key, set())
                query.pairs |= pairs.get(query.key, set())
            counts: Counter[ModelNames] = Counter()
            for query in batch:
                counts.update(query.list_missing(pairing, pairing_seed(evaluation, query.key), ranking))
            yield counts


class QueryForecast:
    """The responses that a file, and the files that wait before it, bring to one query."""

    def __init__(self, key: str, rows: Sequence[tuple[str | None, str | None, str | None, str | None, int]]) -> None:
        self.key = key
        self.is_asked = any(name is None for name, *_ in rows)
        self.responses: set[NamedResponse] = set()
        self.own: set[NamedResponse] = set()
        self.waiting: set[NamedResponse] = set()
        self.pairs: set[NamedPair] = set()
        for name, of, other, other_of, is_waiting in rows:
            if name and of and other and other_of:
                self.pairs.add(frozenset(((name, of), (other, other_of))))
            elif name and of:
                self.responses.add((name, of))
                (self.waiting if is_waiting else self.own).add((name, of))

    def list_missing(self, pairing: Pairing, seed: str, ranking: Sequence[str]) -> Iterator[ModelNames]:
        """The models of each comparison that is made when the file is stored."""
        sides = [PairSide(0, build_candidate(name), of) for name, of in self.responses]
        for first, second in pair_responses(sides, pairing, seed, ranking):
            pair = frozenset((name_side(first), name_side(second)))
            is_made_before = pair & self.waiting and not pair & self.own  # when a waiting file is stored
            if pair not in self.pairs and not is_made_before:
                yield first.candidate.name, second.candidate.name


@lru_cache(maxsize=1_000)
def build_candidate(name: str) -> Candidate:
    return Candidate(name=name)


def name_side(side: PairSide) -> NamedResponse:
    return side.candidate.name, side.sha256


def load_stored_responses(evaluation: Evaluation, keys: Sequence[str]) -> dict[str, set[NamedResponse]]:
    responses: dict[str, set[NamedResponse]] = defaultdict(set)
    rows = Response.objects.filter(query__evaluation=evaluation, query__key__in=keys).order_by()
    for key, *side in rows.values_list("query__key", "candidate__name", "sha256"):
        responses[key].add((side[0], side[1]))
    return responses


def load_stored_pairs(evaluation: Evaluation, keys: Sequence[str]) -> dict[str, set[NamedPair]]:
    pairs: dict[str, set[NamedPair]] = defaultdict(set)
    if not keys:
        return pairs
    rows = Comparison.objects.filter(evaluation=evaluation, query__key__in=keys).order_by()
    sides = (f"response_{side}__{part}" for side in "ab" for part in ("candidate__name", "sha256"))
    for key, name, of, other, other_of in rows.values_list("query__key", *sides):
        pairs[key].add(frozenset(((name, of), (other, other_of))))
    return pairs
