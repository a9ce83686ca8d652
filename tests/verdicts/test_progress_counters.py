"""The counters of judged and reviewed comparisons equal a recount after every kind of change."""

import threading
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from evaluations.domain.choices import Choice
from evaluations.domain.files import ImportState, NewResponse
from evaluations.domain.jobs import COUNT_PROGRESS
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.imports.undo import start_undo
from evaluations.jobs.runner import work_while_due
from evaluations.judges.calls import prompt_truncation
from evaluations.judges.calls.answer_rows import delete_answers
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.reply_reparse import REPARSE, begin_reparse
from evaluations.judges.calls.work_session import WorkSession
from evaluations.judges.services import archive_judge, restore_judge
from evaluations.judges.sql import touch_raters
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job
from evaluations.models.judges import Judge, Rater
from evaluations.models.progress import ComparisonProgress, ProgressCounters, VerdictChange
from evaluations.models.runs import Call
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.reviews.services import save_first_choices, undo_last_step
from evaluations.tasks import sweep_all
from evaluations.verdicts import progress_counters
from evaluations.verdicts.changes import ChangedRow, read_rater_states, record_changes
from evaluations.verdicts.progress_counters import ProgressCounts, count_changes, count_directly, read_progress_counts
from evaluations.verdicts.progress_recount import count_all_changes, find_wrong_counters
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.imports import comparison_row, continue_undo, import_rows, score_row, verdict_row
from tests.factories.judges import make_llm_judge
from tests.factories.verdicts import ALL_A, make_judge_verdicts, make_next_rubric_version
from tests.helpers.work_sessions import CLOSED_ADDRESS, answered_outcome, claim_session_calls, start_run_session
from tests.judges import test_prompt_truncation as truncated
from tests.judges import test_reply_reparse as reparsed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_counted_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small an evaluation is, its numbers come from the counters."""
    monkeypatch.setattr(progress_counters, "MAX_COUNTED_DIRECTLY", 0)


def sweep(evaluation: Evaluation) -> None:
    count_all_changes()
    work_while_due(COUNT_PROGRESS, evaluation.pk)


def start_counting(evaluation: Evaluation) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    sweep(evaluation)
    assert ProgressCounters.objects.get(pk=evaluation.pk).basis


def counted(evaluation: Evaluation) -> ProgressCounts:
    """What a page shows before and after the sweep has counted the changes, which is what a recount gives."""
    recounted = count_directly([evaluation.pk])[evaluation.pk]
    assert read_progress_counts([evaluation.pk]) == {evaluation.pk: recounted}
    count_all_changes()
    assert not VerdictChange.objects.exists()
    assert read_progress_counts([evaluation.pk]) == {evaluation.pk: recounted}
    return recounted


def recounted_later(evaluation: Evaluation) -> ProgressCounts:
    """What a page shows of a change that alters what counts: the last numbers at first, then those of a recount."""
    assert read_progress_counts([evaluation.pk])[evaluation.pk].is_counting
    sweep(evaluation)
    return counted(evaluation)


def save(user: User, comparison: Comparison) -> Review:
    comparison = Comparison.objects.select_related("evaluation__review_rubric__rubric").get(pk=comparison.pk)
    return save_first_choices(user, comparison, choices=ALL_A, version=0)


def judge_all(judge: Judge, **options: Any) -> None:
    session = start_run_session(judge, **options)
    store_outcomes(session, [answered_outcome(session, call) for call in claim_session_calls(session)])


def test_answers_of_one_judge_and_then_of_another_count_each_comparison_once(evaluation: Evaluation) -> None:
    make_comparison(evaluation), make_comparison(evaluation)
    start_counting(evaluation)
    judge_all(make_llm_judge(evaluation, CLOSED_ADDRESS))
    assert counted(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=2)
    judge_all(make_llm_judge(evaluation, CLOSED_ADDRESS, name="other", model="other"))
    assert counted(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=2)


def test_a_withdrawn_answer_is_no_longer_counted(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    start_counting(evaluation)
    judge_all(make_llm_judge(evaluation, CLOSED_ADDRESS))
    assert counted(evaluation).judged == 1
    delete_answers(list(Call.objects.values_list("pk", flat=True)))
    touch_raters(Call.objects.all())
    assert counted(evaluation).judged == 0
    assert not ComparisonProgress.objects.exists()


def test_scores_of_both_responses_judge_a_comparison(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    start_counting(evaluation)
    import_rows(evaluation, score_row(rater="gpt", rater_kind="judge"))
    assert recounted_later(evaluation).judged == 0
    import_rows(evaluation, score_row(candidate="beta", rater="gpt", rater_kind="judge"))
    assert recounted_later(evaluation).judged == 1


def test_a_changed_response_has_its_comparisons_counted(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    start_counting(evaluation)
    rater = make_judge_verdicts(comparison, as_stored=ALL_A)
    record_changes(evaluation.pk, [ChangedRow(rater.pk, response=comparison.response_b_id)])
    assert counted(evaluation).judged == 1


def test_reviews_count_when_saved_and_not_when_undone(owner: User, reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_comparison(evaluation)
    start_counting(evaluation)
    review = save(owner, comparison)
    save(reviewer, comparison)
    assert counted(evaluation) == ProgressCounts(queries=2, comparisons=2, reviewed=1, reviews=2)
    undo_last_step(owner, review, version=review.version)
    assert counted(evaluation) == ProgressCounts(queries=2, comparisons=2, reviewed=1, reviews=1)


def test_a_new_rubric_version_counts_its_own_reviews(owner: User, evaluation: Evaluation) -> None:
    save(owner, make_comparison(evaluation))
    start_counting(evaluation)
    assert counted(evaluation).reviews == 1
    make_next_rubric_version(evaluation)
    assert recounted_later(evaluation) == ProgressCounts(queries=1, comparisons=1, reviewed=1, reviews=0)


def test_an_archived_judge_is_not_counted_until_it_is_restored(owner: User, evaluation: Evaluation) -> None:
    rater = make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_A)
    start_counting(evaluation)
    assert counted(evaluation).judged == 1
    assert rater.judge is not None
    archive_judge(rater.judge, user=owner)
    assert recounted_later(evaluation).judged == 0
    restore_judge(rater.judge, user=owner)
    assert recounted_later(evaluation).judged == 1


def test_an_import_counts_once_it_is_done_and_no_longer_once_it_is_undone(owner: User, evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    start_counting(evaluation)
    second = import_rows(evaluation, comparison_row("q2"))
    votes = import_rows(evaluation, verdict_row(), verdict_row("q2", rater="gpt", rater_kind="judge"))
    assert recounted_later(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=1, reviewed=1)
    for importing, left in ((votes, 2), (second, 1)):
        start_undo(importing, user=owner)
        assert recounted_later(evaluation) == ProgressCounts(queries=left, comparisons=left)
        while continue_undo(importing):
            pass
        sweep(evaluation)
        assert counted(evaluation) == ProgressCounts(queries=left, comparisons=left)


def test_a_change_during_a_recount_begins_it_again(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    make_comparison(evaluation)
    start_counting(evaluation)

    def change_evaluation_meanwhile(*_: object) -> None:
        monkeypatch.undo()
        make_comparison(evaluation)
        Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())

    make_next_rubric_version(evaluation)
    monkeypatch.setattr("evaluations.verdicts.progress_recount.count_comparisons", change_evaluation_meanwhile)
    sweep(evaluation)
    monkeypatch.setattr(progress_counters, "MAX_COUNTED_DIRECTLY", 0)
    assert counted(evaluation).comparisons == 2


def test_too_many_uncounted_changes_leave_the_page_with_the_last_numbers(
    owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons = [make_comparison(evaluation) for _ in range(2)]
    start_counting(evaluation)
    monkeypatch.setattr(progress_counters, "MAX_UNCOUNTED", 1)
    save(owner, comparisons[0])
    assert read_progress_counts([evaluation.pk])[evaluation.pk].reviewed == 1
    save(owner, comparisons[1])
    assert read_progress_counts([evaluation.pk])[evaluation.pk] == ProgressCounts(
        queries=2, comparisons=2, is_counting=True
    )
    assert counted_by_the_sweep(evaluation).reviewed == 2


def test_one_evaluation_that_changes_fast_leaves_the_numbers_of_others_exact(
    owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = make_evaluation(owner=owner)
    busy_comparisons, quiet_comparison = [make_comparison(evaluation) for _ in range(2)], make_comparison(quiet)
    start_counting(evaluation)
    start_counting(quiet)
    monkeypatch.setattr(progress_counters, "MAX_UNCOUNTED", 1)
    for comparison in (*busy_comparisons, quiet_comparison):
        save(owner, comparison)
    counts = read_progress_counts([evaluation.pk, quiet.pk])
    assert counts[evaluation.pk] == ProgressCounts(queries=2, comparisons=2, is_counting=True)
    assert counts[quiet.pk] == ProgressCounts(queries=1, comparisons=1, reviewed=1, reviews=1)


def test_changes_that_are_counted_while_a_page_reads_are_not_lost(
    owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = make_comparison(evaluation)
    start_counting(evaluation)
    save(owner, comparison)
    measure = progress_counters.measure_uncounted

    def sweep_first(evaluations: Collection[int]) -> dict[int, Counter[str]]:
        count_all_changes()
        return measure(evaluations)

    monkeypatch.setattr(progress_counters, "measure_uncounted", sweep_first)
    expected = ProgressCounts(queries=1, comparisons=1, reviewed=1, reviews=1)
    assert read_progress_counts([evaluation.pk]) == {evaluation.pk: expected}


def counted_by_the_sweep(evaluation: Evaluation) -> ProgressCounts:
    count_all_changes()
    return read_progress_counts([evaluation.pk])[evaluation.pk]


def test_counting_leaves_a_raters_state_as_it_is(owner: User, evaluation: Evaluation) -> None:
    save(owner, make_comparison(evaluation))
    raters = Rater.objects.filter(evaluation=evaluation)
    (before,) = read_rater_states(raters).values()
    assert (before.changes, before.is_counted) == (1, False)
    count_all_changes()
    (after,) = read_rater_states(raters).values()
    assert after == before._replace(is_counted=True)


def test_the_sweep_counts_changes_and_enqueues_recounts(owner: User, evaluation: Evaluation) -> None:
    save(owner, make_comparison(evaluation))
    sweep_all()
    assert not VerdictChange.objects.exists()
    assert ProgressCounters.objects.get(pk=evaluation.pk).reviews == 1
    assert Job.objects.get(kind=COUNT_PROGRESS).subject == evaluation.pk


def test_wrong_counters_are_found_and_repaired_by_the_command(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_A)
    start_counting(evaluation)
    ProgressCounters.objects.update(judged=5)
    ComparisonProgress.objects.update(is_reviewed=True)
    assert find_wrong_counters(Evaluation.objects.all()) == {
        evaluation: (ProgressCounts(1, 1, 5), ProgressCounts(1, 1, 1))
    }
    call_command("recount_progress", "study")
    assert "judged 5 → 1" in capsys.readouterr().out
    assert counted(evaluation) == ProgressCounts(queries=1, comparisons=1, judged=1)


def test_a_page_of_evaluations_takes_the_same_queries_however_many(owner: User) -> None:
    evaluations = [make_evaluation(owner) for _ in range(4)]
    for evaluation in evaluations:
        save(owner, make_comparison(evaluation))
        start_counting(evaluation)
        save(owner, make_comparison(evaluation))
        sweep(evaluation)
    assert query_count(lambda: read_progress_counts([evaluations[0].pk])) == query_count(
        lambda: read_progress_counts([evaluation.pk for evaluation in evaluations])
    )


def query_count(read: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        read()
    return len(captured)


# ---- from one end to the other: replies that are parsed again, and answers and rows that are deleted


def parse_again(judge: Judge) -> dict[str, int]:
    """How many calls have become what."""
    reparse = begin_reparse(judge, user=None)
    work_while_due(REPARSE, reparse.pk)
    reparse.refresh_from_db()
    counts: dict[str, int] = reparse.counts
    return counts


@pytest.mark.django_db(transaction=True)
def test_replies_that_are_parsed_again_change_what_is_judged(
    owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons = [make_comparison(evaluation) for _ in range(3)]
    start_counting(evaluation)
    judge = reparsed.judged(evaluation, reparsed.odd, repairs=False)
    save(owner, comparisons[0])
    unjudged = ProgressCounts(queries=3, comparisons=3, reviewed=1, reviews=1)
    assert counted(evaluation) == unjudged
    reparsed.kinder(monkeypatch)
    assert parse_again(judge) == {"answered now": 6}
    assert counted(evaluation) == replace(unjudged, judged=3)
    other = make_comparison(evaluation)
    make_judge_verdicts(other, as_stored=ALL_A)
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    assert recounted_later(evaluation) == replace(unjudged, queries=4, comparisons=4, judged=4)
    reparsed.harsher(monkeypatch)
    assert parse_again(judge) == {"unreadable now": 6}
    assert counted(evaluation) == replace(unjudged, queries=4, comparisons=4, judged=1)


@pytest.mark.django_db(transaction=True)
def test_answers_to_prompts_that_were_cut_are_deleted_and_no_longer_counted() -> None:
    sizes = [2_300, 2_700, 3_200, 3_800, 4_500]
    evaluation = truncated.study([300, *sizes])
    start_counting(evaluation)
    deleted = 0

    def count_before_deletion(ids: list[int]) -> None:
        nonlocal deleted
        deleted += Verdict.all_rows.filter(call__in=ids).exists()
        count_all_changes()
        delete_answers(ids)

    with mock.patch.object(prompt_truncation, "delete_answers", count_before_deletion):
        truncated.run_against(truncated.cutting(2_050, truncated.by_characters), evaluation)
    assert deleted
    assert counted(evaluation) == ProgressCounts(queries=6, comparisons=6, judged=1)


def test_comparisons_whose_responses_an_import_replaces_are_counted_anew(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row(), comparison_row("q2"))
    judge_all(make_llm_judge(evaluation, CLOSED_ADDRESS), limit=1)
    start_counting(evaluation)
    assert counted(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=1)
    unjudged = Comparison.objects.exclude(verdicts__isnull=False).get()
    row = comparison_row(unjudged.query.key, response_a="Scattering.", response_b="The sea.")
    import_rows(evaluation, row, new_response=NewResponse.REPLACE)
    assert not Comparison.objects.filter(pk=unjudged.pk).exists()
    assert recounted_later(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=1)


def test_an_undo_that_gives_way_to_a_call_leaves_everything_counted(owner: User, evaluation: Evaluation) -> None:
    """A call that was on its way while the import was hidden, and its answer."""
    import_rows(evaluation, comparison_row())
    importing = import_rows(evaluation, comparison_row("q2"))
    hidden = Comparison.objects.get(query__key="q2")
    start_counting(evaluation)
    start_undo(importing, user=owner)
    assert recounted_later(evaluation) == ProgressCounts(queries=1, comparisons=1)
    session = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS))
    Call.all_rows.create(judge=session.judge, run=session.run, comparison=hidden, shown="as_stored", sample=0)
    store_outcomes(session, [answered_outcome(session, call) for call in claim_session_calls(session, 2)])
    assert counted(evaluation) == ProgressCounts(queries=1, comparisons=1, judged=1)
    assert not continue_undo(importing)
    assert importing.state == ImportState.DONE
    assert recounted_later(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=1)
    store_outcomes(session, [answered_outcome(session, call) for call in claim_session_calls(session)])
    assert counted(evaluation) == ProgressCounts(queries=2, comparisons=2, judged=2)


# ---- writers at the same moment


@pytest.fixture
def in_threads() -> Callable[..., None]:
    def run(*works: Callable[[], object]) -> None:
        together = threading.Barrier(len(works))

        def begin(work: Callable[[], object]) -> None:
            try:
                together.wait()
                work()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(works)) as threads:
            list(threads.map(begin, works))

    return run


@pytest.mark.django_db(transaction=True)
def test_two_judges_that_answer_on_the_same_comparisons_in_one_moment(in_threads: Callable[..., None]) -> None:
    """Both transactions are open, and neither sees the other's verdicts, while the sweep counts again and again."""
    evaluation = make_evaluation(make_user())
    for _ in range(12):
        make_comparison(evaluation)
    start_counting(evaluation)
    judges = [make_llm_judge(evaluation, CLOSED_ADDRESS, name=name, model=name) for name in ("one", "two")]
    sessions = [start_run_session(judge) for judge in judges]
    done = threading.Event()

    def answer(session: WorkSession) -> None:
        try:
            while calls := claim_session_calls(session, 3):
                store_outcomes(session, [answered_outcome(session, call, Choice.B) for call in calls])
        finally:
            done.set()

    def count() -> None:
        while not done.is_set():
            count_changes(evaluation.pk, 2)

    in_threads(lambda: answer(sessions[0]), lambda: answer(sessions[1]), count)
    assert counted(evaluation) == ProgressCounts(queries=12, comparisons=12, judged=12)
    states = read_rater_states(Rater.objects.filter(evaluation=evaluation))
    assert [state.changes for state in states.values()] == [24, 24]  # every call, in both orders


@pytest.mark.django_db(transaction=True)
def test_a_verdict_that_is_committed_after_its_comparison_was_counted_is_counted_by_its_own_change() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    evaluation = make_evaluation(make_user())
    comparison = make_comparison(evaluation)
    people = [make_member(evaluation, role) for role in (Role.REVIEWER, Role.ADJUDICATOR)]
    start_counting(evaluation)
    save(people[0], comparison)

    def count() -> None:
        try:
            assert count_changes(evaluation.pk, 10) == 1  # of the first person; the second has not committed
        finally:
            connection.close()

    with transaction.atomic():
        save(people[1], comparison)
        thread = threading.Thread(target=count)
        thread.start()
        thread.join()
    assert ProgressCounters.objects.get().reviews == 1
    assert counted(evaluation) == ProgressCounts(queries=1, comparisons=1, reviewed=1, reviews=2)


@pytest.mark.django_db(transaction=True)
def test_a_recount_beside_reviewers_and_a_judge_ends_with_the_right_numbers(in_threads: Callable[..., None]) -> None:
    evaluation = make_evaluation(make_user())
    comparisons = [make_comparison(evaluation) for _ in range(8)]
    people = [make_member(evaluation, Role.REVIEWER) for _ in range(3)]
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    session = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS))
    Evaluation.objects.filter(pk=evaluation.pk).update(shown_judge=None)  # else reviews would wait to be confirmed
    count_all_changes()

    def review(user: User) -> None:
        for comparison in comparisons:
            saved = save(user, comparison)
            if comparison.pk % 2:
                undo_last_step(user, saved, version=saved.version)

    def answer() -> None:
        while calls := claim_session_calls(session, 3):
            store_outcomes(session, [answered_outcome(session, call) for call in calls])

    def recount() -> None:
        for _ in range(4):
            work_while_due(COUNT_PROGRESS, evaluation.pk)
            count_all_changes()
            Job.objects.filter(kind=COUNT_PROGRESS).update(state="waiting", position=0)

    in_threads(answer, recount, *(lambda user=user: review(user) for user in people))
    work_while_due(COUNT_PROGRESS, evaluation.pk)
    even = sum(comparison.pk % 2 == 0 for comparison in comparisons)
    assert counted(evaluation) == ProgressCounts(queries=8, comparisons=8, judged=8, reviewed=even, reviews=3 * even)
    change_evaluation(evaluation, {"name": "Another"}, user=None)  # which counts nothing else
    assert counted(evaluation).judged == 8
