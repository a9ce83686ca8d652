"""The texts of a comparison or response, as a judge is asked about them."""

from typing import cast

from evaluations.domain.texts import Message, PairTexts, ResponseTexts
from evaluations.models.comparisons import Comparison, Response


def judged_texts(subject: Comparison | Response) -> PairTexts | ResponseTexts:
    """The texts of a comparison or a response, as a judge receives them."""
    return comparison_texts(subject) if isinstance(subject, Comparison) else response_texts(subject)


def comparison_texts(comparison: Comparison) -> PairTexts:
    query = comparison.query
    return PairTexts(
        messages=cast("list[Message]", query.messages),
        response_a=cast("list[Message]", comparison.response_a.messages),
        response_b=cast("list[Message]", comparison.response_b.messages),
        context=query.context,
        reference=query.reference,
    )


def response_texts(response: Response) -> ResponseTexts:
    query = response.query
    return ResponseTexts(
        messages=cast("list[Message]", query.messages),
        response=cast("list[Message]", response.messages),
        context=query.context,
        reference=query.reference,
    )
