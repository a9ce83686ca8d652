"""Forest plots: estimates in rows, the series of a row below each other."""

from collections.abc import Sequence
from typing import Final

from evaluations.charts.chart import Caption, Chart, build_estimate_table, build_notes, build_ranked_table
from evaluations.charts.estimates import (
    PlottedEstimate,
    Quantity,
    Ranked,
    build_estimate,
    compute_axis_domain,
    make_share_quantity,
)
from evaluations.charts.themes import PAGE_THEME, Json, Theme
from evaluations.charts.vega_lite import (
    AXIS_PIXELS,
    DrawnEstimates,
    build_chart,
    build_datum,
    build_interval_layer,
    build_measure_axis,
    build_name_axis,
    build_point_layers,
    build_row_scale,
    build_rule_layer,
    build_specification,
    build_text_field,
    build_tooltip,
    encode_series,
    get_legend_height,
    select_drawable,
)
from evaluations.stats.ranking import Standing

MAX_ROWS: Final = 60
SERIES_PIXELS: Final = 18
ROW_GAP_PIXELS: Final = 14


def build_forest_chart(
    caption: Caption,
    estimates: Sequence[PlottedEstimate],
    quantity: Quantity,
    theme: Theme,
    *,
    row_name: str,
    neutral: float | None = None,
) -> Chart:
    """A forest chart. ``neutral``: the value that favors neither side, drawn as a line."""
    drawn = select_drawable(estimates, theme, MAX_ROWS)
    notes = build_notes(estimates, caption.rule, MAX_ROWS)
    spec = None
    if drawn.estimates:
        layers = build_forest_layers(drawn, quantity, theme, row_name, neutral)
        data = [build_datum(estimate, quantity) for estimate in drawn.estimates]
        spec = build_specification(caption, theme, notes, data, get_forest_height(drawn), layers)
    return build_chart(caption, estimates, quantity, build_estimate_table(estimates, quantity, row_name), notes, spec)


def build_forest_layers(
    drawn: DrawnEstimates, quantity: Quantity, theme: Theme, row_name: str, neutral: float | None, *more: Json
) -> list[Json]:
    also = () if neutral is None else (neutral,)
    along = build_measure_axis(quantity, compute_axis_domain(quantity, drawn.estimates, also))
    marks = {
        "encoding": {**encode_rows(drawn, theme), "color": encode_series(drawn.style, drawn.style.colors)},
        "layer": [
            build_interval_layer(along),
            *build_point_layers(drawn.style, theme, along, build_tooltip(row_name, quantity, *more)),
        ],
    }
    return [*(build_rule_layer(value, theme) for value in also), marks]


def encode_rows(drawn: DrawnEstimates, theme: Theme) -> Json:
    rows = {"field": "label", "type": "nominal", "scale": build_row_scale(drawn.rows), "axis": build_name_axis(theme)}
    encoding: Json = {"y": rows}
    if len(drawn.style.names) > 1:
        between = {"domain": drawn.style.names, "paddingOuter": ROW_GAP_PIXELS / 2 / SERIES_PIXELS}
        encoding["yOffset"] = {"field": "series", "type": "nominal", "scale": between}
    return encoding


def get_forest_height(drawn: DrawnEstimates) -> int:
    rows = len(drawn.rows) * (len(drawn.style.names) * SERIES_PIXELS + ROW_GAP_PIXELS)
    return rows + AXIS_PIXELS + get_legend_height(drawn.style.names)


EVEN_SHARE = 0.5


def build_win_rate_chart(caption: Caption, estimates: Sequence[PlottedEstimate], theme: Theme = PAGE_THEME) -> Chart:
    """The win rate of each candidate by people, by the judge alone, and corrected by people."""
    return build_forest_chart(
        caption, estimates, make_share_quantity("Win rate"), theme, row_name="Candidate", neutral=EVEN_SHARE
    )


def build_preference_chart(caption: Caption, estimates: Sequence[PlottedEstimate], theme: Theme = PAGE_THEME) -> Chart:
    """How often raters choose the first shown or the longer response; one half means no preference."""
    return build_forest_chart(
        caption,
        estimates,
        make_share_quantity("Share of verdicts without ties"),
        theme,
        row_name="Rater",
        neutral=EVEN_SHARE,
    )


BRADLEY_TERRY_SCORE: Final = Quantity("Bradley–Terry score (log odds, 0 is the mean)")
# Below the legend, which on a phone reaches over the ranks.
RANK_HEADING_PIXELS: Final = 18


def build_ranked(candidate: str, series: str, standing: Standing) -> Ranked:
    """The standing of a candidate as charts take it."""
    low, high = standing.ranks or (None, None)
    return Ranked(build_estimate(candidate, series, standing.score), standing.rank, low, high)


def build_ranking_chart(caption: Caption, ranked: Sequence[Ranked], theme: Theme = PAGE_THEME) -> Chart:
    """A ranking chart, the best of the first series on top, with ranks and their ranges on the right."""
    ordered = sort_best_first(ranked)
    estimates = [standing.estimate for standing in ordered]
    drawn = select_drawable(estimates, theme, MAX_ROWS)
    notes = build_notes(estimates, caption.rule, MAX_ROWS)
    spec = None
    if drawn.estimates:
        ranks = {standing.estimate: standing.ranks or "n/a" for standing in ordered}
        first = {estimate.label: rank for estimate, rank in ranks.items() if estimate.series == estimates[0].series}
        layers = build_forest_layers(
            drawn, BRADLEY_TERRY_SCORE, theme, "Candidate", None, build_text_field("ranks", "Rank")
        )
        data = [
            {**build_datum(estimate, BRADLEY_TERRY_SCORE), "ranks": ranks[estimate]} for estimate in drawn.estimates
        ]
        layers.append(build_rank_axis(drawn, estimates[0].series, theme))
        spec = build_specification(
            caption, theme, notes, data, get_forest_height(drawn) + RANK_HEADING_PIXELS, layers, ranks=first
        )
        spec["resolve"] = {"scale": {"y": "independent"}}
        spec["config"]["legend"]["offset"] += RANK_HEADING_PIXELS
    return build_chart(
        caption, estimates, BRADLEY_TERRY_SCORE, build_ranked_table(ordered, BRADLEY_TERRY_SCORE), notes, spec
    )


def sort_best_first(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Candidates in descending order of the first series; those without a value come last."""
    first = ranked[0].estimate.series if ranked else ""
    values = {
        standing.estimate.label: standing.estimate.value for standing in ranked if standing.estimate.series == first
    }

    def order(standing: Ranked) -> tuple[bool, float]:
        value = values.get(standing.estimate.label)
        return (value is None, -(value or 0.0))

    return sorted(ranked, key=order)


def build_rank_axis(drawn: DrawnEstimates, series: str, theme: Theme) -> Json:
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
        "labelColor": theme.ink,
        "labelExpr": "ranks[datum.value] || ''",
        "labelFontWeight": 500,
    }
    return {
        "mark": {"type": "point", "opacity": 0, "size": 0},
        "encoding": {"y": {"field": "label", "type": "nominal", "scale": build_row_scale(drawn.rows), "axis": axis}},
    }
