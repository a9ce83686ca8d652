"""A preview of the requests that a rubric makes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import AttemptStep, ReplyShape
from evaluations.domain.rubrics import RubricSpec
from evaluations.domain.texts import Message, PairTexts, ResponseTexts
from evaluations.judge_prompts.prompt_builder import build_later_messages, build_messages
from evaluations.replies.reply_format import build_reply_schema, build_score_schema

EVALUATION_PLACEHOLDER: Final = "(the evaluation that it wrote)"


@dataclass(frozen=True)
class PromptPreview:
    """One request: its messages, and the schema or shape that is requested with them.

    Of two steps, ``later`` is the second one's addition to the conversation; its verdict is requested as JSON by a
    schema until its server turns out to take less. ``aspects``: the names of aspects with separate requests in order;
    this is the first of these requests.
    """

    messages: Sequence[Message]
    schema: str
    shape: ReplyShape
    later: "PromptPreview | None" = None
    aspects: Sequence[str] = ()


def preview_prompt(
    spec: RubricSpec,
    texts: PairTexts | ResponseTexts,
    shown: ShownOrder,
    fence_key: str,
    shape: ReplyShape,
    *,
    two_steps: bool,
) -> PromptPreview:
    """The requests of a rubric, with or without a judge."""
    first = build_messages(spec, texts, shown, fence_key, two_steps=two_steps)
    if not two_steps:
        return PromptPreview(first, format_schema(build_reply_schema(spec), shape), shape)
    added = build_later_messages(spec, first, [EVALUATION_PLACEHOLDER], AttemptStep.SCORE)[len(first) :]
    later = PromptPreview(added, format_schema(build_score_schema(spec), shape), shape)
    return PromptPreview(first, "", ReplyShape.TEXT, later)


def format_schema(schema: Mapping[str, object], shape: ReplyShape) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) if shape == ReplyShape.JSON_SCHEMA else ""


# Shown before anything is imported, and to users who must not know which response of a comparison is A.
SAMPLE_PAIR: Final = PairTexts(
    messages=[{"role": "user", "content": "When does the office open on Monday?"}],
    response_a=[{"role": "assistant", "content": "At nine."}],
    response_b=[
        {"role": "assistant", "content": "The office opens at nine in the morning, on Monday as on other days."}
    ],
    context="Opening hours: Monday to Friday, 9:00 to 17:00.",
    reference="At 9:00.",
)


def first_response_texts(pair: PairTexts) -> ResponseTexts:
    return ResponseTexts(pair.messages, pair.response_a, pair.context, pair.reference)
