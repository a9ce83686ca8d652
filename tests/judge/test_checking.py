"""What cannot be put to a judge, and the sentence that says so."""

from dataclasses import replace

import pytest

from evaluations.domain import AspectSpec, InputRefused, RubricSpec
from evaluations.judge.checking import refuse_unusable
from tests.judge.rubrics import pairwise, pointwise, scale

ONE = AspectSpec("one", "One", "")
TWO = AspectSpec("two", "Two", "")
PASTED = "Q {q} R {r}"
GOOD_PAIR = {"output_a": "x", "output_b": "y", "reasoning": "z", "choice": "tie"}


def flat(*aspects: AspectSpec, **columns: object) -> RubricSpec:
    return pairwise(*aspects, choices_key="", **columns)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (pointwise(scale(low=5, high=5)), "needs a lowest value and a higher highest one"),
        (pointwise(scale(low=float("nan"))), "needs a lowest value and a higher highest one"),
        (pointwise(AspectSpec("one", "One", "")), "needs a lowest value and a higher highest one"),
        (pointwise(scale(step=3)), "must lead from the lowest value to the highest exactly"),
        (pointwise(scale(step=-1)), "must lead from the lowest value to the highest exactly"),
        (pointwise(scale(step=0)), "must lead from the lowest value to the highest exactly"),
        (pointwise(scale(tie_margin=-0.1)), "must be 0 or more"),
        (pointwise(scale(tie_margin=4)), "less than the whole scale"),
        (pointwise(scale(scale_labels={"6": "best"})), "“6” names no value of “overall”"),
        (pointwise(scale(scale_labels={"best": "best"})), "“best” names no value of “overall”"),
        (pairwise(scale()), "can have no scale"),
        (pairwise(replace(ONE, labels={"A": "one\ntwo"})), "labels of one line"),
        (pairwise(replace(ONE, labels={"tie": "a "})), "no two the same"),
        (pairwise(ONE, TWO, rationale_key="Choices"), "“Choices” would be the key of two parts"),
        (flat(replace(ONE, reply_key="rationale")), "“rationale” would be the key of two parts"),
        (flat(ONE, replace(TWO, reply_key="ONE ")), "would be the key of two parts"),
        (flat(ONE, rationale_key=" "), "needs a key"),
        (flat(replace(ONE, reply_key="x" * 61)), "too long for a key"),
        (pairwise(answer_format="yaml"), "“yaml” is neither"),
        (pairwise(answer_format="json:x"), "“json:x” is neither"),
        (pairwise(answer_format="text:" + "x" * 400), "too long"),
        (replace(pairwise(ONE, TWO), output_order=("one",)), "must name every aspect"),
        (pointwise(instructions=PASTED, placeholders={"{q}": "query", "{r}": "reference"}), "no place for response:"),
        (pointwise(instructions=PASTED, placeholders={"{q}": "response_a", "{r}": "response"}), "{q} means response_a"),
        (
            pointwise(instructions=PASTED, placeholders={"{r}": "response", "{q}": "query"}, few_shot=({"score": 4},)),
            "no place for its examples",
        ),
        (
            pairwise(
                ONE,
                TWO,
                instructions="{x} {y} {k}",
                placeholders={"{x}": "response_a", "{y}": "response_b", "{k}": "verdict_key"},
            ),
            "{k} stands for one verdict",
        ),
        (pairwise(few_shot=(GOOD_PAIR | {"colour": "red"},)), "Example 1 has “colour”"),
        (pairwise(few_shot=(GOOD_PAIR, GOOD_PAIR | {"choice": "C"})), "Example 2 needs a verdict on “overall”: A, tie"),
        (pairwise(few_shot=({"output_a": "x"},)), "Example 1 needs a verdict on “overall”"),
        (pairwise(few_shot=(GOOD_PAIR | {"input": 3},)), "“input” must be a text"),
        (pointwise(few_shot=({"output": "x", "score": 9},)), "Example 1 needs a verdict on “overall”: 1, 2"),
        (pointwise(few_shot=({"output": "x"},)), "Example 1 needs a verdict"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(spec: RubricSpec, problem: str) -> None:
    with pytest.raises(InputRefused) as refused:
        refuse_unusable(spec)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "spec",
    [
        pairwise(few_shot=(GOOD_PAIR,)),
        pairwise(replace(ONE, labels={"tie": "SAME"}), few_shot=(GOOD_PAIR | {"choice": "same"},)),
        pairwise(replace(ONE, reply_key="rationale")),
        pairwise(replace(ONE, labels={"A": "[[A]]", "B": "[[B]]", "tie": "[[C]]"}), answer_format="text"),
        pointwise(
            scale(low=0, high=1, step=0.1), few_shot=({"output": "x", "score": 0.3}, {"output": "y", "score": "1"})
        ),
        pointwise(scale(low=-1, high=1, step=None, scale_labels={"-1 - 0": "bad", "0-1": "good"})),
        pointwise(answer_format="two_step"),
        pointwise(scale("one"), scale("two"), few_shot=({"output": "x", "scores": {"one": 1, "two": 5}},)),
        pointwise(instructions=PASTED, placeholders={"{q}": "verdict_key", "{r}": "response"}),
    ],
)
def test_what_can_be_asked_passes(spec: RubricSpec) -> None:
    refuse_unusable(spec)
