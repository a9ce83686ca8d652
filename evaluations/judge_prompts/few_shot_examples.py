"""The few-shot examples of a rubric, as text in a prompt.

An example has any of ``input``, ``context``, ``expected_output``, the judged texts and ``reasoning``, and its verdict
by aspect.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.replies.reply_format import (
    aspects_in_reply_order,
    format_value,
    is_pointwise,
    reply_key,
    reply_labels,
    snap_to_scale,
    wants_text,
    wants_two_steps,
)

SHARED_TITLES: Final = {"input": "Input", "context": "Context", "expected_output": "Expected output"}
PAIR_TITLES: Final = {"output_a": "Output A", "output_b": "Output B"}
RESPONSE_TITLE: Final = {"output": "Output"}
VERDICT_FIELDS: Final = ("reasoning", "choice", "choices", "score", "scores")

FrameText = Callable[[str, str], str]


def example_titles(spec: RubricSpec) -> dict[str, str]:
    """The texts that an example may have, with their titles in display order."""
    return {**SHARED_TITLES, **(RESPONSE_TITLE if is_pointwise(spec) else PAIR_TITLES)}


def title_text(title: str, text: str) -> str:
    """A text of an example in a pasted prompt, which has no fences."""
    return f"{title[0].upper()}{title[1:]}:\n{text}"


def render_examples(spec: RubricSpec, frame: FrameText = title_text, titles: Mapping[str, str] | None = None) -> str:
    """All examples; they do not depend on the order in which the judged pair is shown."""
    titles = titles or {key: title.lower() for key, title in example_titles(spec).items()}
    examples = enumerate(spec.few_shot, start=1)
    return "\n\n".join(render_example(spec, example, number, frame, titles) for number, example in examples)


def render_example(
    spec: RubricSpec, example: JsonMapping, number: int, frame: FrameText, titles: Mapping[str, str]
) -> str:
    texts = [frame(f"example {number}, {titles[key]}", example[key]) for key in titles if key in example]
    return "\n".join([*texts, f"Example {number}, answer:", render_example_answer(spec, example)])


def render_example_answer(spec: RubricSpec, example: Mapping[str, object]) -> str:
    """The answer in the format that the judge must use."""
    reasoning, aspects = example.get("reasoning", ""), aspects_in_reply_order(spec)
    verdicts = {reply_key(aspect): example_verdict_text(spec, aspect, example) for aspect in aspects}
    if wants_text(spec):
        return f"{reasoning}\n{next(iter(verdicts.values()))}".strip()
    nested = {spec.choices_key: verdicts} if spec.choices_key else verdicts
    if wants_two_steps(spec):
        return f"{reasoning}\n{json.dumps(nested, ensure_ascii=False)}".strip()
    return json.dumps({spec.rationale_key: reasoning, **nested}, ensure_ascii=False)


def example_verdict_text(spec: RubricSpec, aspect: AspectSpec, example: Mapping[str, object]) -> str | float:
    """The example's verdict on this aspect in the reply's notation."""
    verdict = example_verdict(spec, aspect, example)
    if not is_pointwise(spec):
        return example_label(aspect, str(verdict))
    value = snap_to_scale(aspect, float(str(verdict)))
    return format_value(value) if value is not None and reply_labels(aspect) else float(str(verdict))


def example_label(aspect: AspectSpec, verdict: str) -> str:
    """The reply's label of a choice that is named or labelled in any case."""
    by_word = {aspect.label(choice).casefold(): aspect.label(choice) for choice in aspect.choices}
    by_word |= {choice.casefold(): aspect.label(choice) for choice in aspect.choices}
    return by_word.get(verdict.strip().casefold(), verdict)


def example_verdict(spec: RubricSpec, aspect: AspectSpec, example: JsonMapping) -> object:
    """The example's verdict on this aspect; None if it has none."""
    field = "score" if is_pointwise(spec) else "choice"
    by_key = example.get(f"{field}s") or {}
    return by_key.get(aspect.key, by_key.get(reply_key(aspect), example.get(field)))
