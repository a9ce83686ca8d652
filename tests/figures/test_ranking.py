"""Candidates by Bradley–Terry."""

from evaluations.figures.drawing import draw
from evaluations.figures.estimates import Estimate, Ranked
from evaluations.figures.media import PAPER
from evaluations.figures.plots import Caption
from evaluations.figures.ranking import ranked_of, ranking
from evaluations.stats.numbers import Number
from evaluations.stats.ranking import Standing
from tests.figures.making import ranked

CAPTION = Caption("ranking", "Ranking")


def test_the_best_stands_on_top_and_what_has_no_score_last() -> None:
    plot = ranking(CAPTION, ranked())
    assert plot.spec is not None
    assert [row["label"] for row in plot.spec["data"]["values"]] == ["strong", "weak"]
    assert [row[:2] for row in plot.table.said] == [("strong", "1 (1–2)"), ("weak", "2"), ("unseen", "n/a")]


def test_every_row_names_its_rank_on_the_right() -> None:
    plot = ranking(CAPTION, ranked(), PAPER)
    assert plot.spec is not None
    picture = draw(plot.spec, "svg").decode()
    assert picture.index(">1 (1–2)<") < picture.index(">2<")
    assert picture.index(">strong<") < picture.index(">weak<")


def test_several_series_stand_in_the_order_of_the_first_and_each_keeps_its_ranks() -> None:
    judged = [
        Ranked(Estimate("strong", "judge alone", -0.1), 2, 1, 2),
        Ranked(Estimate("weak", "judge alone", 0.1), 1, 1, 2),
    ]
    people = [
        Ranked(Estimate(label, "people", value), rank) for label, value, rank in (("weak", -1, 2), ("strong", 1, 1))
    ]
    plot = ranking(CAPTION, [*people, *judged], PAPER)
    assert plot.spec is not None
    rows = [(row["label"], row["series"], row["ranks"]) for row in plot.spec["data"]["values"]]
    assert sorted(rows) == [
        ("strong", "judge alone", "2 (1–2)"),
        ("strong", "people", "1"),
        ("weak", "judge alone", "1 (1–2)"),
        ("weak", "people", "2"),
    ]
    picture = draw(plot.spec, "svg").decode()
    assert picture.index(">strong<") < picture.index(">weak<")
    assert ">Rank: people<" in picture
    assert "2 (1–2)" not in picture


def test_a_standing_of_the_report_keeps_its_score_and_its_ranks() -> None:
    score = Number(0.4, 50).within(0.1, 0.7, "by cluster")
    ranked = ranked_of("gpt", "people", Standing(1, (1, 3), score, Number(0.6, 50)))
    assert ranked == Ranked(Estimate("gpt", "people", 0.4, 0.1, 0.7, 50), 1, 1, 3)
    assert ranked_of("gpt", "people", Standing(2, None, score, Number(0.6, 50))).ranks == "2"
