"""Whatever a rubric calls its choices, keys and placeholders: what it asks for reads back, in both orders."""

import json
import string
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptStep
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.domain.texts import PairTexts
from evaluations.judge_prompts.prompt_builder import build_later_messages, build_messages
from evaluations.judge_prompts.rubric_checks import refuse_unusable_rubric
from evaluations.replies.reply_format import (
    aspects_in_reply_order,
    build_reply_schema,
    build_score_schema,
    json_format_text,
    reply_key,
)
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply
from tests.helpers.rubric_specs import FENCE_KEY, make_pairwise_spec, make_turn

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
SHOWN = st.sampled_from([ShownOrder.AS_STORED, ShownOrder.SWAPPED])


@st.composite
def aspects(draw: st.DrawFn) -> AspectSpec:
    labels = draw(st.dictionaries(st.sampled_from([str(choice) for choice in Choice]), WORDS, max_size=4))
    key, other = draw(NAMES), draw(st.just("") | WORDS)
    tie, bad = draw(st.booleans()), draw(st.booleans())
    return AspectSpec(key, key, "", offers_tie=tie, offers_both_bad=bad, labels=labels, reply_key=other)


@st.composite
def rubrics(draw: st.DrawFn) -> RubricSpec:
    asked = draw(st.lists(aspects(), min_size=1, max_size=4, unique_by=lambda aspect: aspect.key))
    keys = {"rationale_key": draw(WORDS), "choices_key": draw(st.just("") | WORDS)}
    spec = make_pairwise_spec(*asked, **keys)
    spec = replace(spec, output_order=tuple(draw(st.permutations(spec.output_order))))
    try:
        refuse_unusable_rubric(spec)
    except InputRefused:
        assume(False)
    return spec


def said(spec: RubricSpec, chosen: dict[str, Choice], *, alone: bool = False) -> str:
    verdicts = {reply_key(aspect): aspect.label(chosen[aspect.key]) for aspect in aspects_in_reply_order(spec)}
    rationale = {} if alone else {spec.rationale_key: "Because."}
    return json.dumps(rationale | ({spec.choices_key: verdicts} if spec.choices_key else verdicts))


@given(rubrics(), SHOWN, st.data())
def test_a_reply_in_the_declared_form_reads_back_and_turns_round_with_the_order(
    spec: RubricSpec, shown: ShownOrder, data: st.DataObject
) -> None:
    chosen = {aspect.key: data.draw(st.sampled_from(aspect.choices)) for aspect in spec.aspects}
    stored = {key: FLIPPED_CHOICES[choice] if shown == ShownOrder.SWAPPED else choice for key, choice in chosen.items()}
    assert parse_reply(spec, shown, RawReply(said(spec, chosen))) == ParsedReply(stored, "Because.")
    fenced = f"I thought about it.\n```json\n{said(spec, chosen)}\n```"
    assert parse_reply(spec, shown, RawReply(fenced)) == ParsedReply(stored, "Because.")
    alone = parse_reply(
        spec, shown, RawReply(said(spec, chosen, alone=True)), step=AttemptStep.SCORE, before=["At length."]
    )
    assert alone == ParsedReply(stored, "At length.")


@given(rubrics())
def test_the_form_in_the_prompt_and_the_schema_hold_the_same_keys_in_the_same_order(spec: RubricSpec) -> None:
    for schema, shown in (
        (build_reply_schema(spec), json_format_text(spec)),
        (build_score_schema(spec), json_format_text(spec, alone=True)),
    ):
        form = json.loads(shown[shown.index("{") :])
        assert list(form) == list(schema["properties"])
        inner = schema["properties"].get(spec.choices_key)
        assert inner is None or list(form[spec.choices_key]) == list(inner["properties"])


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["{x}", "{y}{x}", r"\1", "[[end x", "%s"])


@given(TEXTS, TEXTS, TEXTS)
def test_texts_are_put_in_once_and_the_orders_differ_in_their_places_alone(query: str, a: str, b: str) -> None:
    places = {"{q}": "query", "{x}": "response_a", "{y}": "response_b"}
    pasted = make_pairwise_spec(instructions="{q}|{x}|{y}", placeholders=places)
    texts, turned = (
        PairTexts(make_turn(query, "user"), make_turn(one), make_turn(other)) for one, other in ((a, b), (b, a))
    )
    (message,) = build_messages(pasted, texts, ShownOrder.AS_STORED, FENCE_KEY)
    assert message["content"] == f"{query}|{a}|{b}"
    assert build_messages(pasted, texts, ShownOrder.SWAPPED, FENCE_KEY) == build_messages(
        pasted, turned, ShownOrder.AS_STORED, FENCE_KEY
    )


@given(TEXTS, TEXTS, TEXTS)
def test_a_fence_is_closed_once_whatever_the_texts_hold(query: str, a: str, b: str) -> None:
    texts = PairTexts(make_turn(query, "user"), make_turn(a), make_turn(b))
    user = build_messages(make_pairwise_spec(), texts, ShownOrder.AS_STORED, FENCE_KEY)[1]["content"]
    assert user.count("[[begin ") == user.count("[[end ") == 3


@given(TEXTS, TEXTS)
def test_a_conversation_keeps_its_beginning_and_what_was_said(reply: str, unread: str) -> None:
    first = build_messages(
        make_pairwise_spec(),
        PairTexts(make_turn("?", "user"), make_turn("a"), make_turn("b")),
        ShownOrder.AS_STORED,
        FENCE_KEY,
    )
    later = build_later_messages(make_pairwise_spec(), first, [reply], AttemptStep.REPAIR, unread)
    assert later[: len(first)] == first
    assert later[len(first)] == {"role": "assistant", "content": reply}
    assert unread in later[-1]["content"]
    assert later[-1]["content"].endswith(json_format_text(make_pairwise_spec()))
