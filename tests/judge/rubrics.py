"""Rubrics and texts for tests of the judge's room."""

from dataclasses import replace
from typing import Any

from evaluations.domain import FIRST_LAYOUT, AspectSpec, Message, PairTexts, ResponseTexts, RubricKind, RubricSpec
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.judge.pasting import prompts_in, rubric_of

KEY = "k" * 32
# The built-in rubric as it was before there was a second layout.
FIRST_SIX_ASPECT = replace(
    SIX_ASPECT,
    layout=FIRST_LAYOUT,
    instructions=(
        "You compare two responses to the same user query as an impartial judge. Look at each aspect on its own: "
        "a response may win one aspect and lose another.\n\n"
        "First write a rationale of a few short sentences. Then choose for every aspect: A only where response A is "
        "noticeably better, B only where response B is noticeably better, tie where they are about equally good.\n\n"
        "Three rules settle common cases:\n"
        "- Factuality: where both responses are sound, choose tie; where one has errors and the other fewer or none, "
        "the one with fewer errors wins.\n"
        "- Helpfulness: more content that does not help more is a tie.\n"
        "- The order in which the responses stand, and their length as such, say nothing about their quality."
    ),
)


def say(text: str, role: str = "assistant") -> list[Message]:
    return [{"role": role, "content": text}]


def pair(query: str = "Why is the sky blue?", a: str = "Scattering.", b: str = "Reflection.") -> PairTexts:
    return PairTexts(say(query, "user"), say(a), say(b), context="Light.", reference="Rayleigh.")


def response(text: str = "Scattering.") -> ResponseTexts:
    return ResponseTexts(say("Why is the sky blue?", "user"), say(text), context="Light.", reference="Rayleigh.")


def pairwise(*aspects: AspectSpec, **columns: Any) -> RubricSpec:
    asked = aspects or (AspectSpec("overall", "Overall", ""),)
    columns = {"instructions": "Judge.", **columns}
    return RubricSpec(RubricKind.PAIRWISE, aspects=asked, output_order=tuple(one.key for one in asked), **columns)


def scale(key: str = "overall", low: float = 1, high: float = 5, step: float | None = 1, **columns: Any) -> AspectSpec:
    return AspectSpec(key, key.title(), "", scale_min=low, scale_max=high, scale_step=step, **columns)


def pointwise(*aspects: AspectSpec, **columns: Any) -> RubricSpec:
    asked = aspects or (scale(),)
    columns = {"instructions": "Rate.", "choices_key": "", **columns}
    return RubricSpec(RubricKind.POINTWISE, aspects=asked, output_order=tuple(one.key for one in asked), **columns)


def rubrics_in(document: str) -> list[tuple[str, RubricSpec]]:
    """A name and a rubric for every prompt of the document, as they are guessed."""
    return [(prompt.name, rubric_of(prompt)) for prompt in prompts_in(document)]
