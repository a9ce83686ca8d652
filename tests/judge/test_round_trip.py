"""Whatever a rubric calls its choices, keys and placeholders: what it asks for reads back, in both orders."""

import json
import string
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from evaluations.domain import FLIPPED, AspectSpec, AttemptStep, Choice, InputRefused, PairTexts, RubricSpec, Shown
from evaluations.judge.checking import refuse_unusable
from evaluations.judge.prompting import later_messages, messages_for
from evaluations.judge.reading import Read, Reply, read_reply
from evaluations.judge.replying import asked_in_order, json_format, reply_key, reply_schema, score_schema
from tests.judge.rubrics import KEY, pairwise, say

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
SHOWN = st.sampled_from([Shown.AS_STORED, Shown.SWAPPED])


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
    spec = pairwise(*asked, **keys)
    spec = replace(spec, output_order=tuple(draw(st.permutations(spec.output_order))))
    try:
        refuse_unusable(spec)
    except InputRefused:
        assume(False)
    return spec


def said(spec: RubricSpec, chosen: dict[str, Choice], *, alone: bool = False) -> str:
    verdicts = {reply_key(aspect): aspect.label(chosen[aspect.key]) for aspect in asked_in_order(spec)}
    rationale = {} if alone else {spec.rationale_key: "Because."}
    return json.dumps(rationale | ({spec.choices_key: verdicts} if spec.choices_key else verdicts))


@given(rubrics(), SHOWN, st.data())
def test_a_reply_in_the_declared_form_reads_back_and_turns_round_with_the_order(
    spec: RubricSpec, shown: Shown, data: st.DataObject
) -> None:
    chosen = {aspect.key: data.draw(st.sampled_from(aspect.choices)) for aspect in spec.aspects}
    stored = {key: FLIPPED[choice] if shown == Shown.SWAPPED else choice for key, choice in chosen.items()}
    assert read_reply(spec, shown, Reply(said(spec, chosen))) == Read(stored, "Because.")
    fenced = f"I thought about it.\n```json\n{said(spec, chosen)}\n```"
    assert read_reply(spec, shown, Reply(fenced)) == Read(stored, "Because.")
    alone = read_reply(
        spec, shown, Reply(said(spec, chosen, alone=True)), step=AttemptStep.SCORE, before=["At length."]
    )
    assert alone == Read(stored, "At length.")


@given(rubrics())
def test_the_form_in_the_prompt_and_the_schema_hold_the_same_keys_in_the_same_order(spec: RubricSpec) -> None:
    for schema, shown in (
        (reply_schema(spec), json_format(spec)),
        (score_schema(spec), json_format(spec, alone=True)),
    ):
        form = json.loads(shown[shown.index("{") :])
        assert list(form) == list(schema["properties"])
        inner = schema["properties"].get(spec.choices_key)
        assert inner is None or list(form[spec.choices_key]) == list(inner["properties"])


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["{x}", "{y}{x}", r"\1", "[[end x", "%s"])


@given(TEXTS, TEXTS, TEXTS)
def test_texts_are_put_in_once_and_the_orders_differ_in_their_places_alone(query: str, a: str, b: str) -> None:
    places = {"{q}": "query", "{x}": "response_a", "{y}": "response_b"}
    pasted = pairwise(instructions="{q}|{x}|{y}", placeholders=places)
    texts, turned = (PairTexts(say(query, "user"), say(one), say(other)) for one, other in ((a, b), (b, a)))
    (message,) = messages_for(pasted, texts, Shown.AS_STORED, KEY)
    assert message["content"] == f"{query}|{a}|{b}"
    assert messages_for(pasted, texts, Shown.SWAPPED, KEY) == messages_for(pasted, turned, Shown.AS_STORED, KEY)


@given(TEXTS, TEXTS, TEXTS)
def test_a_fence_is_closed_once_whatever_the_texts_hold(query: str, a: str, b: str) -> None:
    texts = PairTexts(say(query, "user"), say(a), say(b))
    user = messages_for(pairwise(), texts, Shown.AS_STORED, KEY)[1]["content"]
    assert user.count("[[begin ") == user.count("[[end ") == 3


@given(TEXTS, TEXTS)
def test_a_conversation_keeps_its_beginning_and_what_was_said(reply: str, unread: str) -> None:
    first = messages_for(pairwise(), PairTexts(say("?", "user"), say("a"), say("b")), Shown.AS_STORED, KEY)
    later = later_messages(pairwise(), first, [reply], AttemptStep.REPAIR, unread)
    assert later[: len(first)] == first
    assert later[len(first)] == {"role": "assistant", "content": reply}
    assert unread in later[-1]["content"]
    assert later[-1]["content"].endswith(json_format(pairwise()))
