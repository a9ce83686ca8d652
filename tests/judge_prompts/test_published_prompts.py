"""Prompts as frameworks for judges write them: filled, asked in their own form alone, and their replies read."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptStep
from evaluations.domain.rubrics import RubricKind, RubricSpec
from evaluations.judge_prompts.pasted_prompts import decode_format_text, guess_fields
from evaluations.judge_prompts.placeholders import find_placeholders, find_template_syntax
from evaluations.judge_prompts.prompt_builder import build_messages, build_system_text
from evaluations.judge_prompts.rubric_checks import refuse_slow_pattern, refuse_unusable_rubric
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply
from tests.helpers.rubric_specs import (
    FENCE_KEY,
    guess_document_rubrics,
    make_pair_texts,
    make_pairwise_spec,
    make_response_texts,
)

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@dataclass(frozen=True)
class Style:
    """``replies``: what a judge answers, and the choice or score that it means."""

    prompt: str
    replies: dict[str, Any]
    form: str = "json"
    fields: dict[str, str] = field(default_factory=dict)
    step: AttemptStep = AttemptStep.ASK


STYLES = {
    "mustache": Style(
        "Question: {{input}}\nFirst: {{output_a}}\nSecond: {{output_b}}\n"
        'Answer with JSON {"reasoning": "...", "winner": "A or B or tie"}',
        {'{"reasoning": "x", "winner": "B"}': B, '{"reasoning": "x", "winner": "tie"}': TIE},
    ),
    "jinja": Style(
        "Question: {{ input }}\nFirst: {{ output_a }}\nSecond: {{ output_b }}\nEnd with [[A]], [[B]] or [[C]].",
        {"Fine. [[A]]": A, "[[C]]": TIE},
        "text",
    ),
    "triple mustache": Style(
        "Task: {{{instruction}}}\n1: {{{response_1}}}\n2: {{&response_2}}\nOutput (a) or Output (b)?",
        {"It is short.\nOutput (b)": B},
        "text",
    ),
    "jinja with filters and spaces at its ends": Style(
        "{{- question | trim -}}\n{{ answer_a|safe }}\n{{answer_b | string | trim}}\nOutput only A, B or tie.",
        {"A": A, "tie": TIE},
        "text",
    ),
    "template strings": Style(
        "Question: ${question}\nFirst: ${completion_a}\nSecond: ${completion_b}\nSay \"A\" or \"B\" on the "
        "last line.",
        {"Because.\nB": B},
        "text",
    ),
    "string.Template": Style(
        "Question: $question\nFirst: $response_a\nSecond: $response_b\nVerdict: A/B/tie",
        {"Because.\nVerdict: A": A, "**Verdict: tie**": TIE},
        "text",
    ),
    "printf by name": Style(
        "Question: %(question)s\nFirst: %(answer_1)s\nSecond: %(answer_2)s\nWinner: [1 or 2 or tie]",
        {"Winner: 2": B},
        "text",
    ),
    "angles": Style(
        "<<question>>\n<<output_1>>\n<<output_2>>\nGive your choice inside <choice>A or B</choice> tags.",
        {"Fine.\n<choice>B</choice>": B, "<CHOICE> A </CHOICE> That is all.": A},
        "text",
    ),
    "MT-bench, in pairs": Style(
        "[User Question]\n{question}\n\n[The Start of Assistant A's Answer]\n{answer_a}\n[The End of "
        "Assistant A's Answer]\n"
        "\n[The Start of Assistant B's Answer]\n{answer_b}\n[The End of Assistant B's Answer]\n\nCompare "
        "both, then give "
        'your verdict strictly in this format: "[[A]]" if A is better, "[[B]]" if B is, and "[[C]]" for a tie.',
        {"A is more to the point. [[A]]": A, "[[B]]": B, "Equal.\n\n[[C]]": TIE},
        "text",
    ),
    "MT-bench, alone": Style(
        "Rate the answer of the assistant on a scale of 1 to 10, strictly in this format: \"[[rating]]\", "
        "for example: "
        '"Rating: [[5]]".\n\n[Question]\n{question}\n\n[Answer]\n{answer}',
        {"Clear and short. Rating: [[9]]": 9.0},
        "text",
    ),
    "Arena-Hard": Style(
        "<|User Prompt|>\n{{ question }}\n<|Assistant A|>\n{{ answer_1 }}\n<|Assistant B|>\n{{ answer_2 "
        "}}\n\nEnd with one of:\n"
        "1. A is much better: [[A>>B]]\n2. A is better: [[A>B]]\n3. Equal: [[A=B]]\n4. B is better: [[B>A]]\n"
        "5. B is much better: [[B>>A]]\nExample: \"My final verdict is tie: [[A=B]]\".",
        {"So: [[A>>B]]": A, "[[A>B]]": A, "My final verdict is tie: [[A=B]]": TIE, "[[B>A]]": B, "[[B>>A]].": B},
        "text",
    ),
    "AlpacaEval": Style(
        "Pick the better output for the instruction. Answer with Output (a) or Output (b) alone.\n\n# "
        "Instruction:\n"
        "{instruction}\n\n# Output (a):\n{output_1}\n\n# Output (b):\n{output_2}",
        {"Output (a)": A, "Output (b)": B},
        "text",
    ),
    "G-Eval": Style(
        "Rate the summary on one metric.\n\nCoherence (1-5): how well its sentences hold together.\n\nSource "
        "Text:\n"
        "{{Document}}\n\nSummary:\n{{Summary}}\n\nEvaluation Form (scores ONLY):\n\n- Coherence:",
        {"4": 4.0, "- Coherence: 3": 3.0},
        "text",
    ),
    "Prometheus, alone": Style(
        "###Task: write feedback, then a score from 1 to 5. The output format is: \"(your feedback) [RESULT] "
        "(an integer "
        'from 1 to '
        '5)"\n###Instruction:\n{instruction}\n###Response:\n{response}\n###Reference:\n{reference_answer}\n'
        "###Feedback:",
        {"Feedback: It is right. [RESULT] 4": 4.0, "Good. [RESULT] (5)": 5.0},
        "text",
    ),
    "Prometheus, in pairs": Style(
        "###Task: write feedback, then say which is better. The output format is: \"(your feedback) [RESULT] "
        "(Either \"A\" "
        'or "B")"\n###Instruction:\n{orig_instruction}\n###Response A:\n{orig_response_A}\n###Response B:\n'
        "{orig_response_B}\n###Reference Answer:\n{orig_reference_answer}\n###Feedback:",
        {"A holds more. [RESULT] A": A, "[RESULT] B": B},
        "text",
    ),
    "OpenEvals": Style(
        "Grade how correct the output "
        "is.\n\n<input>\n{inputs}\n</input>\n\n<output>\n{outputs}\n</output>\n\n<reference>\n"
        "{reference_outputs}\n</reference>\n\nScore from 1 to 5.",
        {'{"score": "4"}': 4.0},
        "two_step",
        step=AttemptStep.SCORE,
    ),
    "LangSmith": Style(
        "Question: {{inputs.question}}\nGround truth: {{reference_outputs.answer}}\nAnswer: {{outputs.answer}}\n"
        "Respond as JSON: {\"reasoning\": \"...\", \"score\": 1-5}",
        {'{"reasoning": "right", "score": 5}': 5.0},
    ),
    "Ragas": Style(
        "Judge how faithful the answer is to the context, from 0 to 3.\nquestion: {user_input}\ncontext: "
        "{retrieved_contexts}\n"
        'answer: {response}\nReturn JSON: {{"reason": "...", "score": 0}}',
        {'{"reason": "grounded", "score": 3}': 3.0},
    ),
    "DeepEval": Style(
        "Score the actual output against the expected one, from 0 to 10.\nInput: {input}\nActual output: "
        "{actual_output}\n"
        "Expected output: {expected_output}\nContext: {retrieval_context}\n**\nIMPORTANT: return only "
        "JSON.\nExample:\n"
        '{{\n    "reason": "your reason",\n    "score": 7\n}}\n**\nJSON:',
        {'{"reason": "fine", "score": 8}': 8.0},
    ),
    "promptfoo": Style(
        "Compare the two for the task.\nTask: "
        "{{prompt}}\n<Output1>{{output1}}</Output1>\n<Output2>{{output2}}</Output2>\n"
        "Respond with a JSON object: {reason: string, winner: 1 or 2}",
        {'{"reason": "short", "winner": "2"}': B},
    ),
    "promptfoo, alone": Style(
        "Grade from 0.0 to 1.0.\nOutput: {{output}}\nTask: {{prompt}}\n"
        'Respond with {"reason": "...", "pass": true, "score": 0.5}',
        {'{"reason": "ok", "pass": true, "score": 0.75}': 0.75},
    ),
    "an object without the word for it": Style(
        '{{question}}\n{{answer_a}}\n{{answer_b}}\nReply: {"winner": "A or B"}',
        {'{"winner": "B"}': B},
    ),
    "a score behind its name": Style(
        "Rate from 1 to 7.\nInput: {{item.input}}\nOutput: {{sample.output_text}}\n\nWrite your reasons, "
        "then:\nScore: <1-7>",
        {"It helps.\nScore: 6": 6.0},
        "text",
    ),
    "a score in tags": Style(
        "Rate from 0.0 to 1.0.\n{{ question }}\n{{ answer }}\n<reasoning>why</reasoning>\n<score>0.0 to "
        "1.0</score>",
        {"<reasoning>ok</reasoning>\n<score>0.75</score>": 0.75},
        "text",
    ),
    "a form that nobody knows": Style(
        "{{question}}\n1: {{answer_a}}\n2: {{answer_b}}\nRespond in this format:\nStrengths: ...\nWeaknesses: ...",
        {'{"choices": {"overall": "B"}}': B},
        "two_step",
        step=AttemptStep.SCORE,
    ),
    "Chinese names": Style(
        "问题：{{问题}}\n回答一：{{回答A}}\n回答二：{{回答B}}\n最后输出 [[A]]、[[B]] 或 [[C]]。",
        {"回答一更完整。\n\n[[A]]": A, "[[C]]": TIE},
        "text",
    ),
    "names of several words": Style(
        "{{user-question}}\n{{ answer a }}\n{{ answer b }}\nAnswer A or B only.",
        {"Because.\nB": B},
        "text",
    ),
    "Go, and names in camel case": Style(
        "{{ .userQuestion }}\n{{ .responseA }}\n{{ .responseB }}\nJust say A or B.",
        {"A": A},
        "text",
    ),
    "double square brackets": Style(
        "[[question]]\n[[answer_a]]\n[[answer_b]]\nEnd with [[A]] or [[B]].",
        {"Fine. [[B]]": B},
        "text",
    ),
    "Phoenix": Style(
        "[Question]: {attributes.input.value}\n[Answer]: {attributes.output.value}\nScore: <1-7>",
        {"It helps.\nScore: 6": 6.0},
        "text",
    ),
    "Opik": Style(
        'INPUT: {input}\nOUTPUT: {output}\nReturn JSON {{"score": <0.0 to 1.0>, "reason": "..."}}',
        {'{"score": 0.5, "reason": "x"}': 0.5},
    ),
    "a continuous scale": Style(
        "Rate on a continuous scale from 0 to 1.\nQuery: {{query}}\nGeneration: {{generation}}\nScore: <0-1>",
        {"Fine.\nScore: 0.7": 0.7},
        "text",
    ),
    "two objects that each show a label": Style(
        '{question}\n{answer_a}\n{answer_b}\nAnswer {"winner": "A"} or {"winner": "B"} or {"winner": "tie"}',
        {'{"winner": "B"}': B, '{"winner": "tie"}': TIE},
    ),
    "a form that is almost JSON": Style(
        '{question}\n{output_1}\n{output_2}\nAnswer {{"choice": "1" or "2"}}',
        {'{"choices": {"overall": "B"}}': B},
        "two_step",
        step=AttemptStep.SCORE,
    ),
    "labels of more than a letter": Style(
        "{question}\n{response_a}\n{response_b}\nRespond with \"Response 1\", \"Response 2\" or \"Tie\" and "
        "nothing else.",
        {"Response 2": B, "Tie": TIE},
        "text",
    ),
}  # fmt: skip


def only(prompt: str) -> RubricSpec:
    ((_, spec),) = guess_document_rubrics(prompt)
    return spec


@pytest.mark.parametrize("name", STYLES)
def test_a_prompt_is_filled_and_asks_in_its_own_form_alone(name: str) -> None:
    style = STYLES[name]
    spec = only(style.prompt)
    refuse_unusable_rubric(spec)
    refuse_slow_pattern(spec)
    assert spec.answer_format.partition(":")[0] == style.form
    is_single = spec.kind == RubricKind.POINTWISE
    texts = (
        make_response_texts("Light scatters.")
        if is_single
        else make_pair_texts(a="Light scatters.", b="{{input}} {question}")
    )
    (message,) = build_messages(spec, texts, ShownOrder.AS_STORED, FENCE_KEY)
    sent = message["content"]
    assert "Light scatters." in sent
    assert is_single or "{{input}} {question}" in sent  # what is filled in is not looked at again
    without_texts = sent.replace("{{input}} {question}", "")
    assert find_placeholders(without_texts) == []
    assert not any(mark in without_texts for mark in ("{{", "}}", "$", "<<", "%("))
    assert "Answer with one JSON object" not in sent
    assert "end with a line that holds" not in sent


@pytest.mark.parametrize("name", STYLES)
def test_a_reply_in_the_form_of_the_prompt_is_read(name: str) -> None:
    style = STYLES[name]
    spec = only(style.prompt)
    before = ["It is good."] if style.step == AttemptStep.SCORE else []
    for reply, meant in style.replies.items():
        read = parse_reply(spec, ShownOrder.AS_STORED, RawReply(reply), step=style.step, before=before)
        assert isinstance(read, ParsedReply), (reply, read, spec.answer_format)
        assert [*read.choices.values(), *read.scores.values()] == [meant], reply


def test_a_prompt_that_says_nothing_of_its_form_still_gets_ours() -> None:
    assert "Answer with one JSON object" in only("Which is better? {{answer_a}} or {{answer_b}}").instructions


# ---- what is not a placeholder -------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}}',
        "{ }",
        "{}",
        "{{}}",
        '{{"a": 1}}',
        "{1, 2} {{3}} x{2}",
        "function f() { return 1; }",
        "$5 and $x$ and \\$question and $$",
        "100% sure, 5%s",
        "<question>\n</question>",
        "[[A]] [[answer_a]]",
        "<<EOF >> log",
        "a << b >> c",
        "{ not a name }",
        "{several words in braces}",
        "It is 5% of 10%, __init__ and __main__",
        "[insert your verdict here]",
    ],
)
def test_other_braces_and_marks_are_text(text: str) -> None:
    assert find_placeholders(text) == []
    assert find_template_syntax(text, {}) == []


@pytest.mark.parametrize(
    "odd",
    [
        "{% if reference %}",
        "{%- for x in answers -%}",
        "{{#each answers}}",
        "{{#if reference}}",
        "{{/each}}",
        "{{^reference}}",
        "{{> partial}}",
        "{{! a comment }}",
        "{{ inputs['question'] }}",
        "{{ input | upper }}",
        "{{ input or 'none' }}",
        "{{ len(input) }}",
        "{{ input.strip() }}",
        "{input!r}",
        "{inputs[question]}",
        "Question: {0}",
        "Question: %s",
        "{question.strip()}",
        "${question.trim()}",
        "${question ?? ''}",
        "%(question)r",
        "%(count)d",
        "<%= question %>",
        "<% if reference %>",
        "{# a comment #}",
        "{{=<% %>=}}",
        "{{./input}}",
        "{{../input}}",
        "{{@index}}",
        "{{\n  question\n}}",
        "__QUESTION__",
        "%question%",
        "｛question｝",
        "[INSERT QUESTION HERE]",
    ],
)
def test_what_only_a_template_engine_can_fill_is_refused_by_name(odd: str) -> None:
    for prompt in (f"{odd} {{{{answer_a}}}} {{{{answer_b}}}} [[A]] [[B]]", f"{odd} Judge."):
        with pytest.raises(InputRefused, match="needs a template engine") as refused:
            refuse_unusable_rubric(only(prompt))
        assert odd.removeprefix("Question: ") in str(refused.value)
    refuse_unusable_rubric(
        make_pairwise_spec(instructions=odd, placeholders={odd.removeprefix("Question: "): "literal"})
    )


@pytest.mark.parametrize(
    "name",
    [
        *("{{colour}}", "{{ colour }}", "{{{colour}}}", "{{ colour | trim }}", "{colour}", "${colour}", "{x.colour}"),
        *("{{颜色}}", "{цвет}", "{{größe}}", "{{the-colour}}", "{{ the colour }}", "{{ .Colour }}"),
    ],
)
@pytest.mark.parametrize("rest", ["", " {{answer_a}} {{answer_b}}"])
def test_an_unresolved_placeholder_is_named_with_the_fields_that_are_known(name: str, rest: str) -> None:
    """In a rubric of plain instructions too, which a judge would be sent with its braces."""
    mapping = guess_fields(rest)
    spec = make_pairwise_spec(instructions=f"Judge by {name}.{rest}", placeholders=mapping)
    with pytest.raises(InputRefused) as refused:
        refuse_unusable_rubric(spec)
    assert str(refused.value) == (
        f"Unknown placeholders: {name}. Map each to one of query, context, reference, examples, verdict_key, "
        "rationale_key, literal, response_a, response_b, response; “literal” keeps the text unchanged."
    )
    refuse_unusable_rubric(
        make_pairwise_spec(instructions=spec.instructions, placeholders={**mapping, name: "literal"})
    )


def test_plain_instructions_with_a_literal_word_in_braces_keep_the_built_in_layout() -> None:
    spec = make_pairwise_spec(instructions="Never write {name}.", placeholders={"{name}": "literal"})
    first, second = build_messages(spec, make_pair_texts(), ShownOrder.AS_STORED, FENCE_KEY)
    assert first["content"] == build_system_text(spec, FENCE_KEY)
    assert "Never write {name}." in first["content"]
    assert "[[begin response A" in second["content"]


@pytest.mark.parametrize("style", ["$name", "%(name)s", "<<name>>"])
def test_an_unknown_name_in_the_style_of_known_ones_is_a_placeholder(style: str) -> None:
    names = [style.replace("name", name) for name in ("colour", "question", "answer_a", "answer_b")]
    assert find_placeholders(" ".join(names)) == names
    assert find_placeholders(names[0]) == []


# ---- one style a prompt --------------------------------------------------------------------


def test_doubled_braces_are_literal_where_single_ones_are_placeholders() -> None:
    assert decode_format_text('{question} {{"a": {{"b": 1}}}}') == '{question} {"a": {"b": 1}}'
    for text in (
        '{{question}} {"a": {"b": 1}}',  # mustache
        '{question} {"a": {"b": 1}}',  # nothing is doubled
        '{question} {{"a": 1}} {"b": 2}',  # no text of str.format
        "{question} {{name}} {{1}}",  # only its author knows
        "{{ }} without a placeholder",
    ):
        assert decode_format_text(text) == text


def test_a_prompt_that_mixes_both_styles_is_asked_about() -> None:
    spec = only("{question} {answer_a} {answer_b} {{reference}} [[A]] [[B]]")
    assert "{{reference}}" not in spec.placeholders
    with pytest.raises(InputRefused, match=r"Unknown placeholders: \{\{reference\}\}\."):
        refuse_unusable_rubric(spec)


def test_both_spellings_of_one_name_are_filled() -> None:
    spec = only("{{ question }} {{question}} {{{answer_a}}} {{answer_b}} [[A]] [[B]]")
    (message,) = build_messages(spec, make_pair_texts(query="Q", a="1", b="2"), ShownOrder.AS_STORED, FENCE_KEY)
    assert message["content"] == "Q Q 1 2 [[A]] [[B]]"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("{{inputs.question}}", "query"),
        ("{{inputs.context}}", "context"),
        ("{{ outputs.body }}", "response"),
        ("{{reference_outputs.answer}}", "reference"),
        ("{{sample.output_text}}", "response"),
        ("{{ model_output }}", "response"),
        ("{expected}", "reference"),
        ("${user_query}", "query"),
        ("{{ generation }}", "response"),
        ("{{userQuestion}}", "query"),
        ("{attributes.output.value}", "response"),
        ("{{参考答案}}", "reference"),
        ("{вопрос}", "query"),
    ],
)
def test_a_name_says_what_it_means(name: str, field: str) -> None:
    assert guess_fields(name) == {name: field}


LONG_PIECES = [
    *("{", "{{", "{{a", "{{ ", "{% ", "{a.", "$", "<<", "{{a|", "%("),
    *("<a>", "[[A", "Verdict: ", '"A ', "{a:", "A or "),
]


@pytest.mark.parametrize("piece", LONG_PIECES)
def test_a_prompt_that_is_made_to_take_long_does_not(piece: str) -> None:
    guess_document_rubrics(f"{piece * (100_000 // len(piece))} {{response}}")
