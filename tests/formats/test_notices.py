"""What a file holds and an import does not store as it was: one line for each thing, and every label accounted for."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evaluations.domain.files import BadRow, ComparisonRow, FileEntry, NoticeKind, ScoreRow, VerdictRow
from evaluations.formats.notices import ImportNotices
from tests.factories.imports import comparison_row, verdict_row
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind


def told(*records: dict[str, Any], **reading: Any) -> list[str]:
    """The lines that a preview has of these records."""
    notices = ImportNotices()
    for entry in read_contents(records, **reading).entries:
        assert isinstance(entry, FileEntry), entry
        notices.count(entry.rows, entry.notices)
    return notices.sentences()


# ---- Label Studio -----------------------------------------------------------------------------------


def result(value: dict[str, Any], question: str = "preference", to_name: str = "answer1", kind: str = "choices") -> Any:
    return {"from_name": question, "to_name": to_name, "type": kind, "value": value}


def chose(*words: str, question: str = "preference") -> Any:
    return result({"choices": list(words)}, question)


def task(*results: dict[str, Any], key: int = 1, **annotation: Any) -> dict[str, Any]:
    return {
        "id": key,
        "data": {"prompt": f"Why {key}?", "answer1": "Because.", "answer2": "?"},
        "annotations": [{"completed_by": 3, "result": list(results), **annotation}],
    }


def test_labels_that_are_not_understood_are_listed_with_their_words() -> None:
    tasks = [task(chose(word), key=key) for key, word in enumerate(["A更差", "B更差", "A 👎", "A更差", "A"])]
    assert told(*tasks) == [
        "4 labels of “preference” not understood, so not imported: “A更差” 2, “B更差” 1, “A 👎” 1 (lines 1, 2, 3, …)."
    ]
    assert [row.choice for row in rows_of_kind(VerdictRow, import_rows(*tasks))] == ["A"]


def test_what_a_label_means_can_be_said_of_the_whole_file() -> None:
    found = import_rows(task(chose("A更差")), choices={"a更差": "B"})
    assert [row.choice for row in rows_of_kind(VerdictRow, found)] == ["B"]


def test_a_model_s_name_never_means_the_other_model_whatever_was_said_of_an_earlier_file() -> None:
    one = task(chose("gpt"))
    one["data"] |= {"model_1": "llama", "model_2": "gpt"}
    assert not rows_of_kind(VerdictRow, import_rows(one, choices={"gpt": "A"}))
    vote = {"query_id": "q", "candidate_a": "llama", "candidate_b": "gpt", "choice": "GPT", **SAID}
    assert refusal_reason(vote, choices={"gpt": "A"}) == "choice “GPT” is the name of candidate B, but is mapped to A"
    (found,) = rows_of_kind(VerdictRow, import_rows({**vote, "candidate_b": "A", "choice": "A"}, choices={"a": "A"}))
    assert found.choice == "A"  # a word for a side that is a name too means what was said


def test_choices_under_each_text_apart_compare_nothing() -> None:
    under = [{**chose("A"), "to_name": side, "from_name": f"grade of {side}"} for side in ("answer1", "answer2")]
    (line,) = told(task(*under))
    assert line.startswith("Not imported: choices of “grade of answer1” about one response (1); choices of")
    assert not rows_of_kind(VerdictRow, import_rows(task(*under)))
    assert len(rows_of_kind(VerdictRow, import_rows(task(under[0])))) == 1


def test_an_annotator_s_notes_on_an_answer_are_named() -> None:
    (line,) = told(task({**chose("A"), "meta": {"text": ["unsure"]}}))
    assert line == "Not imported: notes on answers to “preference” (1) (line 1)."


def test_several_choices_are_no_choice() -> None:
    (line,) = told(task(chose("A", "B")))
    assert "“A + B” 1 (line 1)" in line


def test_annotations_that_are_cancelled_empty_or_of_another_type_are_counted() -> None:
    lines = told(
        task(chose("A"), was_cancelled=True),
        task(key=2),
        task(result({"text": ["So."]}, "why", kind="textarea"), result({"rating": 4}, "quality", "chat"), key=3),
        {**task(chose("B"), key=4), "predictions": [17, 18], "drafts": [{"result": []}]},
    )
    assert lines == [
        "2 answers not imported because of the status: “cancelled” 1, “draft” 1 (lines 1, 4).",
        "1 annotation without an answer (line 2).",
        "Not imported: predictions given as IDs only (2); answers of the type textarea to “why” (1); "
        "stars of “quality” under “chat”, which is neither response (1) (lines 3, 4).",
    ]


@pytest.mark.parametrize(
    ("question", "to_name", "candidate", "aspect"),
    [
        ("quality", "text2", "answer2", "quality_rating"),
        ("quality_b", "response_b", "answer2", "quality_rating"),
        ("quality1", "txtA", "answer1", "quality_rating"),
        ("rating1", "answer1", "answer1", "overall_rating"),
        ("data", "answer1", "answer1", "data_rating"),
        ("quality_a", "answer2", "answer2", "quality_a_rating"),
    ],
)
def test_stars_are_scores_by_the_name_of_the_tag_too(question: str, to_name: str, candidate: str, aspect: str) -> None:
    (score,) = rows_of_kind(ScoreRow, import_rows(task(result({"rating": 4}, question, to_name, "rating"))))
    assert (score.candidate, score.aspect, score.value) == (candidate, aspect, 4.0)


def test_questions_in_another_script_have_aspects_of_their_own_and_the_line_says_which() -> None:
    one = task(chose("A", question="质量"), chose("B", question="风格"))
    quality, style = rows_of_kind(VerdictRow, import_rows(one))
    assert quality.aspect != style.aspect
    assert told(one) == [
        f"A question is stored as the aspect “{quality.aspect}”: “质量” 1.",
        f"A question is stored as the aspect “{style.aspect}”: “风格” 1.",
    ]


def test_other_fields_of_a_task_are_metadata_and_a_third_response_is_not_compared() -> None:
    one = task(chose("A"))
    one["data"] |= {"topic": "physics", "answer3": "Dunno."}
    (found,) = rows_of_kind(ComparisonRow, import_rows(one))
    assert found.metadata == {"topic": "physics"}
    assert told(one) == ["Not imported: a further response, “answer3” (1) (line 1)."]


def test_answers_of_json_min_that_are_not_understood_are_listed_by_question() -> None:
    record = {
        "prompt": "Why?",
        "answer1": "Because.",
        "answer2": "?",
        "pw": "A",
        "stil": "beide gut",
        "quality": 4,
        "id": 1,
        "annotator": 3,
        "annotation_id": 7,
        "lead_time": 1.5,
    }
    assert told(record) == [
        "1 label of “stil” not understood, so not imported: “beide gut” 1 (line 1).",
        "Columns not imported: “quality” 1 (line 1).",
    ]


def test_two_fields_of_any_script_that_differ_in_their_endings_are_the_responses() -> None:
    one = task(chose("B"))
    one["data"] = {"prompt": "Why?", "回答A": "Because.", "回答B": "?", "评分": "5"}
    (found,) = rows_of_kind(ComparisonRow, import_rows(one))
    assert (found.candidate_a, found.candidate_b) == ("回答A", "回答B")


# ---- Argilla ----------------------------------------------------------------------------------------


def argilla(*responses: dict[str, Any], **columns: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "fields": {"prompt": "Why?", "response_a": "Because.", "response_b": "?"},
        "responses": {"preference": list(responses)},
        "suggestions": {},
        **columns,
    }


def test_responses_without_a_status_count_and_a_line_says_which_export_has_it() -> None:
    one = argilla({"value": "response_a", "user_id": "u1"})
    assert [row.choice for row in rows_of_kind(VerdictRow, import_rows(one))] == ["A"]
    (line,) = told(one)
    assert line.startswith("1 response without a status: drafts and discarded responses may be among them.")
    assert "to_datasets()" in line


def test_drafts_and_discarded_responses_and_statuses_nobody_knows_are_counted() -> None:
    given = [{"value": "response_a", "user_id": "u", "status": one} for one in ("draft", "discarded", "pending")]
    assert told(argilla(*given)) == [
        "3 answers not imported because of the status: “draft” 1, “discarded” 1, “pending” 1 (line 1)."
    ]


def test_other_questions_metadata_and_vectors_are_accounted_for() -> None:
    said = {"value": "Short.", "user_id": "u", "status": "submitted"}
    one = argilla(metadata={"topic": "physics", "query_id": 7, "answer1": "x", "answer2": "y"}, vectors={"v": [0.1]})
    one["responses"] = {"why": [said], "stars": [{**said, "value": 4}], "none": [{**said, "value": None}]}
    assert told(one) == [
        "1 label of “why” not understood, so not imported: “Short.” 1 (line 1).",
        "1 label of “stars” not understood, so not imported: “4” 1 (line 1).",
        "1 annotation without an answer (line 1).",
        "Columns not imported: “vectors” 1 (line 1).",
    ]
    (found,) = rows_of_kind(ComparisonRow, import_rows(one))
    assert found.metadata == {"topic": "physics", "query_id": 7, "answer1": "x", "answer2": "y"}
    assert (found.query.key, found.candidate_a) == ("r1", "response_a")


def test_a_ranking_is_read_by_exact_names_even_where_they_are_words_for_the_other_side() -> None:
    said = {"value": ["response_b", "response_a"], "user_id": "u", "status": "submitted"}
    one = argilla(said)
    one["fields"] |= {"model_a": "B", "model_b": "A"}
    (found,) = rows_of_kind(VerdictRow, import_rows(one))
    assert (found.choice, found.candidate_b) == ("B", "A")


# ---- our own rows -----------------------------------------------------------------------------------

SAID = {"rater": "ann", "rater_kind": "human"}


@pytest.mark.parametrize("column", ["choice", "winner", "preference", "label", "vote"])
def test_a_choice_beside_a_comparison_is_a_verdict(column: str) -> None:
    material, found = import_rows(
        comparison_row(**{column: "slightly prefer B"}, **SAID, rationale="So.", topic="physics")
    )
    assert isinstance(material, ComparisonRow)
    assert isinstance(found, VerdictRow)
    assert material.metadata == {"topic": "physics"}
    assert (found.choice, found.note, found.rater, found.rationale) == ("B", "strength: slightly", "ann", "So.")


def test_the_annotator_may_be_called_otherwise_and_kind_and_name_may_be_said_of_the_file() -> None:
    (_, first), (_, second) = (
        import_rows(comparison_row(winner="alpha", annotator="ann"), rater_kind="human"),
        import_rows(comparison_row(choice="tie"), rater="bo", rater_kind="gold"),
    )
    assert isinstance(first, VerdictRow)
    assert isinstance(second, VerdictRow)
    assert (first.choice, first.rater, second.choice, second.rater_kind) == ("A", "ann", "tie", "gold")


def test_a_choice_of_nobody_is_metadata_and_the_line_says_how_to_import_it() -> None:
    assert import_rows(comparison_row(choice="A", rater="ann"))[0].metadata == {"choice": "A", "rater": "ann"}  # type: ignore[union-attr]
    assert told(comparison_row(choice="A", rater="ann"), comparison_row("q2", choice="B", rater="ann")) == [
        "The column “choice” looks like labels and is kept as metadata: “A” 1, “B” 1. "
        "To import it, map it to “choice”, “choice:ASPECT” or “value”, and name the rater and the rater kind."
    ]


def test_a_label_beside_a_comparison_that_is_not_understood_is_counted_and_an_empty_one_is_none() -> None:
    records = [comparison_row(f"q{key}", choice=word, **SAID) for key, word in enumerate(["A更差", "", "A"])]
    assert told(*records) == ["1 label of “choice” not understood, so not imported: “A更差” 1 (line 1)."]
    assert len(rows_of_kind(VerdictRow, import_rows(*records))) == 1


def test_a_name_that_is_also_a_side_is_not_understood_beside_a_comparison() -> None:
    record = comparison_row(candidate_a="B", candidate_b="C", choice="B", **SAID)
    assert told(record) == ["1 label of “choice” not understood, so not imported: “B” 1 (line 1)."]


def test_columns_that_are_called_like_labels_or_hold_nothing_but_labels_are_named() -> None:
    records = [
        comparison_row(f"q{key}", choice_helpfulness="A", style=style, best=best, topic=topic)
        for key, (style, best, topic) in enumerate([("tie", "alpha", "A"), ("A>>B", "beta", "physics")])
    ]
    assert [line.partition(" looks")[0] for line in told(*records)] == [
        "The column “choice_helpfulness”",
        "The column “style”",
        "The column “best”",
    ]


def test_a_score_beside_a_response_is_a_score() -> None:
    record = {"query_id": "q", "query": "Why?", "candidate": "m", "response": "So.", "value": 4, **SAID, "topic": "x"}
    material, found = import_rows(record)
    assert isinstance(found, ScoreRow)
    assert (found.value, found.rater) == (4.0, "ann")
    assert material.metadata == {"topic": "x"}  # type: ignore[union-attr]


def test_columns_of_verdicts_that_no_verdict_has_are_named() -> None:
    assert told(verdict_row(turn=2, final_choice="B")) == ["Columns not imported: “turn” 1, “final_choice” 1 (line 1)."]


@pytest.mark.parametrize(
    ("choice", "meant", "note"),
    [
        ("A>>B", "A", "Short.; strength: >>"),
        ("beta", "B", "Short."),
        ("Slightly prefer A", "A", "Short.; strength: slightly"),
    ],
)
def test_a_verdict_row_takes_labels_and_keeps_their_strength_in_the_note(choice: str, meant: str, note: str) -> None:
    (found,) = rows_of_kind(VerdictRow, import_rows(verdict_row(choice=choice, note="Short.")))
    assert (found.choice, found.note) == (meant, note)


def test_words_of_a_scale_that_mean_the_same_choice_are_kept_as_its_strength() -> None:
    choices = {"-2": "A", "-1": "A", "0": "tie", "1": "B", "2": "B"}
    found = rows_of_kind(VerdictRow, import_rows(*(verdict_row(choice=int(word)) for word in choices), choices=choices))
    assert [(row.choice, row.note) for row in found] == [
        ("A", "strength: -2"),
        ("A", "strength: -1"),
        ("tie", ""),
        ("B", "strength: 1"),
        ("B", "strength: 2"),
    ]


def test_words_for_a_missing_value_and_cells_as_long_as_a_spreadsheet_has_are_named() -> None:
    odd = comparison_row("q1", candidate_a="nan", response_a="NaN", response_b="#NAME?")
    assert told(
        odd, comparison_row("q2", response_a="None of them."), comparison_row("q3", response_b="x" * 32_767)
    ) == [
        "1 value of “response_b” at the length limit, so perhaps cut off (line 3).",
        *(
            f"1 value of “{field}” kept as text: “{word}” 1 (line 1). "
            "Programs write this for a missing or broken value."
            for field, word in (("candidate_a", "nan"), ("response_a", "NaN"), ("response_b", "#NAME?"))
        ),
    ]


@pytest.mark.parametrize("column", ["Bewertung", "Präferenz", "Évaluación", "Оценка", "评价", "評価"])
def test_columns_that_are_called_like_labels_in_other_languages_are_named(column: str) -> None:
    (line,) = told(comparison_row(**{column: "A besser"}, **SAID))
    assert line.startswith(f"The column “{column}” looks like labels and is kept as metadata: “A besser” 1.")


def test_equal_responses_are_counted() -> None:
    assert told(comparison_row(response_a="Same.", response_b="Same.")) == [
        "1 comparison of two equal responses (line 1)."
    ]


def test_labels_of_an_export_are_said_not_to_come_with_its_comparisons() -> None:
    labels = {"gold": [], "judges": [], "labels": {"overall": {"choice": "A"}}, "people": []}
    (line,) = told({**comparison_row(), **labels})
    assert line == "Not imported: exported labels and reviews (import “verdicts”) (1) (line 1)."
    assert told({**comparison_row(), **labels, "labels": {}}) == []


def test_long_lists_of_things_say_how_many_more_there_are() -> None:
    turn = {"role": "assistant", "content": "x", **{f"key{number}": "y" for number in range(10)}}
    (line,) = told({"prompt": "Q", "chosen": [turn], "rejected": "z"})
    assert line.endswith("“key7” of turns in “chosen” (1); and 2 more (line 1).")


def test_long_lists_of_words_are_cut_and_say_how_many_more_there_are() -> None:
    (line,) = told(*(task(chose(f"word {key}"), key=key) for key in range(30)))
    assert line.startswith("30 labels of “preference” not understood")
    assert "and 22 more (lines 1, 2, 3, …)." in line
    many = told(*(task(chose("?", question=f"question {key}"), key=key) for key in range(60)))
    assert (len(many), many[-1]) == (51, "And 10 lines like these.")


# ---- formats of others ------------------------------------------------------------------------------

ANNOTATION: dict[str, Any] = {
    "instruction": "Add.",
    "output_1": "3",
    "generator_1": "davinci",
    "output_2": "2",
    "generator_2": "gpt4",
    "annotator": "judge",
    "preference": 1.9,
}


@pytest.mark.parametrize(
    ("columns", "rationale"),
    [
        ({"raw_completion": "Output (b)"}, "Output (b)"),
        ({"raw_completion": {"text": "M is better.", "logprobs": {}}}, "M is better."),
        ({"raw_completion": {"message": {"role": "assistant", "content": "M is right."}}}, "M is right."),
        ({"raw_completion": {"concise_explanation": "It adds.", "ordered_models": []}}, "It adds."),
        ({"raw_completion": {"logprobs": {}}, "explanation": "It adds."}, "It adds."),
        ({"explanation": "It adds.", "raw_completion": "Output (b)"}, "It adds.\n\nOutput (b)"),
    ],
)
def test_the_rationale_of_an_annotator_is_kept_in_every_form(columns: dict[str, Any], rationale: str) -> None:
    material, found, *_ = import_rows({**ANNOTATION, **columns})
    assert isinstance(material, ComparisonRow)
    assert isinstance(found, VerdictRow)
    assert (found.rationale, found.note, material.metadata) == (rationale, "preference 1.9", {})


def test_what_of_an_annotation_is_not_kept_is_named() -> None:
    assert told({**ANNOTATION, "raw_completion": {"text": "M", "logprobs": {}}, "price_per_example": 0.1}) == [
        "Columns not imported: “price_per_example” 1 (line 1).",
        "Not imported: raw_completion beyond its text (1) (line 1).",
    ]


def test_how_far_a_score_of_llm_comparator_is_from_a_tie_is_kept() -> None:
    ratings = [{"score": 1.5}, {"score": -0.5, "is_flipped": True}, {"score": 1}, {"score": 0}, {"score": None}]
    example = {"input_text": "Why?", "tags": ["x", "y"], "output_text_a": "1", "output_text_b": "2"}
    record = {**example, "individual_rater_scores": ratings}
    assert [(row.choice, row.note) for row in rows_of_kind(VerdictRow, import_rows(record))] == [
        ("A", "strength: 1.5"),
        ("B", "strength: 0.5"),
        ("A", ""),
        ("tie", ""),
    ]
    assert told(record)[:2] == [
        "1 annotation without an answer (line 1).",
        "Not imported: the further tag “y” (1) (line 1).",
    ]


def test_a_margin_is_a_strength_and_other_columns_that_tell_who_was_chosen_are_named() -> None:
    record = {"prompt": "Why?", "chosen": "So.", "rejected": "No.", "margin": 2.5, "score_chosen": 9, "topic": "x"}
    (found,) = rows_of_kind(VerdictRow, import_rows(record))
    assert found.note == "strength: 2.5"
    assert told(record) == ["Columns not imported: “score_chosen” 1 (line 1)."]


def talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(texts)]


BATTLE: dict[str, Any] = {
    "question_id": "9f0a",
    "model_a": "gpt-3.5",
    "model_b": "gpt-35",
    "winner": "model_a",
    "conversation_a": talk("Why?", "So.", "Really?", "Yes."),
    "conversation_b": talk("Why?", "No.", "Really?", "No."),
}


@pytest.mark.parametrize(
    ("winner", "choice", "note"),
    [("gpt-35", "B", ""), ("GPT-3.5", "A", ""), ("A>>B", "A", "strength: >>"), ("tie (bothbad)", "both_bad", "")],
)
def test_a_winner_may_be_a_model_or_any_label(winner: str, choice: str, note: str) -> None:
    (found,) = rows_of_kind(VerdictRow, import_rows({**BATTLE, "winner": winner}))
    assert (found.choice, found.note) == (choice, note)


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        *((name, "judge") for name in ("gpt4_pair", "deepseek-v3", "Qwen/Qwen3-32B", "o3-mini", "yi-34b", "GPT-4")),
        *((name, "human") for name in ("expert_3", "arena_user_17", "Claudette", "Yi", "oscar", "author_0")),
    ],
)
def test_a_judge_is_one_that_is_called_like_a_model(judge: str, kind: str) -> None:
    (found,) = rows_of_kind(VerdictRow, import_rows({**BATTLE, "judge": judge}))
    assert found.rater_kind == kind


@pytest.mark.parametrize(
    ("column", "value", "when"),
    [
        ("tstamp", 1682351591.5, "2023-04-24T15:53:11.500000+00:00"),
        ("tstamp", 1682351591500, "2023-04-24T15:53:11.500000+00:00"),
        ("timestamp", "2025-06-10 10:00:00", "2025-06-10 10:00:00"),
    ],
)
def test_the_time_of_a_vote_is_kept_in_every_form(column: str, value: object, when: str) -> None:
    (found,) = rows_of_kind(VerdictRow, import_rows({**BATTLE, column: value}))
    assert found.created_at == when
    assert told({**BATTLE, column: "yesterday"}) == [f"Columns not imported: “{column}” 1 (line 1)."]


def test_scores_and_decisions_of_a_judge_that_are_not_understood_are_counted() -> None:
    games = {"uid": "u", "model": "m", "judge": "j", "baseline": "b", "games": [{"score": "A>B"}, {"score": "8/10"}]}
    assert told(games) == ["1 label of “score” not understood, so not imported: “8/10” 1 (line 1)."]
    pair = {"pair_id": "p", "question": "Why?", "response_A": "x", "response_B": "y", "label": "A>B"}
    judged = {**pair, "judge_model": "j", "judgments": [{"decision": "A?"}, {"decision": "B>A"}]}
    assert told(judged) == ["1 label of “decision” not understood, so not imported: “A?” 1 (line 1)."]


def test_a_conversation_without_a_turn_is_kept_whole() -> None:
    (found,) = rows_of_kind(ComparisonRow, import_rows(BATTLE))
    assert [turn["content"] for turn in found.response_a] == ["So.", "Really?", "Yes."]


def test_the_second_turn_of_a_question_is_a_query_of_its_own_whatever_its_id() -> None:
    pair = {"question_id": "writing-1", "model_1": "m", "model_2": "n", "g1_winner": "tie", "g2_winner": "model_1"}
    found = rows_of_kind(
        VerdictRow, import_rows({**pair, "judge": ["gpt-4"], "turn": 1}, {**pair, "judge": ["gpt-4"], "turn": 2})
    )
    assert [(row.query_key, row.sample) for row in found] == [
        ("writing-1", 0),
        ("writing-1", 0),
        ("writing-1-2", 0),
        ("writing-1-2", 0),
    ]


def test_samples_columns_and_rounds_that_are_not_kept_are_named() -> None:
    answer = {"question_id": 1, "model_id": "m", "choices": [{"turns": ["a"]}, {"turns": ["b"]}]}
    assert told(answer) == ["Not imported: further samples of an answer (1) (line 1)."]
    rounds = [{f"swap = {swap}": {"winner": "1"} for swap in (False, True)}] * 2
    results = {"input": "Why?", "output_1": "a", "output_2": "b", "results": rounds}
    assert told(results, rater="gpt") == ["Not imported: an earlier round of a judge (1) (line 1)."]
    assert told({"idx": 1, "gpt_result": "1", "gpt_reference": "x"}) == [
        "Columns not imported: “gpt_reference” 1 (line 1)."
    ]


# ---- every label is accounted for -------------------------------------------------------------------

LABELS = ("A", "tie", "A>>B", "response_b", "left", "不选A", "A 👎", "neither", "not A", "1", "", None)
OF_LABELS = (NoticeKind.NOT_UNDERSTOOD, NoticeKind.STATUS, NoticeKind.NO_ANSWER, NoticeKind.NOT_STORED)
Made = Iterator[tuple[dict[str, Any], int]]  # a record, and how many labels it holds


def of_label_studio(chance: random.Random) -> Made:
    for key in range(40):
        annotations, number = [], 0
        for person in range(chance.randrange(4)):
            words = [chance.choice(LABELS[:-1]) for _ in range(chance.randrange(3))]
            cancelled = chance.random() < 0.2
            annotations.append(
                {"completed_by": person, "result": [chose(word) for word in words], "was_cancelled": cancelled}
            )
            number += 1 if cancelled else max(1, len(words))
        yield {**task(key=key), "annotations": annotations}, number


def of_argilla(chance: random.Random) -> Made:
    for key in range(40):
        statuses = ("submitted", "draft", "discarded", None)
        said = [
            {"value": chance.choice(LABELS), "user_id": f"u{one}", "status": chance.choice(statuses)}
            for one in range(chance.randrange(4))
        ]
        yield argilla(*said, id=f"r{key}"), len(said)


def of_comparisons(chance: random.Random) -> Made:
    for key in range(40):
        word = chance.choice(LABELS)
        yield comparison_row(f"q{key}", choice=word, **SAID), int(bool(word))


def of_verdicts(chance: random.Random) -> Made:
    for key in range(40):
        yield verdict_row(f"q{key}", choice=chance.choice(LABELS)), 1


def of_the_arena(chance: random.Random) -> Made:
    for key in range(40):
        yield {**BATTLE, "question_id": f"id{key}", "winner": chance.choice(("model_a", *LABELS))}, 1


def of_auto_arena(chance: random.Random) -> Made:
    for key in range(40):
        history = [{"judge_name": f"j{one}", "winner": chance.choice(("-", *LABELS))} for one in range(2)]
        yield {"prompt": f"Why {key}?", "response_a": "a", "response_b": "b", "history": history}, 2


def of_alpaca_eval(chance: random.Random) -> Made:
    for key in range(40):
        yield {**ANNOTATION, "instruction": f"Add {key}.", "preference": chance.choice((1, 1.9, None, 3, "A"))}, 1


def of_llm_comparator(chance: random.Random) -> Made:
    for key in range(40):
        ratings = [{"score": chance.choice((1.5, 0, -1, None, "B"))} for _ in range(3)]
        record = {"input_text": f"Why {key}?", "tags": [], "output_text_a": "1", "output_text_b": "2"}
        yield {**record, "individual_rater_scores": ratings}, 3


def of_mt_bench(chance: random.Random) -> Made:
    for key in range(40):
        games = {f"g{game}_winner": chance.choice(("model_1", "tie", "error", "A>B", "", None)) for game in (1, 2)}
        yield {"question_id": key, "model_1": "m", "model_2": "n", "judge": ["gpt"], "turn": 2, **games}, 2


def of_just_eval(chance: random.Random) -> Made:
    for key in range(40):
        told = {aspect: {"preference": chance.choice(("A", "same", "B", "C", ""))} for aspect in ("clarity", "depth")}
        pair = {f"{what}_{side}": f"{what} {side}" for what in ("output", "generator") for side in "AB"}
        yield (
            {"input": f"{key}?", **pair, "eval_config": {"mode": "pairwise_multi", "gpt": "g"}, "parsed_result": told},
            2,
        )


def of_pandalm(chance: random.Random) -> Made:
    for key in range(40):
        people = {f"annotator{one}": chance.choice(("0", "1", "2", "A", "")) for one in (1, 2, 3)}
        record = {"idx": key, "cmp_key": "m_n", "instruction": "Add.", "response1": "1", "response2": "2"}
        yield {**record, **people}, 3


@pytest.mark.parametrize(
    "made",
    [
        *(of_label_studio, of_argilla, of_comparisons, of_verdicts, of_the_arena, of_auto_arena, of_alpaca_eval),
        *(of_llm_comparator, of_mt_bench, of_pandalm, of_just_eval),
    ],
)
def test_every_label_of_every_record_is_stored_or_accounted_for(made: Callable[[random.Random], Made]) -> None:
    records, numbers = zip(*made(random.Random(7)), strict=True)
    seen: Counter[str] = Counter()
    for entry, number in zip(read_contents(records).entries, numbers, strict=True):
        if isinstance(entry, BadRow):
            seen["bad"] += 1
            continue
        stored = len(rows_of_kind(VerdictRow, entry.rows)) + len(rows_of_kind(ScoreRow, entry.rows))
        # What just-eval does not understand is stored too, as a failure of the judge.
        noticed = sum(notice.kind in OF_LABELS for notice in entry.notices) if made is not of_just_eval else 0
        assert stored + noticed == number, (json.dumps(records[entry.line - 1], ensure_ascii=False), entry)
        seen += Counter(stored=stored, noticed=noticed)
    assert seen["stored"]
    assert seen["noticed"] or seen["bad"] or made is of_just_eval
