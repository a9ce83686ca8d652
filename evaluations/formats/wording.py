"""Choices as people and tools put them into words: “Response A is slightly better”, “left”, “tie (bothbad)”."""

import re
from collections.abc import Collection
from typing import Final

from evaluations.domain import Choice
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.values import MAX_ASPECT

WHO: Final = "(?:the)?(?:response|answer|output|model|option|text|txt|completion|candidate|assistant|generation|item)?"
BETTER: Final = "(?:is|was)?(?:slightly|much|significantly|clearly|a little|somewhat)?(?:better|preferred|wins|best)?"
FIRST: Final = re.compile(f"{WHO}(?:a|1|left|first|one){BETTER}")
SECOND: Final = re.compile(f"{WHO}(?:b|2|right|second|two){BETTER}")
TIE: Final = frozenset(
    {"tie", "tied", "draw", "same", "equal", "equallygood", "both", "bothgood", "nopreference", "aboutthesame", "0"}
    | {"tiebothgood", "bothequal", "bothareequal", "botharegood", "bothareequallygood", "thesame", "equivalent"}
)
BOTH_BAD: Final = frozenset({"bothbad", "tiebothbad", "neither", "botharebad", "bothareequallybad", "equallybad"})
# A question with one of these names is the one question about the pair.
OVERALL: Final = frozenset(
    {"pw", "pairwise", "comparison", "preference", "preferred", "choice", "label", "winner", "better", "ranking"}
    | {"rank", "best", "overall", "which", "result"}
)
NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")


def bare(text: str) -> str:
    return NOT_LETTERS.sub("", text.lower())


def choice_said(text: str, first: Collection[str] = (), second: Collection[str] = ()) -> Choice | None:
    """What these words choose of two; None where they are no choice. ``first``, ``second``: names of the sides."""
    said = bare(text)
    if not said:
        return None
    if said in {bare(name) for name in first}:
        return Choice.A
    if said in {bare(name) for name in second}:
        return Choice.B
    if said in BOTH_BAD:
        return Choice.BOTH_BAD
    if said in TIE:
        return Choice.TIE
    if FIRST.fullmatch(said):
        return Choice.A
    return Choice.B if SECOND.fullmatch(said) else None


def aspect_of(question: str) -> str:
    """The aspect that a question of an annotation project asks about, by the question's name."""
    key = NOT_LETTERS.sub("_", question.lower()).strip("_")[:MAX_ASPECT]
    return DEFAULT_ASPECT if not key or bare(key) in OVERALL else key
