"""Candidates by Bradley–Terry."""

from evaluations.charts.chart import Caption
from evaluations.charts.estimates import PlottedEstimate, Ranked
from evaluations.charts.forest_charts import build_ranked, build_ranking_chart
from evaluations.charts.image_renderer import render_in_this_process
from evaluations.charts.themes import PAPER_THEME
from evaluations.stats.estimates import Estimate
from evaluations.stats.ranking import Standing
from tests.helpers.chart_samples import make_ranked

CAPTION = Caption("ranking", "Ranking")


def test_the_best_stands_on_top_and_what_has_no_score_last() -> None:
    plot = build_ranking_chart(CAPTION, make_ranked())
    assert plot.spec is not None
    assert [row["label"] for row in plot.spec["data"]["values"]] == ["strong", "weak"]
    assert [row[:2] for row in plot.table.formatted_rows] == [("strong", "1 (1–2)"), ("weak", "2"), ("unseen", "n/a")]


def test_every_row_names_its_rank_on_the_right() -> None:
    plot = build_ranking_chart(CAPTION, make_ranked(), PAPER_THEME)
    assert plot.spec is not None
    picture = render_in_this_process(plot.spec, "svg").decode()
    assert picture.index(">1 (1–2)<") < picture.index(">2<")
    assert picture.index(">strong<") < picture.index(">weak<")


def test_several_series_stand_in_the_order_of_the_first_and_each_keeps_its_ranks() -> None:
    judged = [
        Ranked(PlottedEstimate("strong", "judge alone", -0.1), 2, 1, 2),
        Ranked(PlottedEstimate("weak", "judge alone", 0.1), 1, 1, 2),
    ]
    people = [
        Ranked(PlottedEstimate(label, "people", value), rank)
        for label, value, rank in (("weak", -1, 2), ("strong", 1, 1))
    ]
    plot = build_ranking_chart(CAPTION, [*people, *judged], PAPER_THEME)
    assert plot.spec is not None
    rows = [(row["label"], row["series"], row["ranks"]) for row in plot.spec["data"]["values"]]
    assert sorted(rows) == [
        ("strong", "judge alone", "2 (1–2)"),
        ("strong", "people", "1"),
        ("weak", "judge alone", "1 (1–2)"),
        ("weak", "people", "2"),
    ]
    picture = render_in_this_process(plot.spec, "svg").decode()
    assert picture.index(">strong<") < picture.index(">weak<")
    assert ">Rank: people<" in picture
    assert "2 (1–2)" not in picture


def test_a_standing_of_the_report_keeps_its_score_and_its_ranks() -> None:
    score = Estimate(0.4, 50).with_interval(0.1, 0.7, "by cluster")
    ranked = build_ranked("gpt", "people", Standing(1, (1, 3), score, Estimate(0.6, 50)))
    assert ranked == Ranked(PlottedEstimate("gpt", "people", 0.4, 0.1, 0.7, 50), 1, 1, 3)
    assert build_ranked("gpt", "people", Standing(2, None, score, Estimate(0.6, 50))).ranks == "2"
