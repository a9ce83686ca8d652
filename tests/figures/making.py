"""Plots of every kind, small, and with something missing in most."""

from datetime import date, timedelta

from evaluations.figures import calibration, comparing, over_time, ranking
from evaluations.figures.estimates import Binned, Dated, Estimate, Ranked
from evaluations.figures.media import Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import coefficient, share

CANDIDATES = ("model-of-a-very-long-name-indeed-2026-01", "model-of-a-very-long-name-indeed-2026-02", "=cmd()")
SERIES = ("people", "judge alone", "human-corrected")


def estimates(rows: tuple[str, ...] = CANDIDATES, series: tuple[str, ...] = SERIES) -> list[Estimate]:
    """.40 in the first row, .05 more in each that follows, ± .04; at the end an interval is missing, then a value."""
    made = [
        Estimate(row, name, value := 0.4 + 0.05 * at, value - 0.04, value + 0.04, 100 + at)
        for at, row in enumerate(rows)
        for name in series
    ]
    made[-2] = Estimate(rows[-1], series[-2], 0.5, n=7, note="Too few clusters.")
    made[-1] = Estimate(rows[-1], series[-1], None, note="No reviews.")
    return made


def dated() -> list[Dated]:
    """Four weeks; in the third the judge has no number."""
    first = date(2026, 9, 1)
    return [
        Dated(first + timedelta(days=7 * week), of_week(week, name)) for week in range(4) for name in ("people", "gpt")
    ]


def of_week(week: int, name: str) -> Estimate:
    if (week, name) == (2, "gpt"):
        return Estimate(f"week {week}", name, None)
    return Estimate(f"week {week}", name, 0.6, 0.5, 0.7, 20)


def dated_without_intervals() -> list[Dated]:
    """Two days on which nothing is filled: the layers of filled marks and of intervals are empty."""
    return [Dated(date(2026, 9, day), Estimate(f"day {day}", "people", 0.5, n=2, note="Too few.")) for day in (1, 2)]


def ranked() -> list[Ranked]:
    return [
        Ranked(Estimate("weak", "", -0.5, -0.9, -0.1, 40), 2, 2, 2),
        Ranked(Estimate("unseen", "", None, note="It was in no comparison.")),
        Ranked(Estimate("strong", "", 0.5, 0.1, 0.9, 40), 1, 1, 2),
    ]


def ranked_by_three() -> list[Ranked]:
    sources = ("people", "judge alone", "judge corrected by people")
    return [
        Ranked(Estimate(name, source, value, value - 0.4, value + 0.4, 40), rank, 1, 2)
        for source in sources
        for name, value, rank in (("strong", 0.5, 1), ("weak", -0.5, 2))
    ]


def binned() -> list[Binned]:
    return [
        Binned(0.55 + 0.1 * at, Estimate(f"bin {at}", judge, 0.5 + 0.05 * at, 0.4, 0.8, 30))
        for at in range(4)
        for judge in ("gpt", "claude")
    ]


def every_plot(medium: Medium) -> list[Plot]:
    kappa = coefficient("Cohen’s kappa")
    people = estimates(("Anna", "李雷"), ("gpt", "claude"))
    return [
        comparing.win_rates(Caption("win-rates", "Win rates", "A tie is half a win."), estimates(), medium),
        ranking.ranking(Caption("ranking", "Ranking"), ranked(), medium),
        ranking.ranking(Caption("ranking-of-three", "Ranking of three"), ranked_by_three(), medium),
        over_time.over_time(Caption("over-time", "Over time"), dated(), medium),
        over_time.over_time(Caption("over-time-few", "Over time, of few"), dated_without_intervals(), medium),
        calibration.calibration(Caption("calibration", "Calibration"), binned(), medium),
        comparing.by_aspect(Caption("aspects", "By aspect"), estimates(), share("Agreement"), medium),
        comparing.by_reviewer(Caption("reviewers", "By reviewer"), people, kappa, medium),
        comparing.preferences(Caption("bias", "Preferences"), estimates(), medium),
    ]
