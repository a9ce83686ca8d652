"""The plots of win rates and rankings: three sources beside each other for each judge."""

from collections.abc import Iterator

from evaluations.figures.comparing import win_rates
from evaluations.figures.estimates import Estimate, Ranked, estimate_of
from evaluations.figures.media import PEOPLE, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.ranking import ranked_of, ranking
from evaluations.figures.wording import names_of
from evaluations.stats.win_rates import WinRates
from evaluations.stats.wins import JudgeWins, Wins

ALONE = "judge alone"
CORRECTED = "judge corrected by people"
TIES = "A tie counts as half a win."
SCORES = "Bradley–Terry, a tie counts as half a win each."


def win_plots(wins: Wins, aspect: str, medium: Medium) -> list[Plot]:
    if not wins.judges:
        return [*rates_of_people(wins, aspect, medium), *ranking_of_people(wins, aspect, medium)]
    names = names_of(wins.judges)
    return [
        plot for judge, of_judge in wins.judges.items() for plot in of_one(wins, of_judge, judge, names, aspect, medium)
    ]


def of_one(
    wins: Wins, of_judge: JudgeWins, judge: str, names: dict[str, str], aspect: str, medium: Medium
) -> Iterator[Plot]:
    rates = Caption(f"wins-rates-{names[judge]}", f"Win rates on {aspect}: people and {judge}", TIES)
    yield win_rates(rates, list(estimates_of(of_judge.rates)), medium)
    scores = Caption(f"wins-ranking-{names[judge]}", f"Ranking on {aspect}: people and {judge}", SCORES)
    if standings := list(standings_of(wins, of_judge)):
        yield ranking(scores, standings, medium)


def estimates_of(rates: WinRates) -> Iterator[Estimate]:
    for candidate, rate in rates.candidates.items():
        yield estimate_of(candidate, PEOPLE, rate.people)
        yield estimate_of(candidate, ALONE, rate.judge)
        yield estimate_of(candidate, CORRECTED, rate.corrected)


def standings_of(wins: Wins, of_judge: JudgeWins) -> Iterator[Ranked]:
    sources = {PEOPLE: wins.ranking, ALONE: of_judge.ranking, CORRECTED: of_judge.corrected_ranking}
    for source, found in sources.items():
        for candidate, standing in found.standings.items():
            yield ranked_of(candidate, source, standing)


def rates_of_people(wins: Wins, aspect: str, medium: Medium) -> Iterator[Plot]:
    estimates = [estimate_of(candidate, PEOPLE, rate) for candidate, rate in wins.people.items()]
    yield win_rates(Caption("wins-rates", f"Win rates on {aspect}, as people say", TIES), estimates, medium)


def ranking_of_people(wins: Wins, aspect: str, medium: Medium) -> Iterator[Plot]:
    if found := [ranked_of(name, PEOPLE, standing) for name, standing in wins.ranking.standings.items()]:
        yield ranking(Caption("wins-ranking", f"Ranking on {aspect}, as people say", SCORES), found, medium)
