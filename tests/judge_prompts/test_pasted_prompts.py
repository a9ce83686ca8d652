"""Pasted documents: which prompts are in them, and what is guessed of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import RubricKind, RubricSpec
from evaluations.judge_prompts.pasted_prompts import find_pasted_prompts, guess_fields
from evaluations.judge_prompts.placeholders import find_placeholders
from evaluations.judge_prompts.prompt_builder import build_messages
from evaluations.judge_prompts.rubric_checks import refuse_unusable_rubric
from evaluations.replies.reply_parser import ParsedReply, RawReply, UnparsedReply, parse_reply
from tests.helpers.rubric_specs import FENCE_KEY, guess_document_rubrics, make_pair_texts


def only(document: str) -> RubricSpec:
    ((_, spec),) = guess_document_rubrics(document)
    return spec


def told(spec: RubricSpec, text: str, shown: ShownOrder = ShownOrder.AS_STORED) -> ParsedReply:
    read = parse_reply(spec, shown, RawReply(text))
    assert isinstance(read, ParsedReply), read
    return read


# ---- prompts -------------------------------------------------------------------------------


def test_texts_that_python_names_are_a_prompt_each_and_whatever_else_stands_there_is_not() -> None:
    document = (
        'Notes.\nFIRST_PROMPT = """\\\nRate {response}.\n"""\n\ndef ask():\n  """Fill {response} in."""\n\n'
        "OTHER = '''Compare {answer_a} and {answer_b}.'''\nNOTE = \"\"\"no place\"\"\"\n"
    )
    prompts = find_pasted_prompts(document)
    assert [(one.name, one.text) for one in prompts] == [
        ("first", "Rate {response}.\n"),
        ("other", "Compare {answer_a} and {answer_b}."),
    ]
    assert "Fill {response} in." in prompts[0].after


def test_braces_that_are_doubled_for_python_are_single_ones_in_what_is_sent() -> None:
    ((_, spec),) = guess_document_rubrics('P = """Rate {response}.\n{{"why": "", "scores": {{"tone": {score}}}}}"""')
    assert spec.instructions == 'Rate {response}.\n{"why": "", "scores": {"tone": {score}}}'
    for text in ('{response} {{name}} {{"a": 1}}', '{response} {"a": {"b": 1}}'):
        assert find_pasted_prompts(f'P = """{text}"""')[0].text == text


def test_prompts_of_one_name_are_told_apart() -> None:
    assert [one.name for one in find_pasted_prompts('P = """{response}"""\nP = """{output}"""')] == ["p 1", "p 2"]


def test_a_table_that_numbers_the_lines_is_taken_off_and_any_other_table_stays() -> None:
    assert find_pasted_prompts('| 1 | Rate {response}. |\n| 2 | |\n| 3 | {"a": 1 | 2} |\n')[0].text == (
        'Rate {response}.\n\n{"a": 1 | 2}'
    )
    for text in ("| 1 | one |\n| 3 | three |", "| 1 | one |\nand {response}", "| a | b |\n| 1 | 2 |"):
        assert find_pasted_prompts(text)[0].text == text


def test_what_holds_no_prompt_is_refused() -> None:
    for document in (" \n", "x" * 200_001):
        with pytest.raises(InputRefused):
            find_pasted_prompts(document)


# ---- placeholders --------------------------------------------------------------------------


def test_placeholders_are_known_by_their_names_in_all_three_styles() -> None:
    text = "{$Question} {context} {REFERENCE_ANSWER} {$candidate_A} {output_2} {examples_str} {VERDICT_KEY} {colour}"
    assert guess_fields(text) == {
        "{$Question}": "query",
        "{context}": "context",
        "{REFERENCE_ANSWER}": "reference",
        "{$candidate_A}": "response_a",
        "{output_2}": "response_b",
        "{examples_str}": "examples",
        "{VERDICT_KEY}": "verdict_key",
    }


def test_a_response_beside_a_baseline_is_the_other_of_the_two() -> None:
    assert guess_fields("{baseline_model_response} {response}") == {
        "{baseline_model_response}": "response_a",
        "{response}": "response_b",
    }
    assert guess_fields("{response}") == {"{response}": "response"}


def test_a_placeholder_that_says_nothing_is_named() -> None:
    with pytest.raises(InputRefused, match=r"Unknown placeholders: \{colour\}"):
        refuse_unusable_rubric(only("Rate {response} by {colour}."))


# ---- the form of the reply -----------------------------------------------------------------


def test_an_object_with_a_choice_for_each_aspect_gives_aspects_labels_and_keys() -> None:
    spec = only(
        "Tone: Is it kind?\nLogic: Does it hold?\n{answer_1} {answer_2}\n"
        '{"why": "[your words]", "verdicts": {"logic": "[1 or 2]", "tone": "[1 or 2]"}}'
    )
    assert (spec.rationale_key, spec.choices_key, spec.output_order) == ("why", "verdicts", ("logic", "tone"))
    assert [(aspect.key, aspect.name, aspect.definition) for aspect in spec.aspects] == [
        ("tone", "Tone", "Is it kind?"),
        ("logic", "Logic", "Does it hold?"),
    ]
    read = told(spec, '{"why": "", "verdicts": {"tone": "1", "logic": "2"}}')
    assert read.choices == {"tone": Choice.A, "logic": Choice.B}


def test_an_object_with_one_choice_beside_its_reasons_is_flat() -> None:
    spec = only('{answer_a} {answer_b} JSON: {"explanation": "...", "Winner": "A | tie | B"}')
    assert (spec.rationale_key, spec.choices_key, spec.aspects[0].reply_key) == ("explanation", "", "Winner")
    assert told(spec, '{"winner": "b", "explanation": ""}').choices == {"overall": Choice.B}


@pytest.mark.parametrize(
    ("document", "reply"),
    [
        ("{question} {answer_a} {answer_b} Output [[A]] if A is better, [[B]] if B is, [[C]] for a tie.", "So: [[{}]]"),
        ("{input} {output_1} {output_2} Which is better, Output (a) or Output (b)?", "It is short.\nOutput ({})"),
    ],
)
def test_labels_of_a_plain_text_are_mapped_both_ways_in_both_orders(document: str, reply: str) -> None:
    spec = only(document)
    refuse_unusable_rubric(spec)
    for label, stored in (("a", Choice.A), ("b", Choice.B)):
        other = Choice.B if stored == Choice.A else Choice.A
        text = reply.format(label if "(" in reply else label.upper())
        assert told(spec, text).choices == {"overall": stored}
        assert told(spec, text, ShownOrder.SWAPPED).choices == {"overall": other}


def test_a_tie_in_double_brackets_is_a_tie_in_both_orders() -> None:
    spec = only("{answer_a} {answer_b} [[A]] [[B]] [[C]]")
    for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED):
        assert told(spec, "Both. [[C]]", shown).choices == {"overall": Choice.TIE}


def test_a_label_in_double_brackets_counts_at_the_end_alone() -> None:
    spec = only("{answer_a} {answer_b} [[A]] [[B]]")
    for text in ("The second one says [[A]], which I ignore. It is better.", "[[A]] wins, not the other.", ""):
        assert isinstance(parse_reply(spec, ShownOrder.AS_STORED, RawReply(text)), UnparsedReply)
    assert told(spec, "It says [[A]]. I say **[[B]]**.\n").choices == {"overall": Choice.B}


def test_a_score_shown_without_quotes_is_read_with_the_scale_of_the_text() -> None:
    spec = only('On a scale of 1 to 10, rate {response}.\n{"reasoning": "...", "score": <1-10>}')
    assert spec.kind == RubricKind.POINTWISE
    (aspect,) = spec.aspects
    assert (aspect.key, aspect.scale_min, aspect.scale_max, aspect.scale_step) == ("score", 1, 10, 1)
    assert told(spec, '{"reasoning": "", "score": 9}').scores == {"score": 9.0}


def test_several_scores_share_the_scale() -> None:
    spec = only('{response}\n1: bad\n3: good\n{"feedback": "", "scores": {"depth": 1, "tone": 3}}')
    assert [(one.key, one.scale_min, one.scale_max) for one in spec.aspects] == [("depth", 1, 3), ("tone", 1, 3)]
    assert dict(spec.aspects[0].scale_labels) == {"1": "bad", "3": "good"}
    assert spec.rationale_key == "feedback"


@pytest.mark.parametrize(
    ("said", "scale"),
    [
        ("Give a score between 0 and 10.", (0, 10, 1)),
        ("from **0.0 to 1.0**", (0, 1, None)),
        ("from 3 to 3", (1, 5, 1)),
        ("0: no\n0.5: partly\n1: yes", (0, 1, None)),
        ("- 1: no\n- 2: yes", (1, 2, 1)),
        ("", (1, 5, 1)),
    ],
)
def test_a_scale_is_told_by_its_values_or_by_its_ends(said: str, scale: tuple[float, ...]) -> None:
    (aspect,) = only(f"Rate {{response}}. {said}" if "\n" not in said else f"Rate {{response}}.\n{said}").aspects
    assert (aspect.scale_min, aspect.scale_max, aspect.scale_step) == scale


def test_a_rating_without_a_form_is_asked_in_two_steps() -> None:
    spec = only("Rate {response}.")
    assert (spec.answer_format, spec.aspects[0].scale_min, spec.aspects[0].scale_max) == ("two_step", 1, 5)


def test_a_comparison_that_never_says_json_has_the_form_added_and_one_that_does_stands_as_it_is() -> None:
    silent, saying = only("Compare {answer_a} and {answer_b}."), only("Compare {answer_a} and {answer_b} as JSON.")
    assert silent.instructions.startswith("Compare {answer_a} and {answer_b}.\n\nAnswer with one JSON object")
    assert saying.instructions == "Compare {answer_a} and {answer_b} as JSON."
    (message,) = build_messages(silent, make_pair_texts(a="{answer_b}", b="two"), ShownOrder.AS_STORED, FENCE_KEY)
    assert message["content"].startswith("Compare {answer_b} and two.")


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 50_000,
        "| 1 | a" + " " * 100_000 + "b",
        '{"a": "' + " " * 100_000 + 'or"}',
        "x: 1" + " " * 100_000,
        '{"' * 5_000,
        "{" * 20_000,
        '{"a":' * 20_000,
        "- " * 50_000,
    ],
)
def test_odd_texts_are_taken_without_a_fault(text: str) -> None:
    assert len(guess_document_rubrics(f"{text}{{response}}")) == 1


WORDS = (
    "{response} {answer_a} {answer_b} {metric} {reason_key} {x} {{ }} { } [[A]] [[B]] | 1: a 0.1-0.3: 9: -3: \\ = P_"
)
SHOWN = [
    '{"a": {"b": "A|B"}',
    '"why"',
    "}",
    "Output (a)",
    "Output (b)",
    "the score field",
    '"A":',
    '"B":',
    '"""',
    ", ",
    "\n",
]
CODE = [
    "class X(enum.Enum):\n  A = 'A'\n  B = 'B'\n",
    "P = ",
    "from 1 to 1",
    "scale of 5 to 2",
    "scale of -1 to 1",
    " ",
]


@given(st.lists(st.sampled_from([*WORDS.split(" "), *SHOWN, *CODE]), min_size=1, max_size=40).map("".join))
def test_no_document_is_too_odd_to_begin_a_rubric_with(document: str) -> None:
    try:
        found = guess_document_rubrics(document)
    except InputRefused:
        return
    for name, spec in found:
        assert name
        assert sorted(spec.output_order) == sorted(aspect.key for aspect in spec.aspects)
        assert set(spec.placeholders) <= set(find_placeholders(spec.instructions))
