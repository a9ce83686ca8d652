"""The four built-in rubrics: what each is asked, in which form, and that its own form reads back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluations.domain import (
    FIRST_LAYOUT,
    AttemptStep,
    CallState,
    Choice,
    InputRefused,
    RubricKind,
    RubricSpec,
    Shown,
)
from evaluations.judge.builtin import BUILTIN_RUBRICS, QA_PAIRWISE, SUMMARY_RATING, builtin_like, reference_metric
from evaluations.judge.checking import refuse_unusable
from evaluations.judge.prompting import MATERIAL_RULE, messages_for
from evaluations.judge.reading import NotRead, Read, Reply, read_reply
from evaluations.judge.replying import format_shown, reply_schema, score_schema
from tests.judge.rubrics import KEY, pair, pairwise, pointwise, response

STORED, SWAPPED = Shown.AS_STORED, Shown.SWAPPED
METRIC = reference_metric("faithfulness", reason_key="why")


def prompt(spec: RubricSpec, shown: Shown = STORED) -> str:
    texts = pair() if spec.kind == RubricKind.PAIRWISE else response()
    return "\n\n".join(message["content"] for message in messages_for(spec, texts, shown, KEY))


@pytest.mark.parametrize("spec", [*BUILTIN_RUBRICS.values(), METRIC], ids=[*BUILTIN_RUBRICS, "own metric"])
def test_every_built_in_rubric_can_be_asked_and_shuts_all_texts_in(spec: RubricSpec) -> None:
    refuse_unusable(spec)
    text = prompt(spec)
    assert MATERIAL_RULE in text
    for title in ("user's query", "context", "reference answer", "response"):
        assert f"\n[[begin {title} " in f"\n{text}"
    assert text.endswith(format_shown(spec))
    outside = "".join(part.split("[[end ")[-1] for part in text.split("[[begin "))
    assert not any(word in outside for word in ("sky blue", "Light.", "Rayleigh.", "Scattering.", "Reflection."))


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        (reply_schema(BUILTIN_RUBRICS["six-aspect"]), ["rationale", "choices"]),
        (reply_schema(QA_PAIRWISE), ["explanation", "pairwise_choice"]),
        (reply_schema(METRIC), ["why", "faithfulness"]),
        (score_schema(SUMMARY_RATING), ["score"]),
    ],
)
def test_the_reasons_come_before_the_verdict_and_the_schema_is_strict(schema: dict[str, Any], keys: list[str]) -> None:
    assert list(schema["properties"]) == schema["required"] == keys
    assert schema["additionalProperties"] is False


def test_the_schemas_of_verdicts_hold_what_may_be_answered() -> None:
    assert reply_schema(QA_PAIRWISE)["properties"]["pairwise_choice"]["enum"] == ["A", "SAME", "B"]
    assert score_schema(SUMMARY_RATING)["properties"]["score"] == {"type": "string", "enum": ["1", "2", "3", "4", "5"]}
    assert reply_schema(METRIC)["properties"]["faithfulness"] == {"type": "number", "minimum": 0.0, "maximum": 1.0}


def test_question_answering_judges_each_response_on_its_own_by_four_criteria_before_it_compares() -> None:
    text = prompt(QA_PAIRWISE)
    for criterion in ("Instruction following: ", "Groundedness: ", "Completeness: ", "Fluency: "):
        assert criterion in text
    steps = ("analyze response A on its own", "analyze response B on its own", "compare the two", "give the verdict")
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert '"explanation": "<your reasons>",\n  "pairwise_choice": "<A | SAME | B>"' in text


def test_a_summary_is_rated_on_five_values_whose_meanings_stand_lowest_first() -> None:
    text = prompt(SUMMARY_RATING)
    for criterion in ("Instruction following: ", "Groundedness: ", "Conciseness: ", "Fluency: "):
        assert criterion in text
    places = [text.index(f"  - {value}: {word}") for value, word in enumerate(("very bad", "bad", "ok", "good"), 1)]
    assert places == sorted(places)
    assert "  - 5: very good: " in text
    assert "Scale: a number from 1 to 5 in steps of 1." in text


def test_a_metric_carries_its_names_its_five_bands_and_a_number_without_quotes_in_its_form() -> None:
    text = prompt(METRIC)
    places = [text.index(f"  - {band}: ") for band in ("0.0", "0.1 - 0.3", "0.4 - 0.6", "0.7 - 0.9", "1.0")]
    assert places == sorted(places)
    assert '"why": "<your reasons>",\n  "faithfulness": <a number from 0 to 1>' in text
    assert [text.count(f'{{"why": "Key points: {start}') for start in ("within 30 days", "Mercury")] == [1, 1]
    assert [f'"faithfulness": {score}}}' in text for score in (0.6, 1.0)] == [True, True]
    assert "“faithfulness”" in text


def test_question_answering_is_read_in_both_orders() -> None:
    for label, stored, swapped in (
        ("A", Choice.A, Choice.B),
        ("same", Choice.TIE, Choice.TIE),
        ("B", Choice.B, Choice.A),
    ):
        reply = Reply(json.dumps({"pairwise_choice": label, "explanation": "Because."}))
        assert read_reply(QA_PAIRWISE, STORED, reply) == Read({"overall": stored}, "Because.")
        assert read_reply(QA_PAIRWISE, SWAPPED, reply) == Read({"overall": swapped}, "Because.")


def test_a_summary_is_read_from_its_second_step() -> None:
    told = read_reply(SUMMARY_RATING, STORED, Reply('{"score": "4"}'), step=AttemptStep.SCORE, before=["Brief."])
    assert told == Read({}, "Brief.", {"overall": 4.0})


@pytest.mark.parametrize("score", ["1.01", "-0.1", "true", '"0.8"', "null", "NaN", "Infinity", "1e400"])
def test_a_metric_off_its_scale_is_unreadable_and_never_clipped(score: str) -> None:
    told = read_reply(METRIC, STORED, Reply(f'{{"why": "Because.", "faithfulness": {score}}}'))
    assert isinstance(told, NotRead)
    assert told.state == CallState.UNREADABLE
    assert told.error.endswith("for faithfulness; wanted was a number from 0 to 1.")


@pytest.mark.parametrize("text", ['{"faithfulness": 0.5}', '{"why": "Because."}', '{"why": null, "faithfulness": 0.5}'])
def test_a_metric_with_a_key_missing_is_unreadable(text: str) -> None:
    assert isinstance(read_reply(METRIC, STORED, Reply(text)), NotRead)


def test_a_metric_is_read_with_its_keys_in_any_order() -> None:
    told = read_reply(METRIC, STORED, Reply('{"Faithfulness": 0.85, "Why": "Close."}'))
    assert told == Read({}, "Close.", {"faithfulness": 0.85})


def test_a_metric_needs_a_name_that_a_key_can_be_made_of() -> None:
    assert reference_metric("Answer relevancy").aspects[0].key == "answer_relevancy"
    for name in (" ", "§", "x" * 61):
        with pytest.raises(InputRefused, match="needs a name"):
            reference_metric(name)


@pytest.mark.parametrize("spec", [*BUILTIN_RUBRICS.values(), METRIC], ids=[*BUILTIN_RUBRICS, "own metric"])
def test_a_built_in_rubric_is_known_by_its_aspects_and_its_form_in_other_words(spec: RubricSpec) -> None:
    assert builtin_like(replace(spec, instructions="Other.", layout=FIRST_LAYOUT, few_shot=())) == spec


def test_another_rubric_is_like_no_built_in_one() -> None:
    assert builtin_like(replace(QA_PAIRWISE, answer_format="text")) is None
    assert builtin_like(pairwise()) is None
    assert builtin_like(pointwise()) is None
