"""The documents that the product was asked for, pasted as they are: each prompt becomes a working judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import AttemptStep, CallState
from evaluations.domain.rubrics import RubricKind, RubricSpec
from evaluations.domain.texts import Message
from evaluations.judge_prompts.placeholders import find_placeholders, find_unmapped_placeholders
from evaluations.judge_prompts.prompt_builder import build_later_messages, build_messages
from evaluations.judge_prompts.rubric_checks import refuse_unusable_rubric
from evaluations.replies.reply_format import build_reply_schema, build_score_schema, json_format_text
from evaluations.replies.reply_parser import ParsedReply, RawReply, UnparsedReply, parse_reply
from tests.helpers.rubric_specs import FENCE_KEY, guess_document_rubrics, make_pair_texts, make_response_texts

pytestmark = [pytest.mark.data, pytest.mark.any_database]

STORED, SWAPPED = ShownOrder.AS_STORED, ShownOrder.SWAPPED
SIX = ("engagement", "clarity", "helpfulness", "factuality", "depth", "safety")
# Texts that would change a prompt in which they were interpreted.
ODD = r'{prompt} {$candidate_B} {VERDICT_KEY} \1 %s {"choices": {}}'


@pytest.fixture(scope="module")
def seeds(acceptance_data: Path) -> Path:
    folder = acceptance_data.parent / "seeds"
    if not folder.is_dir():
        pytest.skip("there is no folder seeds beside the acceptance data")
    return folder


def document(seeds: Path, number: str) -> str:
    (path,) = seeds.glob(f"{number}_*.txt")
    return path.read_text()


def pasted(seeds: Path, number: str) -> dict[str, RubricSpec]:
    rubrics = dict(guess_document_rubrics(document(seeds, number)))
    for spec in rubrics.values():
        refuse_unusable_rubric(spec)
        assert not find_unmapped_placeholders(spec.instructions, spec.placeholders)
    return rubrics


def sent(spec: RubricSpec, shown: ShownOrder = STORED, **texts: str) -> str:
    judged = make_response_texts(**texts) if spec.kind == RubricKind.POINTWISE else make_pair_texts(**texts)
    (message,) = build_messages(spec, judged, shown, FENCE_KEY)
    assert message["role"] == "user"
    return message["content"]


def read(spec: RubricSpec, said: object, shown: ShownOrder = STORED, **options: Any) -> ParsedReply | UnparsedReply:
    return parse_reply(spec, shown, RawReply(said if isinstance(said, str) else json.dumps(said)), **options)


def unreadable(spec: RubricSpec, said: object, **options: Any) -> bool:
    told = read(spec, said, **options)
    return isinstance(told, UnparsedReply) and told.state == CallState.UNREADABLE


# ---- six aspects ---------------------------------------------------------------------------


def test_the_pairwise_template_is_sent_word_for_word_with_its_literal_json(seeds: Path) -> None:
    text = document(seeds, "003")
    ((_, spec),) = pasted(seeds, "003").items()
    assert sent(spec, query="Why?", a=ODD, b="two") == text.replace("{$instruction}", "Why?").replace(
        "{$candidate_B}", "two"
    ).replace("{$candidate_A}", ODD)
    assert sent(spec, SWAPPED, a="one", b="two") == sent(spec, a="two", b="one")
    assert '"choices": {\n     "engagement": "[A or B or tie]"' in sent(spec)


def test_the_pairwise_template_asks_for_its_six_aspects_in_its_own_order(seeds: Path) -> None:
    ((_, spec),) = pasted(seeds, "003").items()
    assert spec.output_order == SIX
    assert list(build_reply_schema(spec)["properties"]["choices"]["properties"]) == list(SIX)
    assert {aspect.name: bool(aspect.definition) for aspect in spec.aspects} == {name.title(): True for name in SIX}


def test_the_pairwise_templates_own_format_filled_in_is_read_in_both_orders(seeds: Path) -> None:
    ((_, spec),) = pasted(seeds, "003").items()
    text = document(seeds, "003")
    filled = text[text.rindex('{\n   "rationale"') :].replace("[A or B or tie]", "A")
    for shown, choice in ((STORED, Choice.A), (SWAPPED, Choice.B)):
        assert read(spec, filled, shown) == ParsedReply(dict.fromkeys(SIX, choice), "[your rationale]")
    assert unreadable(spec, filled.replace('"A"', '"C"', 1))
    assert unreadable(spec, filled.replace('"safety"', '"security"'))
    assert unreadable(spec, text[text.rindex('{\n   "rationale"') :])


# ---- the reference metric ------------------------------------------------------------------


def test_the_metric_template_loses_its_line_numbers_and_gets_its_names_and_texts(seeds: Path) -> None:
    ((_, spec),) = pasted(seeds, "002").items()
    text = sent(spec, text=ODD)
    assert text.startswith("YOU ARE AN EXPERT AI METRIC EVALUATOR")
    assert "| 1 |" not in text
    assert '- `"correctness"`: The score between 0.0 and 1.0.\n- `"reason"`: A detailed explanation' in text
    for part in ("Input:\nWhy is the sky blue?", f"Output:\n{ODD}", "Expected Output:\nRayleigh.", "Context:\nLight."):
        assert part in text
    assert "###FEW-SHOT EXAMPLES###\n\n(none)\n" in text


def test_the_metric_template_shows_its_examples(seeds: Path) -> None:
    ((_, spec),) = pasted(seeds, "002").items()
    example = {"input": "2+2?", "output": "5", "expected_output": "4", "reasoning": "Wrong.", "score": 0}
    text = sent(RubricSpec(**{**vars(spec), "few_shot": (example,)}))
    assert "Example 1, expected output:\n4\n" in text
    assert '{"reason": "Wrong.", "correctness": 0.0}' in text


def test_the_metric_is_a_number_from_0_to_1_with_its_reason(seeds: Path) -> None:
    ((_, spec),) = pasted(seeds, "002").items()
    (aspect,) = spec.aspects
    assert list(aspect.scale_labels) == ["0.0", "0.1 - 0.3", "0.4 - 0.6", "0.7 - 0.9", "1.0"]
    number = {"type": "number", "minimum": 0.0, "maximum": 1.0}
    assert build_reply_schema(spec)["properties"] == {"reason": {"type": "string"}, "correctness": number}
    for said in ({"correctness": 0.8, "reason": "Close."}, {"reason": "Close.", "correctness": 0.8}):
        assert read(spec, said) == ParsedReply({}, "Close.", {"correctness": 0.8})
    for wrong in ({"correctness": 1.2, "reason": ""}, {"correctness": 0.8}, {"reason": ""}, {"score": 1, "reason": ""}):
        assert unreadable(spec, wrong)


# ---- the notes with two prompts ------------------------------------------------------------


def test_the_notes_hold_two_prompts_without_the_prose_and_code_round_them(seeds: Path) -> None:
    rubrics = pasted(seeds, "004")
    assert {name: spec.kind for name, spec in rubrics.items()} == {"summary": "pointwise", "qa pairwise": "pairwise"}
    text = document(seeds, "004")
    for name, spec in rubrics.items():
        prompt = spec.instructions.partition("\nAnswer with one JSON")[0]
        assert prompt.startswith("# Instruction\nYou are an expert evaluator."), name
        assert prompt.rstrip() in text
        assert not any(other in prompt for other in ("Kaggle", '"""', "enum", "def "))


def test_the_summary_prompt_is_asked_in_two_steps_and_rated_from_1_to_5(seeds: Path) -> None:
    spec = pasted(seeds, "004")["summary"]
    (aspect,) = spec.aspects
    assert (aspect.scale_min, aspect.scale_max, aspect.scale_step, spec.answer_format) == (1, 5, 1, "two_step")
    assert aspect.scale_labels["5"].startswith("(Very good).")
    text = sent(spec, text=ODD)
    assert text == spec.instructions.replace("{prompt}", "Why is the sky blue?").replace("{response}", ODD)
    first: list[Message] = [{"role": "user", "content": text}]
    later = build_later_messages(spec, first, ["It is brief and grounded."], AttemptStep.SCORE)
    assert [turn["role"] for turn in later] == ["user", "assistant", "user"]
    assert later[-1]["content"].endswith(json_format_text(spec, alone=True))
    assert build_score_schema(spec)["properties"] == {"score": {"type": "string", "enum": ["1", "2", "3", "4", "5"]}}


def test_the_summary_prompts_score_is_read_from_its_second_step(seeds: Path) -> None:
    spec = pasted(seeds, "004")["summary"]
    second: dict[str, Any] = {"step": AttemptStep.SCORE, "before": ["It is brief."]}
    for said in ({"score": "4"}, {"score": 4}, "4"):
        assert read(spec, said, **second) == ParsedReply({}, "It is brief.", {"overall": 4.0})
    for wrong in ({"score": "6"}, {"score": 4.5}, {"rating": "4"}, "It deserves a 4.", ""):
        assert unreadable(spec, wrong, **second)


def test_the_question_answering_prompt_says_its_form_and_its_baseline_is_response_a(seeds: Path) -> None:
    spec = pasted(seeds, "004")["qa pairwise"]
    text = sent(spec, a="the baseline", b=ODD)
    assert f"### Response A\nthe baseline\n \n### Response B\n{ODD}\n" in text
    assert text.endswith(json_format_text(spec) + "\n")
    assert sent(spec, SWAPPED, a="one", b="two") == sent(spec, a="two", b="one")
    assert list(build_reply_schema(spec)["properties"]) == ["explanation", "pairwise_choice"]
    assert build_reply_schema(spec)["properties"]["pairwise_choice"]["enum"] == ["A", "SAME", "B"]


def test_the_question_answering_prompts_choice_is_read_in_both_orders(seeds: Path) -> None:
    spec = pasted(seeds, "004")["qa pairwise"]
    for label, stored, swapped in (
        ("A", Choice.A, Choice.B),
        ("SAME", Choice.TIE, Choice.TIE),
        ("b ", Choice.B, Choice.A),
    ):
        said = {"pairwise_choice": label, "explanation": "Because."}
        assert read(spec, said) == ParsedReply({"overall": stored}, "Because.")
        assert read(spec, said, SWAPPED) == ParsedReply({"overall": swapped}, "Because.")
    for wrong in ({"pairwise_choice": "tie", "explanation": ""}, {"explanation": "A"}, "A", "SAME"):
        assert unreadable(spec, wrong)


def test_no_placeholder_of_the_documents_is_left_over(seeds: Path) -> None:
    for number in ("002", "003", "004"):
        for spec in pasted(seeds, number).values():
            assert not find_placeholders(sent(spec))
