"""Few-shot examples, as a rubric keeps them and as a prompt shows them.

An example is a mapping with any of ``input``, ``context``, ``expected_output``, the judged texts
(``output_a`` and ``output_b``, or ``output``), ``reasoning``, and its verdict: ``choice`` or
``score`` where the rubric asks about one aspect, ``choices`` or ``scores`` by the aspects' keys
where it asks about more. A choice is A, B, tie or both_bad, or the rubric's own label for it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from evaluations.domain import AspectSpec, RubricSpec
from evaluations.judge.replying import asked_in_order, is_pointwise, labels_of, reply_key, wants_text, wants_two_steps
from evaluations.judge.scales import placed, spelled

SHARED: Final = {"input": "Input", "context": "Context", "expected_output": "Expected output"}
JUDGED_PAIR: Final = {"output_a": "Output A", "output_b": "Output B"}
JUDGED_ONE: Final = {"output": "Output"}
VERDICTS: Final = ("reasoning", "choice", "choices", "score", "scores")

Framed = Callable[[str, str], str]


def titles_of(spec: RubricSpec) -> dict[str, str]:
    """The texts that an example may hold, each with its title, in the order in which they are shown."""
    return {**SHARED, **(JUDGED_ONE if is_pointwise(spec) else JUDGED_PAIR)}


def titled(title: str, text: str) -> str:
    """How a text of an example stands in a pasted prompt, which has no fences."""
    return f"{title[0].upper()}{title[1:]}:\n{text}"


def examples_text(spec: RubricSpec, framed: Framed = titled, titles: Mapping[str, str] | None = None) -> str:
    """All examples, the same whatever order the judged pair is shown in."""
    titles = titles or {key: title.lower() for key, title in titles_of(spec).items()}
    examples = enumerate(spec.few_shot, start=1)
    return "\n\n".join(example_text(spec, one, number, framed, titles) for number, one in examples)


def example_text(
    spec: RubricSpec, example: Mapping[str, Any], number: int, framed: Framed, titles: Mapping[str, str]
) -> str:
    texts = [framed(f"example {number}, {titles[key]}", example[key]) for key in titles if key in example]
    return "\n".join([*texts, f"Example {number}, answer:", answer_text(spec, example)])


def answer_text(spec: RubricSpec, example: Mapping[str, Any]) -> str:
    """The answer in the form in which the judge is to give its own."""
    reasoning = example.get("reasoning", "")
    verdicts = {reply_key(aspect): answered(spec, aspect, example) for aspect in asked_in_order(spec)}
    if wants_text(spec):
        return f"{reasoning}\n{next(iter(verdicts.values()))}".strip()
    nested = {spec.choices_key: verdicts} if spec.choices_key else verdicts
    if wants_two_steps(spec):
        return f"{reasoning}\n{json.dumps(nested, ensure_ascii=False)}".strip()
    return json.dumps({spec.rationale_key: reasoning, **nested}, ensure_ascii=False)


def answered(spec: RubricSpec, aspect: AspectSpec, example: Mapping[str, Any]) -> str | float:
    """The example's verdict on this aspect as a reply writes it."""
    given = given_verdict(spec, aspect, example)
    if not is_pointwise(spec):
        return label_for(aspect, str(given))
    value = placed(aspect, float(str(given)))
    return spelled(value) if value is not None and labels_of(aspect) else float(str(given))


def label_for(aspect: AspectSpec, given: str) -> str:
    """The label as the reply writes it, of a choice that is named or labelled in any case."""
    by_word = {aspect.label(choice).casefold(): aspect.label(choice) for choice in aspect.choices}
    by_word |= {choice.casefold(): aspect.label(choice) for choice in aspect.choices}
    return by_word.get(given.strip().casefold(), given)


def given_verdict(spec: RubricSpec, aspect: AspectSpec, example: Mapping[str, Any]) -> object:
    """What the example says on this aspect; None where it says nothing."""
    one, many = ("score", "scores") if is_pointwise(spec) else ("choice", "choices")
    by_key = example.get(many) or {}
    if aspect.key in by_key:
        return by_key[aspect.key]
    return by_key.get(reply_key(aspect), example.get(one))
