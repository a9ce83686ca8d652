"""How a comparison was picked, in words."""

from django import template

from evaluations.domain import PICKED_IN_WORDS, STRATEGIES, PickedBy

register = template.Library()


@register.filter
def picked_in_words(picked_by: str) -> str:
    return PICKED_IN_WORDS[PickedBy(picked_by)]


@register.filter
def is_deterministic(strategy: str) -> bool:
    """Whether no chance decides: what it picks tells of such comparisons only."""
    return strategy in STRATEGIES and strategy not in (PickedBy.RANDOM, PickedBy.STRATIFIED)


@register.filter
def chance(probability: float | None) -> str:
    """A probability as people read it: ``25.0%``; a dash where no chance decided."""
    if probability is None:
        return "–"
    return f"{probability:.3g}" if probability < 0.001 else f"{probability:.1%}"
