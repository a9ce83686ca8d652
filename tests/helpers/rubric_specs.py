"""Rubric specs with texts for tests of prompts, of replies."""

from dataclasses import replace
from typing import Any

from evaluations.domain.rubrics import FIRST_LAYOUT, AspectSpec, RubricKind, RubricSpec
from evaluations.domain.texts import Message, PairTexts, ResponseTexts
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.judge_prompts.pasted_prompts import find_pasted_prompts, guess_rubric

FENCE_KEY = "k" * 32
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


def make_turn(text: str, role: str = "assistant") -> list[Message]:
    return [{"role": role, "content": text}]


def make_pair_texts(query: str = "Why is the sky blue?", a: str = "Scattering.", b: str = "Reflection.") -> PairTexts:
    return PairTexts(make_turn(query, "user"), make_turn(a), make_turn(b), context="Light.", reference="Rayleigh.")


def make_response_texts(text: str = "Scattering.") -> ResponseTexts:
    return ResponseTexts(
        make_turn("Why is the sky blue?", "user"), make_turn(text), context="Light.", reference="Rayleigh."
    )


def make_pairwise_spec(*aspects: AspectSpec, **columns: Any) -> RubricSpec:
    specs = aspects or (AspectSpec("overall", "Overall", ""),)
    columns = {"instructions": "Judge.", **columns}
    return RubricSpec(RubricKind.PAIRWISE, aspects=specs, output_order=tuple(spec.key for spec in specs), **columns)


def make_scale_aspect(
    key: str = "overall", low: float = 1, high: float = 5, step: float | None = 1, **columns: Any
) -> AspectSpec:
    return AspectSpec(key, key.title(), "", scale_min=low, scale_max=high, scale_step=step, **columns)


def make_pointwise_spec(*aspects: AspectSpec, **columns: Any) -> RubricSpec:
    specs = aspects or (make_scale_aspect(),)
    columns = {"instructions": "Rate.", "choices_key": "", **columns}
    return RubricSpec(RubricKind.POINTWISE, aspects=specs, output_order=tuple(spec.key for spec in specs), **columns)


def guess_document_rubrics(document: str) -> list[tuple[str, RubricSpec]]:
    """A name and a rubric for every prompt of the document, as they are guessed."""
    return [(prompt.name, guess_rubric(prompt)) for prompt in find_pasted_prompts(document)]
