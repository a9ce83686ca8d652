"""How a comparison was selected, in words."""

from django import template

from evaluations.domain.reviews import SELECTION_STRATEGIES, SELECTION_TEXTS, SelectionMethod

register = template.Library()


@register.filter
def describe_selection(selection_method: str) -> str:
    return SELECTION_TEXTS[SelectionMethod(selection_method)]


@register.filter
def is_deterministic(strategy: str) -> bool:
    """Whether no chance decides: what it picks tells of such comparisons only."""
    return strategy in SELECTION_STRATEGIES and strategy not in (SelectionMethod.RANDOM, SelectionMethod.STRATIFIED)


@register.filter
def chance(probability: float | None) -> str:
    """A probability as people read it: ``25.0%``; a dash where no chance decided."""
    if probability is None:
        return "–"
    return f"{probability:.3g}" if probability < 0.001 else f"{probability:.1%}"
