"""Files of others as they are, into an evaluation: material and verdicts together, and several files that meet."""

from typing import Any

import pytest

from evaluations.domain.files import NewResponse
from evaluations.domain.texts import messages_to_text
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.judges import Rater
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score, Verdict
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import COMPARISON, comparison_row, encode_jsonl, import_rows, preview_rows

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

ANNOTATION: dict[str, Any] = {
    "instruction": "Add.",
    "output_1": "3",
    "generator_1": "davinci",
    "output_2": "2",
    "generator_2": "gpt4",
    "annotator": "judge",
}
QUESTION: dict[str, Any] = {
    "question_id": 111,
    "category": "math",
    "turns": ["Area?", "And of the circle?"],
    "reference": ["3", "18π"],
}


def answer(model: str) -> dict[str, Any]:
    return {"question_id": 111, "model_id": model, "choices": [{"turns": [f"{model} says 3.", f"{model} says 18."]}]}


def vote(turn: int) -> dict[str, Any]:
    def talk(model: str) -> list[dict[str, str]]:
        texts = ("Area?", f"{model} says 3.", "And of the circle?", f"{model} says 18.")
        return [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]

    return {
        "question_id": 111,
        "model_a": "vicuna",
        "model_b": "alpaca",
        "winner": "model_a",
        "judge": "expert_3",
        "conversation_a": talk("vicuna"),
        "conversation_b": talk("alpaca"),
        "turn": turn,
    }


def judgment(turn: int) -> dict[str, Any]:
    told = {"question_id": 111, "model_1": "alpaca", "model_2": "vicuna", "judge": ["gpt-4", "pair-v2"], "turn": turn}
    return {**told, "g1_winner": "model_2", "g2_winner": "error"}


def test_annotations_bring_comparisons_and_verdicts_and_twice_is_once() -> None:
    """Two samples of one generator are two comparisons: each verdict is on the one beside it."""
    evaluation = make_evaluation()
    rows = [
        {**ANNOTATION, "preference": 2.0},
        {**ANNOTATION, "output_2": "two", "preference": 1.0},
        {**ANNOTATION, "output_2": "zwei", "preference": None},
    ]
    importing = import_rows(evaluation, *rows, new_response=NewResponse.KEEP)
    assert (importing.format, Comparison.objects.count(), Call.objects.count()) == ("alpaca-eval", 3, 1)
    chosen = {messages_to_text(one.comparison.response_b.messages): one.choice for one in Verdict.objects.all()}
    assert chosen == {"2": "B", "two": "A"}
    assert import_rows(evaluation, *rows).rows_unchanged == 3


def test_outputs_of_two_generators_are_paired_when_the_second_file_comes() -> None:
    evaluation = make_evaluation()
    for name in ("davinci", "gpt4"):
        import_rows(evaluation, *({"instruction": f"Add {n}.", "output": name, "generator": name} for n in range(3)))
    assert (Query.objects.count(), Comparison.objects.count()) == (3, 3)


def test_what_candidates_without_names_are_called_is_said_before_it_is_stored() -> None:
    importing = import_rows(make_evaluation(), {"prompt": "Add.", "chosen": "2", "rejected": "3"})
    assert "by their texts" in " ".join(importing.summary.notes)
    assert set(Candidate.objects.values_list("name", flat=True)) == {"response 1", "response 2"}
    assert Rater.objects.get().kind == "gold"


def test_of_candidates_that_have_names_nothing_of_the_kind_is_said() -> None:
    named = {"chosen_model": "gpt4", "rejected_model": "davinci"}
    importing = import_rows(make_evaluation(), {"prompt": "Add.", "chosen": "2", "rejected": "3", **named})
    assert "by their texts" not in " ".join(importing.summary.notes)


def test_questions_answers_judgments_and_votes_of_mt_bench_meet() -> None:
    evaluation = make_evaluation()
    assert import_rows(evaluation, QUESTION).new_rows == {"queries": 2}
    assert import_rows(evaluation, answer("alpaca")).new_rows == {"responses": 2}
    assert import_rows(evaluation, answer("vicuna")).new_rows == {"responses": 2, "comparisons": 2}
    second = Response.objects.get(query__key="111-2", candidate__name="vicuna")
    assert [turn["content"] for turn in second.messages] == [
        "vicuna says 3.",
        "And of the circle?",
        "vicuna says 18.",
    ]
    assert set(Query.objects.values_list("cluster", flat=True)) == {"111"}
    import_rows(evaluation, judgment(1), judgment(2))
    assert {(one.choice, one.shown) for one in Verdict.objects.all()} == {("B", "as_stored")}
    assert {(one.state, one.shown) for one in Call.objects.all()} == {("unreadable", "swapped")}
    # The votes hold the same texts, and leave the reference out: they bring no more than themselves.
    assert import_rows(evaluation, vote(1), vote(2)).new_rows == {"verdicts": 2}
    assert set(Verdict.objects.filter(rater__name="expert_3").values_list("choice", flat=True)) == {"B"}


def test_an_answer_whose_question_is_not_here_says_that_it_comes_first() -> None:
    importing = preview_rows(make_evaluation(), encode_jsonl([answer("alpaca")]))
    assert [bad["reason"] for bad in importing.bad_rows] == [
        "prompt “111” is not in this evaluation. Import the file with the prompts first"
    ]


# ---- judgments of Arena-Hard ----------------------------------------------------------------------------

JUDGMENT: dict[str, Any] = {
    "question_id": "u1",
    "model": "mine",
    "judge": "gpt-x",
    "games": [{"judgment": "[[A>B]]", "score": "A>B"}, {"judgment": "[[B>>A]]", "score": "B>>A"}],
}


def arena_hard(baseline: str) -> list[dict[str, Any]]:
    question = {"question_id": "u1", "category": "arena-hard", "cluster": "Sums", "turns": [{"content": "1 + 1?"}]}
    return [
        question,
        *(
            {"question_id": "u1", "model_id": model, "choices": [{"turns": [{"content": f"{model} says 2."}]}]}
            for model in (baseline, "mine")
        ),
    ]


@pytest.mark.parametrize(("baseline", "won"), [("gpt-4-0314", "A"), ("zephyr", "B")])
def test_judgments_of_arena_hard_are_of_the_only_comparison_of_their_model(baseline: str, won: str) -> None:
    evaluation = make_evaluation()
    question, *answers = arena_hard(baseline)
    import_rows(evaluation, question)
    import_rows(evaluation, *answers)
    import_rows(evaluation, JUDGMENT)
    # The baseline won both games. Stored as A or as B, it was shown first in game 1.
    first = "as_stored" if won == "A" else "swapped"
    found = {one.shown: (one.choice, one.note) for one in Verdict.objects.all()}
    second = {"as_stored": "swapped", "swapped": "as_stored"}[first]
    assert found == {first: (won, ""), second: (won, "strength: >>")}
    assert Comparison.objects.get().response_a.candidate.name == min(baseline, "mine")


def test_a_judgment_that_may_be_of_two_comparisons_is_a_bad_row() -> None:
    evaluation = make_evaluation()
    for other in ("one", "two"):
        row = comparison_row("u1", candidate_a=other, candidate_b="mine", response_a=f"{other}.")
        import_rows(evaluation, row)
    importing = preview_rows(evaluation, encode_jsonl([JUDGMENT]))
    assert importing.bad_rows == [
        {"line": 1, "reason": "prompt “u1” has 2 comparisons of “mine”: name the other model"}
    ]
    import_rows(evaluation, JUDGMENT, constants={"baseline": "two"})
    assert {one.comparison.response_b.candidate.name for one in Verdict.objects.all()} == {"two"}


def test_a_verdict_on_one_candidate_twice_is_of_no_comparison() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, comparison_row("u1"))
    told = {"query_id": "u1", "candidate_a": "beta", "candidate_b": "beta", "choice": "A", "rater": "ann"}
    (bad,) = preview_rows(evaluation, encode_jsonl([{**told, "rater_kind": "human"}])).bad_rows
    assert bad["reason"] == "prompt “u1” has no comparison of “beta” and “beta”"


# ---- unpaired preferences, and rows with more than text ---------------------------------------------------


def test_unpaired_preferences_are_responses_with_scores_and_pairs() -> None:
    evaluation = make_evaluation()
    rows = [
        {"prompt": "1 + 1?", "completion": answer, "label": label, "model": model}
        for model, answer, label in (("a", "2", True), ("b", "3", False), ("a", "2", False))
    ]
    import_rows(evaluation, *rows)
    assert Comparison.objects.count() == 1
    scores = Score.objects.order_by("response__candidate__name", "sample").values_list(
        "response__candidate__name", "value"
    )
    assert list(scores) == [("a", 1.0), ("a", 0.0), ("b", 0.0)]


def test_labels_that_are_all_true_are_stored() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, {"prompt": "1 + 1?", "completion": "2", "label": True}, candidate="mine")
    assert Score.objects.get().value == 1


def test_without_its_bad_rows_a_file_is_stored_without_the_turns_that_hold_more_than_text() -> None:
    evaluation = make_evaluation()
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]}
    good = {"prompt": "1 + 1?", "chosen": "2", "rejected": "3"}
    tools = {"prompt": [{"role": "user", "content": "Weather?"}], "chosen": [call], "rejected": [call]}
    preferences = import_rows(evaluation, good, tools, skip_bad=True)
    own = import_rows(evaluation, comparison_row("q8"), comparison_row("q9", response_a=[call]), skip_bad=True)
    assert (preferences.rows_bad, own.rows_bad) == (1, 1)
    assert Comparison.objects.count() == 2
    assert not Response.objects.filter(characters=0).exists()


def test_blank_rows_and_columns_are_counted_in_the_preview() -> None:
    columns = list(COMPARISON)
    cells = ",".join(COMPARISON.values())
    content = f"{','.join(columns)},,\n{cells},,\n{',' * len(columns)},\n{',' * len(columns)},\n"
    importing = preview_rows(make_evaluation(), content.encode(), name="rows.csv")
    assert (importing.rows_read, importing.rows_stored, importing.rows_bad) == (1, 1, 0)
    assert "Skipped 2 blank rows and 2 blank columns." in importing.summary.notes
