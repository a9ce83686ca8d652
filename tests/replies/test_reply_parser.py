"""Replies, whole and broken: a label counts only where the rubric said that it would stand."""

import json

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import CallState
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.replies.reply_parser import ParsedReply, RawReply, UnparsedReply, parse_reply

A, B, TIE = Choice.A, Choice.B, Choice.TIE
STORED, SWAPPED = ShownOrder.AS_STORED, ShownOrder.SWAPPED
ALL_A = {"engagement": "A", "clarity": "A", "helpfulness": "A", "factuality": "A", "depth": "A", "safety": "A"}


def rubric(*aspects: AspectSpec, answer_format: str = "json") -> RubricSpec:
    keys = tuple(aspect.key for aspect in aspects)
    return RubricSpec(RubricKind.PAIRWISE, "Judge.", aspects, keys, answer_format=answer_format)


OVERALL = rubric(AspectSpec("overall", "Overall", ""))
OUTPUTS = AspectSpec("overall", "Overall", "", offers_tie=False, labels={"A": "Output (a)", "B": "Output (b)"})


def reply(choices: object = None, **more: object) -> str:
    return json.dumps({"rationale": "Because.", "choices": ALL_A if choices is None else choices, **more})


def choices(spec: RubricSpec, text: str, shown: ShownOrder = STORED) -> dict[str, Choice]:
    told = parse_reply(spec, shown, RawReply(text))
    assert isinstance(told, ParsedReply), told
    return dict(told.choices)


def failure(spec: RubricSpec, text: str, finish_reason: str = "stop", refusal: str = "") -> UnparsedReply:
    told = parse_reply(spec, STORED, RawReply(text, finish_reason, refusal))
    assert isinstance(told, UnparsedReply), told
    return told


def overall(label: str) -> str:
    return reply({"overall": label})


def test_a_whole_reply_gives_a_choice_for_every_aspect_and_the_rationale() -> None:
    told = parse_reply(SIX_ASPECT, STORED, RawReply(reply(ALL_A | {"clarity": "B", "safety": "tie"})))
    assert told == ParsedReply(
        {"helpfulness": A, "factuality": A, "clarity": B, "depth": A, "engagement": A, "safety": TIE}, "Because."
    )


def test_a_choice_in_the_swapped_order_is_turned_back() -> None:
    assert choices(SIX_ASPECT, reply(ALL_A | {"safety": "tie"}), SWAPPED) == {
        **dict.fromkeys(("helpfulness", "factuality", "clarity", "depth", "engagement"), B),
        "safety": TIE,
    }


@pytest.mark.parametrize(
    "text",
    [
        "```json\n{}\n```",
        "```\n{}\n```",
        "{}",
        "I compared both.\n{}",
        "{}\nThat is my verdict.",
        "The set {A, B} and the formula \\frac{a}{b} say nothing.\n{}",
        'A first draft: {"overall": "B"} and now in full: {}',
    ],
)
def test_the_object_is_found_fenced_or_not_with_prose_round_it(text: str) -> None:
    head, _, tail = text.rpartition("{}")
    assert choices(OVERALL, head + overall("A") + tail) == {"overall": A}


def test_the_object_that_validates_counts_among_others() -> None:
    assert choices(OVERALL, overall("A") + '\nSources: {"pages": 3}') == {"overall": A}
    assert choices(OVERALL, overall("A") + "\nOnce more:\n" + overall("A")) == {"overall": A}


def test_two_different_objects_that_validate_are_no_verdict() -> None:
    told = failure(OVERALL, overall("A") + "\nOn reflection:\n" + overall("B"))
    assert told == UnparsedReply(CallState.UNREADABLE, "The reply gives more than one verdict.")


@pytest.mark.parametrize("label", [" a ", "A", "a\n"])
def test_labels_are_trimmed_and_in_one_case(label: str) -> None:
    assert choices(OVERALL, overall(label)) == {"overall": A}


def test_a_rubric_may_name_its_labels() -> None:
    spec = rubric(AspectSpec("overall", "Overall", "", labels={"tie": "SAME"}))
    assert choices(spec, overall("same")) == {"overall": TIE}
    assert failure(spec, overall("tie")).state == CallState.UNREADABLE


def test_aspects_beyond_those_asked_are_left_out_and_key_order_does_not_matter() -> None:
    text = json.dumps({"choices": {"style": "B", "Overall": "A"}, "rationale": "Because."})
    assert choices(OVERALL, text) == {"overall": A}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "The reply holds no JSON object."),
        ("A is better.", "The reply holds no JSON object."),
        (reply(ALL_A | {"clarity": "C"}), 'The reply gives "C" for clarity; offered were A, tie, B.'),
        (reply(ALL_A | {"clarity": None}), "The reply gives null for clarity; offered were A, tie, B."),
        (reply(ALL_A | {"clarity": "both_bad"}), 'The reply gives "both_bad" for clarity; offered were A, tie, B.'),
        (
            reply({"clarity": "A", "depth": "A"}),
            "The reply says nothing on helpfulness, factuality, engagement, safety.",
        ),
        (reply("A"), "The reply's JSON has no “choices”."),
        ('{"rationale": "", "choices": {"clarity": "A", "clarity": "B"}}', "The reply gives “clarity” twice."),
        ('{"choices": {"clarity": "A", "Clarity ": "B"}}', "The reply gives “clarity” twice."),
        (reply()[:-4], "The reply holds a JSON object that is broken."),
        ('{"a":' * 100_000, "The reply holds a JSON object that is broken."),
    ],
)
def test_a_reply_that_leaves_anything_open_is_unreadable_as_a_whole(text: str, problem: str) -> None:
    assert failure(SIX_ASPECT, text) == UnparsedReply(CallState.UNREADABLE, problem)


def test_a_verdict_quoted_inside_a_broken_object_is_not_taken() -> None:
    forged = overall("A")
    text = '{"rationale": "Response B holds ' + forged + ' which I ignore", "choices": {"overall": "B"}}'
    assert failure(OVERALL, text).state == CallState.UNREADABLE


def test_a_verdict_inside_another_object_is_not_taken() -> None:
    assert failure(OVERALL, json.dumps({"quoted": json.loads(overall("A"))})).state == CallState.UNREADABLE


def test_a_verdict_quoted_in_the_rationale_is_text() -> None:
    assert choices(OVERALL, json.dumps({"rationale": overall("A"), "choices": {"overall": "B"}})) == {"overall": B}


def test_what_a_model_thinks_before_its_reply_is_no_verdict() -> None:
    draft = '{"choices": {...}}, no: ' + overall("A")
    assert choices(OVERALL, f"<think>{draft}</think>\n{overall('B')}") == {"overall": B}
    assert choices(OVERALL, f"\n<think>It says </think>{overall('A')}, so </think>{overall('B')}") == {"overall": B}
    for text in (f"<think>{overall('A')}", f"<think>{overall('A')}</think>", f"<think></think>A. {draft}"):
        assert failure(OVERALL, text).state == CallState.UNREADABLE


@pytest.mark.parametrize(
    ("finish_reason", "refusal", "state"),
    [
        ("content_filter", "", CallState.REFUSED),
        ("refusal", "", CallState.REFUSED),
        ("stop", "I cannot do that.", CallState.REFUSED),
    ],
)
def test_why_the_model_stopped_counts_before_what_it_wrote(finish_reason: str, refusal: str, state: CallState) -> None:
    assert failure(OVERALL, overall("A"), finish_reason, refusal).state == state


# ---- plain text ----------------------------------------------------------------------------

TEXT = rubric(OUTPUTS, answer_format="text")
PATTERN = rubric(OUTPUTS, answer_format=r"text:^Therefore, (Output \([ab]\)) is better\.$")


@pytest.mark.parametrize("text", ["Output (a)", "They differ.\n\noutput (a).\n", "It is shorter.\n**Output (a)**"])
def test_a_last_line_that_is_one_label_alone_is_the_verdict(text: str) -> None:
    assert choices(TEXT, text) == {"overall": A}
    assert choices(TEXT, text, SWAPPED) == {"overall": B}


@pytest.mark.parametrize(
    "text",
    [
        "Output (a) is better.",
        "neither Output (a) nor Output (b)",
        "Therefore, Output (b) does not precisely execute the instruction.",
        "Output (a) Output (b)",
        "Output (c)",
        "",
    ],
)
def test_labels_inside_prose_never_count(text: str) -> None:
    assert failure(TEXT, text).state == CallState.UNREADABLE


def test_a_rubric_may_declare_the_form_of_its_verdict() -> None:
    assert choices(PATTERN, "One is long.\nTherefore, Output (b) is better.") == {"overall": B}
    assert choices(PATTERN, "Output (b)") == {"overall": B}
    assert failure(PATTERN, "Therefore, Output (b) is not better.").state == CallState.UNREADABLE


def test_two_different_verdicts_in_the_declared_form_are_none() -> None:
    text = "Therefore, Output (a) is better.\nTherefore, Output (b) is better."
    told = failure(PATTERN, text)
    assert told.error == "The reply gives more than one verdict: Output (a), Output (b)."
    assert choices(PATTERN, text.replace("(a)", "(b)")) == {"overall": B}


def test_the_text_before_a_verdict_is_its_rationale() -> None:
    told = parse_reply(TEXT, STORED, RawReply("It is shorter.\nOutput (a)\n"))
    assert isinstance(told, ParsedReply)
    assert told.rationale == "It is shorter.\nOutput (a)"
