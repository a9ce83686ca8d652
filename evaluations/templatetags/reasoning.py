"""What a model thought, and its reply without it, as pages show them apart."""

from django import template

from evaluations.models.runs import Attempt
from evaluations.replies.think_tags import extract_reasoning, split_reasoning

register = template.Library()


@register.filter
def reasoning(attempt: Attempt) -> str:
    """The reasoning that the server returned separately, else the thoughts in the reply."""
    return attempt.reasoning or extract_reasoning(attempt.raw)


@register.filter
def reply_alone(attempt: Attempt) -> str:
    """The reply without its thoughts; the whole reply if nothing follows them."""
    return split_reasoning(attempt.raw).spoken.strip() or attempt.raw
