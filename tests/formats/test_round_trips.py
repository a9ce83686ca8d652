"""What is written in the formats of others is read by their readers as what it was."""

import io
import string
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.domain import Choice, ComparisonRow, Reading, Shown, VerdictRow, deciding
from evaluations.formats import alpaca_eval_out, dpo_out, llm_comparator_out, mt_bench_out
from evaluations.formats.exported import ExportedRow
from evaluations.formats.layouts import Layout, prompt_of, turns_of
from evaluations.formats.preferred import Account
from evaluations.formats.reading import Entry, read_rows
from evaluations.formats.seen import Seen
from tests.exported_rows import judge, label, person, row

ASPECTS = ("safety", "clarity")
SAFETY = deciding(aspect="safety", aspects=ASPECTS)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
SPOKEN = WORDS.filter(str.strip)
KEYS = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=8).filter(lambda key: key.strip("-"))
CHOICES = st.sampled_from(["A", "B", "tie"])


@st.composite
def rows(draw: Any) -> ExportedRow:
    """A comparison of two texts, with a label, a judge that was asked in both orders and a person."""
    query: dict[str, Any] = {"query": draw(SPOKEN), "messages": None}
    if draw(st.booleans()):
        turns = [("system", "Be brief."), ("user", draw(SPOKEN))]
        query = {"query": None, "messages": [{"role": role, "content": text} for role, text in turns]}
    choice = draw(CHOICES)
    orders = {"as_stored": [draw(CHOICES)], "swapped": [draw(CHOICES)]}
    said = {"safety": {"choice": choice, "inconsistent": False, "orders": orders}}
    wrote = {order: [draw(WORDS)] for order in orders}
    return row(
        query_id=draw(KEYS),
        **query,
        response_a=draw(WORDS),
        response_b=draw(WORDS),
        labels={"safety": label(choice)},
        judges=[judge(None, choices=said, rationales=wrote)],
        people=[person(draw(CHOICES), shown=draw(st.sampled_from(["as_stored", "swapped"])))],
    )


def read(lines: Iterator[bytes], name: str) -> list[Any]:
    with Seen() as seen:
        entries = list(read_rows(io.BytesIO(b"".join(lines)), name, Reading(), seen).entries)
    assert all(isinstance(entry, Entry) for entry in entries), entries
    return [row for entry in entries if isinstance(entry, Entry) for row in entry.rows]


def is_comparison(found: ComparisonRow, one: ExportedRow, *, as_text: bool = False) -> None:
    """Whichever side each candidate stands on."""
    query = prompt_of(one)
    assert as_text or found.query.messages == query
    responses = {one["candidate_a"]: turns_of(one["response_a"]), one["candidate_b"]: turns_of(one["response_b"])}
    assert {found.candidate_a: found.response_a, found.candidate_b: found.response_b} == responses


def choice_of(found: VerdictRow) -> str:
    """In terms of alpha and beta."""
    turned = {"A": "B", "B": "A"}
    return turned.get(found.choice, found.choice) if found.candidate_a == "beta" else found.choice


@settings(max_examples=60)
@given(one=rows(), layout=st.sampled_from([Layout.CHAT, Layout.IMPLICIT]))
def test_preferences(one: ExportedRow, layout: Layout) -> None:
    account = Account()
    lines = list(dpo_out.lines([one], ASPECTS, SAFETY, account, layout))
    if not lines:
        assert sum(account.excluded.values()) == 1
        return
    compared, verdict = read(iter(lines), "dpo.jsonl")
    is_comparison(compared, one)
    assert compared.query.key == one["query_id"]
    assert choice_of(verdict) == one["labels"]["safety"]["choice"]


@settings(max_examples=60)
@given(one=rows())
def test_annotations_of_alpaca_eval(one: ExportedRow) -> None:
    found = read(alpaca_eval_out.lines([one], "safety", Account()), "annotations.json")
    said = [one["judges"][0]["choices"]["safety"]["choice"], one["people"][0]["choices"]["safety"]["final"]]
    assert [choice_of(verdict) for verdict in found[1::2]] == said
    assert [verdict.rater for verdict in found[1::2]] == ["gpt", "ann"]
    for compared in found[::2]:
        is_comparison(compared, one, as_text=one["query"] is None)
        assert compared.query.key == one["query_id"]


@settings(max_examples=60)
@given(one=rows())
def test_judgments_of_mt_bench(one: ExportedRow) -> None:
    found = read(mt_bench_out.judges_lines([one], "safety", Account()), "gpt-4_pair.jsonl")
    said = one["judges"][0]["choices"]["safety"]["orders"]
    assert [(verdict.shown, verdict.choice) for verdict in found] == [
        (Shown.AS_STORED, said["as_stored"][0]),
        (Shown.SWAPPED, said["swapped"][0]),
    ]
    assert {verdict.query_key for verdict in found} == {one["query_id"]}
    assert [verdict.rationale for verdict in found] == [text for (text,) in one["judges"][0]["rationales"].values()]


@settings(max_examples=60)
@given(one=rows(), both_bad=st.booleans())
def test_votes_of_people_on_mt_bench(one: ExportedRow, both_bad: bool) -> None:
    if both_bad:
        one["people"][0]["choices"]["safety"]["final"] = str(Choice.BOTH_BAD)
    compared, verdict = read(mt_bench_out.people_lines([one], "safety", Account()), "human.jsonl")
    is_comparison(compared, one)
    assert compared.query.key == one["query_id"]
    assert choice_of(verdict) == one["people"][0]["choices"]["safety"]["final"]


@settings(max_examples=60)
@given(one=rows())
def test_examples_of_llm_comparator(one: ExportedRow) -> None:
    document = llm_comparator_out.lines([one], ASPECTS, SAFETY, Account(), "judgeweb")
    compared, *found = read(document, "comparator.json")
    is_comparison(compared, one, as_text=one["query"] is None)
    assert compared.query.key == one["query_id"]
    orders = one["judges"][0]["choices"]["safety"]["orders"]
    person_said = one["people"][0]
    assert [(verdict.rater, verdict.shown, verdict.choice) for verdict in found] == [
        ("gpt", Shown.AS_STORED, orders["as_stored"][0]),
        ("gpt", Shown.SWAPPED, orders["swapped"][0]),
        ("ann", person_said["shown"], person_said["choices"]["safety"]["final"]),
    ]
