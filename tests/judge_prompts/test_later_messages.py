"""What follows the first request: the score of an evaluation, and the repair of a reply."""

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import AttemptStep
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.domain.texts import Message, ResponseTexts
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.judge_prompts.prompt_builder import build_later_messages, build_messages
from evaluations.replies.reply_format import (
    EVALUATION_INSTRUCTION,
    build_score_schema,
    format_instruction,
    json_format_text,
)
from evaluations.replies.reply_parser import ParsedReply, RawReply, check_evaluation, parse_reply

ASK, SCORE, REPAIR = AttemptStep.ASK, AttemptStep.SCORE, AttemptStep.REPAIR
RATING = RubricSpec(
    RubricKind.POINTWISE,
    "Rate.",
    (AspectSpec("overall", "Overall", "", scale_min=1, scale_max=5, scale_step=1, reply_key="score"),),
    ("overall",),
    answer_format="two_step",
    choices_key="",
)
SAID: list[Message] = [{"role": "user", "content": "Say hello."}]
TEXTS = ResponseTexts(SAID, [{"role": "assistant", "content": "Hello."}])


def first() -> list[Message]:
    return build_messages(RATING, TEXTS, ShownOrder.AS_STORED, "k" * 32)


def test_a_rubric_of_two_steps_asks_for_the_evaluation_first_and_shows_no_form_of_a_verdict() -> None:
    system, user = first()
    assert system["content"].endswith(EVALUATION_INSTRUCTION)
    assert "JSON" not in system["content"] + user["content"]


def test_the_score_is_asked_for_in_the_same_conversation() -> None:
    later = build_later_messages(RATING, first(), ["It is brief."], SCORE)
    assert later[:2] == first()
    assert [turn["role"] for turn in later[2:]] == ["assistant", "user"]
    assert later[2]["content"] == "It is brief."
    assert later[3]["content"].endswith(json_format_text(RATING, alone=True))
    assert list(build_score_schema(RATING)["properties"]) == ["score"]


def test_a_repair_says_what_was_wrong_and_repeats_the_form() -> None:
    later = build_later_messages(SIX_ASPECT, SAID, ["A."], REPAIR, "The reply holds no JSON object.")
    assert [turn["role"] for turn in later] == ["user", "assistant", "user"]
    assert "The reply holds no JSON object." in later[2]["content"]
    assert later[2]["content"].endswith(format_instruction(SIX_ASPECT))


def test_the_repair_of_a_second_step_keeps_both_turns_and_asks_for_the_verdict_alone() -> None:
    later = build_later_messages(RATING, first(), ["It is brief.", "six"], REPAIR, "Six was not offered.")
    assert [turn["role"] for turn in later[2:]] == ["assistant", "user", "assistant", "user"]
    assert later[:4] == build_later_messages(RATING, first(), ["It is brief."], SCORE)
    assert "Six was not offered." in later[-1]["content"]
    assert later[-1]["content"].endswith(json_format_text(RATING, alone=True))


def test_a_second_step_is_read_for_its_verdict_and_takes_its_reasons_from_the_first() -> None:
    for text in ('{"score": "4"}', '{"score": 4}', "4"):
        told = parse_reply(RATING, ShownOrder.AS_STORED, RawReply(text), step=SCORE, before=["It is brief."])
        assert told == ParsedReply({}, "It is brief.", {"overall": 4.0})


def test_an_evaluation_that_is_empty_or_cut_off_is_not_gone_on_with() -> None:
    assert check_evaluation(RawReply("It is brief.")) is None
    for reply in (
        RawReply(" \n"),
        RawReply("<think>It is"),
        RawReply("It is", "length"),
        RawReply("", "content_filter"),
    ):
        assert check_evaluation(reply) is not None
