import pickle
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.judges import CallState, RunState
from evaluations.domain.reports import ReportRules
from evaluations.domain.reviews import SelectionMethod
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.imports.lifecycle import continue_import, sweep_imports
from evaluations.imports.services import discard_import, start_storing
from evaluations.judges.calls.lease_sweeper import MAX_LOST_ATTEMPTS, return_expired_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.runs.planner import cancel_waiting_calls
from evaluations.judges.runs.services import cancel_run
from evaluations.judges.runs.transitions import stop_run
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.queues import QueueItem
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.reports.cache import get_cached_report
from evaluations.reports.selectors import build_report, get_full_report
from evaluations.reviews.queues.items import ensure_queue_is_filled
from evaluations.reviews.services import save_first_choices
from evaluations.verdicts.array_files import hash_program
from judgeweb.settings import CACHES
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, verdict_row
from tests.factories.judges import make_llm_judge
from tests.factories.queue_state import take_next_comparison
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_verdicts, make_review
from tests.helpers.work_sessions import (
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    expire_leases,
    start_run_session,
    unreadable_outcome,
)

pytestmark = pytest.mark.django_db

# As they are kept: the moment until when, then what is kept; whose class is gone, whose file is cut short.
UNTIL = pickle.dumps(time.time() + 3600)
UNREADABLE = [UNTIL + zlib.compress(b"cevaluations.stats.whole\nGone\n."), UNTIL + zlib.compress(b"\x80\x05]")]
SHIPPED: dict[str, Any] = CACHES["reports"]  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def remembers(settings: Any, tmp_path: Path) -> None:
    """In files, as the product does."""
    settings.CACHES = {**settings.CACHES, "reports": {**SHIPPED, "LOCATION": tmp_path}}


class Counter:
    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> int:
        self.made += 1
        return self.made


def test_it_is_made_once_while_nothing_changes_and_for_each_question_apart(evaluation: Evaluation) -> None:
    make = Counter()
    assert [get_cached_report(evaluation, asked, make) for asked in ("one", "one", "other", "one")] == [1, 1, 2, 1]
    assert get_cached_report(make_evaluation(), "one", make) == 3


def test_whatever_changes_a_number_makes_it_anew(evaluation: Evaluation) -> None:
    make = Counter()

    def is_new() -> bool:
        before = make.made
        return get_cached_report(evaluation, "report", make) > before

    assert is_new()
    import_rows(evaluation, comparison_row("q1"))
    assert is_new()
    ann = make_human(evaluation, "ann")
    assert is_new()
    Rater.objects.filter(pk=ann.pk).update(verdicts_changed_at=timezone.now())
    assert is_new()
    change_evaluation(evaluation, {"name": "Other"}, user=None)
    assert is_new()
    assert not is_new()


def test_nothing_is_kept_while_a_run_is_at_work(evaluation: Evaluation) -> None:
    make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_A)
    make_review(make_human(evaluation), make_comparison(evaluation), ALL_A)
    Run.objects.update(state=RunState.RUNNING)
    make = Counter()
    assert [get_cached_report(evaluation, "report", make) for _ in range(2)] == [1, 2]
    Run.objects.update(state=RunState.DONE)
    assert [get_cached_report(evaluation, "report", make) for _ in range(2)] == [3, 3]


def test_what_changes_while_it_is_made_is_not_remembered(evaluation: Evaluation) -> None:
    """A backup that is restored brings the state back in which it was begun, but not what it saw of the next."""
    make = Counter()

    def make_while_ann_comes() -> int:
        make_human(evaluation, "ann")
        return make()

    get_cached_report(evaluation, "report", make_while_ann_comes)
    Rater.objects.filter(evaluation=evaluation).delete()
    assert [get_cached_report(evaluation, "report", make) for _ in range(2)] == [2, 2]


def test_an_evaluation_that_was_read_before_it_changed_has_a_report_of_its_own(evaluation: Evaluation) -> None:
    make = Counter()
    before = Evaluation.objects.get(pk=evaluation.pk)
    change_evaluation(evaluation, {"name": "Other"}, user=None)
    assert [get_cached_report(one, "report", make) for one in (before, evaluation, before)] == [1, 2, 1]


@pytest.mark.parametrize(
    "content", [b"", b"damaged", pickle.dumps(None) + b"damaged", *UNREADABLE], ids=range(3 + len(UNREADABLE))
)
def test_what_is_kept_and_cannot_be_read_is_made_anew(evaluation: Evaluation, tmp_path: Path, content: bytes) -> None:
    make = Counter()
    get_cached_report(evaluation, "report", make)
    for file in tmp_path.iterdir():
        file.write_bytes(content)
    assert [get_cached_report(evaluation, "report", make) for _ in range(2)] == [2, 2]


def test_every_line_of_the_program_tells_its_version(tmp_path: Path) -> None:
    (tmp_path / "stats").mkdir()
    file = tmp_path / "stats" / "kappa.py"
    versions = set()
    for content in ("1", "2"):
        file.write_text(content)
        versions.add(hash_program(tmp_path))
    versions.add(hash_program(file.rename(tmp_path / "kappa.py").parent))
    assert len(versions) == 3
    assert hash_program(tmp_path) in versions


# ---- what a report is made of ----------------------------------------------------------------


def is_another(evaluation: Evaluation, before: Any = None) -> Any:
    """The report as it is remembered, which is what it would be if it were made now, and another than before."""
    evaluation = Evaluation.objects.get(pk=evaluation.pk)
    now = get_full_report(evaluation, ReportRules())
    assert repr(now) == repr(build_report(evaluation, None, ReportRules()))
    assert repr(now) != repr(before)
    return now


def test_a_report_is_read_again_as_it_was_made(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_A, swapped="unreadable")
    make_review(make_human(evaluation), make_comparison(evaluation), ALL_A)
    made = is_another(evaluation)
    monkeypatch.setattr("evaluations.reports.selectors.build_report", None)
    assert repr(get_full_report(Evaluation.objects.get(pk=evaluation.pk), ReportRules())) == repr(made)


def test_calls_that_end_without_a_verdict_once_their_run_is_over_are_in_the_report(evaluation: Evaluation) -> None:
    for _ in range(3):
        make_comparison(evaluation)
    session = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS))
    first, second, third, *_ = claim_session_calls(session, 4)
    store_outcomes(session, [answered_outcome(session, first)])
    stop_run(session.run, "The key is wrong.")
    report = is_another(evaluation)
    store_outcomes(session, [unreadable_outcome(second)])
    report = is_another(evaluation, report)
    for _ in range(MAX_LOST_ATTEMPTS):
        session.run.evaluation.judges.get().calls.filter(pk=third.call_id).update(state=CallState.RUNNING)
        expire_leases(third)
        return_expired_calls()
    report = is_another(evaluation, report)
    cancel_run(session.run, user=None)
    report = get_full_report(Evaluation.objects.get(pk=evaluation.pk), ReportRules())
    cancel_waiting_calls()
    is_another(evaluation, report)


def in_order(evaluation: Evaluation, number: int) -> list[Comparison]:
    """So many comparisons, in the random order as they were made."""
    made = [make_comparison(evaluation) for _ in range(number)]
    for place, one in enumerate(made):
        Comparison.objects.filter(pk=one.pk).update(random_order=place)
    ensure_queue_is_filled(evaluation)
    return made


def save_next(person: User, evaluation: Evaluation) -> None:
    pk = take_next_comparison(person, evaluation)
    assert pk is not None
    save_first_choices(person, Comparison.objects.get(pk=pk), choices=ALL_A, version=0)


def test_what_was_opened_by_hand_counts_once_its_turn_has_come(evaluation: Evaluation) -> None:
    person, other = (make_member(evaluation, Role.REVIEWER) for _ in range(2))
    _, second, _ = in_order(evaluation, 3)
    save_first_choices(person, second, choices=ALL_B, version=0)
    save_next(person, evaluation)
    get_or_create_rater(other, evaluation)
    report = is_another(evaluation)
    assert not QueueItem.objects.get(comparison=second).drawn
    take_next_comparison(other, evaluation)  # the third: the second is full, and its turn is over
    assert QueueItem.objects.get(comparison=second).drawn
    is_another(evaluation, report)


def test_reviews_that_came_past_the_queue_make_others_of_the_same_comparison_count(evaluation: Evaluation) -> None:
    (first,) = in_order(evaluation, 1)
    make_review(make_human(evaluation), first, ALL_A, selection_method=SelectionMethod.BY_HAND)
    make_review(make_human(evaluation), first, ALL_B, selection_method=SelectionMethod.RANDOM)
    report = is_another(evaluation)
    make_comparison(evaluation)
    ensure_queue_is_filled(evaluation)
    assert QueueItem.objects.get(comparison=first).drawn
    is_another(evaluation, report)


def test_what_people_and_files_say_and_what_is_changed_of_it(evaluation: Evaluation) -> None:
    report = is_another(evaluation)
    import_rows(evaluation, comparison_row("q1"), comparison_row("q2", category="math"))
    report = is_another(evaluation, report)
    person = make_member(evaluation, Role.REVIEWER)
    save_next(person, evaluation)
    report = is_another(evaluation, report)
    change_evaluation(evaluation, {"slug": "other"}, user=None)
    is_another(evaluation, report)


def test_an_aspect_that_went_with_a_cancelled_import_is_in_the_report_no_more(evaluation: Evaluation) -> None:
    """ann is there before, so that no rater comes or goes with it."""
    import_rows(evaluation, *(comparison_row(f"q{number}") for number in range(40)))
    import_rows(evaluation, verdict_row("q1"))
    given_up = preview_rows(
        evaluation, encode_jsonl([verdict_row(f"q{number}", aspect="zest") for number in range(40)])
    )
    start_storing(given_up, skip_bad=False, user=None)
    assert continue_import(given_up, seconds=0)
    discard_import(given_up, user=None)
    report = is_another(evaluation)
    assert "Zest" in report.no_verdicts
    sweep_imports(evaluation)
    assert "Zest" not in is_another(evaluation, report).no_verdicts


# ---- Events ----------------------------------------------------------------------------------


def undone(event: Event) -> Event:
    """As if it had never been written."""
    Event.objects.filter(pk=event.pk).delete()
    return event


def test_an_event_that_is_committed_after_a_later_one_is_seen(evaluation: Evaluation) -> None:
    earlier = undone(record_event("earlier", evaluation, user=None, evaluation=evaluation))
    record_event("later", evaluation, user=None, evaluation=evaluation)
    make = Counter()
    get_cached_report(evaluation, "report", make)
    Event.objects.bulk_create([earlier])
    assert get_cached_report(evaluation, "report", make) == 2


def test_an_event_with_a_number_that_was_given_before_a_backup_was_restored_is_another(evaluation: Evaluation) -> None:
    make = Counter()
    event = record_event("before", evaluation, user=None, evaluation=evaluation)
    get_cached_report(evaluation, "report", make)
    undone(event)
    Event.objects.bulk_create([Event(pk=event.pk, verb="after", object_type="", evaluation=evaluation)])
    assert get_cached_report(evaluation, "report", make) == 2


def test_without_room_to_keep_it_a_report_is_made_each_time(
    evaluation: Evaluation, settings: Any, tmp_path: Path
) -> None:
    (tmp_path / "taken").touch()
    settings.CACHES = {**settings.CACHES, "reports": {**SHIPPED, "LOCATION": tmp_path / "taken"}}
    make = Counter()
    assert [get_cached_report(evaluation, "report", make) for _ in range(2)] == [1, 2]
