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

    ``labels`` maps a Choice to the label that the judge is to use for it where that differs
    from the choice itself (``{"tie": "SAME"}``). The scale is None for pairwise aspects; a step of
    None allows every number between its ends. ``scale_labels`` says what values or bands mean
    (``{"5": "very good: …", "0.1 - 0.3": "…"}``), in the order in which they are shown.
    ``tie_margin``: two scores that differ by at most this much make a tie. ``reply_key`` is what
    the reply calls the aspect where that is not its key. ``lower_is_better``: of two scores the lower
    one wins; only scores that came with an import know that.
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

    ``aspects`` stand in page order, ``output_order`` holds their keys in the order of the reply.
    ``placeholders`` maps a placeholder of a pasted text, braces included (``{$candidate_A}``),
    to a field name (``response_a``); empty for the built-in layout.
    ``answer_format`` is ``json``, ``two_step`` (a free-text evaluation first, its verdict after)
    or ``text`` with a pattern of the verdict after a colon.
    ``rationale_key`` and ``choices_key`` are what the reply calls its reasons and the object of its
    verdicts; an empty ``choices_key`` puts the verdicts beside the reasons.
    ``layout`` is the number of the built-in layout that the prompt is built in. It is frozen with the
    version, so that a judge is sent the same prompt after the layout of new rubrics has changed. A
    pasted prompt has no use for it.
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
