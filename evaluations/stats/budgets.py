"""How many more reviews the numbers of one judge on one aspect take, and how many its verdicts save."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats import coefficients
from evaluations.stats.agreement import Agreement
from evaluations.stats.budget import Effort, LabelBudget, Material, Saving, label_budget, saved_by_ppi
from evaluations.stats.coding import CHOICES, MISSING, BoolArray, IntArray
from evaluations.stats.coefficients import Tables
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.intervals import Spread
from evaluations.stats.items import Items
from evaluations.stats.numbers import Number
from evaluations.stats.win_rates import WinRates

NO_CANDIDATE: Final = "There is no candidate whose win rate could be planned for."


@dataclass(frozen=True)
class Varying:
    """A number with its variance over clusters (`Spread.variance`)."""

    number: Number
    variance: float


@dataclass(frozen=True)
class Budgets:
    """``win_rate``: of the candidate that people have reviewed most, which ``candidate`` names; ``saving``: by PPI."""

    agreement: LabelBudget
    cohen_kappa: LabelBudget
    candidate: str | None
    win_rate: LabelBudget
    saving: Saving


def budgets(
    agreement: Varying,
    cohen_kappa: Varying,
    rates: WinRates,
    variances: Sequence[float],
    items: Items,
    people: IntArray,
    votes: int,
) -> Budgets:
    """``variances``: of the win rate of each candidate from people alone, in the order of ``rates.candidates``.

    ``people``: their majority on each comparison, MISSING where nobody voted; ``votes``: how many they gave.
    """
    reviewed = people != MISSING
    effort = Effort(clusters_of(items.cluster, reviewed), int(reviewed.sum()), votes)
    untouched = int(items.cluster.max(initial=-1)) + 1 - effort.clusters
    material = Material(untouched, int((~reviewed).sum()))
    name, of_rate, saving = None, LabelBudget(NO_CANDIDATE, votes, None, ()), saved_by_ppi(None)
    if rates.candidates:
        candidates = zip(rates.candidates.items(), variances, strict=True)
        (name, rate), variance = max(candidates, key=lambda one: one[0][1].people.n)
        of_rate, saving = of_number(Varying(rate.people, variance), effort, material), saved_by_ppi(rate.width_ratio)
    return Budgets(
        agreement=of_number(agreement, effort, material),
        cohen_kappa=of_number(cohen_kappa, effort, material),
        candidate=name,
        win_rate=of_rate,
        saving=saving,
    )


def varying(now: Agreement, table: Contributions) -> tuple[Varying, Varying]:
    """Agreement and Cohen's kappa, with their variances by the table of choices by choices that they are made of."""
    spread = Spread(table)
    return (
        Varying(now.agreement, spread.variance(lambda totals: coefficients.raw_agreement(square(totals)))),
        Varying(now.cohen_kappa, spread.variance(lambda totals: coefficients.cohen_kappa(square(totals)))),
    )


def square(totals: FloatArray) -> Tables:
    return Tables(totals.reshape(*totals.shape[:-1], len(CHOICES), len(CHOICES)))


def of_number(found: Varying, effort: Effort, material: Material) -> LabelBudget:
    """Where the number has no interval its variance is not to be relied on."""
    return label_budget(found.variance, found.number.why or found.number.ci95_why, effort, material)


def clusters_of(cluster: IntArray, chosen: BoolArray) -> int:
    return int(np.count_nonzero(np.bincount(cluster[chosen]))) if chosen.any() else 0
