"""How many more reviews the numbers of one judge on one aspect take, and how many its verdicts save."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluations.stats.budget import HALF_WIDTHS, Effort, LabelBudget, Material, Saving, label_budget, saved_by_ppi
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.distributions import Z_975
from evaluations.stats.items import Items
from evaluations.stats.numbers import Number
from evaluations.stats.win_rates import WinRates


@dataclass(frozen=True)
class Budgets:
    """``win_rate``: of the candidate that people have reviewed most, which ``candidate`` names; ``saving``: by PPI."""

    agreement: LabelBudget
    cohen_kappa: LabelBudget
    candidate: str | None
    win_rate: LabelBudget
    saving: Saving


def budgets(
    agreement: Number,
    cohen_kappa: Number,
    rates: WinRates,
    items: Items,
    people: IntArray,
    votes: int,
    half_widths: Sequence[float] = HALF_WIDTHS,
) -> Budgets:
    """``people``: their majority on each comparison, MISSING where nobody voted; ``votes``: how many they gave."""
    reviewed = people != MISSING
    effort = Effort(clusters_of(items.cluster, reviewed), int(reviewed.sum()), votes)
    untouched = int(items.cluster.max(initial=-1)) + 1 - effort.clusters
    material = Material(untouched, int((~reviewed).sum()))
    name, rate = max(rates.candidates.items(), key=lambda one: one[1].people.n, default=(None, None))
    of_rate = rate.people if rate else agreement
    return Budgets(
        agreement=of_number(agreement, effort, material, half_widths),
        cohen_kappa=of_number(cohen_kappa, effort, material, half_widths),
        candidate=name,
        win_rate=of_number(of_rate, effort, material, half_widths),
        saving=saved_by_ppi(standard_error(rate.people), standard_error(rate.corrected))
        if rate
        else saved_by_ppi(None, None),
    )


def of_number(number: Number, effort: Effort, material: Material, half_widths: Sequence[float]) -> LabelBudget:
    """From the interval that the number has: half its width is z standard errors."""
    error = standard_error(number)
    return label_budget((error or 0.0) ** 2, number.why or number.ci95_why, effort, material, half_widths)


def standard_error(number: Number) -> float | None:
    """The standard error that the interval stands for."""
    return None if number.ci95 is None else (number.ci95[1] - number.ci95[0]) / 2 / Z_975


def clusters_of(cluster: IntArray, chosen: BoolArray) -> int:
    return int(np.count_nonzero(np.bincount(cluster[chosen]))) if chosen.any() else 0
