"""How pages name and colour the values of enums: states, orders, flags, selection methods, output modes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django import template

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ImportState
from evaluations.domain.judges import (
    FAILURE_STATES,
    AttemptOutcome,
    AttemptStep,
    CallState,
    OutputMode,
    ReplyShape,
    RunOrders,
    RunState,
)
from evaluations.domain.reviews import (
    RESOLUTION_REASON_TEXTS,
    SELECTION_STRATEGIES,
    SELECTION_TEXTS,
    DifferenceReason,
    Reveal,
    SelectionMethod,
)
from evaluations.domain.texts import Flag
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge

register = template.Library()


@dataclass(frozen=True)
class Badge:
    """A badge: its text and its CSS class."""

    words: str
    tone: str = ""


RUN_TONES: Final[Mapping[str, str]] = {
    RunState.STOPPED: "error",
    RunState.RUNNING: "accent",
    RunState.PLANNING: "accent",
}

CALL_TONES: Final[Mapping[str, str]] = {
    **dict.fromkeys(FAILURE_STATES, "warn"),
    CallState.RUNNING: "accent",
}

# What another try of a call that ended in each state is likely to bring.
ON_ASKING_AGAIN: Final[Mapping[str, str]] = {
    CallState.FAILED: "an error or no reply",
    CallState.CANCELLED: "not completed",
    CallState.UNREADABLE: "paid for; a new reply may be parsable",
    CallState.SUSPECT: "repeats a judged text; you can confirm it on the call’s page instead",
    CallState.REFUSED: "the model may refuse again",
    CallState.TRUNCATED: "cut off; better: a judge with higher max tokens",
    CallState.TOO_LONG: "too long again unless the model changes",
}

ATTEMPTS: Final[Mapping[str, Badge]] = {
    AttemptOutcome.ANSWERED: Badge("answered"),
    AttemptOutcome.RETRY: Badge("retried", "accent"),
    AttemptOutcome.LOST: Badge("lost in flight", "accent"),
}

STEPS: Final[Mapping[str, str]] = {
    AttemptStep.ASK: "Question",
    AttemptStep.REPAIR: "Repair",
    AttemptStep.SCORE: "Verdict (step 2)",
}

IMPORTS: Final[Mapping[str, Badge]] = {
    ImportState.MAPPING: Badge("map columns", "warn"),
    ImportState.STORING: Badge("importing", "accent"),
    ImportState.PREVIEWED: Badge("ready", "accent"),
    ImportState.DONE: Badge("imported"),
    ImportState.FAILED: Badge("failed", "error"),
    ImportState.UNDONE: Badge("undone"),
    ImportState.CANCELLED: Badge("discarded"),
}

ORDERS: Final[Mapping[str, str]] = {
    RunOrders.BOTH: "both orders",
    RunOrders.RANDOM: "one order at random",
    RunOrders.AS_STORED: "A first",
    RunOrders.SWAPPED: "B first",
}

SHOWN: Final[Mapping[str, str]] = {
    ShownOrder.AS_STORED: "A first",
    ShownOrder.SWAPPED: "B first",
    ShownOrder.FOLDED: "both orders",
}

SHOWN_TO_JUDGE: Final[Mapping[str, str]] = {
    ShownOrder.AS_STORED: "A shown first",
    ShownOrder.SWAPPED: "B shown first (sides swapped)",
    ShownOrder.FOLDED: "both orders together",
}

REVEALS: Final[Mapping[str, str]] = {
    Reveal.BLIND: "after the first save",
    Reveal.SHOWN: "from the start",
    Reveal.NEVER: "never",
    Reveal.RANDOMISED: "at random before or after the first save",
}

FLAGS: Final[Mapping[str, str]] = {
    Flag.ADDRESSES_JUDGE: "addresses the judge",
    Flag.FORGED_VERDICT: "forges a verdict",
    Flag.FORGED_DELIMITER: "forges our delimiters",
}

MODES: Final[Mapping[str, str]] = {
    OutputMode.JSON_SCHEMA: "JSON by a schema",
    OutputMode.JSON_OBJECT: "JSON without a schema",
    OutputMode.TEXT: "plain text",
    OutputMode.TWO_STEP: "two steps: free text, then the verdict alone",
}

FOUND_SHAPES: Final[Mapping[str, str]] = {
    "": "auto",
    ReplyShape.JSON_SCHEMA: "its server takes a schema",
    ReplyShape.JSON_OBJECT: "its server takes JSON without a schema",
    ReplyShape.TEXT: "asked in plain text",
}


@register.filter
def run_tone(state: str) -> str:
    return RUN_TONES.get(state, "")


@register.filter
def call_tone(state: str) -> str:
    return CALL_TONES.get(state, "")


@register.filter
def on_asking_again(state: str) -> str:
    return ON_ASKING_AGAIN[state]


@register.filter
def attempt_badge(outcome: str) -> Badge:
    return ATTEMPTS.get(outcome) or Badge(outcome.replace("_", " "), "warn")


@register.filter
def step_name(step: str) -> str:
    return STEPS[step]


@register.filter
def import_badge(state: str) -> Badge:
    return IMPORTS.get(state) or Badge(state, "accent")


@register.filter
def orders_in_words(orders: str) -> str:
    return ORDERS[orders]


@register.filter
def shown_in_words(shown: str) -> str:
    """The order in which a rater saw the responses; empty where it is not known."""
    return SHOWN.get(shown, "")


@register.filter
def resolution_reason(category: str) -> str:
    return RESOLUTION_REASON_TEXTS[DifferenceReason(category)]


@register.filter
def shown_to_judge(shown: str) -> str:
    return SHOWN_TO_JUDGE.get(shown, "order unknown")


@register.filter
def reveal_in_words(reveal: str) -> str:
    return REVEALS[reveal]


@register.filter
def flags_in_words(flags: str | Iterable[str]) -> list[str]:
    """Flags as a row stores them (``addresses_judge,forged_verdict``), or as separate strings."""
    words = flags.split(",") if isinstance(flags, str) else flags
    return [FLAGS.get(word, word) for word in words if word]


@register.filter
def describe_selection(selection_method: str) -> str:
    return SELECTION_TEXTS[SelectionMethod(selection_method)]


@register.filter
def is_deterministic(strategy: str) -> bool:
    """Whether no chance decides: what it picks tells of such comparisons only."""
    return strategy in SELECTION_STRATEGIES and strategy not in (SelectionMethod.RANDOM, SelectionMethod.STRATIFIED)


@register.filter
def is_shown_in(judge: Judge | None, evaluation: Evaluation) -> bool:
    """Whether the choices of this judge are those that reviewers are shown."""
    return judge is not None and judge.pk == evaluation.shown_judge_id


@register.filter
def mode_in_words(judge: Judge) -> str:
    """The output format of a judge, with the detected capabilities of its server."""
    return f"auto: {FOUND_SHAPES[judge.reply_shape]}" if judge.mode == OutputMode.AUTO else MODES[judge.mode]
