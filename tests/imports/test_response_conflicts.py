"""A candidate's second, different response to one query: refused with both, unless it is numbered or decided."""

from typing import Any

import pytest

from evaluations.comparisons.services import tag_comparisons
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState, NewResponse
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.services import start_storing
from evaluations.imports.undo import start_undo
from evaluations.models.comparisons import Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.queues import QueueItem
from evaluations.models.verdicts import Score
from evaluations.reviews.queues.items import fill_default_queue
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, score_row, verdict_row
from tests.factories.judges import make_baseline_judge, run_judge_here

pytestmark = pytest.mark.django_db


def answer(response: str, key: str = "q1", candidate: str = "alpha", **columns: Any) -> dict[str, Any]:
    return {"query_id": key, "query": "Why?", "candidate": candidate, "response": response, **columns}


def bad(importing: Import) -> list[tuple[int, str]]:
    return [(one["line"], one["reason"]) for one in importing.bad_rows]


HOW = "Keep both, replace the other or skip this row, or number the samples in a column “sample”"


def test_within_a_file_the_second_is_bad_and_names_the_line_of_the_first(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([answer("Because."), answer("No idea.")]))
    assert bad(importing) == [
        (2, f"“alpha” already has another response to prompt “q1” in line 1 (“Because.”): not “No idea.”. {HOW}")
    ]


def test_the_first_is_found_across_batches_of_a_file(evaluation: Evaluation) -> None:
    rows = [answer(f"Because {number}.", f"q{number}") for number in range(4_500)]
    importing = preview_rows(evaluation, encode_jsonl([*rows, answer("No.", "q7"), answer("Because 8.", "q8")]))
    ((line, reason),) = bad(importing)
    assert (line, importing.rows_stored, importing.rows_unchanged) == (4_501, 4_500, 1)
    assert reason.startswith("“alpha” already has another response to prompt “q7” in line 8 (“Because 7.”): not “No.”")


def test_against_what_is_stored_the_second_names_the_import(evaluation: Evaluation) -> None:
    first = import_rows(evaluation, answer("Because."))
    importing = preview_rows(evaluation, encode_jsonl([answer("No.")]))
    ((_, reason),) = bad(importing)
    assert f"from import {first.pk} (“Because.”): not “No.”" in reason


def test_a_long_text_is_cut_and_lines_are_joined_in_the_sentence(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([answer("word\n" * 90), answer("x" * 900)]))
    ((_, reason),) = bad(importing)
    assert "\n" not in reason
    assert len(reason) < 300


def test_rows_of_comparisons_are_held_to_the_same_rule(evaluation: Evaluation) -> None:
    rows = [comparison_row(), comparison_row(candidate_b="gamma", response_b="x"), comparison_row(response_b="Other.")]
    ((line, reason),) = bad(preview_rows(evaluation, encode_jsonl(rows)))
    assert line == 3
    assert "“beta” already has another response to prompt “q1” in line 1 (“It reflects the sea.”)" in reason


def test_a_bad_row_gives_its_candidate_no_response(evaluation: Evaluation) -> None:
    rows = [comparison_row(response_a="Spoilt.", response_b=None), comparison_row()]
    assert [line for line, _ in bad(preview_rows(evaluation, encode_jsonl(rows)))] == [1]


def test_the_same_text_is_no_second_response(evaluation: Evaluation) -> None:
    assert import_rows(evaluation, answer("Because."), answer("Because.")).rows_unchanged == 1
    assert preview_rows(evaluation, encode_jsonl([answer("Because.")])).rows_unchanged == 1


def test_candidates_that_a_file_does_not_name_are_no_models_with_two_responses(evaluation: Evaluation) -> None:
    rows = [{"prompt": "Why?", "chosen": f"good {number}", "rejected": f"bad {number}"} for number in range(9)]
    assert import_rows(evaluation, *rows).rows_stored == 9
    assert import_rows(evaluation, *rows).rows_unchanged == 9


# ---- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [str, int, float, lambda place: f"{place}.0"])
def test_numbered_samples_are_different_responses_of_one_candidate(evaluation: Evaluation, number: Any) -> None:
    rows = [answer(f"Answer {place}.", sample=number(place)) for place in range(3)]
    assert import_rows(evaluation, *rows, answer("B.", candidate="beta")).rows_stored == 4
    assert Response.objects.filter(candidate__name="alpha").count() == 3
    assert Comparison.objects.count() == 3
    assert sorted(one.metadata["sample"] for one in Response.objects.filter(candidate__name="alpha")) == [0, 1, 2]
    assert import_rows(evaluation, *rows).rows_unchanged == 3


def test_a_sample_with_another_text_under_the_same_number_is_bad(evaluation: Evaluation) -> None:
    rows = [answer("One.", sample=1), answer("Two.", sample=2), answer("Zwei.", sample=2)]
    ((line, reason),) = bad(preview_rows(evaluation, encode_jsonl(rows)))
    assert (line, reason.partition(":")[0]) == (
        3,
        "sample 2 of “alpha” already has another response to prompt “q1” in line 2 (“Two.”)",
    )
    import_rows(evaluation, *rows[:2])
    ((line, reason),) = bad(
        preview_rows(evaluation, encode_jsonl([answer("Zwei.", sample=2), answer("Three.", sample=3)]))
    )
    assert (line, "(“Two.”)" in reason) == (1, True)


def test_a_response_without_a_number_is_no_sample_beside_numbered_ones(evaluation: Evaluation) -> None:
    numbers: list[tuple[dict[str, Any], dict[str, Any]]] = [({"sample": 1}, {}), ({}, {"sample": 1})]
    for one, other in (*numbers, ({"sample": -1}, {"sample": 0})):
        importing = preview_rows(evaluation, encode_jsonl([answer("One.", **one), answer("Two.", **other)]))
        assert [line for line, _ in bad(importing)] == [2]
    import_rows(evaluation, answer("One."))
    assert [line for line, _ in bad(preview_rows(evaluation, encode_jsonl([answer("Two.", sample=1)])))] == [1]


def test_texts_that_look_alike_are_said_to() -> None:
    rows = [answer("One."), answer("One. ")]
    ((_, reason),) = bad(preview_rows(make_evaluation(), encode_jsonl(rows)))
    assert "in line 1 (“One.”): not “One.” (they differ later, or in whitespace)." in reason


def test_samples_of_comparisons_are_numbered_too(evaluation: Evaluation) -> None:
    rows = [comparison_row(response_a=f"a{number}", response_b=f"b{number}", sample=number) for number in range(3)]
    assert import_rows(evaluation, *rows).rows_stored == 3
    assert Response.objects.count() == 6


def test_a_score_beside_a_sample_is_of_that_sample(evaluation: Evaluation) -> None:
    rows = [answer(f"Answer {n}.", sample=n, value=n, rater="ann", rater_kind="human") for n in (1, 2)]
    import_rows(evaluation, *rows, format="responses", mapping={"value": "value"})
    given = {one.response.text: (one.value, one.sample) for one in Score.objects.select_related("response")}
    assert given == {"Answer 1.": (1.0, 1), "Answer 2.": (2.0, 2)}
    ((_, reason),) = bad(preview_rows(evaluation, encode_jsonl([score_row(rater="bob")])))
    assert "has 2 responses of “alpha”: unclear which is meant" in reason


# ---- decided -------------------------------------------------------------------------------------


def test_keep_keeps_both(evaluation: Evaluation) -> None:
    import_rows(evaluation, answer("Because."), answer("B.", candidate="beta"))
    importing = import_rows(evaluation, answer("No."), answer("Perhaps."), new_response=NewResponse.KEEP)
    assert (importing.rows_stored, importing.rows_bad) == (2, 0)
    assert Response.objects.filter(candidate__name="alpha").count() == 3
    assert Comparison.objects.count() == 3
    again = preview_rows(evaluation, encode_jsonl([answer("No."), answer("Perhaps."), answer("No.")]))
    assert (again.rows_unchanged, again.rows_bad) == (3, 0)


def test_skip_leaves_the_row_out_and_counts_it(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    rows = [
        comparison_row(response_a="Other."),
        comparison_row("q2"),
        comparison_row("q2", response_b="Other."),
        comparison_row(),
    ]
    checked = preview_rows(evaluation, encode_jsonl(rows), new_response=NewResponse.SKIP)
    assert (checked.rows_stored, checked.rows_unchanged, checked.rows_skipped, checked.rows_bad) == (1, 1, 2, 0)
    stored = import_rows(evaluation, *rows, new_response=NewResponse.SKIP)
    assert (stored.rows_stored, stored.rows_unchanged, stored.rows_skipped, stored.rows_bad) == (1, 1, 2, 0)
    assert not Response.objects.filter(messages__0__content="Other.").exists()


def test_what_is_skipped_brings_nothing_else_of_its_row(evaluation: Evaluation) -> None:
    import_rows(evaluation, answer("Because."))
    row = answer("No.", value=4, rater="ann", rater_kind="human")
    importing = import_rows(
        evaluation,
        row,
        answer("x", "q2"),
        format="responses",
        mapping={"value": "value"},
        new_response=NewResponse.SKIP,
    )
    assert (importing.rows_skipped, Score.objects.count(), Query.objects.count()) == (1, 0, 2)


# ---- replaced ------------------------------------------------------------------------------------


def test_replace_takes_the_others_place_and_pairs_are_made_with_it(evaluation: Evaluation) -> None:
    import_rows(evaluation, answer("Wrong."), answer("B.", candidate="beta"), answer("C.", candidate="gamma"))
    fill_default_queue(evaluation)
    tag_comparisons(evaluation, [Comparison.objects.earliest("pk").pk], "hard", user=None)
    checked = preview_rows(evaluation, encode_jsonl([answer("Right.")]), new_response=NewResponse.REPLACE)
    assert (checked.rows_stored, checked.rows_bad, checked.new_rows) == (1, 0, {"responses": 1, "comparisons": 2})
    importing = import_rows(evaluation, answer("Right."), new_response=NewResponse.REPLACE)
    assert importing.new_rows == {"responses": 1, "comparisons": 2}
    assert sorted(one.text for one in Response.objects.all()) == ["B.", "C.", "Right."]
    assert (Response.all_rows.count(), Comparison.all_rows.count()) == (3, 3)
    assert fill_default_queue(evaluation) == 2
    assert QueueItem.objects.count() == 3
    assert preview_rows(evaluation, encode_jsonl([answer("Right.")])).rows_unchanged == 1


def test_the_other_is_seen_until_the_last_row_is_stored(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(), comparison_row("q2"))
    rows = [comparison_row(response_a="Other."), comparison_row("q2", response_b="Other.")]
    importing = preview_rows(evaluation, encode_jsonl(rows), new_response=NewResponse.REPLACE)
    start_storing(importing, skip_bad=False, user=None)
    assert continue_import(importing, seconds=0)
    assert sorted({one.text for one in Response.objects.all()}) == ["It reflects the sea.", "Rayleigh scattering."]
    while continue_import(importing):
        pass
    assert Comparison.objects.count() == 2
    assert Response.objects.filter(messages__0__content="Other.").count() == 2


def test_what_was_used_is_not_replaced_and_says_so(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(), comparison_row("q2"))
    import_rows(evaluation, verdict_row("q1"))
    rows = [comparison_row(response_a="Other."), comparison_row("q2", response_a="Other.")]
    importing = preview_rows(evaluation, encode_jsonl(rows), new_response=NewResponse.REPLACE)
    ((line, reason),) = bad(importing)
    assert (line, importing.rows_stored) == (1, 1)
    assert reason.endswith(
        "The other cannot be replaced: it was already judged, reviewed, scored, discussed, reserved or exported"
    )


def test_what_is_used_between_the_check_and_the_last_row_is_not_replaced(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = preview_rows(
        evaluation, encode_jsonl([comparison_row(response_a="Other.")]), new_response=NewResponse.REPLACE
    )
    start_storing(importing, skip_bad=False, user=None)
    assert continue_import(importing, seconds=0)
    run_judge_here(make_baseline_judge(evaluation))
    continue_import(importing)
    importing.refresh_from_db()
    assert importing.state == ImportState.FAILED
    assert "used since the file was checked. Nothing was stored" in importing.reason
    assert Response.all_rows.count() == 2


def test_a_file_does_not_replace_what_it_brought_itself(evaluation: Evaluation) -> None:
    import_rows(evaluation, answer("Old."))
    importing = preview_rows(
        evaluation, encode_jsonl([answer("New."), answer("Newer.")]), new_response=NewResponse.REPLACE
    )
    ((line, reason),) = bad(importing)
    assert (line, reason.rpartition(". ")[2]) == (2, "A file cannot replace its own responses")
    assert "in line 1 (“New.”)" in reason


def test_of_several_responses_none_is_replaced(evaluation: Evaluation) -> None:
    import_rows(evaluation, answer("One."), answer("Two."), new_response=NewResponse.KEEP)
    importing = preview_rows(evaluation, encode_jsonl([answer("Three.")]), new_response=NewResponse.REPLACE)
    assert "It has 2 responses, so it is unclear which to replace" in bad(importing)[0][1]


def test_an_import_that_replaced_something_is_not_undone(evaluation: Evaluation) -> None:
    import_rows(evaluation, answer("Old."))
    importing = import_rows(evaluation, answer("New."), new_response=NewResponse.REPLACE)
    with pytest.raises(InputRefused, match="used in 1 replaced response"):
        start_undo(importing, user=None)
