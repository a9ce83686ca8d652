"""Candidates by Bradley–Terry, each with the ranks that its interval allows."""

from collections.abc import Sequence
from typing import Final

from evaluations.figures.assembling import Drawn, drawable, plotted, row_scale, specified
from evaluations.figures.estimates import Ranked, estimate_of
from evaluations.figures.layers import datum, text
from evaluations.figures.media import PAGE, Json, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import Quantity
from evaluations.figures.rows import MOST_ROWS, forest, forest_height
from evaluations.figures.tables import rows_of_ranked
from evaluations.figures.wording import notes_of
from evaluations.stats.ranking import Standing

SCORE: Final = Quantity("Bradley–Terry score (log odds, 0 is the mean)")

# Below the legend, which on a phone reaches over the ranks.
HEAD_OF_RANKS: Final = 18


def ranked_of(candidate: str, series: str, standing: Standing) -> Ranked:
    """A candidate of a ranking as a plot takes it."""
    low, high = standing.ranks or (None, None)
    return Ranked(estimate_of(candidate, series, standing.score), standing.rank, low, high)


def ranking(caption: Caption, ranked: Sequence[Ranked], medium: Medium = PAGE) -> Plot:
    """The best of the first series on top. On the right of each row its rank there, and the ranks it may have."""
    ordered = best_first(ranked)
    estimates = [one.estimate for one in ordered]
    drawn = drawable(estimates, medium, MOST_ROWS)
    notes = notes_of(estimates, caption.rule, MOST_ROWS)
    spec = None
    if drawn.estimates:
        ranks = {one.estimate: one.ranks or "n/a" for one in ordered}
        first = {one.label: said for one, said in ranks.items() if one.series == estimates[0].series}
        layers = forest(drawn, SCORE, medium, "Candidate", None, text("ranks", "Rank"))
        data = [{**datum(one, SCORE), "ranks": ranks[one]} for one in drawn.estimates]
        layers.append(places(drawn, estimates[0].series, medium))
        spec = specified(caption, medium, notes, data, forest_height(drawn) + HEAD_OF_RANKS, layers, ranks=first)
        spec["resolve"] = {"scale": {"y": "independent"}}
        spec["config"]["legend"]["offset"] += HEAD_OF_RANKS
    return plotted(caption, estimates, SCORE, rows_of_ranked(ordered, SCORE), notes, spec)


def best_first(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Candidates by the first series; those that have no value there last, in the order given."""
    first = ranked[0].estimate.series if ranked else ""
    values = {one.estimate.label: one.estimate.value for one in ranked if one.estimate.series == first}

    def order(one: Ranked) -> tuple[bool, float]:
        value = values.get(one.estimate.label)
        return (value is None, -(value or 0.0))

    return sorted(ranked, key=order)


def places(drawn: Drawn, series: str, medium: Medium) -> Json:
    """A second axis that names the same rows by their ranks in that series."""
    axis = {
        "orient": "right",
        "title": f"Rank: {series}" if len(drawn.style.names) > 1 else "Rank",
        "titleAngle": 0,
        "titleAlign": "left",
        "titleBaseline": "bottom",
        "titleX": 6,
        "titleY": -6,
        "domain": False,
        "ticks": False,
        "grid": False,
        "labelColor": medium.ink,
        "labelExpr": "ranks[datum.value] || ''",
        "labelFontWeight": 500,
    }
    return {
        "mark": {"type": "point", "opacity": 0, "size": 0},
        "encoding": {"y": {"field": "label", "type": "nominal", "scale": row_scale(drawn.rows), "axis": axis}},
    }
