"""A file into an evaluation: whole or not at all, once, and seen only when it is done."""

import io
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from pytest_django import DjangoAssertNumQueries

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState, NewResponse
from evaluations.domain.imports import ImportRequest
from evaluations.domain.roles import RaterKind, Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.imports.lifecycle import clean_up_import, continue_import, sweep_imports
from evaluations.imports.row_resolver import resolve_batch
from evaluations.imports.services import discard_import, keep_file, start_storing
from evaluations.jobs.claims import claim_job
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.imports import Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, Rubric
from evaluations.models.runs import Call
from evaluations.models.transactions import MIN_BULK_ROWS, TRANSACTION_SECONDS
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, verdict_row
from tests.helpers.job_work import hold_by_dead_worker, job_about, work_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consistent_packed_votes")]
MATERIAL = (Query, Response, Comparison, Verdict, Call)


@pytest.fixture(autouse=True)
def batches_of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same small steps on every database: 16 comparisons with all they bring, or 64 verdicts."""
    for database in MIN_BULK_ROWS:
        monkeypatch.setitem(MIN_BULK_ROWS, database, 64)
        monkeypatch.setitem(TRANSACTION_SECONDS, database, 0.0)


def rows_there() -> dict[str, int]:
    """Every row of the material, whoever may see it."""
    found = {model.__name__: model.all_rows.count() for model in MATERIAL}
    return {name: number for name, number in found.items() if number}


def bad_rows(importing: Import) -> list[tuple[int, str]]:
    return [(bad["line"], bad["reason"]) for bad in importing.bad_rows]


def one_reason(evaluation: Evaluation, *rows: dict[str, Any], **reading: Any) -> str:
    """The reason of the only bad row, which must be the last."""
    importing = preview_rows(evaluation, encode_jsonl(rows), **reading)
    ((line, reason),) = bad_rows(importing)
    assert line == len(rows)
    return reason


# ---- comparisons ------------------------------------------------------------------------------


def test_a_comparison_is_stored_with_its_query_and_both_responses(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row(category="science", cluster="sky", source="forum"))
    (stored,) = Comparison.objects.all()
    assert (stored.query.key, stored.query.cluster, stored.query.category) == ("q1", "sky", "science")
    assert (stored.response_a.candidate.name, stored.response_b.candidate.name) == ("alpha", "beta")
    assert stored.response_a.text == "Rayleigh scattering."
    assert stored.response_b.characters == len("It reflects the sea.")
    assert stored.metadata == {"source": "forum"}
    assert not stored.swapped
    assert importing.state == ImportState.DONE
    assert importing.new_rows == {"queries": 1, "responses": 2, "comparisons": 1}


def test_a_is_the_candidate_whose_name_sorts_first_by_code_points(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(candidate_a="alpha", candidate_b="Beta"))
    (stored,) = Comparison.objects.all()
    assert (stored.response_a.candidate.name, stored.response_b.candidate.name) == ("Beta", "alpha")
    assert stored.response_a.text == "It reflects the sea."
    assert stored.swapped


def test_several_comparisons_of_one_query_share_what_they_have_in_common(evaluation: Evaluation) -> None:
    import_rows(
        evaluation,
        comparison_row(),
        comparison_row(candidate_b="gamma", response_b="Dust."),
        comparison_row(response_b="Another sample of beta."),
        new_response=NewResponse.KEEP,
    )
    assert rows_there() == {"Query": 1, "Response": 4, "Comparison": 3}


def test_empty_responses_are_kept(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(response_a=""))
    assert Comparison.objects.get().response_a.text == ""


def test_the_same_file_twice_changes_nothing_the_second_time_and_says_so(evaluation: Evaluation) -> None:
    rows = [comparison_row(f"q{number}") for number in range(100)]
    import_rows(evaluation, *rows)
    before = rows_there()
    again = import_rows(evaluation, *rows)
    assert rows_there() == before
    assert (again.rows_stored, again.rows_unchanged, again.new_rows) == (0, 100, {})
    assert again.summary.warnings[0].startswith("This file was already imported on ")


def test_the_same_pair_with_its_sides_exchanged_is_the_same_comparison(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    again = import_rows(
        evaluation,
        comparison_row(
            candidate_a="beta",
            response_a="It reflects the sea.",
            candidate_b="alpha",
            response_b="Rayleigh scattering.",
        ),
    )
    assert (again.rows_stored, again.rows_unchanged) == (0, 1)


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"query": "Another?"}, "another text"),
        ({"context": "Given."}, "another text"),
        ({"cluster": "other"}, "another cluster"),
        ({"category": "other"}, "another category"),
    ],
)
def test_the_same_query_id_with_another_query_is_bad(
    evaluation: Evaluation, change: dict[str, Any], because: str
) -> None:
    first = comparison_row(cluster="sky", category="science")
    reason = one_reason(evaluation, first, {**first, **change})
    assert reason == f"prompt “q1” has {because} in line 1"
    import_rows(evaluation, first)
    assert one_reason(evaluation, {**first, **change}) == f"prompt “q1” has {because} in this evaluation"


def test_conflicts_are_found_across_batches_of_a_file(evaluation: Evaluation) -> None:
    rows = [comparison_row(f"q{number}") for number in range(600)]
    assert one_reason(evaluation, *rows, comparison_row("q1", query="Another?")) == (
        "prompt “q1” has another text in line 2"
    )


def test_a_bad_row_is_not_held_against_a_later_good_one(evaluation: Evaluation) -> None:
    half_bad = comparison_row(query="Spoilt?", response_b=None)
    importing = import_rows(evaluation, half_bad, comparison_row(), skip_bad=True)
    assert bad_rows(importing) == [(1, 'response_b is missing. Write an empty response as ""')]
    assert Query.objects.get().text == "Why is the sky blue?"


def test_another_evaluation_may_use_the_same_ids(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    other = import_rows(make_evaluation(), comparison_row(query="Another?"))
    assert other.rows_stored == 1


# ---- bad rows ---------------------------------------------------------------------------------


def test_nothing_of_a_file_with_a_bad_row_is_stored(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row(), comparison_row("q2", response_b=None)]))
    with pytest.raises(InputRefused) as refused:
        start_storing(importing, skip_bad=False, user=None)
    assert str(refused.value) == "rows.jsonl has 1 invalid row. Fix the file, or import the valid rows only."
    assert rows_there() == {}


def test_exactly_the_bad_rows_are_left_out_and_listed(evaluation: Evaluation) -> None:
    lines = [json.dumps(comparison_row(f"q{number}")) for number in range(1, 31)]
    lines[16] = lines[16][:-1]
    importing = preview_rows(evaluation, "\n".join(lines).encode())
    start_storing(importing, skip_bad=True, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    assert [line for line, _ in bad_rows(importing)] == [17]
    assert (importing.rows_read, importing.rows_stored, importing.rows_bad) == (30, 29, 1)
    assert not Query.objects.filter(key="q17").exists()


def test_bad_rows_are_all_counted_and_a_thousand_listed(evaluation: Evaluation) -> None:
    rows = [comparison_row(f"q{number}", response_b=None) for number in range(1_200)]
    importing = preview_rows(evaluation, encode_jsonl(rows))
    assert (importing.rows_bad, len(importing.bad_rows)) == (1_200, 1_000)


def test_what_became_bad_since_the_check_stores_nothing(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row("q0"), comparison_row("q1", query="Another?")]))
    import_rows(evaluation, comparison_row("q1"))
    before = rows_there()
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    assert importing.state == ImportState.FAILED
    assert importing.reason == (
        "Line 2: prompt “q1” has another text in this evaluation. "
        "The evaluation changed since the preview. Nothing was imported."
    )
    assert rows_there() == before


def test_a_file_that_cannot_be_read_leaves_no_import_behind(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused):
        preview_rows(evaluation, b"")
    assert not Import.objects.exists()


# ---- verdicts ---------------------------------------------------------------------------------


def test_a_verdict_makes_its_rater_and_brings_the_rubric_its_aspect_needs(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = import_rows(evaluation, verdict_row(rationale="Right.", note="sure", created_at="2026-01-31T12:00:00"))
    stored = Verdict.objects.get()
    assert (stored.rater.kind, stored.rater.name, stored.choice, stored.aspect.key) == ("human", "ann", "A", "overall")
    assert (stored.shown, stored.sample, stored.stage) == ("unknown", 0, "first")
    assert (stored.rationale, stored.note) == ("Right.", "sure")
    assert stored.created_at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert stored.rater.verdicts_changed_at is not None
    assert importing.summary.warnings == [
        "No rubric of this evaluation has the aspect overall. The import adds a rubric named “imported” for it."
    ]
    version = Rubric.objects.get(evaluation=evaluation, name="imported").versions.get()
    assert version.frozen_at is not None
    assert [one.choices for one in version.rubric_aspects.all()] == [("A", "B")]


def test_the_imported_rubric_offers_what_occurs_and_grows_by_versions(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(), comparison_row("q2"))
    import_rows(evaluation, verdict_row())
    import_rows(evaluation, verdict_row("q2", choice="tie"))
    import_rows(evaluation, verdict_row("q2", rater="bob", choice="B"))
    versions = Rubric.objects.get(evaluation=evaluation, name="imported").versions.order_by("number")
    assert [version.rubric_aspects.get().choices for version in versions] == [("A", "B"), ("A", "tie", "B")]


def test_the_imported_rubric_takes_another_name_where_that_is_taken(evaluation: Evaluation) -> None:
    Rubric.objects.create(evaluation=evaluation, name="imported")
    import_rows(evaluation, comparison_row())
    import_rows(evaluation, verdict_row())
    assert Rubric.objects.filter(evaluation=evaluation, name="imported 2", origin="imported").exists()


def test_an_aspect_of_the_evaluations_own_rubric_brings_no_other(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = import_rows(evaluation, verdict_row(aspect="Depth"))
    assert importing.summary.warnings == []
    assert Verdict.objects.get().aspect == Aspect.objects.get(evaluation=evaluation, key="depth")
    assert not Rubric.objects.filter(name="imported").exists()


def test_a_choice_that_the_rubric_does_not_offer_is_bad(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    assert one_reason(evaluation, verdict_row(aspect="depth", choice="both_bad")) == (
        "the rubric does not offer both_bad for depth"
    )


@pytest.mark.parametrize(("shown_swapped", "shown"), [(True, "as_stored"), (False, "swapped"), (None, "unknown")])
def test_a_row_with_its_names_in_the_other_order_is_turned_round(
    evaluation: Evaluation, shown_swapped: bool | None, shown: str
) -> None:
    import_rows(evaluation, comparison_row())
    import_rows(
        evaluation, verdict_row(candidate_a="beta", candidate_b="alpha", choice="A", shown_swapped=shown_swapped)
    )
    stored = Verdict.objects.get()
    assert (stored.choice, stored.shown) == ("B", shown)


def test_rows_in_the_other_order_are_counted_ties_included(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    turned = [verdict_row(candidate_a="beta", candidate_b="alpha", choice=choice) for choice in ("A", "tie")]
    importing = preview_rows(evaluation, encode_jsonl([verdict_row(rater="bob"), *turned]))
    assert importing.summary.notes == [
        "2 rows name the models in reverse order and will be swapped: A is always the model whose name sorts first."
    ]


UNNAMED: list[dict[str, Any]] = [
    {"instruction": "Why?", "output_1": "{}", "output_2": "{}", "preference": 1, "annotator": "gpt"},
    {"prompt": "Why?", "response_a": "{}", "response_b": "{}", "history": [{"judge_name": "gpt", "winner": "A"}]},
    {"input_text": "Why?", "output_text_a": "{}", "output_text_b": "{}", "score": 1, "tags": []},
    {"prompt": "Why?", "chosen": "{}", "rejected": "{}"},
]


@pytest.mark.parametrize("row", UNNAMED, ids=["alpaca-eval", "auto-arena", "llm-comparator", "preferences"])
def test_candidates_that_a_file_does_not_name_stand_in_no_other_order(
    evaluation: Evaluation, row: dict[str, Any]
) -> None:
    """They are named by their texts, half of them the other way round: the text that was preferred stays so."""
    query, first, second = list(row)[:3]
    rows = [{**row, query: f"Why {n}?", first: f"good {n}", second: f"bad {n}"} for n in range(12)]
    importing = import_rows(evaluation, *rows)
    assert not [note for note in importing.summary.notes if "other order" in note]
    chosen = Verdict.objects.filter(choice="A").values_list("comparison__response_a__messages", flat=True)
    turned = Verdict.objects.filter(choice="B").values_list("comparison__response_b__messages", flat=True)
    assert len(chosen) in range(1, 12)
    assert sorted(messages[0]["content"] for messages in [*chosen, *turned]) == sorted(f"good {n}" for n in range(12))


def test_verdicts_without_names_speak_of_the_file_the_comparison_came_from(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("0"), comparison_row("1", candidate_a="zeta"))
    import_rows(evaluation, {"idx": 0, "gpt_result": "1"}, {"idx": 1, "gpt_result": "1"})
    told = Verdict.objects.order_by("comparison__query__key").values_list("choice", "shown")
    assert list(told) == [("A", "unknown"), ("B", "unknown")]


def test_the_same_verdicts_twice_change_nothing_and_another_choice_is_bad(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    rows = [verdict_row(), verdict_row(choice="B"), verdict_row(shown_swapped=True), verdict_row(rater="bob")]
    assert import_rows(evaluation, *rows).rows_stored == 4
    assert sorted(Verdict.objects.values_list("rater__name", "shown", "sample")) == [
        ("ann", "swapped", 0),
        ("ann", "unknown", 0),
        ("ann", "unknown", 1),
        ("bob", "unknown", 0),
    ]
    assert import_rows(evaluation, *rows).rows_unchanged == 4
    assert one_reason(evaluation, verdict_row(sample=1, choice="tie")) == (
        "the same verdict in this evaluation has the choice B, not tie"
    )
    assert one_reason(evaluation, verdict_row(sample=7), verdict_row(sample=7, choice="B")) == (
        "the same verdict in line 1 has the choice A, not B"
    )


def test_two_votes_of_a_person_are_told_apart_from_a_turned_row_of_the_same_vote(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    turned = verdict_row(candidate_a="beta", candidate_b="alpha", choice="B", sample=0)
    assert import_rows(evaluation, verdict_row(sample=0), turned).rows_unchanged == 1


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"query_id": "q9"}, "prompt “q9” is not in this evaluation"),
        ({"candidate_b": "omega"}, "model “omega” is not in this evaluation"),
        ({"candidate_b": "gamma"}, "prompt “q1” has no comparison of “alpha” and “gamma”"),
        (
            {"query_id": "q2", "candidate_b": "gamma"},
            "prompt “q2” has 2 comparisons of “alpha” and “gamma”: name both models",
        ),
    ],
)
def test_a_verdict_on_what_is_not_here_is_bad(evaluation: Evaluation, change: dict[str, Any], because: str) -> None:
    two = [comparison_row("q2", candidate_b="gamma"), comparison_row("q2", candidate_b="gamma", response_b="Dust.")]
    import_rows(evaluation, comparison_row(), *two, new_response=NewResponse.KEEP)
    assert one_reason(evaluation, verdict_row(**change)) == because


def test_verdicts_of_a_file_that_joins_by_row_must_match_the_texts(evaluation: Evaluation) -> None:
    pair = {"input": "Add.", "output_1": "2", "output_2": "3"}
    answers = {order: {"completion": ["x", "stop"], "winner": "2"} for order in ("swap = False", "swap = True")}
    import_rows(evaluation, {**pair, "label": 1})
    assert import_rows(evaluation, {**pair, "results": [answers]}, rater="GPT-4").new_rows == {"verdicts": 2}
    assert one_reason(evaluation, {**pair, "output_1": "4", "results": [answers]}, rater="GPT-4") == (
        "the texts differ from prompt “0”: another file, or another order"
    )


def test_a_failure_of_a_judge_is_a_call_without_an_answer(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    row = verdict_row(rater="gpt", rater_kind="judge", choice="refused", rationale="I cannot.", shown_swapped=False)
    several = [{**row, "aspect": aspect} for aspect in ("depth", "clarity")]
    assert import_rows(evaluation, *several).new_rows == {"failures": 1}
    call = Call.objects.get()
    assert (call.state, call.shown, call.run, call.rationale) == ("refused", "as_stored", None, "I cannot.")
    assert (call.judge.kind, call.judge.name, call.judge.endpoint) == ("imported", "gpt", None)
    assert call.judge.raters.get().verdicts_changed_at is not None
    assert import_rows(evaluation, *several).rows_unchanged == 2
    assert one_reason(evaluation, {**row, "aspect": "depth", "choice": "failed"}) == (
        "the same verdict in this evaluation has the choice refused, not failed"
    )


def test_an_inconsistent_choice_is_a_tie_folded_from_both_orders(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    row = verdict_row(rater="gpt", rater_kind="judge", choice="inconsistent")
    import_rows(evaluation, row)
    stored = Verdict.objects.get()
    assert (stored.choice, stored.inconsistent, stored.shown) == ("tie", True, "folded")
    assert import_rows(evaluation, row).rows_unchanged == 1
    assert one_reason(evaluation, {**row, "choice": "tie", "shown_swapped": "folded"}) == (
        "the same verdict in this evaluation has the choice inconsistent, not tie"
    )


def test_nobody_who_works_here_is_given_imported_verdicts(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    Rater.objects.create(evaluation=evaluation, kind=RaterKind.HUMAN, name="ann", user=make_user())
    assert one_reason(evaluation, verdict_row()) == "“ann” is a user here. Rename the imported reviewer"
    version = evaluation.review_rubric
    judge = Judge.objects.create(
        evaluation=evaluation, name="longest", kind="rule", rubric_version=version, fingerprint="x"
    )
    row = verdict_row(rater="longest", rater_kind="judge")
    refusal = "“longest” is a judge of this evaluation. Rename the imported judge"
    assert one_reason(evaluation, row) == refusal
    Rater.objects.create(evaluation=evaluation, kind=RaterKind.JUDGE, name="longest", judge=judge)
    assert one_reason(evaluation, row) == refusal


# ---- invisible until done, and swept where it will never be ------------------------------------


def half_stored(evaluation: Evaluation) -> Import:
    """An import of 40 comparisons that was put down after its first batch of 16."""
    rows = [comparison_row(f"q{number}", candidate_a=f"model{number % 3}") for number in range(40)]
    importing = preview_rows(evaluation, encode_jsonl(rows))
    start_storing(importing, skip_bad=False, user=None)
    assert continue_import(importing, seconds=0)
    importing.refresh_from_db()
    return importing


def test_nobody_sees_a_row_before_the_last_step(evaluation: Evaluation) -> None:
    importing = half_stored(evaluation)
    assert rows_there() == {"Query": 16, "Response": 32, "Comparison": 16}
    assert not Comparison.objects.exists()
    assert not Query.objects.exists()
    assert (importing.state, importing.rows_stored) == (ImportState.STORING, 16)
    while continue_import(importing, seconds=0):
        assert not Comparison.objects.exists()
    assert Comparison.objects.count() == 40
    importing.refresh_from_db()
    assert importing.rows_stored == 40


def test_storing_in_many_short_turns_gives_what_one_turn_gives(evaluation: Evaluation) -> None:
    import_rows(evaluation, *[comparison_row(f"q{number}") for number in range(70)])
    votes = [verdict_row(f"q{number % 70}", choice="AB"[number % 2]) for number in range(210)]
    importing = preview_rows(evaluation, encode_jsonl(votes))
    start_storing(importing, skip_bad=False, user=None)
    turns = 1
    while continue_import(importing, seconds=0):
        turns += 1
    assert turns == 5  # 64 + 64 + 64 + 18, and one that finds nothing left
    assert sorted(set(Verdict.objects.values_list("sample", flat=True))) == [0, 1, 2]
    assert import_rows(evaluation, *votes).rows_unchanged == 210


def test_one_worker_at_a_time_stores_an_import(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    start_storing(importing, skip_bad=False, user=None)
    assert claim_job(job_about("import", importing.pk).pk)
    assert not continue_import(importing)
    assert rows_there() == {}


def test_a_second_import_waits_for_the_first(evaluation: Evaluation) -> None:
    half_stored(evaluation)
    with pytest.raises(InputRefused, match="Another import is in progress"):
        import_rows(evaluation, comparison_row("other"))


def test_a_long_file_is_checked_in_the_background(evaluation: Evaluation) -> None:
    rows = [comparison_row(f"q{number}", response_b=None if number == 3 else "x") for number in range(40)]
    importing = keep_file(
        evaluation, io.BytesIO(encode_jsonl(rows)), "rows.jsonl", ImportRequest(), ImportState.CHECKING, user=None
    )
    assert (importing.state, importing.is_checked) == (ImportState.CHECKING, False)
    with pytest.raises(InputRefused, match=r"rows\.jsonl is still being checked"):
        start_storing(importing, skip_bad=True, user=None)
    assert sweep_imports() == [importing.pk]
    assert not continue_import(importing)
    importing.refresh_from_db()
    assert (importing.state, importing.rows_read, importing.rows_bad) == (ImportState.PREVIEWED, 40, 1)
    start_storing(importing, skip_bad=True, user=None)
    assert not continue_import(importing)
    assert Comparison.objects.count() == 39


def test_a_long_file_that_cannot_be_read_fails_and_is_not_kept(evaluation: Evaluation) -> None:
    content = b"query_id,query,candidate_a,response_a,candidate_b,response_b\n" + b'q,"never closed\n'
    importing = keep_file(evaluation, io.BytesIO(content), "rows.csv", ImportRequest(), ImportState.CHECKING, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    assert importing.state == ImportState.FAILED
    assert importing.reason
    assert not importing.file


def test_a_long_file_of_unknown_columns_is_kept_until_somebody_says_what_they_mean(evaluation: Evaluation) -> None:
    importing = keep_file(
        evaluation, io.BytesIO(b"lorem,ipsum\n1,2\n"), "rows.csv", ImportRequest(), ImportState.CHECKING, user=None
    )
    continue_import(importing)
    importing.refresh_from_db()
    assert importing.state == ImportState.MAPPING
    assert importing.reason.startswith("Unknown format: the columns of rows.csv (lorem, ipsum) match none.")
    discard_import(importing, user=None)
    clean_up_import(importing)
    assert not importing.file


def test_checking_stops_when_its_import_is_cancelled(evaluation: Evaluation) -> None:
    importing = keep_file(
        evaluation,
        io.BytesIO(encode_jsonl([comparison_row()])),
        "rows.jsonl",
        ImportRequest(),
        ImportState.CHECKING,
        user=None,
    )
    stale = Import.objects.get(pk=importing.pk)
    discard_import(importing, user=None)
    assert not continue_import(stale)
    assert Import.objects.get().state == ImportState.CANCELLED


def test_what_another_import_left_behind_is_cleared_away_first(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    discard_import(half_stored(evaluation), user=None)
    importing = preview_rows(evaluation, encode_jsonl([comparison_row("other")]))
    monkeypatch.setattr("evaluations.imports.lifecycle.CLEANUP_SECONDS", 0)
    with pytest.raises(InputRefused, match="still being cleaned up"):
        start_storing(importing, skip_bad=False, user=None)
    monkeypatch.undo()
    start_storing(importing, skip_bad=False, user=None)
    assert rows_there() == {}


def test_nothing_is_imported_into_an_archived_evaluation(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    move_to_archive(evaluation, user=None)
    importing.refresh_from_db()
    with pytest.raises(InputRefused, match="This evaluation is archived"):
        preview_rows(evaluation, encode_jsonl([comparison_row()]))
    with pytest.raises(InputRefused, match="This evaluation is archived"):
        start_storing(importing, skip_bad=False, user=None)


def test_a_stored_import_is_not_stored_again(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    with pytest.raises(InputRefused, match=r"rows\.jsonl was already imported or discarded"):
        start_storing(importing, skip_bad=False, user=None)


def test_a_cancelled_import_leaves_nothing(evaluation: Evaluation) -> None:
    importing = half_stored(evaluation)
    discard_import(importing, user=None)
    assert sweep_imports() == []
    importing.refresh_from_db()
    assert importing.state == ImportState.CANCELLED
    assert importing.finished_at is not None
    assert rows_there() == {}
    assert not Candidate.objects.exists()
    assert not importing.file
    event = Event.objects.latest("pk")
    assert (event.verb, event.object_id, event.user) == ("removed names", importing.pk, None)
    assert event.after == {"candidates": 4}


def test_a_sweep_that_removes_no_names_records_none(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = preview_rows(evaluation, encode_jsonl([comparison_row("other")]))
    discard_import(importing, user=None)
    clean_up_import(importing)
    assert Event.objects.latest("pk").verb == "cancelled"


def test_a_worker_stops_when_its_import_is_cancelled(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    importing = half_stored(evaluation)

    def cancelled_meanwhile(*args: Any) -> Any:
        discard_import(importing, user=None)
        return resolve_batch(*args)

    monkeypatch.setattr("evaluations.imports.storage.resolve_batch", cancelled_meanwhile)
    assert not continue_import(importing)
    importing.refresh_from_db()
    assert (importing.state, rows_there()) == (ImportState.CANCELLED, {})


def test_a_dead_import_is_given_up_and_leaves_nothing_but_can_be_stored_again(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_rows(evaluation, comparison_row("verdict"))
    importing = preview_rows(evaluation, encode_jsonl([verdict_row("verdict", rater="gpt", rater_kind="judge")]))
    start_storing(importing, skip_bad=False, user=None)
    monkeypatch.setattr("evaluations.imports.storage.finish_import", lambda importing: None)
    continue_import(importing)
    hold_by_dead_worker("import", importing.pk)
    assert sweep_imports() == []
    importing.refresh_from_db()
    assert importing.state == ImportState.FAILED
    assert not Verdict.all_rows.exists()
    assert not Rater.objects.exists()
    assert not Judge.objects.exists()
    monkeypatch.undo()
    start_storing(importing, skip_bad=False, user=None)
    assert not continue_import(importing)
    assert Verdict.objects.count() == 1


def killed_while_checking(importing: Import) -> None:
    hold_by_dead_worker("import", importing.pk)
    Import.objects.filter(pk=importing.pk).update(rows_read=1)


def test_a_check_that_a_killed_process_left_is_made_again_without_the_file_being_sent_again(
    evaluation: Evaluation,
) -> None:
    content = io.BytesIO(encode_jsonl([comparison_row()]))
    importing = keep_file(evaluation, content, "rows.jsonl", ImportRequest(), ImportState.CHECKING, user=None)
    killed_while_checking(importing)
    assert sweep_imports() == [importing.pk]
    importing.refresh_from_db()
    assert (importing.state, importing.rows_read) == (ImportState.CHECKING, 0)
    assert not continue_import(importing)
    assert (importing.state, importing.rows_read) == (ImportState.PREVIEWED, 1)


def test_a_file_that_kills_whoever_checks_it_is_given_up(evaluation: Evaluation) -> None:
    content = io.BytesIO(encode_jsonl([comparison_row()]))
    importing = keep_file(evaluation, content, "rows.jsonl", ImportRequest(), ImportState.CHECKING, user=None)
    for left in ([importing.pk], []):
        killed_while_checking(importing)
        assert sweep_imports() == left
    importing.refresh_from_db()
    assert (importing.state, importing.file.name) == (ImportState.FAILED, "")


def test_a_check_is_handed_over_by_a_process_that_is_told_to_stop(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO(encode_jsonl([comparison_row()]))
    importing = keep_file(evaluation, content, "rows.jsonl", ImportRequest(), ImportState.CHECKING, user=None)
    told = threading.Event()
    told.set()
    monkeypatch.setattr("evaluations.imports.preview.PROCESS_STOPPING", told)
    assert continue_import(importing)
    assert sweep_imports() == [importing.pk]
    told.clear()
    assert not continue_import(importing)
    assert importing.state == ImportState.PREVIEWED


def test_a_second_message_about_an_import_does_nothing(evaluation: Evaluation) -> None:
    importing = half_stored(evaluation)
    assert claim_job(job_about("import", importing.pk).pk) is not None
    rows = rows_there()
    assert not work_once("import", importing.pk)
    assert not continue_import(importing)
    assert (importing.state, rows_there()) == (ImportState.STORING, rows)


def test_whoever_lost_an_import_to_another_stores_no_more_of_it(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing = half_stored(evaluation)

    def given_up_meanwhile(*args: Any) -> Any:
        hold_by_dead_worker("import", importing.pk)
        sweep_imports()
        return resolve_batch(*args)

    monkeypatch.setattr("evaluations.imports.storage.resolve_batch", given_up_meanwhile)
    assert not continue_import(importing)
    assert (importing.state, rows_there()) == (ImportState.FAILED, {})


def test_a_sweep_leaves_what_somebody_else_uses_by_now(evaluation: Evaluation) -> None:
    importing = half_stored(evaluation)
    make_comparison(evaluation, key="by hand", candidates=("model1", "someone"))
    discard_import(importing, user=None)
    clean_up_import(importing)
    assert sorted(Candidate.objects.values_list("name", flat=True)) == ["model1", "someone"]


def test_an_import_that_waits_for_a_worker_is_named_to_be_nudged(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    start_storing(importing, skip_bad=False, user=None)
    assert sweep_imports() == [importing.pk]


def test_a_row_that_came_by_another_door_meanwhile_is_taken_as_it_is(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    start_storing(importing, skip_bad=False, user=None)

    def overtaken(*args: Any) -> Any:
        batch = resolve_batch(*args)
        if not Candidate.objects.filter(evaluation=evaluation).exists():
            Candidate.objects.create(evaluation=evaluation, name="alpha")
        return batch

    monkeypatch.setattr("evaluations.imports.storage.resolve_batch", overtaken)
    assert not continue_import(importing)
    assert Comparison.objects.count() == 1


def test_what_is_stored_stays_where_the_database_will_not_look_at_it_afterwards(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: type) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr("evaluations.imports.storage.refresh_statistics", gone)
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    start_storing(importing, skip_bad=False, user=None)
    with pytest.raises(OperationalError):
        continue_import(importing)
    importing.refresh_from_db()
    assert importing.state == ImportState.DONE
    assert Comparison.objects.count() == 1


def test_a_fault_of_the_program_leaves_nothing_and_is_not_swallowed(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing = half_stored(evaluation)
    monkeypatch.setattr("evaluations.imports.storage.resolve_batch", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        continue_import(importing)
    importing.refresh_from_db()
    assert (importing.state, rows_there()) == (ImportState.FAILED, {})


def test_every_step_writes_its_event(evaluation: Evaluation) -> None:
    user = make_member(evaluation, Role.MANAGER)
    importing = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    start_storing(importing, skip_bad=False, user=user)
    continue_import(importing)
    told = Event.objects.filter(object_type="import", object_id=importing.pk).order_by("pk")
    assert [event.verb for event in told] == ["received", "began storing", "stored"]


# ---- speed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 16])
def test_a_batch_costs_the_same_queries_whatever_it_holds(
    evaluation: Evaluation, django_assert_max_num_queries: DjangoAssertNumQueries, number: int
) -> None:
    rows = [comparison_row(f"q{place}", candidate_a=f"model{place}") for place in range(number)]
    importing = preview_rows(evaluation, encode_jsonl(rows))
    start_storing(importing, skip_bad=False, user=None)
    # PostgreSQL first looks for a free job, in a savepoint, and analyzes the tables at the end.
    more = 4 * (connection.vendor == "postgresql")
    # The last of them looks for the next import of the queue.
    with django_assert_max_num_queries(45 + more):
        continue_import(importing)


# ---- real data --------------------------------------------------------------------------------


@pytest.mark.data
def test_pandalm_is_stored_whole_and_the_second_time_not_at_all(evaluation: Evaluation, acceptance_data: Path) -> None:
    folder = acceptance_data / "pandalm"
    for expected in ((999, 0), (0, 999)):
        for name in ("testset-v1.json", "gpt-3.5-turbo-testset-v1.json"):
            importing = preview_rows(evaluation, (folder / name).read_bytes(), name=name)
            start_storing(importing, skip_bad=False, user=None)
            continue_import(importing)
            importing.refresh_from_db()
            assert (importing.rows_stored, importing.rows_unchanged) == expected
    assert rows_there() == {"Query": 999, "Response": 1_998, "Comparison": 999, "Verdict": 2_997 + 974, "Call": 25}
    assert Query.objects.values("cluster").distinct().count() == 170


@pytest.mark.data
def test_llmbar_judges_join_by_row_and_refuse_another_files_rows(evaluation: Evaluation, acceptance_data: Path) -> None:
    natural, inverted = (
        acceptance_data / "llmbar" / "Dataset" / "LLMBar" / part for part in ("Natural", "Adversarial/GPTInst")
    )
    result = "evaluators/GPT-4/Vanilla_NoRules/result.json"

    def stored(content: bytes, **reading: Any) -> Import:
        importing = preview_rows(evaluation, content, **reading)
        start_storing(importing, skip_bad=False, user=None)
        continue_import(importing)
        importing.refresh_from_db()
        return importing

    stored((natural / "dataset.json").read_bytes(), id_prefix="n-")
    assert stored((natural / result).read_bytes(), id_prefix="n-", rater="GPT-4").new_rows == {"verdicts": 200}
    wrong = preview_rows(evaluation, (inverted / result).read_bytes(), id_prefix="n-", rater="GPT-4")
    assert (wrong.rows_read, wrong.rows_bad) == (92, 92)
