"""What a reply is asked for, and which choice or score a value in it stands for."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_letters
from typing import Final

from evaluations.domain import AspectSpec, Choice, PairTexts, ResponseTexts, RubricSpec
from evaluations.judge.labels import NUMBER, label_given, number_bare
from evaluations.judge.remarks import choice_called
from evaluations.judge.replying import is_pointwise, labels_of, reply_key
from evaluations.judge.scales import MOST_VALUES, placed, range_shown, spelled, values_of

# In what a reply says of a verdict: quotes of any kind, escaped or not, are left out where it is compared.
QUOTES: Final = "\"'“”„‘’«»\\`"
OPENING_TAG: Final = re.compile(
    r"\A\s*<(?:answer|output|solution|response|final|final_answer|verdict|result)>", re.IGNORECASE
)

Verdict = Choice | float
Reading = tuple[dict[str, Verdict], str]  # by aspect, and the rationale
Judged = Callable[[], PairTexts | ResponseTexts]


class Unreadable(Exception):
    pass


class Quoted(Unreadable):
    """A verdict that is not the judge's own."""


@dataclass(frozen=True)
class Asked:
    """What a reply answers.

    ``alone``: with a verdict without reasons; ``is_cut_off``: it ended at the token limit, ``in_line`` amid a line.
    """

    spec: RubricSpec
    judged: Judged | None = None
    alone: bool = False
    is_cut_off: bool = False
    in_line: bool = False


# ---- one verdict ---------------------------------------------------------------------------


def verdict_for(spec: RubricSpec, aspect: AspectSpec, given: object) -> Verdict:
    return score_for(aspect, given) if is_pointwise(spec) else choice_for(aspect, given)


def verdict_in_words(spec: RubricSpec, aspect: AspectSpec, label: str) -> Verdict:
    """In plain text a number is written as a word, on every scale."""
    is_number = is_pointwise(spec) and NUMBER.fullmatch(label.strip())
    return verdict_for(spec, aspect, float(label) if is_number else label)


def choice_for(aspect: AspectSpec, label: object) -> Choice:
    """The choice that the label stands for; Unreadable where it was not offered."""
    if isinstance(label, list) and len(label) == 1:
        (label,) = label
    if isinstance(label, int) and not isinstance(label, bool):
        label = str(label) if abs(label) < MOST_VALUES else ""
    given = label_given(aspect, label) if isinstance(label, str) else None
    if given is None:
        raise not_offered(aspect, label)
    return choice_called(aspect, given)


def score_for(aspect: AspectSpec, given: object) -> float:
    """The value that was given; Unreadable off the scale: it is never moved onto it.

    A number in quotes counts where the schema offers it so: on a scale in steps.
    """
    by_word = {spelled(value): value for value in values_of(aspect)}
    if isinstance(given, str) and (word := number_bare(aspect, given)) in by_word:
        return by_word[word]
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    value = placed(aspect, given) if is_number else None  # type: ignore[arg-type]
    if value is None:
        raise not_offered(aspect, given)
    return value


def not_offered(aspect: AspectSpec, given: object) -> Unreadable:
    offered = labels_of(aspect)
    wanted = f"offered were {', '.join(offered)}" if offered else f"wanted was {range_shown(aspect)}"
    return Unreadable(f"The reply gives {excerpt(given)} for {reply_key(aspect)}; {wanted}.")


def excerpt(given: object) -> str:
    return json.dumps(given, ensure_ascii=False)[:80]


# ---- the words of a reply ------------------------------------------------------------------


def out_of_fence(reply: str) -> str:
    """The reply, without a code fence or a tag around all of it."""
    text = OPENING_TAG.sub("", reply.strip(), count=1)
    if text.startswith("```"):
        text = text.removesuffix("```")[3:].lstrip(ascii_letters)
    return text.strip()


def squeezed(text: str) -> str:
    """The text as it is compared with a quotation of it: without white space and quotes, in one case."""
    text = "".join(text.split()).casefold()
    for quote in QUOTES:
        text = text.replace(quote, "")
    return text
