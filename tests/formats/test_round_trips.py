"""What is written is read as what it was: our own files, and those in the formats of others by their readers."""

import io
import string
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.files import ComparisonRow, FileEntry, ReadOptions, VerdictRow
from evaluations.domain.preferences import parse_preference_rule
from evaluations.formats.alpaca_eval_export import alpaca_eval_lines
from evaluations.formats.csv_export import csv_export_lines
from evaluations.formats.dataset_card import CardFacts
from evaluations.formats.export_format import ExportOptions, ExportTally
from evaluations.formats.exported_rows import ExportedRow, prompt_messages, response_messages
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.hugging_face_export import dataset_folder_zip
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.llm_comparator_export import llm_comparator_lines
from evaluations.formats.mt_bench_export import mt_bench_judgment_lines, mt_bench_vote_lines
from evaluations.formats.parquet_export import parquet_bytes
from evaluations.formats.preferences import ExportCounts
from evaluations.formats.seen_index import SeenIndex
from evaluations.formats.trainer_exports import Layout, dpo_lines
from tests.formats.exported_rows import (
    CHOICES,
    RATERS,
    SPOKEN,
    WORDS,
    any_exported_row,
    exported_judge,
    exported_label,
    exported_person,
    exported_row,
)

ASPECTS = ("safety", "clarity")
SAFETY = parse_preference_rule(aspect="safety", aspects=ASPECTS)
KEYS = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=8).filter(lambda key: key.strip("-"))


@st.composite
def rows(draw: Any, choices: st.SearchStrategy[str] = CHOICES) -> ExportedRow:
    """A comparison of two texts, with a label, a judge that was asked in both orders and a person."""
    query: dict[str, Any] = {"query": draw(SPOKEN), "messages": None}
    if draw(st.booleans()):
        before = [("user", "Hello"), ("assistant", "Hi.")] if draw(st.booleans()) else []
        turns = [("system", "Be brief."), *before, ("user", draw(SPOKEN))]
        query = {"query": None, "messages": [{"role": role, "content": text} for role, text in turns]}
    choice = draw(choices)
    orders = {"as_stored": [draw(choices)], "swapped": [draw(choices)]}
    said = {"safety": {"choice": choice, "inconsistent": False, "orders": orders}}
    wrote = {order: [draw(WORDS)] for order in orders}
    return exported_row(
        query_id=draw(KEYS),
        **query,
        response_a=draw(WORDS),
        response_b=draw(WORDS),
        labels={"safety": exported_label(choice)},
        judges=[exported_judge(None, choices=said, rationales=wrote)],
        people=[exported_person(draw(choices), shown=draw(st.sampled_from(["as_stored", "swapped", "unknown"])))],
    )


def read(lines: Iterator[bytes], name: str) -> list[Any]:
    with SeenIndex() as seen:
        entries = list(read_file_rows(io.BytesIO(b"".join(lines)), name, ReadOptions(), seen).entries)
    assert all(isinstance(entry, FileEntry) for entry in entries), entries
    return [row for entry in entries if isinstance(entry, FileEntry) for row in entry.rows]


def is_comparison(found: ComparisonRow, one: ExportedRow, *, as_text: bool = False) -> None:
    """Whichever side each candidate stands on."""
    query = prompt_messages(one)
    assert as_text or found.query.messages == query
    responses = {
        one["candidate_a"]: response_messages(one["response_a"]),
        one["candidate_b"]: response_messages(one["response_b"]),
    }
    assert {found.candidate_a: found.response_a, found.candidate_b: found.response_b} == responses


def is_material(found: ComparisonRow, one: ExportedRow) -> None:
    """The same in everything, side by side."""
    query = found.query
    assert (query.key, query.cluster, query.category) == (one["query_id"], one["cluster"], one["category"])
    assert (query.messages, query.context, query.reference) == (prompt_messages(one), one["context"], one["reference"])
    assert (found.candidate_a, found.candidate_b) == (one["candidate_a"], one["candidate_b"])
    assert (found.response_a, found.response_b) == (
        response_messages(one["response_a"]),
        response_messages(one["response_b"]),
    )
    assert found.metadata == one["metadata"]


def choice_of(found: VerdictRow) -> str:
    """In terms of alpha, which is A everywhere here, and the other one."""
    turned = {"A": "B", "B": "A"}
    return turned.get(found.choice, found.choice) if found.candidate_a != "alpha" else found.choice


def as_parquet(rows: list[ExportedRow]) -> Iterator[bytes]:
    return parquet_bytes(rows, ExportTally())


def as_csv(rows: list[ExportedRow]) -> Iterator[bytes]:
    return csv_export_lines(rows, RATERS)


def as_jsonl(rows: list[ExportedRow]) -> Iterator[bytes]:
    return map(encode_line, rows)


@pytest.mark.parametrize("written", [as_jsonl, as_csv, as_parquet])
def test_whole_comparisons(written: Callable[[list[ExportedRow]], Iterator[bytes]]) -> None:
    @settings(max_examples=30)
    @given(given_rows=st.lists(any_exported_row(), min_size=1, max_size=3))
    def check(given_rows: list[ExportedRow]) -> None:
        found = read(written(given_rows), "export")
        assert len(found) == len(given_rows)
        for compared, one in zip(found, given_rows, strict=True):
            is_material(compared, one)

    check()


@settings(max_examples=30)
@given(given_rows=st.lists(any_exported_row(), min_size=1, max_size=3))
def test_both_tables_of_a_data_set_for_the_hub(given_rows: list[ExportedRow]) -> None:
    options = ExportOptions(facts=lambda: CardFacts("study"))
    folder = b"".join(dataset_folder_zip(given_rows, ASPECTS, SAFETY, ExportCounts(), options))
    with zipfile.ZipFile(io.BytesIO(folder)) as archive:
        tables = {name: archive.read(name) for name in archive.namelist() if name.endswith(".parquet")}
    all_read = read(iter([tables["comparisons/train.parquet"]]), "train.parquet")
    for compared, one in zip(all_read, given_rows, strict=True):
        is_material(compared, one)
    preferred = [
        one
        for one in given_rows
        if one["labels"]["safety"]["choice"] != "tie" and one["response_a"] != one["response_b"]
    ]
    found = read(iter([tables["preferences/train.parquet"]]), "train.parquet") if preferred else []
    for one, compared, verdict in zip(preferred, found[::2], found[1::2], strict=True):
        is_comparison(compared, one)
        assert choice_of(verdict) == one["labels"]["safety"]["choice"]


@settings(max_examples=60)
@given(one=rows())
def test_preferences_as_plain_texts(one: ExportedRow) -> None:
    asked = one["query"]
    lines = list(dpo_lines([one], ASPECTS, SAFETY, ExportCounts(), Layout.PLAIN))
    if asked is None or not lines:
        return
    compared, verdict = read(iter(lines), "dpo.jsonl")
    is_comparison(compared, one)
    assert choice_of(verdict) == one["labels"]["safety"]["choice"]


@settings(max_examples=60)
@given(one=rows(), layout=st.sampled_from([Layout.CHAT, Layout.IMPLICIT]))
def test_preferences(one: ExportedRow, layout: Layout) -> None:
    account = ExportCounts()
    lines = list(dpo_lines([one], ASPECTS, SAFETY, account, layout))
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
    found = read(alpaca_eval_lines([one], "safety", "", ExportCounts()), "annotations.json")
    said = [one["judges"][0]["choices"]["safety"]["choice"], one["people"][0]["choices"]["safety"]["final"]]
    assert [choice_of(verdict) for verdict in found[1::2]] == said
    assert [verdict.rater for verdict in found[1::2]] == ["gpt", "ann"]
    for compared in found[::2]:
        is_comparison(compared, one, as_text=one["query"] is None)
        assert compared.query.key == one["query_id"]


@settings(max_examples=60)
@given(one=rows())
def test_judgments_of_mt_bench(one: ExportedRow) -> None:
    found = read(mt_bench_judgment_lines([one], "safety", ExportCounts()), "gpt-4_pair.jsonl")
    said = one["judges"][0]["choices"]["safety"]["orders"]
    assert [(verdict.shown, verdict.choice) for verdict in found] == [
        (ShownOrder.AS_STORED, said["as_stored"][0]),
        (ShownOrder.SWAPPED, said["swapped"][0]),
    ]
    assert {verdict.query_key for verdict in found} == {one["query_id"]}
    assert [verdict.rationale for verdict in found] == [text for (text,) in one["judges"][0]["rationales"].values()]


@settings(max_examples=60)
@given(one=rows(), both_bad=st.booleans())
def test_votes_of_people_on_mt_bench(one: ExportedRow, both_bad: bool) -> None:
    if both_bad:
        one["people"][0]["choices"]["safety"]["final"] = str(Choice.BOTH_BAD)
    compared, verdict = read(mt_bench_vote_lines([one], "safety", ExportCounts()), "human.jsonl")
    # There the query is what the user said first; the conversations are the same.
    for candidate, found in ((compared.candidate_a, compared.response_a), (compared.candidate_b, compared.response_b)):
        response = one["response_a"] if candidate == one["candidate_a"] else one["response_b"]
        assert [*compared.query.messages, *found] == [*prompt_messages(one), *response_messages(response)]
    assert compared.query.key == one["query_id"]
    assert choice_of(verdict) == one["people"][0]["choices"]["safety"]["final"]
    assert verdict.shown == (ShownOrder.UNKNOWN if one["people"][0]["shown"] == "unknown" else ShownOrder.AS_STORED)
    swapped = compared.candidate_a != one["candidate_a"]
    assert swapped == (one["people"][0]["shown"] == "swapped")


@settings(max_examples=60)
@given(one=rows(st.sampled_from(["A", "B", "tie", "both_bad"])))
def test_examples_of_llm_comparator(one: ExportedRow) -> None:
    document = llm_comparator_lines([one], ASPECTS, SAFETY, ExportCounts())
    compared, *found = read(document, "comparator.json")
    is_comparison(compared, one, as_text=one["query"] is None)
    assert compared.query.key == one["query_id"]
    orders = one["judges"][0]["choices"]["safety"]["orders"]
    person_said = one["people"][0]
    assert not any(verdict.note for verdict in found)
    assert [(verdict.rater, verdict.shown, verdict.choice) for verdict in found] == [
        ("gpt", ShownOrder.AS_STORED, orders["as_stored"][0]),
        ("gpt", ShownOrder.SWAPPED, orders["swapped"][0]),
        ("ann", person_said["shown"], person_said["choices"]["safety"]["final"]),
    ]
