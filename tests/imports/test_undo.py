"""An import taken back: everything that it alone brought goes, and nothing else; not where something was made of it."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluations.comparisons.manual_comparisons import ManualComparison, add_comparison
from evaluations.comparisons.services import tag_comparisons
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState, NewResponse
from evaluations.domain.pairing import parse_pairing
from evaluations.domain.reviews import SelectionMethod
from evaluations.domain.roles import RaterKind, Role
from evaluations.domain.search import SearchQuery
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.imports import undo as imports_undo
from evaluations.imports.lifecycle import continue_import, sweep_imports
from evaluations.imports.pairs.services import start_pairing
from evaluations.imports.services import start_storing
from evaluations.imports.undo import describe_later_duplicates, start_undo
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.models.comparisons import Comparison, Tagging
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.jobs import Job
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.queues import Assignment, QueueItem
from evaluations.models.rubrics import Rubric
from evaluations.models.runs import Call
from evaluations.models.search_index import search_ids
from evaluations.models.transactions import MIN_BULK_ROWS, ROWS_PER_TRANSACTION
from evaluations.models.verdicts import Adjudication, Comment, Disclosure, Label
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from tests.factories.evaluations import make_evaluation, make_human, make_member, make_user
from tests.factories.full_evaluation import every_row
from tests.factories.imports import (
    comparison_row,
    continue_undo,
    encode_jsonl,
    import_rows,
    preview_rows,
    score_row,
    verdict_row,
)
from tests.factories.judges import make_baseline_judge, run_judge_here
from tests.factories.verdicts import ALL_A, make_review
from tests.helpers.job_work import hold_by_dead_worker, work_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consistent_packed_votes")]

# What tells that something happened, and when; not what is there.
CHRONICLE = {"event", "import", "defaultqueue", "job"}
MOMENTS = {"verdicts_changed_at", "verdict_changes", "comparisons_changed_at"}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for database in MIN_BULK_ROWS:
        monkeypatch.setitem(MIN_BULK_ROWS, database, 8)
        monkeypatch.setitem(ROWS_PER_TRANSACTION, database, 3)


def everything() -> dict[str, list[Mapping[str, Any]]]:
    return {
        model.__name__: [{column: value for column, value in row.items() if column not in MOMENTS} for row in rows]
        for model, rows in every_row()
        if model.__name__.lower() not in CHRONICLE
    }


def undo(importing: Import) -> Import:
    importing.refresh_from_db()
    start_undo(importing, user=None)
    assert not continue_undo(importing)
    importing.refresh_from_db()
    return importing


def refused(importing: Import) -> str:
    importing.refresh_from_db()
    before = everything()
    with pytest.raises(InputRefused) as error:
        start_undo(importing, user=None)
    assert everything() == before
    return str(error.value)


def counted(importing: Import) -> Import:
    work_all("count_labels")
    return importing


# ---- what goes -----------------------------------------------------------------------------------


def test_all_that_an_import_brought_goes_with_all_that_hangs_on_it(evaluation: Evaluation) -> None:
    kept = import_rows(evaluation, comparison_row("old"))
    work_all("index_import")
    before = everything()
    rows = [comparison_row(f"q{n}", candidate_b="gamma", category="new") for n in range(20)]
    importing = import_rows(evaluation, *rows)
    fill_default_queue(evaluation)
    work_all("index_import")
    newest = Comparison.objects.latest("pk")
    tag_comparisons(evaluation, [newest.pk], "hard", user=None)
    Disclosure.objects.create(evaluation=evaluation, user=evaluation.memberships.get().user, comparison=newest)
    assert (Tagging.objects.count(), QueueItem.objects.count()) == (1, 21)
    undo(importing)
    assert importing.state == ImportState.UNDONE
    QueueItem.objects.all().delete()
    after = everything()
    assert [row["name"] for row in after.pop("Tag")] == ["hard"]
    assert [row["removes"] for row in after.pop("TagChange")] == [False]  # history, like its event
    before.pop("Tag")
    before.pop("TagChange")
    assert after == before
    assert not importing.file
    assert Import.objects.get(pk=kept.pk).state == ImportState.DONE


def test_verdicts_go_and_the_labels_are_as_they_were(evaluation: Evaluation) -> None:
    import_rows(evaluation, *(comparison_row(f"q{n}") for n in range(9)))
    counted(import_rows(evaluation, *(verdict_row(f"q{n}", rater="ann") for n in range(9))))
    before = everything()
    others = [
        verdict_row(f"q{n}", rater="bob", choice="B", aspect=aspect) for n in range(9) for aspect in ("overall", "x")
    ]
    judge = [verdict_row("q1", rater="gpt", rater_kind="judge", choice="refused")]
    importing = counted(import_rows(evaluation, *others, *judge))
    assert {label.source for label in Label.objects.filter(aspect__key="overall")} == {"split"}
    undo(importing)
    after = everything()
    for rows in (before, after):  # a row that was written anew is the same row
        for label in rows["Label"]:
            label.pop("id"), label.pop("created_at")  # type: ignore[attr-defined]
    assert after == before
    assert not Rubric.objects.get(name="imported").versions.filter(rubric_aspects__aspect__key="x").exists()


def test_scores_and_the_comparisons_made_of_them_go(evaluation: Evaluation) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in "abc"]
    import_rows(evaluation, *rows, pair="baseline:a")
    before = everything()
    importing = counted(
        import_rows(evaluation, *(score_row("q1", name, value) for value, name in enumerate("abc")), derive_pairs=0.5)
    )
    assert (Comparison.objects.count(), Label.objects.count()) == (3, 3)
    undo(importing)
    assert everything() == before


def test_labels_that_its_scores_made_of_earlier_comparisons_go(evaluation: Evaluation) -> None:
    """Each of the responses stands in a comparison of the import, too."""
    two = [comparison_row(), comparison_row(candidate_a="gamma", candidate_b="zeta", response_a="x", response_b="y")]
    import_rows(evaluation, *two)
    before = everything()
    names = ("alpha", "beta", "gamma", "zeta")
    importing = import_rows(
        evaluation, *(score_row("q1", name, value) for value, name in enumerate(names)), derive_pairs=0.5
    )
    assert (
        Label.objects.filter(comparison__in=Comparison.objects.exclude(source_import=counted(importing))).count() == 2
    )
    undo(importing)
    assert everything() == before


def test_pairs_of_responses_that_were_here_go(evaluation: Evaluation) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in "abc"]
    import_rows(evaluation, *rows, pair="baseline:a")
    before = everything()
    importing = start_pairing(evaluation, parse_pairing("all"), confirmed=True, user=None)
    continue_import(importing)
    assert Comparison.objects.count() == 3
    undo(importing)
    assert everything() == before


def test_the_same_file_comes_in_again_as_if_it_had_never_been_here(evaluation: Evaluation) -> None:
    rows = [comparison_row(f"q{n}") for n in range(9)]
    first = import_rows(evaluation, *rows)
    undo(first)
    again = import_rows(evaluation, *rows)
    assert again.new_rows == first.new_rows
    assert (again.rows_stored, again.rows_unchanged) == (9, 0)
    assert Comparison.objects.count() == 9


def test_the_words_of_its_texts_are_found_no_more(evaluation: Evaluation) -> None:
    def found() -> list[int]:
        with connection.cursor() as cursor:
            search = search_ids(SearchQuery(required=(("rayleigh",),), excluded=()), None, None)
            cursor.execute(str(search.sql), list(search.params))
            return [pk for (pk,) in cursor.fetchall()]

    kept = import_rows(evaluation, comparison_row("old"))
    importing = import_rows(evaluation, *(comparison_row(f"q{n}") for n in range(5)))
    work_all("index_import")
    assert len(found()) == 6
    undo(importing)
    assert found() == list(Comparison.objects.filter(source_import=kept).values_list("pk", flat=True))


def test_what_others_came_to_use_of_its_names_stays(evaluation: Evaluation) -> None:
    first = import_rows(evaluation, comparison_row("q1"))
    import_rows(evaluation, comparison_row("q2"))
    undo(first)
    assert Comparison.objects.get().response_a.candidate.name == "alpha"


def test_a_version_of_the_imported_rubric_goes_with_the_last_import_that_needs_it(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    before = everything()
    first = import_rows(evaluation, verdict_row(aspect="x"))
    second = import_rows(evaluation, verdict_row(aspect="y"))
    undo(first)
    versions = Rubric.objects.get(name="imported").versions.order_by("number")
    assert list(versions.values_list("number", flat=True)) == [1, 2]
    undo(second)
    assert everything() == before


ROWS = st.lists(
    st.one_of(
        st.builds(comparison_row, st.sampled_from(("q1", "q2", "q3")), candidate_b=st.sampled_from(("beta", "gamma"))),
        st.builds(
            verdict_row,
            st.sampled_from(("q1", "q2")),
            rater=st.sampled_from(("ann", "bob")),
            aspect=st.sampled_from(("overall", "depth", "style")),
            choice=st.sampled_from(("A", "tie")),
        ),
        st.builds(
            score_row, st.sampled_from(("q1", "q2")), value=st.integers(1, 5), aspect=st.sampled_from(("x", "y"))
        ),
    ),
    max_size=6,
)
KIND = {"response_a": "comparisons", "choice": "verdicts", "value": "scores"}


def bring_each(evaluation: Evaluation, rows: Sequence[dict[str, Any]]) -> list[Import]:
    """A file for each kind of row, without what is bad."""
    made = []
    for column, name in KIND.items():
        if some := [row for row in rows if column in row]:
            made.append(counted(import_rows(evaluation, *some, skip_bad=True, format=name)))
    return made


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=ROWS, second=ROWS)
def test_after_an_undo_every_row_is_as_it_was(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    evaluation = make_evaluation()
    bring_each(evaluation, [comparison_row("q1"), *first])
    before = everything()
    for importing in reversed(bring_each(evaluation, second)):
        undo(importing)
    after = everything()
    for rows in (before, after):
        for label in rows["Label"]:
            label.pop("id"), label.pop("created_at")  # type: ignore[attr-defined]
        rows["Label"].sort(key=str)
    assert after == before


# ---- what keeps it -------------------------------------------------------------------------------


def test_a_review_keeps_it_and_is_counted(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row(), comparison_row("q2"))
    make_review(make_human(evaluation), Comparison.objects.earliest("pk"), ALL_A)
    assert refused(importing) == "rows.jsonl can't be undone: it was used in 1 review or draft."


def test_judge_calls_keep_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row(), comparison_row("q2"))
    run_judge_here(make_baseline_judge(evaluation))
    assert refused(importing) == "rows.jsonl can't be undone: it was used in 4 judge calls."


def test_calls_that_are_only_planned_keep_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    run = start_run(make_baseline_judge(evaluation), user=None)
    plan_run_calls(run.pk, until=float("inf"))
    assert "2 judge calls" in refused(importing)


def test_a_comment_and_a_resolution_keep_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    (one,), user = Comparison.objects.all(), make_member(evaluation, Role.OWNER)
    aspect = evaluation.aspects.earliest("pk")
    Comment.objects.create(comparison=one, user=user, text="Hm.")
    Adjudication.objects.create(comparison=one, aspect=aspect, user=user, choice="A", reason="Right.")
    assert refused(importing) == "rows.jsonl can't be undone: it was used in 1 resolution and 1 comment."


def test_a_reservation_alone_does_not_keep_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    reviewer = make_member(evaluation, Role.REVIEWER)
    assert reserve_next_comparison(evaluation, get_or_create_rater(reviewer, evaluation))
    assert undo(importing).state == ImportState.UNDONE
    assert not Assignment.objects.exists()
    assert not QueueItem.objects.exists()


def test_an_export_after_it_keeps_it_but_none_before_and_no_backup(evaluation: Evaluation) -> None:
    Export.objects.create(evaluation=evaluation, format="jsonl", state="done", rows=3, finished_at=timezone.now())
    importing = import_rows(evaluation, comparison_row())
    Export.objects.create(evaluation=evaluation, format="backup", state="done", rows=3, finished_at=timezone.now())
    later = Export.objects.create(evaluation=evaluation, format="csv", state="waiting")
    assert refused(importing) == "rows.jsonl can't be undone: it was used in 1 export."
    later.delete()
    # Without one row nothing left; but a folder has all comparisons beside its rows, which are preferences.
    done = {"evaluation": evaluation, "state": "done", "rows": 0, "finished_at": timezone.now()}
    Export.objects.create(format="dpo", **done)
    folder = Export.objects.create(format="hugging-face", **done)
    assert refused(importing) == "rows.jsonl can't be undone: it was used in 1 export."
    folder.delete()
    assert undo(importing).state == ImportState.UNDONE


def test_a_comparison_by_hand_of_its_response_keeps_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, {"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": "x"})
    response = importing.responses.get()
    written = ManualComparison("Why?", "alpha", "x", "zeta", "y")
    made = add_comparison(evaluation, written, user=None)
    if response.pk not in (made.response_a_id, made.response_b_id):  # by hand the query has another id
        Comparison.objects.filter(pk=made.pk).update(response_a=response)
    assert refused(importing) == "rows.jsonl can't be undone: it was used in 1 comparison added by hand."


@pytest.mark.parametrize(
    "rows",
    [
        [verdict_row()],
        [score_row()],
        [comparison_row(candidate_b="gamma", response_b="x")],
        [verdict_row(rater="gpt", rater_kind="judge", choice="failed")],
    ],
    ids=["verdicts", "scores", "comparisons", "failures"],
)
def test_an_import_that_builds_on_it_is_named_and_is_undone_first(
    evaluation: Evaluation, rows: list[dict[str, Any]]
) -> None:
    first = import_rows(evaluation, comparison_row())
    second = import_rows(evaluation, *rows)
    assert refused(first) == (
        f"rows.jsonl can't be undone: import {second.pk} (rows.jsonl) builds on it. Undo that one first."
    )
    undo(second)
    assert undo(first).state == ImportState.UNDONE


def test_a_resolution_of_what_its_verdicts_made_keeps_it(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = import_rows(
        evaluation, verdict_row(aspect="depth"), verdict_row(rater="bob", choice="B", aspect="depth")
    )
    (one,), user = Comparison.objects.all(), make_member(evaluation, Role.OWNER)
    aspect = evaluation.aspects.get(key="depth")
    Adjudication.objects.create(comparison=one, aspect=aspect, user=user, choice="A", reason="Right.")
    assert "1 resolution" in refused(importing)


def test_a_review_that_was_shown_its_judge_keeps_it(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    importing = import_rows(evaluation, verdict_row(rater="gpt", rater_kind="judge"))
    judge = Rater.objects.get(name="gpt", kind=RaterKind.JUDGE).judge
    make_review(make_human(evaluation), Comparison.objects.get(), ALL_A, judge=judge)
    assert "1 review or draft" in refused(importing)


def test_only_what_is_stored_can_be_undone_and_only_once(evaluation: Evaluation) -> None:
    checked = preview_rows(evaluation, encode_jsonl([comparison_row()]))
    assert refused(checked) == "rows.jsonl is not imported yet. Cancel it instead."
    importing = import_rows(evaluation, comparison_row("q2"))
    undo(importing)
    assert refused(importing) == "rows.jsonl was already undone."
    assert not continue_undo(importing)


def test_nothing_is_undone_while_another_import_is_stored_or_the_evaluation_is_archived(
    evaluation: Evaluation,
) -> None:
    importing = import_rows(evaluation, comparison_row())
    other = preview_rows(evaluation, encode_jsonl([comparison_row("q2")]))
    start_storing(other, skip_bad=False, user=None)
    assert refused(importing) == "Another import is in progress. Try again when it is done."
    continue_import(other)
    move_to_archive(evaluation, user=None)
    importing.evaluation.refresh_from_db()
    assert "is archived" in refused(importing)


def test_nothing_is_stored_while_an_import_is_being_undone(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    start_undo(importing, user=None)
    other = preview_rows(evaluation, encode_jsonl([comparison_row("q2")]))
    with pytest.raises(InputRefused, match="is being undone"):
        start_storing(other, skip_bad=False, user=None)
    continue_undo(importing)
    start_storing(other, skip_bad=False, user=None)


def test_files_that_came_later_with_the_same_rows_are_named(evaluation: Evaluation) -> None:
    first = import_rows(evaluation, comparison_row("q1"))
    assert describe_later_duplicates(first) == ""
    second = import_rows(evaluation, comparison_row("q1"), comparison_row("q2"))
    first.refresh_from_db()
    assert describe_later_duplicates(first) == (
        f"Rows of import {second.pk} (rows.jsonl) were skipped as duplicates. "
        "If they duplicated this file, import them again."
    )


def test_files_whose_rows_were_skipped_for_its_own_are_named(evaluation: Evaluation) -> None:
    answers = [{"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": text} for text in ("x", "y")]
    first = import_rows(evaluation, answers[0])
    second = import_rows(evaluation, answers[1], new_response=NewResponse.SKIP)
    first.refresh_from_db()
    assert describe_later_duplicates(first).startswith(
        f"Rows of import {second.pk} (rows.jsonl) were skipped as duplicates"
    )


# ---- at once, and over crashes -------------------------------------------------------------------


def test_it_is_hidden_at_once_and_gone_later(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, *(comparison_row(f"q{n}") for n in range(20)))
    reviewer = make_member(evaluation, Role.REVIEWER)
    fill_default_queue(evaluation)
    start_undo(importing, user=None)
    assert (Comparison.objects.count(), Comparison.all_rows.count()) == (0, 20)
    assert reserve_next_comparison(evaluation, get_or_create_rater(reviewer, evaluation)) is None
    while continue_undo(importing, seconds=0):
        importing.refresh_from_db()
    assert Comparison.all_rows.count() == 0
    assert importing.state == ImportState.UNDONE


def test_an_interrupted_undo_goes_on(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:

    before = everything()
    importing = import_rows(evaluation, *(comparison_row(f"q{n}") for n in range(20)))
    start_undo(importing, user=None)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(imports_undo, "delete_rows_of_import", killed)
        with pytest.raises(KeyboardInterrupt):
            continue_undo(importing)
    assert importing.pk in sweep_imports()
    hold_by_dead_worker("undo_import", importing.pk)
    assert importing.pk in sweep_imports()  # given up for dead
    importing.refresh_from_db()
    Job.objects.update(not_before=None)
    assert not continue_undo(importing)
    assert everything() == before


def test_what_was_on_its_way_while_everything_was_hidden_keeps_the_import(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    one = Comparison.objects.get()
    fill_default_queue(evaluation)
    judge = make_baseline_judge(evaluation)
    run = start_run(judge, user=None)
    start_undo(importing, user=None)
    Call.all_rows.create(judge=judge, comparison=one, shown="as_stored", sample=0, run=run)
    assert not continue_undo(importing)
    importing.refresh_from_db()
    assert (importing.state, importing.reason) == (
        ImportState.DONE,
        "rows.jsonl can't be undone: it was used in 1 judge call.",
    )
    assert Comparison.objects.get() == one
    assert fill_default_queue(evaluation) == 1


def test_an_event_says_who_undid_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    user = make_user()
    start_undo(importing, user=user)
    event = Event.objects.filter(object_type="import", object_id=importing.pk).latest("pk")
    assert (event.verb, event.user, event.before) == (
        "undid",
        user,
        {"queries": 1, "responses": 2, "comparisons": 1},
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_who_undo_at_once_one_is_told_so(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, *(comparison_row(f"q{n}") for n in range(5)))
    start, outcomes = threading.Barrier(2), list[str]()

    def try_it() -> None:
        try:
            start.wait(10)
            start_undo(Import.objects.get(pk=importing.pk), user=None)
            outcomes.append("")
        except InputRefused as refusal:
            outcomes.append(str(refusal))
        finally:
            connection.close()

    threads = [threading.Thread(target=try_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes)[0] == ""
    assert "undone" in sorted(outcomes)[1]


@pytest.mark.django_db(transaction=True)
def test_of_an_undo_and_a_run_that_is_planned_one_gives_way(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, *(comparison_row(f"q{n}") for n in range(30)))
    run = start_run(make_baseline_judge(evaluation), user=None)
    start, outcomes = threading.Barrier(2), list[str]()

    def try_it() -> None:
        try:
            start.wait(10)
            start_undo(Import.objects.get(pk=importing.pk), user=None)
        except InputRefused as refusal:
            outcomes.append(str(refusal))
        finally:
            connection.close()

    thread = threading.Thread(target=try_it)
    thread.start()
    start.wait(10)
    plan_run_calls(run.pk, until=float("inf"))
    thread.join()
    calls = Call.all_rows.count()
    assert calls == (60 if outcomes else 0)
    if outcomes:
        assert "judge calls" in outcomes[0]
    else:
        importing.refresh_from_db()
        assert not continue_undo(importing)
        assert not Comparison.all_rows.exists()


def test_choices_of_a_place_by_name_keep_it(evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    fill_default_queue(evaluation)
    item = QueueItem.objects.get()
    rater = make_human(evaluation)
    Assignment.objects.create(item=item, rater=rater, selection_method=SelectionMethod.BY_HAND, state="assigned")
    assert "1 assigned comparison" in refused(importing)
