"""Template tags for the parts of the report other than agreement."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.urls import reverse

from evaluations.domain.json_values import JsonMapping
from evaluations.stats.bias.tendency import BiasTendency
from evaluations.stats.score_report import JudgeScores
from evaluations.templatetags.intervals import HasInterval, Scale

register = template.Library()


class Compared(Protocol):
    @property
    def judge(self) -> HasInterval: ...
    @property
    def people(self) -> HasInterval: ...


class Tendency(Protocol):
    @property
    def majority(self) -> Compared: ...
    @property
    def votes(self) -> Compared: ...


class Rate(Compared, Protocol):
    @property
    def corrected(self) -> HasInterval: ...
    @property
    def claim(self) -> str: ...


@register.filter
def have_shared_scores(judges: Mapping[str, JudgeScores]) -> bool:
    """Whether a judge scored a response that reviewers scored."""
    return any(judge.people.n for judge in judges.values())


@register.filter
def first_key(by_name: Mapping[str, object]) -> str:
    return next(iter(by_name), "")


@register.filter
def has_ceiling(judges: Mapping[str, JudgeScores]) -> bool:
    """Whether a judge scored a response that two reviewers scored."""
    return any(judge.ceiling.n for judge in judges.values())


@register.simple_tag(takes_context=True)
def large_differences_url(context: Context, judge: str, aspect: str) -> str:
    """Where the responses with the largest differences of a judge from reviewers are listed, by the page's filters."""
    query = {**context["query"], "judge": [judge], "aspect": [aspect]}
    return f"{reverse('large_differences', args=[context['evaluation'].slug])}?{urlencode(query, doseq=True)}"


def around_half(numbers: Iterable[HasInterval]) -> Scale:
    """A scale of shares, symmetric around one half, up to the next tenth beyond all intervals."""
    ends = [end for number in numbers if number.value is not None for end in (number.value, *(number.ci95 or ()))]
    farthest = max((abs(end - 0.5) for end in ends), default=0.5)
    length = min(max(math.ceil(farthest * 10 - 1e-9) / 10, 0.1), 0.5)
    return Scale(0.5 - length, 0.5 + length, True, 0.5)


@register.simple_tag
def scale_of_places(boards: JsonMapping) -> Scale:
    return around_half(board.position.first_shown for board in boards.values())


@register.simple_tag
def scale_of_tendencies(boards: Mapping[str, object]) -> Scale:
    comparisons = [comparison for board in boards.values() for comparison in compared_in(board)]
    return around_half(number for comparison in comparisons for number in (comparison.judge, comparison.people))


def compared_in(board: Any) -> list[Compared]:
    """The rows of a bias board: preferences with those of majorities, ties with those of single votes."""
    preferences: list[Tendency] = [board.length.longer, *board.markup.values(), board.same_family]
    return [*(tendency.majority for tendency in preferences), board.ties.votes]


@register.simple_tag
def scale_of_rates(rates: Mapping[str, Rate]) -> Scale:
    return around_half(number for rate in rates.values() for number in (rate.people, rate.judge, rate.corrected))


@register.simple_tag
def scale_of_people(rates: Mapping[str, HasInterval]) -> Scale:
    return around_half(rates.values())


MARKUP: Final = {
    "any": "With any Markdown",
    "list": "With a list",
    "heading": "With a heading",
    "emphasis": "With bold or italics",
    "table": "With a table",
    "code": "With code",
}


@register.filter
def with_choices(markup: Mapping[str, BiasTendency]) -> list[tuple[str, BiasTendency]]:
    """The kinds of formatting on which a judge or reviewers chose a side."""
    return [(kind, tendency) for kind, tendency in markup.items() if tendency.judge.n or tendency.majority.people.n]


@register.filter
def markup_kind(kind: str) -> str:
    return MARKUP.get(kind, f"With {kind}")


def mirrored(number: HasInterval) -> HasInterval:
    """1 − a share: the win rate of the other one of two."""
    if number.value is None:
        return number
    ends = None if number.ci95 is None else (1 - number.ci95[1], 1 - number.ci95[0])
    return replace(number, value=1 - number.value, ci95=ends)  # type: ignore[type-var]


@register.filter
def p_value(p: float | None) -> str:
    if p is None:
        return "n/a"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@register.filter
def at(values: Sequence[Any], index: int) -> Any:
    return values[index]
