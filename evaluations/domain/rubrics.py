"""What a rubric asks, without a database row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.json_values import JsonMapping


class RubricKind(StrEnum):
    PAIRWISE = "pairwise"
    POINTWISE = "pointwise"


class RubricOrigin(StrEnum):
    BUILTIN = "builtin"
    OWN = "own"
    IMPORTED = "imported"


FIRST_LAYOUT: Final = 1
CURRENT_LAYOUT: Final = 2


@dataclass(frozen=True)
class AspectSpec:
    """One aspect of a rubric version.

    ``labels``: the judge's label of a Choice, if it differs from the choice (``{"tie": "SAME"}``). The scale is None
    for pairwise aspects; a step of None allows every number between its ends. ``scale_labels``: the meanings of values
    or bands (``{"5": "very good: …", "0.1 - 0.3": "…"}``) in display order. ``tie_margin``: the largest difference of
    two scores that is a tie. ``reply_key``: the name of the aspect in replies, if not ``key``. ``lower_is_better``:
    whether the lower of two scores wins, which only imported scores have.
    """

    key: str
    name: str
    definition: str
    offers_tie: bool = True
    offers_both_bad: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    scale_min: float | None = None
    scale_max: float | None = None
    scale_step: float | None = None
    scale_labels: Mapping[str, str] = field(default_factory=dict)
    tie_margin: float = 0.0
    reply_key: str = ""
    lower_is_better: bool = False

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices offered, in the order in which pages show them: A, tie, both bad, B."""
        offered = [Choice.A]
        if self.offers_tie:
            offered.append(Choice.TIE)
        if self.offers_both_bad:
            offered.append(Choice.BOTH_BAD)
        return (*offered, Choice.B)

    def label(self, choice: Choice) -> str:
        return self.labels.get(choice, str(choice))


@dataclass(frozen=True)
class RubricSpec:
    """A rubric version without its database row.

    ``aspects``: in page order; ``output_order``: their keys in the order of the reply. ``placeholders``: the field
    (``response_a``) of each placeholder of a pasted prompt, braces included (``{$candidate_A}``); empty for the
    built-in layout. ``answer_format``: ``json``, ``two_step`` (a free-text evaluation, then its verdict) or ``text``
    with a pattern of the verdict after a colon. ``rationale_key`` and ``choices_key``: the keys of the reasons and of
    the object of verdicts in the reply; if ``choices_key`` is empty, verdicts and reasons are in one object.
    ``layout``: the number of the built-in layout, frozen so that prompts of a version never change; unused for a pasted
    prompt.
    """

    kind: RubricKind
    instructions: str
    aspects: tuple[AspectSpec, ...]
    output_order: tuple[str, ...]
    placeholders: Mapping[str, str] = field(default_factory=dict)
    answer_format: str = "json"
    few_shot: tuple[JsonMapping, ...] = ()
    rationale_key: str = "rationale"
    choices_key: str = "choices"
    layout: int = CURRENT_LAYOUT
