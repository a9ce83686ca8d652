"""What pages ask of a judge and of its evaluation together."""

from collections.abc import Mapping
from typing import Final

from django import template

from evaluations.domain.judges import OutputMode, ReplyShape
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge

register = template.Library()

MODES_IN_WORDS: Final[Mapping[str, str]] = {
    OutputMode.JSON_SCHEMA: "JSON by a schema",
    OutputMode.JSON_OBJECT: "JSON without a schema",
    OutputMode.TEXT: "plain text",
    OutputMode.TWO_STEP: "two steps: free text, then the verdict alone",
}

FOUND_SHAPES: Final[Mapping[str, str]] = {
    "": "found out before its first verdict",
    ReplyShape.JSON_SCHEMA: "its server takes a schema",
    ReplyShape.JSON_OBJECT: "its server takes JSON without a schema",
    ReplyShape.TEXT: "asked in plain text",
}


@register.filter
def is_shown_in(judge: Judge | None, evaluation: Evaluation) -> bool:
    """Whether the choices of this judge are those that reviewers are shown."""
    return judge is not None and judge.pk == evaluation.shown_judge_id


@register.filter
def mode_in_words(judge: Judge) -> str:
    """The output format of a judge, with the detected capabilities of its server."""
    return f"auto: {FOUND_SHAPES[judge.reply_shape]}" if judge.mode == OutputMode.AUTO else MODES_IN_WORDS[judge.mode]
