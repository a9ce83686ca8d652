"""An import taken back: everything that it alone brought goes, and nothing else; not where something was made of it."""

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluations.domain import ImportState, InputRefused, NewResponse, PickedBy, RaterKind, Role
from evaluations.domain.searching import Search
from evaluations.models import (
    Adjudication,
    Assignment,
    Call,
    Comment,
    Comparison,
    Evaluation,
    Event,
    Export,
    Import,
    Label,
    QueueItem,
    Rater,
    Rubric,
    Tagging,
)
from evaluations.models.searching import ids_with
from evaluations.services.import_undo import begin_undo, go_on, later_duplicates
from evaluations.services.importing.adding import Written, add_comparison
from evaluations.services.importing.coupling import couple
from evaluations.services.importing.importing import begin, store
from evaluations.services.importing.indexing import catch_up
from evaluations.services.importing.sweeping import AT_ONCE, LEAST_AT_ONCE, sweep_imports
from evaluations.services.judging.running import plan, start_run
from evaluations.services.preparing.preparing import archive
from evaluations.services.preparing.tagging import tag
from evaluations.services.reviewing.filling import fill
from evaluations.services.reviewing.queueing import next_comparison
from evaluations.services.reviewing.seating import rater_for
from evaluations.services.reviewing.tallying import tally_import
from tests.everything import every_row
from tests.importing import bring, check, comparison, jsonl, score, verdict
from tests.judges import make_baseline, run_through
from tests.making import make_evaluation, make_human, make_member, make_user
from tests.saying import ALL_A, person_says

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("true_ballots")]

# What tells that something happened, and when; not what is there.
CHRONICLE = {"event", "import", "queue", "indexing"}
MOMENTS = {"verdicts_changed_at", "comparisons_changed_at"}


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(slug="study")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for database in LEAST_AT_ONCE:
        monkeypatch.setitem(LEAST_AT_ONCE, database, 8)
        monkeypatch.setitem(AT_ONCE, database, 3)


def everything() -> dict[str, list[Mapping[str, Any]]]:
    return {
        model.__name__: [{column: value for column, value in row.items() if column not in MOMENTS} for row in rows]
        for model, rows in every_row()
        if model.__name__.lower() not in CHRONICLE
    }


def undo(importing: Import) -> Import:
    importing.refresh_from_db()
    begin_undo(importing, user=None)
    assert not go_on(importing)
    importing.refresh_from_db()
    return importing


def refused(importing: Import) -> str:
    importing.refresh_from_db()
    before = everything()
    with pytest.raises(InputRefused) as error:
        begin_undo(importing, user=None)
    assert everything() == before
    return str(error.value)


def counted(importing: Import) -> Import:
    while tally_import(importing):
        pass
    return importing


# ---- what goes -----------------------------------------------------------------------------------


def test_all_that_an_import_brought_goes_with_all_that_hangs_on_it(evaluation: Evaluation) -> None:
    kept = bring(evaluation, comparison("old"))
    catch_up(evaluation)
    before = everything()
    rows = [comparison(f"q{n}", candidate_b="gamma", category="new") for n in range(20)]
    importing = bring(evaluation, *rows)
    fill(evaluation)
    catch_up(evaluation)
    tag(evaluation, [Comparison.objects.latest("pk").pk], "hard", user=None)
    assert (Tagging.objects.count(), QueueItem.objects.count()) == (1, 21)
    undo(importing)
    assert importing.state == ImportState.UNDONE
    QueueItem.objects.all().delete()
    after = everything()
    assert [row["name"] for row in after.pop("Tag")] == ["hard"]
    before.pop("Tag")
    assert after == before
    assert not importing.file
    assert Import.objects.get(pk=kept.pk).state == ImportState.DONE


def test_verdicts_go_and_the_labels_are_as_they_were(evaluation: Evaluation) -> None:
    bring(evaluation, *(comparison(f"q{n}") for n in range(9)))
    counted(bring(evaluation, *(verdict(f"q{n}", rater="ann") for n in range(9))))
    before = everything()
    others = [verdict(f"q{n}", rater="bob", choice="B", aspect=aspect) for n in range(9) for aspect in ("overall", "x")]
    judge = [verdict("q1", rater="gpt", rater_kind="judge", choice="refused")]
    importing = counted(bring(evaluation, *others, *judge))
    assert {label.source for label in Label.objects.filter(aspect__key="overall")} == {"split"}
    undo(importing)
    after = everything()
    for rows in (before, after):  # a row that was written anew is the same row
        for label in rows["Label"]:
            label.pop("id"), label.pop("created_at")  # type: ignore[attr-defined]
    assert after == before
    assert not Rubric.objects.get(name="imported").versions.filter(asked__aspect__key="x").exists()


def test_scores_and_the_comparisons_made_of_them_go(evaluation: Evaluation) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in "abc"]
    bring(evaluation, *rows, pair="baseline:a")
    before = everything()
    importing = counted(
        bring(evaluation, *(score("q1", name, value) for value, name in enumerate("abc")), derive_pairs=0.5)
    )
    assert (Comparison.objects.count(), Label.objects.count()) == (3, 3)
    undo(importing)
    assert everything() == before


def test_labels_that_its_scores_made_of_earlier_comparisons_go(evaluation: Evaluation) -> None:
    """Each of the responses stands in a comparison of the import, too."""
    two = [comparison(), comparison(candidate_a="gamma", candidate_b="zeta", response_a="x", response_b="y")]
    bring(evaluation, *two)
    before = everything()
    names = ("alpha", "beta", "gamma", "zeta")
    importing = bring(evaluation, *(score("q1", name, value) for value, name in enumerate(names)), derive_pairs=0.5)
    assert (
        Label.objects.filter(comparison__in=Comparison.objects.exclude(source_import=counted(importing))).count() == 2
    )
    undo(importing)
    assert everything() == before


def test_pairs_of_responses_that_were_here_go(evaluation: Evaluation) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in "abc"]
    bring(evaluation, *rows, pair="baseline:a")
    before = everything()
    importing = couple(evaluation, "all", confirmed=True, user=None)
    store(importing)
    assert Comparison.objects.count() == 3
    undo(importing)
    assert everything() == before


def test_the_same_file_comes_in_again_as_if_it_had_never_been_here(evaluation: Evaluation) -> None:
    rows = [comparison(f"q{n}") for n in range(9)]
    first = bring(evaluation, *rows)
    undo(first)
    again = bring(evaluation, *rows)
    assert again.summary["new"] == first.summary["new"]
    assert (again.rows_stored, again.rows_unchanged) == (9, 0)
    assert Comparison.objects.count() == 9


def test_the_words_of_its_texts_are_found_no_more(evaluation: Evaluation) -> None:
    def found() -> list[int]:
        with connection.cursor() as cursor:
            search = ids_with(Search(wanted=(("rayleigh",),), unwanted=()), None, None)
            cursor.execute(str(search.sql), list(search.params))
            return [pk for (pk,) in cursor.fetchall()]

    kept = bring(evaluation, comparison("old"))
    importing = bring(evaluation, *(comparison(f"q{n}") for n in range(5)))
    catch_up(evaluation)
    assert len(found()) == 6
    undo(importing)
    assert found() == list(Comparison.objects.filter(source_import=kept).values_list("pk", flat=True))


def test_what_others_came_to_use_of_its_names_stays(evaluation: Evaluation) -> None:
    first = bring(evaluation, comparison("q1"))
    bring(evaluation, comparison("q2"))
    undo(first)
    assert Comparison.objects.get().response_a.candidate.name == "alpha"


def test_a_version_of_the_imported_rubric_goes_with_the_last_import_that_needs_it(evaluation: Evaluation) -> None:
    bring(evaluation, comparison())
    before = everything()
    first = bring(evaluation, verdict(aspect="x"))
    second = bring(evaluation, verdict(aspect="y"))
    undo(first)
    versions = Rubric.objects.get(name="imported").versions.order_by("number")
    assert list(versions.values_list("number", flat=True)) == [1, 2]
    undo(second)
    assert everything() == before


ROWS = st.lists(
    st.one_of(
        st.builds(comparison, st.sampled_from(("q1", "q2", "q3")), candidate_b=st.sampled_from(("beta", "gamma"))),
        st.builds(
            verdict,
            st.sampled_from(("q1", "q2")),
            rater=st.sampled_from(("ann", "bob")),
            aspect=st.sampled_from(("overall", "depth", "style")),
            choice=st.sampled_from(("A", "tie")),
        ),
        st.builds(score, st.sampled_from(("q1", "q2")), value=st.integers(1, 5), aspect=st.sampled_from(("x", "y"))),
    ),
    max_size=6,
)
KIND = {"response_a": "comparisons", "choice": "verdicts", "value": "scores"}


def bring_each(evaluation: Evaluation, rows: Sequence[dict[str, Any]]) -> list[Import]:
    """A file for each kind of row, without what is bad."""
    made = []
    for column, name in KIND.items():
        if some := [row for row in rows if column in row]:
            made.append(counted(bring(evaluation, *some, skip_bad=True, format=name)))
    return made


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=ROWS, second=ROWS)
def test_after_an_undo_every_row_is_as_it_was(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    evaluation = make_evaluation()
    bring_each(evaluation, [comparison("q1"), *first])
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
    importing = bring(evaluation, comparison(), comparison("q2"))
    person_says(make_human(evaluation), Comparison.objects.earliest("pk"), ALL_A)
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 1 review or draft."


def test_judge_calls_keep_it(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison(), comparison("q2"))
    run_through(make_baseline(evaluation))
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 4 judge calls."


def test_calls_that_are_only_planned_keep_it(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    run = start_run(make_baseline(evaluation), user=None)
    plan(run.pk, until=float("inf"))
    assert "2 judge calls" in refused(importing)


def test_a_comment_and_a_resolution_keep_it(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    (one,), user = Comparison.objects.all(), make_member(evaluation, Role.OWNER)
    aspect = evaluation.aspects.earliest("pk")
    Comment.objects.create(comparison=one, user=user, text="Hm.")
    Adjudication.objects.create(comparison=one, aspect=aspect, user=user, choice="A", reason="Right.")
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 1 resolution and 1 comment."


def test_a_place_that_somebody_holds_keeps_it_until_it_lapses(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    reviewer = make_member(evaluation, Role.REVIEWER)
    assert next_comparison(evaluation, rater_for(reviewer, evaluation))
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 1 place that is reserved or assigned."
    Assignment.objects.update(held_until=timezone.now() - timedelta(minutes=1))
    assert undo(importing).state == ImportState.UNDONE
    assert not QueueItem.objects.exists()


def test_an_export_after_it_keeps_it_but_none_before_and_no_backup(evaluation: Evaluation) -> None:
    Export.objects.create(evaluation=evaluation, format="jsonl", state="done", rows=3, finished_at=timezone.now())
    importing = bring(evaluation, comparison())
    Export.objects.create(evaluation=evaluation, format="backup", state="done", rows=3, finished_at=timezone.now())
    later = Export.objects.create(evaluation=evaluation, format="csv", state="waiting")
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 1 export."
    later.delete()
    # Without one row nothing left; but a folder has all comparisons beside its rows, which are preferences.
    done = {"evaluation": evaluation, "state": "done", "rows": 0, "finished_at": timezone.now()}
    Export.objects.create(format="dpo", **done)
    folder = Export.objects.create(format="hugging-face", **done)
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 1 export."
    folder.delete()
    assert undo(importing).state == ImportState.UNDONE


def test_a_comparison_by_hand_of_its_response_keeps_it(evaluation: Evaluation) -> None:
    importing = bring(evaluation, {"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": "x"})
    response = importing.responses.get()
    written = Written("Why?", "alpha", "x", "zeta", "y")
    made = add_comparison(evaluation, written, user=None)
    if response.pk not in (made.response_a_id, made.response_b_id):  # by hand the query has another id
        Comparison.objects.filter(pk=made.pk).update(response_a=response)
    assert refused(importing) == "rows.jsonl cannot be undone: it was used in 1 comparison added by hand."


@pytest.mark.parametrize(
    "rows",
    [
        [verdict()],
        [score()],
        [comparison(candidate_b="gamma", response_b="x")],
        [verdict(rater="gpt", rater_kind="judge", choice="failed")],
    ],
    ids=["verdicts", "scores", "comparisons", "failures"],
)
def test_an_import_that_builds_on_it_is_named_and_is_undone_first(
    evaluation: Evaluation, rows: list[dict[str, Any]]
) -> None:
    first = bring(evaluation, comparison())
    second = bring(evaluation, *rows)
    assert refused(first) == (
        f"rows.jsonl cannot be undone: import {second.pk} (rows.jsonl) builds on it. Undo that one first."
    )
    undo(second)
    assert undo(first).state == ImportState.UNDONE


def test_a_resolution_of_what_its_verdicts_made_keeps_it(evaluation: Evaluation) -> None:
    bring(evaluation, comparison())
    importing = bring(evaluation, verdict(aspect="depth"), verdict(rater="bob", choice="B", aspect="depth"))
    (one,), user = Comparison.objects.all(), make_member(evaluation, Role.OWNER)
    aspect = evaluation.aspects.get(key="depth")
    Adjudication.objects.create(comparison=one, aspect=aspect, user=user, choice="A", reason="Right.")
    assert "1 resolution" in refused(importing)


def test_a_review_that_was_shown_its_judge_keeps_it(evaluation: Evaluation) -> None:
    bring(evaluation, comparison())
    importing = bring(evaluation, verdict(rater="gpt", rater_kind="judge"))
    judge = Rater.objects.get(name="gpt", kind=RaterKind.JUDGE).judge
    person_says(make_human(evaluation), Comparison.objects.get(), ALL_A, judge=judge)
    assert "1 review or draft" in refused(importing)


def test_only_what_is_stored_can_be_undone_and_only_once(evaluation: Evaluation) -> None:
    checked = check(evaluation, jsonl([comparison()]))
    assert refused(checked) == "rows.jsonl is not stored yet: cancel it instead."
    importing = bring(evaluation, comparison("q2"))
    undo(importing)
    assert refused(importing) == "rows.jsonl was undone already."
    assert not go_on(importing)


def test_nothing_is_undone_while_another_import_is_stored_or_the_evaluation_is_archived(
    evaluation: Evaluation,
) -> None:
    importing = bring(evaluation, comparison())
    other = check(evaluation, jsonl([comparison("q2")]))
    begin(other, skip_bad=False, user=None)
    assert refused(importing) == "Another import of this evaluation is being stored: wait until it is done."
    store(other)
    archive(evaluation, user=None)
    importing.evaluation.refresh_from_db()
    assert "is archived" in refused(importing)


def test_nothing_is_stored_while_an_import_is_being_undone(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    begin_undo(importing, user=None)
    other = check(evaluation, jsonl([comparison("q2")]))
    with pytest.raises(InputRefused, match="is being undone: try again"):
        begin(other, skip_bad=False, user=None)
    go_on(importing)
    begin(other, skip_bad=False, user=None)


def test_files_that_came_later_with_the_same_rows_are_named(evaluation: Evaluation) -> None:
    first = bring(evaluation, comparison("q1"))
    assert later_duplicates(first) == ""
    second = bring(evaluation, comparison("q1"), comparison("q2"))
    first.refresh_from_db()
    assert later_duplicates(first) == (
        f"Rows of import {second.pk} (rows.jsonl) were here already, or skipped: "
        "if that was for this file's rows, import theirs again."
    )


def test_files_whose_rows_were_skipped_for_its_own_are_named(evaluation: Evaluation) -> None:
    answers = [{"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": text} for text in ("x", "y")]
    first = bring(evaluation, answers[0])
    second = bring(evaluation, answers[1], new_response=NewResponse.SKIP)
    first.refresh_from_db()
    assert later_duplicates(first).startswith(f"Rows of import {second.pk} (rows.jsonl) were here already, or skipped")


# ---- at once, and over crashes -------------------------------------------------------------------


def test_it_is_hidden_at_once_and_gone_later(evaluation: Evaluation) -> None:
    importing = bring(evaluation, *(comparison(f"q{n}") for n in range(20)))
    reviewer = make_member(evaluation, Role.REVIEWER)
    fill(evaluation)
    begin_undo(importing, user=None)
    assert (Comparison.objects.count(), Comparison.all_rows.count()) == (0, 20)
    assert next_comparison(evaluation, rater_for(reviewer, evaluation)) is None
    while go_on(importing, seconds=0):
        importing.refresh_from_db()
    assert Comparison.all_rows.count() == 0
    assert importing.state == ImportState.UNDONE


def test_an_interrupted_undo_goes_on(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluations.services import import_undo

    before = everything()
    importing = bring(evaluation, *(comparison(f"q{n}") for n in range(20)))
    begin_undo(importing, user=None)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(import_undo, "remove_all", killed)
        with pytest.raises(KeyboardInterrupt):
            go_on(importing)
    assert importing.pk in sweep_imports()
    Import.objects.filter(pk=importing.pk).update(seen_at=timezone.now() - timedelta(minutes=5))
    assert importing.pk in sweep_imports()  # given up for dead
    importing.refresh_from_db()
    assert not go_on(importing)
    assert everything() == before


def test_what_was_on_its_way_while_everything_was_hidden_keeps_the_import(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    one = Comparison.objects.get()
    fill(evaluation)
    judge = make_baseline(evaluation)
    run = start_run(judge, user=None)
    begin_undo(importing, user=None)
    Call.all_rows.create(judge=judge, comparison=one, shown="as_stored", sample=0, run=run)
    assert not go_on(importing)
    importing.refresh_from_db()
    assert (importing.state, importing.reason) == (
        ImportState.DONE,
        "rows.jsonl cannot be undone: it was used in 1 judge call.",
    )
    assert Comparison.objects.get() == one
    assert fill(evaluation) == 1


def test_an_event_says_who_undid_it(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    user = make_user()
    begin_undo(importing, user=user)
    event = Event.objects.filter(object_type="import", object_id=importing.pk).latest("pk")
    assert (event.verb, event.user, event.before) == (
        "undid",
        user,
        {"queries": 1, "responses": 2, "comparisons": 1},
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_who_undo_at_once_one_is_told_so(evaluation: Evaluation) -> None:
    importing = bring(evaluation, *(comparison(f"q{n}") for n in range(5)))
    start, outcomes = threading.Barrier(2), list[str]()

    def try_it() -> None:
        try:
            start.wait(10)
            begin_undo(Import.objects.get(pk=importing.pk), user=None)
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
    importing = bring(evaluation, *(comparison(f"q{n}") for n in range(30)))
    run = start_run(make_baseline(evaluation), user=None)
    start, outcomes = threading.Barrier(2), list[str]()

    def try_it() -> None:
        try:
            start.wait(10)
            begin_undo(Import.objects.get(pk=importing.pk), user=None)
        except InputRefused as refusal:
            outcomes.append(str(refusal))
        finally:
            connection.close()

    thread = threading.Thread(target=try_it)
    thread.start()
    start.wait(10)
    plan(run.pk, until=float("inf"))
    thread.join()
    calls = Call.all_rows.count()
    assert calls == (60 if outcomes else 0)
    if outcomes:
        assert "judge calls" in outcomes[0]
    else:
        importing.refresh_from_db()
        assert not go_on(importing)
        assert not Comparison.all_rows.exists()


def test_choices_of_a_place_by_name_keep_it(evaluation: Evaluation) -> None:
    importing = bring(evaluation, comparison())
    fill(evaluation)
    item = QueueItem.objects.get()
    rater = make_human(evaluation)
    Assignment.objects.create(item=item, rater=rater, picked_by=PickedBy.BY_HAND, state="named")
    assert "1 place that is reserved or assigned" in refused(importing)
