"""Preferences as trainers read them: DPO in three layouts, KTO, and conversations to imitate."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Value, load_dataset

from evaluations.domain.preferences import parse_preference_rule
from evaluations.formats.exported_rows import ExportedRow
from evaluations.formats.preferences import ExportCounts
from evaluations.formats.trainer_exports import Layout, conversation_lines, dpo_lines, kto_lines
from tests.formats.exported_rows import SEVERAL, TURNS, exported_label, exported_row, labelled_row

ASPECTS = ("safety", "clarity")
SAFETY = parse_preference_rule(aspect="safety", aspects=ASPECTS)
USER = [{"role": "user", "content": "Why?"}]
# Columns that TRL takes an example's kind from: one too many, and it is of no kind.
TRL = {"prompt", "chosen", "rejected", "completion", "messages", "label"}


def said(content: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": content}]


def dpo(rows: Iterable[ExportedRow], layout: Layout = Layout.CHAT) -> tuple[list[dict[str, Any]], ExportCounts]:
    account = ExportCounts()
    return [json.loads(line) for line in dpo_lines(rows, ASPECTS, SAFETY, account, layout)], account


def kto(rows: Iterable[ExportedRow], **how: Any) -> tuple[list[dict[str, Any]], ExportCounts]:
    account = ExportCounts()
    return [json.loads(line) for line in kto_lines(rows, ASPECTS, SAFETY, account, **how)], account


def test_a_preference_has_prompt_chosen_and_rejected_and_says_where_it_comes_from() -> None:
    """Of three votes two are for B: its response is chosen, with an agreement of two thirds."""
    one = exported_row(labels={"safety": exported_label("B", A=1, B=2)}, context="An atlas.", reference="Paris")
    (record,), account = dpo([one])
    assert record == {
        "prompt": USER,
        "chosen": said("No idea."),
        "rejected": said("Because."),
        "chosen_model": "beta",
        "rejected_model": "alpha",
        "query_id": "q1",
        "cluster": "q1",
        "category": "talk",
        "context": "An atlas.",
        "reference": "Paris",
        "label_by": "safety",
        "label_source": "majority",
        "votes": 3,
        "agreement": 0.666667,
        "split": None,
    }
    assert (account.rows, dict(account.excluded)) == (1, {})


def test_what_prefers_nothing_is_left_out_and_counted_by_reason() -> None:
    rows = [
        labelled_row("A"),
        labelled_row("tie"),
        labelled_row("tie"),
        labelled_row("both_bad"),
        labelled_row(None),
        exported_row(),
        labelled_row("A", response_b="Because."),
        labelled_row("tie", response_b="Because."),
    ]
    records, account = dpo(rows)
    assert len(records) == account.rows == 1
    assert account.excluded == {"tie": 3, "both_bad": 1, "split": 1, "no_label": 1, "equal_responses": 1}


def test_several_turns_stay_turns_in_the_chat_layouts() -> None:
    several = labelled_row("A", query=None, messages=TURNS, response_a=SEVERAL)
    (explicit,), account = dpo([several])
    assert (explicit["prompt"], explicit["chosen"], explicit["rejected"]) == (TURNS, SEVERAL, said("No idea."))
    (implicit,), _ = dpo([several], Layout.IMPLICIT)
    assert (implicit["chosen"], implicit["rejected"]) == (TURNS + SEVERAL, TURNS + said("No idea."))
    assert "prompt" not in implicit
    assert account.noted == {"response_of_several_turns": 1}


def test_a_text_stays_as_it_is_in_the_plain_layout() -> None:
    (record,), _ = dpo([labelled_row("A", query=" Why?\n", response_a="\tBecause. ")], Layout.PLAIN)
    assert (record["prompt"], record["chosen"], record["rejected"]) == (" Why?\n", "\tBecause. ", "No idea.")


def test_several_turns_become_a_transcript_in_the_plain_layout() -> None:
    """Prompt and answer put together are what was said, turn by turn."""
    (record,), _ = dpo([labelled_row("A", query=None, messages=TURNS, response_a=SEVERAL)], Layout.PLAIN)
    assert record["prompt"] == "System: Be brief.\n\nHuman: Hello\n\nAssistant: Hi.\n\nHuman: And now?\n\nAssistant: "
    assert record["chosen"] == "First.\n\nHuman: Go on.\n\nAssistant: Second."
    assert record["rejected"] == "No idea."


def test_empty_responses_stand_there_and_are_counted() -> None:
    records, account = dpo([labelled_row("A", response_a=""), labelled_row("A", response_b=" \n")])
    assert records[0]["chosen"] == said("")
    assert account.noted == {"chosen_is_empty": 1, "rejected_is_empty": 1}


def test_where_labels_of_several_kinds_make_a_preference_all_are_named() -> None:
    """Two of three people for A on one aspect, a judge for A on the other: 3 of 4 votes."""
    labels = {"safety": exported_label("A", A=2, B=1), "clarity": exported_label("A", "judge", A=1)}
    how = parse_preference_rule(combine="unanimous", aspects=ASPECTS)
    (line,) = dpo_lines([exported_row(labels=labels)], ASPECTS, how, ExportCounts())
    record = json.loads(line)
    assert (record["label_by"], record["label_source"]) == ("derived:unanimous", "judge+majority")
    assert (record["votes"], record["agreement"]) == (4, 0.75)


def test_an_adjudication_against_all_votes_has_no_agreement_and_one_without_votes_has_none_at_all() -> None:
    settled = exported_label("A", "adjudicated", B=2)
    alone: Any = {**settled, "n": 0, "votes": {}}
    (against, without), _ = dpo([exported_row(labels={"safety": settled}), exported_row(labels={"safety": alone})])
    assert (against["agreement"], without["agreement"]) == (0.0, None)


def test_kto_says_of_the_chosen_good_and_of_the_rejected_bad() -> None:
    records, account = kto([labelled_row("B")])
    assert [(one["completion"], one["label"], one["model"]) for one in records] == [
        (said("Because."), False, "alpha"),
        (said("No idea."), True, "beta"),
    ]
    assert {one["choice"] for one in records} == {"preference"}
    assert account.noted == {"good": 1, "bad": 1}


def test_kto_says_of_two_bad_responses_that_both_are_bad_and_leaves_ties_out_unless_asked() -> None:
    rows = [labelled_row("both_bad"), labelled_row("tie")]
    records, account = kto(rows)
    assert [one["label"] for one in records] == [False, False]
    assert account.excluded == {"tie": 1}
    records, account = kto(rows, ties=True)
    assert [(one["label"], one["choice"]) for one in records[2:]] == [(True, "tie"), (True, "tie")]


def test_kto_never_calls_the_same_text_good_and_bad() -> None:
    records, account = kto([labelled_row("A", response_b="Because."), labelled_row("both_bad", response_b="Because.")])
    assert [one["label"] for one in records] == [False, False]
    assert account.excluded == {"equal_responses": 1}


def test_messages_hold_the_preferred_conversation_and_no_silence() -> None:
    account = ExportCounts()
    rows = [
        labelled_row("A", query=None, messages=TURNS, response_a=SEVERAL),
        labelled_row("A", response_a=""),
        exported_row(),
    ]
    (line,) = conversation_lines(rows, ASPECTS, SAFETY, account)
    record = json.loads(line)
    assert record["messages"] == TURNS + SEVERAL
    assert record["model"] == "alpha"
    assert (account.rows, dict(account.excluded)) == (1, {"empty_response": 1, "no_label": 1})


TURN = {"role": Value("string"), "content": Value("string")}
TEXT, CHAT = Value("string"), [TURN]


@pytest.mark.parametrize(
    ("write", "types"),
    [
        (dpo_lines, {"prompt": CHAT, "chosen": CHAT, "rejected": CHAT}),
        (partial(dpo_lines, layout=Layout.PLAIN), {"prompt": TEXT, "chosen": TEXT, "rejected": TEXT}),
        (partial(dpo_lines, layout=Layout.IMPLICIT), {"chosen": CHAT, "rejected": CHAT}),
        (kto_lines, {"prompt": CHAT, "completion": CHAT, "label": Value("bool")}),
        (partial(kto_lines, layout=Layout.PLAIN), {"prompt": TEXT, "completion": TEXT, "label": Value("bool")}),
    ],
    ids=["dpo", "dpo plain", "dpo implicit", "kto", "kto plain"],
)
def test_load_dataset_finds_the_types_that_trl_expects(write: Any, types: dict[str, Any], tmp_path: Path) -> None:
    """TRL takes a list of turns for a conversation, and text for text: one type for all rows, whatever they hold."""
    rows = [
        labelled_row("A"),
        labelled_row("B", query=None, messages=TURNS, response_a=SEVERAL),
        labelled_row("A", response_b=""),
    ]
    path = tmp_path / "written.jsonl"
    path.write_bytes(b"".join(write(rows, ASPECTS, SAFETY, ExportCounts())))
    read = load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    found = {column: read.features[column] for column in types}
    assert {column: getattr(kind, "feature", kind) for column, kind in found.items()} == {
        column: kind[0] if isinstance(kind, list) else kind for column, kind in types.items()
    }
    assert TRL & set(read.column_names) == set(types)
    assert len(read) == len(rows) * (2 if "label" in types else 1)


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (lambda rows: dpo(rows)[0], {"prompt", "chosen", "rejected"}),
        (lambda rows: dpo(rows, Layout.PLAIN)[0], {"prompt", "chosen", "rejected"}),
        (lambda rows: dpo(rows, Layout.IMPLICIT)[0], {"chosen", "rejected"}),
        (lambda rows: kto(rows)[0], {"prompt", "completion", "label"}),
        (
            lambda rows: [json.loads(line) for line in conversation_lines(rows, ASPECTS, SAFETY, ExportCounts())],
            {"messages"},
        ),
    ],
)
def test_the_columns_are_those_by_which_trl_knows_a_data_set(write: Any, kind: set[str]) -> None:
    """Its documented types, and neither ``margin`` nor any other column that a trainer would take for its own."""
    loaded = Dataset.from_list(write([labelled_row("A"), labelled_row("B", query=None, messages=TURNS)]))
    assert TRL & set(loaded.column_names) == kind
    assert not {"margin", "images", "image", "tools", "chat_template_kwargs"} & set(loaded.column_names)
