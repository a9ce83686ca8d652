"""The plot of a bias board: how often judges prefer what should make no difference, people beside them."""

from collections.abc import Iterator, Mapping

from evaluations.figures.comparing import preferences
from evaluations.figures.estimates import Estimate, estimate_of
from evaluations.figures.media import PEOPLE, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.stats.bias.board import BiasBoard
from evaluations.stats.bias.tendency import Tendency

JUDGE = "judge"
FORMS = {"any": "any Markdown", "emphasis": "bold or italics"}
RULE = (
    "Without ties. People are their majority; beside it the judge is over the same comparisons, alone over all. Nobody "
    "reads a comparison in both orders, so people have no number for the order."
)


def bias_plots(boards: Mapping[str, BiasBoard], aspect: str, medium: Medium) -> list[Plot]:
    estimates = [one for name, board in boards.items() for one in of_board(name, board)]
    caption = Caption("bias-preferences", f"How often each is chosen, on {aspect}", RULE)
    return [preferences(caption, [one for one in estimates if one.n], medium)]


def of_board(judge: str, board: BiasBoard) -> Iterator[Estimate]:
    yield estimate_of(f"First shown, {judge}", JUDGE, board.position.first_shown)
    yield from beside(f"Longer, {judge}", board.length.longer)
    for kind, tendency in board.markup.items():
        yield from beside(f"With {FORMS.get(kind, kind)}, {judge}", tendency)
    yield from beside(f"Own family, {judge}", board.same_family)


def beside(label: str, tendency: Tendency) -> Iterator[Estimate]:
    both = tendency.majority.people.n > 0
    yield estimate_of(label, JUDGE, tendency.majority.judge if both else tendency.judge)
    yield estimate_of(label, PEOPLE, tendency.majority.people)
