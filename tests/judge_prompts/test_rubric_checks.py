"""What cannot be put to a judge, and the sentence that says so."""

from dataclasses import replace

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.judge_prompts.rubric_checks import refuse_unusable_rubric
from tests.helpers.rubric_specs import make_pairwise_spec, make_pointwise_spec, make_scale_aspect

ONE = AspectSpec("one", "One", "")
TWO = AspectSpec("two", "Two", "")
PASTED = "Q {q} R {r}"
GOOD_PAIR = {"output_a": "x", "output_b": "y", "reasoning": "z", "choice": "tie"}


def flat(*aspects: AspectSpec, **columns: object) -> RubricSpec:
    return make_pairwise_spec(*aspects, choices_key="", **columns)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (make_pointwise_spec(make_scale_aspect(low=5, high=5)), "the highest score must be above the lowest"),
        (make_pointwise_spec(make_scale_aspect(low=float("nan"))), "the highest score must be above the lowest"),
        (make_pointwise_spec(AspectSpec("one", "One", "")), "the highest score must be above the lowest"),
        (make_pointwise_spec(make_scale_aspect(step=3)), "the scale must be a whole number of steps"),
        (make_pointwise_spec(make_scale_aspect(step=-1)), "the scale must be a whole number of steps"),
        (make_pointwise_spec(make_scale_aspect(step=0)), "the scale must be a whole number of steps"),
        (make_pointwise_spec(make_scale_aspect(tie_margin=-0.1)), "must be at least 0"),
        (make_pointwise_spec(make_scale_aspect(tie_margin=4)), "less than the scale’s range"),
        (make_pointwise_spec(make_scale_aspect(scale_labels={"6": "best"})), "“6” is not on the scale of “overall”"),
        (
            make_pointwise_spec(make_scale_aspect(scale_labels={"best": "best"})),
            "“best” is not on the scale of “overall”",
        ),
        (make_pairwise_spec(make_scale_aspect()), "cannot have a scale"),
        (make_pairwise_spec(replace(ONE, labels={"A": "one\ntwo"})), "must be one line each"),
        (make_pairwise_spec(replace(ONE, labels={"tie": "a "})), "a different label"),
        (make_pairwise_spec(ONE, TWO, rationale_key="Choices"), "“Choices” is used for two parts"),
        (flat(replace(ONE, reply_key="rationale")), "“rationale” is used for two parts"),
        (flat(ONE, replace(TWO, reply_key="ONE ")), "is used for two parts"),
        (flat(ONE, rationale_key=" "), "needs a key"),
        (flat(replace(ONE, reply_key="x" * 61)), "is too long"),
        (make_pairwise_spec(answer_format="yaml"), "Unknown output format “yaml”"),
        (make_pairwise_spec(answer_format="json:x"), "Unknown output format “json:x”"),
        (make_pairwise_spec(answer_format="text:" + "x" * 400), "too long"),
        (make_pairwise_spec(answer_format="text:(A"), "verdict pattern is not a valid regular expression: missing )"),
        (
            make_pairwise_spec(answer_format="text:(?a)(?u)(a|b)"),
            "The verdict pattern is not a valid regular expression: ASCII and UNICODE flags are incompatible.",
        ),
        (make_pairwise_spec(answer_format="text:(a){4294967295}"), "is not a valid regular expression: the repetition"),
        (make_pairwise_spec(answer_format="text:(a)(b)"), "may have only one group"),
        (replace(make_pairwise_spec(ONE, TWO), output_order=("one",)), "must list every aspect"),
        (
            make_pointwise_spec(instructions=PASTED, placeholders={"{q}": "query", "{r}": "reference"}),
            "no placeholder for response.",
        ),
        (
            make_pointwise_spec(instructions=PASTED, placeholders={"{q}": "response_a", "{r}": "response"}),
            "{q} is mapped to response_a",
        ),
        (
            make_pointwise_spec(
                instructions=PASTED, placeholders={"{r}": "response", "{q}": "query"}, few_shot=({"score": 4},)
            ),
            "no placeholder for the examples",
        ),
        (
            make_pairwise_spec(
                ONE,
                TWO,
                instructions="{x} {y} {k}",
                placeholders={"{x}": "response_a", "{y}": "response_b", "{k}": "verdict_key"},
            ),
            "{k} holds one verdict",
        ),
        (make_pairwise_spec(few_shot=(GOOD_PAIR | {"colour": "red"},)), "Example 1: unknown field “colour”"),
        (
            make_pairwise_spec(few_shot=(GOOD_PAIR, GOOD_PAIR | {"choice": "C"})),
            "Example 2 needs a verdict for “overall”: A, tie",
        ),
        (make_pairwise_spec(few_shot=({"output_a": "x"},)), "Example 1 needs a verdict for “overall”"),
        (make_pairwise_spec(few_shot=(GOOD_PAIR | {"input": 3},)), "“input” must be text"),
        (make_pointwise_spec(few_shot=({"output": "x", "score": 9},)), "Example 1 needs a verdict for “overall”: 1, 2"),
        (make_pointwise_spec(few_shot=({"output": "x"},)), "Example 1 needs a verdict"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(spec: RubricSpec, problem: str) -> None:
    with pytest.raises(InputRefused) as refused:
        refuse_unusable_rubric(spec)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "spec",
    [
        make_pairwise_spec(few_shot=(GOOD_PAIR,)),
        make_pairwise_spec(replace(ONE, labels={"tie": "SAME"}), few_shot=(GOOD_PAIR | {"choice": "same"},)),
        make_pairwise_spec(replace(ONE, reply_key="rationale")),
        make_pairwise_spec(replace(ONE, labels={"A": "[[A]]", "B": "[[B]]", "tie": "[[C]]"}), answer_format="text"),
        make_pointwise_spec(
            make_scale_aspect(low=0, high=1, step=0.1),
            few_shot=({"output": "x", "score": 0.3}, {"output": "y", "score": "1"}),
        ),
        make_pointwise_spec(
            make_scale_aspect(low=-1, high=1, step=None, scale_labels={"-1 - 0": "bad", "0-1": "good"})
        ),
        make_pointwise_spec(answer_format="two_step"),
        make_pointwise_spec(
            make_scale_aspect("one"),
            make_scale_aspect("two"),
            few_shot=({"output": "x", "scores": {"one": 1, "two": 5}},),
        ),
        make_pointwise_spec(instructions=PASTED, placeholders={"{q}": "verdict_key", "{r}": "response"}),
    ],
)
def test_what_can_be_asked_passes(spec: RubricSpec) -> None:
    refuse_unusable_rubric(spec)
