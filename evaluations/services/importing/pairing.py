"""Which responses are held against each other, and which of two is A."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from django.db.models import Q

from evaluations.domain import ComparisonOrigin, InputRefused
from evaluations.models import Comparison, Import, Query, Response
from evaluations.models.material import finished_imports

ALL: Final = "all"
BASELINE: Final = "baseline"
RANDOM: Final = "random"


@dataclass(frozen=True)
class Pairing:
    """Every two candidates of a query; each against one; or so many pairs a query, drawn at random."""

    way: str = ALL
    baseline: str = ""
    number: int = 0

    def __str__(self) -> str:
        return ":".join(part for part in (self.way, self.baseline, str(self.number or "")) if part)


def read_pairing(text: str) -> Pairing:
    """``all``, ``baseline:NAME`` or ``random:N`` as a person writes it."""
    way, _, rest = text.partition(":")
    if text == ALL:
        return Pairing()
    if way == BASELINE and rest:
        return Pairing(BASELINE, baseline=rest)
    if way == RANDOM and rest.isascii() and rest.isdecimal() and 0 < int(rest) < 1_000_000:
        return Pairing(RANDOM, number=int(rest))
    raise InputRefused(f"Pairs cannot be made by “{text}”: say all, baseline:NAME or random:N.")


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


def pairs_of(responses: Sequence[Response], pairing: Pairing, seed: str) -> list[tuple[Response, Response]]:
    """The pairs of one query's responses. The same responses and seed give the same pairs."""
    ordered = sorted(responses, key=lambda response: (response.candidate.name, response.sha256))
    pairs = [(one, other) for one, other in combinations(ordered, 2) if one.candidate_id != other.candidate_id]
    if pairing.way == BASELINE:
        return [pair for pair in pairs if pairing.baseline in (pair[0].candidate.name, pair[1].candidate.name)]
    if pairing.way == RANDOM:
        drawn = random.Random(seed).sample(range(len(pairs)), min(pairing.number, len(pairs)))
        return [pairs[place] for place in sorted(drawn)]
    return pairs


def new_pairs(importing: Import, keys: Sequence[str], pairing: Pairing) -> Iterator[Comparison]:
    """The comparisons that are missing among the responses to these queries, not saved."""
    visible = finished_imports() | Q(source_import=importing)
    queries = list(Query.all_rows.filter(visible, evaluation=importing.evaluation, key__in=keys).order_by("pk"))
    responses: dict[int, list[Response]] = defaultdict(list)
    for response in Response.all_rows.filter(visible, query__in=queries).select_related("candidate").defer("messages"):
        responses[response.query_id].append(response)
    made = set(Comparison.all_rows.filter(query__in=queries).values_list("response_a", "response_b"))
    for query in queries:
        query.evaluation = importing.evaluation
        for one, other in pairs_of(responses[query.pk], pairing, seed=f"{query.evaluation.slug}:{query.key}"):
            if not {(one.pk, other.pk), (other.pk, one.pk)} & made:
                yield comparison_of(query, one, other, origin=ComparisonOrigin.PAIRED, source_import=importing)
