"""Which responses are held against each other, and which of two is A."""

import hashlib
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Final, TypeVar

from django.db.models import Q

from evaluations.domain import ComparisonOrigin, InputRefused, NewResponse
from evaluations.models import Candidate, Comparison, Evaluation, Import, Query, Response
from evaluations.models.material import finished_imports

ALL: Final = "all"
BASELINE: Final = "baseline"
RANDOM: Final = "random"
ADJACENT: Final = "adjacent"
REPLACES: Final = "replaces"  # of a response's metadata: the id of the one whose place it takes


@dataclass(frozen=True)
class Pairing:
    """Every two candidates of a query; each against one; so many pairs a query at random; or neighbours by rating."""

    way: str = ALL
    baseline: str = ""
    number: int = 0

    def __str__(self) -> str:
        return ":".join(part for part in (self.way, self.baseline, str(self.number or "")) if part)


def read_pairing(text: str) -> Pairing:
    """``all``, ``baseline:NAME``, ``random:N`` or ``adjacent`` as a person writes it."""
    way, _, rest = text.partition(":")
    if text in (ALL, ADJACENT):
        return Pairing(text)
    if way == BASELINE and rest:
        return Pairing(BASELINE, baseline=rest)
    if way == RANDOM and rest.isascii() and rest.isdecimal() and 0 < int(rest) < 1_000_000:
        return Pairing(RANDOM, number=int(rest))
    raise InputRefused(f"Pairs cannot be made by “{text}”: say all, baseline:NAME, random:N or adjacent.")


def draw_shuffle() -> int:
    """A comparison's place in the order in which people meet them."""
    return random.getrandbits(63)


def comparison_of(query: Query, first: Response, second: Response, **columns: Any) -> Comparison:
    """The comparison of two responses, not saved: A is the candidate whose name sorts first."""
    turned = first.candidate.name > second.candidate.name
    response_a, response_b = (second, first) if turned else (first, second)
    return Comparison(
        evaluation=query.evaluation,
        query=query,
        response_a=response_a,
        response_b=response_b,
        turned=turned,
        shuffle=draw_shuffle(),
        **columns,
    )


@dataclass(frozen=True)
class Side:
    """As much of a response as pairs are made of."""

    pk: int
    candidate: Candidate
    sha256: str


Paired = TypeVar("Paired", Response, Side)


def pairs_of(
    responses: Sequence[Paired], pairing: Pairing, seed: str, ranking: Sequence[str] = ()
) -> list[tuple[Paired, Paired]]:
    """The pairs of one query's responses. The same responses and seed give the same pairs.

    ``ranking``: the names of the rated candidates, for pairs of neighbours.
    """
    ordered = sorted(responses, key=lambda response: (response.candidate.name, response.sha256))
    pairs = [(one, other) for one, other in combinations(ordered, 2) if one.candidate.name != other.candidate.name]
    if pairing.way == BASELINE:
        return [pair for pair in pairs if pairing.baseline in (pair[0].candidate.name, pair[1].candidate.name)]
    if pairing.way == RANDOM:
        drawn = set(sorted(range(len(pairs)), key=lambda place: lot(seed, *pairs[place]))[: pairing.number])
        return [pair for place, pair in enumerate(pairs) if place in drawn]
    if pairing.way == ADJACENT:
        wanted = neighbours({response.candidate.name for response in responses}, ranking)
        return [pair for pair in pairs if frozenset((pair[0].candidate.name, pair[1].candidate.name)) in wanted]
    return pairs


def lot(seed: str, one: Paired, other: Paired) -> bytes:
    """A pair keeps its lot when others come: of those drawn then, most are made already."""
    told = (seed, one.candidate.name, one.sha256, other.candidate.name, other.sha256)
    return hashlib.sha256("\0".join(told).encode()).digest()


def neighbours(names: Collection[str], ranking: Sequence[str]) -> set[frozenset[str]]:
    """Of the candidates that answered one query, those beside each other in the ranking.

    A candidate without a rating meets the middle one of the others; where none has one, their names are the order.
    """
    rated = [name for name in ranking if name in names]
    others = sorted(set(names) - set(rated))
    found = {frozenset(pair) for pair in pairwise(rated or others)}
    return found | {frozenset((name, rated[len(rated) // 2])) for name in others if rated}


def seed_of(evaluation: Evaluation, key: str) -> str:
    return f"{evaluation.slug}:{key}"


def replaced_by(importing: Import, **narrowed: object) -> list[int]:
    """The responses whose place those of an import take."""
    found = Response.all_rows.filter(source_import=importing, metadata__has_key=REPLACES, **narrowed)
    return [metadata[REPLACES] for metadata in found.values_list("metadata", flat=True)]


def new_pairs(importing: Import, keys: Sequence[str], pairing: Pairing) -> Iterator[Comparison]:
    """The comparisons that are missing among the responses to these queries, not saved."""
    visible = finished_imports() | Q(source_import=importing)
    ranking = importing.options.get("ranking", ())
    queries = list(Query.all_rows.filter(visible, evaluation=importing.evaluation, key__in=keys).order_by("pk"))
    responses: dict[int, list[Response]] = defaultdict(list)
    here = Response.all_rows.filter(visible, query__in=queries)
    if importing.options.get("new_response") == NewResponse.REPLACE:
        here = here.exclude(pk__in=replaced_by(importing, query__in=queries))
    for response in here.select_related("candidate").defer("messages"):
        responses[response.query_id].append(response)
    made = set(Comparison.all_rows.filter(query__in=queries).values_list("response_a", "response_b"))
    for query in queries:
        query.evaluation = importing.evaluation
        for one, other in pairs_of(responses[query.pk], pairing, seed_of(importing.evaluation, query.key), ranking):
            if not {(one.pk, other.pk), (other.pk, one.pk)} & made:
                yield comparison_of(query, one, other, origin=ComparisonOrigin.PAIRED, source_import=importing)
