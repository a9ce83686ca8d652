"""The product's own rows: what each column means, and the reason where a row is bad."""

import io
import json
from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import (
    BadRow,
    ComparisonRow,
    FileEntry,
    FileRow,
    QueryPart,
    ReadOptions,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.roles import RaterKind
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex

pytestmark = pytest.mark.any_database

COMPARISON = {
    "query_id": "q1",
    "query": "Why is the sky blue?",
    "candidate_a": "alpha",
    "response_a": "Rayleigh scattering.",
    "candidate_b": "beta",
    "response_b": "",
}
VERDICT = {
    "query_id": "q1",
    "candidate_a": "alpha",
    "candidate_b": "beta",
    "rater": "ann",
    "rater_kind": "human",
    "choice": "A",
}


def read(*records: dict[str, Any], **reading: Any) -> list[FileEntry | BadRow]:
    text = "\n".join(json.dumps(record) for record in records)
    with SeenIndex() as seen:
        return list(read_file_rows(io.BytesIO(text.encode()), "rows.jsonl", ReadOptions(**reading), seen).entries)


def rows(*records: dict[str, Any], **reading: Any) -> list[FileRow]:
    return [row for item in read(*records, **reading) if isinstance(item, FileEntry) for row in item.rows]


def reason(record: dict[str, Any], **reading: Any) -> str:
    (bad,) = read(record, **reading)
    assert isinstance(bad, BadRow)
    return bad.reason


def refusal(content: bytes, **reading: Any) -> str:
    with pytest.raises(InputRefused) as refused, SeenIndex() as seen:
        read_file_rows(io.BytesIO(content), "rows.csv", ReadOptions(**reading), seen)
    return str(refused.value)


def test_a_comparison_row_brings_a_query_and_two_responses() -> None:
    assert rows({**COMPARISON, "category": "science", "difficulty": 3, "metadata": {"source": "x"}}) == [
        ComparisonRow(
            line=1,
            query=QueryPart(
                key="q1",
                cluster="q1",
                messages=[{"role": "user", "content": "Why is the sky blue?"}],
                category="science",
            ),
            candidate_a="alpha",
            response_a=[{"role": "assistant", "content": "Rayleigh scattering."}],
            candidate_b="beta",
            response_b=[{"role": "assistant", "content": ""}],
            metadata={"difficulty": 3, "source": "x"},
        )
    ]


def test_a_conversation_comes_as_messages() -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Why is the sky blue?"},
    ]
    record = {key: value for key, value in COMPARISON.items() if key != "query"}
    (row,) = rows({**record, "messages": turns})
    assert isinstance(row, ComparisonRow)
    assert row.query.messages == turns
    assert rows({**record, "query": turns}) == rows({**record, "messages": turns})


def test_equal_prompts_of_files_without_ids_are_one_prompt() -> None:
    pair = {
        key: value
        for key, value in COMPARISON.items()
        if key in {"candidate_a", "response_a", "candidate_b", "response_b"}
    }
    (compared,) = rows({"query": "Why?", **pair})
    answered, other = rows(
        {"query": "Why?", "candidate": "m", "response": "x"}, {"query": "Who?", "candidate": "m", "response": "y"}
    )
    assert isinstance(compared, ComparisonRow)
    assert isinstance(answered, ResponseRow)
    assert isinstance(other, ResponseRow)
    assert compared.query.key == answered.query.key != other.query.key


def test_a_cell_of_a_csv_may_hold_messages_and_metadata_as_json() -> None:
    turns = '[{""role"":""user"",""content"":""Hi""}]'
    text = (
        "query_id,messages,candidate_a,response_a,candidate_b,response_b,metadata,place\n"
        f'q1,"{turns}",alpha,[1],beta,,"{{""n"": 1}}",here\n'
    )
    with SeenIndex() as seen:
        (entry,) = read_file_rows(io.BytesIO(text.encode()), "rows.csv", ReadOptions(), seen).entries
    assert isinstance(entry, FileEntry)
    (row,) = entry.rows
    assert isinstance(row, ComparisonRow)
    assert row.query.messages == [{"role": "user", "content": "Hi"}]
    assert row.response_a == [{"role": "assistant", "content": "[1]"}]
    assert row.response_b == [{"role": "assistant", "content": ""}]
    assert row.metadata == {"n": 1, "place": "here"}


def test_json_in_a_cell_says_no_key_twice() -> None:
    header = "query_id,query,candidate_a,response_a,candidate_b,response_b,metadata"
    text = f'{header}\nq1,Why?,a,1,b,2,"{{""x"": 1, ""x"": 2}}"\n'
    with SeenIndex() as seen:
        (bad,) = read_file_rows(io.BytesIO(text.encode()), "rows.csv", ReadOptions(), seen).entries
    assert bad == BadRow(2, "the key “x” appears more than once in one object")


def test_a_response_row_brings_one_candidates_response() -> None:
    (row,) = rows({"query_id": 7, "query": "Why?", "candidate": "alpha", "response": "Because.", "cluster": "c"})
    assert isinstance(row, ResponseRow)
    assert (row.query.key, row.query.cluster, row.candidate) == ("7", "c", "alpha")


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (4, "4"), (0.5, "0.5")])
def test_a_response_that_json_writes_without_quotes_keeps_its_spelling(value: object, text: str) -> None:
    (row,) = rows({**COMPARISON, "response_a": value})
    assert isinstance(row, ComparisonRow)
    assert row.response_a[0]["content"] == text


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"query_id": None}, "query_id is missing"),
        ({"query_id": "x" * 201}, "query_id has 201 characters; the limit is 200"),
        ({"query": " "}, "query is missing"),
        ({"query": ["Why?"]}, "query, turn 1 must have a role and a content"),
        ({"query": {"text": "Why?"}}, "query must be text"),
        ({"messages": [{"role": "user", "content": "Hi"}]}, "has both query and messages. Give one of them"),
        ({"response_b": None}, 'response_b is missing. Write an empty response as ""'),
        ({"response_b": {"text": "x"}}, "response_b must be text"),
        ({"response_b": []}, "response_b must be a list of chat messages"),
        (
            {"response_b": [{"role": "assistant", "content": "x", "name": "y"}]},
            "response_b, turn 1 must have a role and a content and nothing else, not “name”",
        ),
        ({"response_b": [{"role": "robot", "content": "x"}]}, "response_b, turn 1 has the unknown role “robot”"),
        (
            {"response_b": [{"role": "assistant", "content": [1]}]},
            "response_b, turn 1 holds something that is not text: only text can be imported so far",
        ),
        ({"candidate_b": "alpha"}, "both models are “alpha”. Give the two models different names"),
        ({"candidate_b": "b" * 201}, "candidate_b has 201 characters; the limit is 200"),
        ({"category": "c" * 121}, "category has 121 characters; the limit is 120"),
        ({"metadata": "{"}, "metadata is not valid JSON"),
        ({"metadata": [1]}, "metadata must be an object"),
        ({"response_a": "a\x00b"}, "response_a holds a NUL character"),
        ({"response_a": "a\ud800b"}, "response_a holds half of a surrogate pair"),
        ({"more": {"deep": [{"a\x00": 1}]}}, "more holds a NUL character"),
        ({"a\udfffb": 1}, "a column's name holds half of a surrogate pair"),
        ({"more": [float("nan")]}, "more is NaN or infinite"),
        ({"more": float("-inf")}, "more is NaN or infinite"),
        ({"metadata": '{"x": 1e999}'}, "metadata is NaN or infinite"),
    ],
)
def test_a_bad_comparison_row_says_why(change: dict[str, Any], because: str) -> None:
    assert reason({**COMPARISON, **change}) == because


def test_what_is_nested_too_deeply_is_bad() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    assert reason({**COMPARISON, "more": deep}) == "more is nested more than 50 levels deep"


def test_messages_must_end_with_the_user() -> None:
    record = {key: value for key, value in COMPARISON.items() if key != "query"}
    turns = [{"role": "assistant", "content": "Hello"}]
    assert reason({**record, "messages": turns}) == "messages must end with a user turn"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ShownOrder.UNKNOWN),
        ({"shown_swapped": None}, ShownOrder.UNKNOWN),
        ({"shown_swapped": ""}, ShownOrder.UNKNOWN),
        ({"shown_swapped": True}, ShownOrder.SWAPPED),
        ({"shown_swapped": "FALSE"}, ShownOrder.AS_STORED),
        ({"shown_swapped": "folded"}, ShownOrder.FOLDED),
    ],
)
def test_the_order_shown_is_kept_or_unknown(given: dict[str, Any], shown: ShownOrder) -> None:
    (row,) = rows({**VERDICT, **given})
    assert isinstance(row, VerdictRow)
    assert row.shown == shown


@pytest.mark.parametrize("choice", ["A", "b", "Tie", "BOTH_BAD"])
def test_choices_are_read_in_any_case(choice: str) -> None:
    (row,) = rows({**VERDICT, "choice": choice})
    assert isinstance(row, VerdictRow)
    assert row.choice.lower() == choice.lower()


def test_an_inconsistent_choice_is_folded_from_both_orders() -> None:
    (row,) = rows({**VERDICT, "rater_kind": "judge", "choice": "inconsistent"})
    assert isinstance(row, VerdictRow)
    assert (row.choice, row.shown) == ("inconsistent", ShownOrder.FOLDED)


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (
            {"choice": "C"},
            "choice “C” is unknown. Use A, B, tie, both_bad, unreadable, suspect, refused, truncated, too_long, "
            'failed, inconsistent, or map it with --choice "C=A" or on the column mapping page',
        ),
        ({"choice": ""}, "choice is missing"),
        ({"choice": "refused"}, "only a judge can have the choice “refused”"),
        ({"rater": None}, "`rater` is missing. Add the column, or set one rater for the whole file"),
        ({"rater_kind": "robot"}, "rater_kind must be human, judge or gold, in the row or for the whole file"),
        ({"aspect": "how good?"}, "aspect “how good?” may have only letters, digits, hyphens and underscores"),
        ({"aspect": "x" * 61}, "aspect has 61 characters; the limit is 60"),
        ({"sample": -1}, "sample must be a whole number from 0 to 32,767"),
        ({"sample": "1.5"}, "sample must be a whole number from 0 to 32,767"),
        ({"sample": 40_000}, "sample must be a whole number from 0 to 32,767"),
        ({"shown_swapped": "maybe"}, "shown_swapped “maybe” must be true, false or folded"),
        ({"created_at": "yesterday"}, "created_at “yesterday” is not a time such as 2026-01-31T12:00:00Z"),
        (
            {"rater_kind": "judge", "choice": "inconsistent", "shown_swapped": True},
            "an inconsistent choice comes from both orders: leave shown_swapped out, or set it to folded",
        ),
    ],
)
def test_a_bad_verdict_row_says_why(change: dict[str, Any], because: str) -> None:
    assert reason({**VERDICT, **change}) == because


def test_samples_are_counted_within_the_file_whichever_way_round_a_row_stands() -> None:
    turned = {**VERDICT, "candidate_a": "beta", "candidate_b": "alpha", "choice": "B"}
    other_order = {**VERDICT, "shown_swapped": True}
    same_order_turned = {**turned, "shown_swapped": False}
    found = rows(
        VERDICT, turned, other_order, same_order_turned, {**VERDICT, "aspect": "depth"}, {**VERDICT, "sample": 9}
    )
    assert [row.sample for row in found if isinstance(row, VerdictRow)] == [0, 1, 0, 1, 0, 9]


def test_a_rater_may_be_named_for_the_whole_file() -> None:
    record = {key: value for key, value in VERDICT.items() if not key.startswith("rater")}
    (row,) = rows(record, rater="judge x", rater_kind=RaterKind.JUDGE)
    assert isinstance(row, VerdictRow)
    assert (row.rater, row.rater_kind) == ("judge x", RaterKind.JUDGE)


def test_a_prefix_goes_before_every_query_id_and_counts_in_its_length() -> None:
    (row,) = rows(VERDICT, id_prefix="set1-")
    assert isinstance(row, VerdictRow)
    assert row.query_key == "set1-q1"
    assert reason(VERDICT, id_prefix="x" * 199) == "query_id has 201 characters; the limit is 200"


def test_columns_can_be_given_other_names() -> None:
    record = {**COMPARISON, "prompt": COMPARISON["query"]}
    del record["query"]
    (row,) = rows(record, mapping={"prompt": "query"})
    assert isinstance(row, ComparisonRow)
    assert row.query.messages[0]["content"] == "Why is the sky blue?"
    assert row.metadata == {}


@pytest.mark.parametrize(
    ("content", "reading", "sentence"),
    [
        (
            b"query_id,query,candidate_a,response_a,candidate_b\n1,2,3,4,5\n",
            {},
            "rows.csv has no column “response_b”, required by the format comparisons.",
        ),
        (
            b"lorem,ipsum\n1,2\n",
            {},
            "Unknown format: the columns of rows.csv (lorem, ipsum) match none. Map the columns.",
        ),
        (
            b"lorem,ipsum\n1,2\n",
            {"format": "responses"},
            "rows.csv has no column “query_id” and no column “query” and no column “candidate” and no column "
            "“response”, required by the format responses.",
        ),
        (
            b"one,two\n1,2\n",
            {"mapping": {"three": "query"}},
            "rows.csv has no column “three” to map. It has: one, two.",
        ),
    ],
)
def test_a_file_of_the_wrong_columns_is_refused_and_they_are_named(
    content: bytes, reading: dict[str, Any], sentence: str
) -> None:
    assert refusal(content, **reading) == sentence


def test_verdicts_are_refused_where_comparisons_are_wanted() -> None:
    text = json.dumps(VERDICT).encode()
    with pytest.raises(InputRefused) as refused, SeenIndex() as seen:
        read_file_rows(io.BytesIO(text), "rows.jsonl", ReadOptions(), seen, brings="comparisons")
    assert str(refused.value) == "rows.jsonl has verdicts, not comparisons. Import it as verdicts."


# ---- scores -----------------------------------------------------------------------------------

SCORE = {"query_id": "q1", "candidate": "alpha", "rater": "ann", "rater_kind": "human", "aspect": "depth", "value": 4}


def test_a_score_row_brings_one_raters_number() -> None:
    assert rows({**SCORE, "rationale": "Deep.", "sample": 2, "unknown": 1}) == [
        ScoreRow(1, "q1", "alpha", "ann", RaterKind.HUMAN, "depth", 4.0, sample=2, rationale="Deep.")
    ]


def test_a_cell_of_a_csv_holds_a_number_as_json_would_spell_it() -> None:
    text = "query_id,candidate,rater,rater_kind,value\nq1,alpha,ann,judge,3.5\nq1,alpha,ann,judge, -2e1 \n"
    with SeenIndex() as seen:
        entries = list(read_file_rows(io.BytesIO(text.encode()), "rows.csv", ReadOptions(), seen).entries)
    found = [
        row for entry in entries if isinstance(entry, FileEntry) for row in entry.rows if isinstance(row, ScoreRow)
    ]
    assert [(row.value, row.aspect, row.sample) for row in found] == [(3.5, "overall", 0), (-20.0, "overall", 1)]


def test_that_the_lower_score_is_better_is_said_for_the_whole_file() -> None:
    (row,) = rows(SCORE, lower_is_better=True)
    assert isinstance(row, ScoreRow)
    assert (row.value, row.lower_is_better) == (4.0, True)


@pytest.mark.parametrize(
    ("value", "because"),
    [
        (None, "value is missing"),
        ("", "value is missing"),
        (True, "value must be a number"),
        ([4], "value must be a number"),
        ("good", "value “good” is not a number such as 4 or 3.5"),
        ("3,5", "value “3,5” is not a number such as 4 or 3.5"),
        ("nan", "value “nan” is not a number such as 4 or 3.5"),
        ("Infinity", "value “Infinity” is not a number such as 4 or 3.5"),
        ("1_000", "value “1_000” is not a number such as 4 or 3.5"),
        ("٣", "value “٣” is not a number such as 4 or 3.5"),
        (float("nan"), "value is NaN or infinite"),
        (float("inf"), "value is NaN or infinite"),
        ("1e400", "value “1e400” is too large"),
        (10**400, f"value “1{'0' * 39}” is too large"),
    ],
)
def test_a_value_that_is_no_finite_number_is_bad(value: object, because: str) -> None:
    assert reason({**SCORE, "value": value}) == because


def test_a_judge_may_have_failed_where_a_number_is_expected() -> None:
    (row,) = rows({**SCORE, "rater_kind": "judge", "value": " Unreadable", "rationale": "Well …"})
    assert row == ScoreRow(
        1, "q1", "alpha", "ann", RaterKind.JUDGE, "depth", None, sample=0, rationale="Well …", failure="unreadable"
    )
    (beside,) = rows({**SCORE, "rater_kind": "judge", "value": None, "failure": "unreadable", "rationale": "Well …"})
    assert beside == row
    assert reason({**SCORE, "value": "refused"}) == "only a judge can have the value “refused”"
    assert reason({**SCORE, "value": "", "failure": "failed"}) == "only a judge can have the failure “failed”"
    assert reason({**SCORE, "failure": "failed"}) == "has both a value and a failure. Give one of them"
    assert reason({**SCORE, "value": None, "failure": "gone"}).startswith("failure “gone” is not one of unreadable, ")


def test_a_zero_has_no_sign() -> None:
    (row,) = rows({**SCORE, "value": -0.0})
    assert isinstance(row, ScoreRow)
    assert str(row.value) == "0.0"


def test_samples_of_scores_are_counted_by_response_rater_and_aspect() -> None:
    others = [{**SCORE, **change} for change in ({"candidate": "beta"}, {"aspect": "clarity"}, {"rater": "bob"})]
    found = rows(SCORE, SCORE, *others, {**SCORE, "rater_kind": "gold"}, {**SCORE, "sample": 7}, SCORE)
    assert [row.sample for row in found if isinstance(row, ScoreRow)] == [0, 1, 0, 0, 0, 0, 7, 2]


def test_scores_that_stand_beside_their_responses_are_found_where_scores_are_wanted() -> None:
    text = json.dumps({**SCORE, "query": "Why?", "response": "Because."}).encode()
    for wanted, kind in (("scores", ScoreRow), ("comparisons", ResponseRow), ("", ResponseRow)):
        with SeenIndex() as seen:
            (entry,) = read_file_rows(io.BytesIO(text), "rows.jsonl", ReadOptions(), seen, brings=wanted).entries
        assert isinstance(entry, FileEntry)
        assert isinstance(entry.rows[0], kind)
