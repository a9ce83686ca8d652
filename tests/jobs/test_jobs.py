"""One claim, one heartbeat, one sweep, one cancel, for background work of every kind."""

import io
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import JobState
from evaluations.jobs.claims import claim_job, end_claim, release_claim
from evaluations.jobs.kinds import JobClaim, JobKind, LeaseLost, job_kinds, register_job_kind
from evaluations.jobs.queue import cancel_job, enqueue_job, measure_job_progress, start_claimed_job
from evaluations.jobs.runner import work_while_due
from evaluations.jobs.sweeper import list_jobs_set_aside, put_back_lost_jobs, site_lease, sweep_jobs
from evaluations.models.jobs import Job, Lease, Worker, process_name
from evaluations.operations.doctor import check_jobs
from tests.helpers.job_work import Nudges, hold_by_dead_worker, job_about, kill_worker_at, nudged_jobs, work_once

pytestmark = pytest.mark.django_db

Step = Callable[[JobClaim], bool]


@pytest.fixture
def steps() -> Iterator[list[Step]]:
    """What the steps of a job of the kind “count” do, one after the other; then it is done."""
    left: list[Step] = []

    def step(claim: JobClaim) -> bool:
        return left.pop(0)(claim) if left else True

    register_job_kind(JobKind("count", step))
    yield left
    del job_kinds()["count"]


def step_to(position: int, *, is_done: bool) -> Step:
    def step(claim: JobClaim) -> bool:
        claim.heartbeat(position)
        return is_done

    return step


def enqueue() -> Job:
    return enqueue_job("count", 7, evaluation=None, total=10)


def test_a_job_is_worked_on_step_by_step_and_a_message_follows_each(steps: list[Step], nudges: Nudges) -> None:
    steps[:] = [step_to(4, is_done=False), step_to(10, is_done=True)]
    job = enqueue()
    enqueued = nudged_jobs(nudges)
    assert work_once("count", 7)
    job.refresh_from_db()
    assert (job.state, job.position, job.attempts, job.claim) == (JobState.WAITING, 4, 0, None)
    assert not work_once("count", 7)
    job.refresh_from_db()
    assert (job.state, job.position, job.claimed_by) == (JobState.DONE, 10, "")
    assert job.finished_at is not None
    assert enqueued == []  # inside a transaction that has not ended


def test_a_message_is_sent_once_the_rows_stand(
    steps: list[Step], nudges: Nudges, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        job = enqueue()
    assert nudged_jobs(nudges) == [job.pk]


def test_a_second_message_does_nothing_while_somebody_is_at_the_job(steps: list[Step]) -> None:
    job = enqueue()
    first = claim_job(job.pk)
    assert first is not None
    assert claim_job(job.pk) is None
    assert not work_once("count", 7)
    job.refresh_from_db()
    assert (job.state, job.claim, job.claimed_by) == (JobState.RUNNING, first.job.claim, process_name())


def test_a_cancelled_job_stops_at_its_next_heartbeat(steps: list[Step]) -> None:
    seen: list[str] = []

    def cancelled_meanwhile(claim: JobClaim) -> bool:
        assert cancel_job("count", 7)
        claim.heartbeat(5)
        seen.append("went on")
        return True

    steps[:] = [cancelled_meanwhile]
    job = enqueue()
    assert not work_once("count", 7)
    job.refresh_from_db()
    assert (job.state, job.position, job.reason, seen) == (JobState.CANCELLED, 0, "Cancelled.", [])
    assert not cancel_job("count", 7)
    assert not work_once("count", 7)


def test_one_that_is_enqueued_again_begins_anew_and_takes_the_claim_away(steps: list[Step]) -> None:
    job = enqueue()
    first = claim_job(job.pk)
    assert first is not None
    first.heartbeat(5)
    assert enqueue().pk == job.pk
    with pytest.raises(LeaseLost):
        first.heartbeat(6)
    job.refresh_from_db()
    assert (job.state, job.position, job.attempts) == (JobState.WAITING, 0, 0)


def test_a_killed_workers_job_is_put_back_where_it_stood(steps: list[Step]) -> None:
    job = enqueue()
    Job.objects.filter(pk=job.pk).update(position=4)
    kill_worker_at("count", 7)
    job.refresh_from_db()
    assert (job.state, job.position, job.attempts) == (JobState.WAITING, 4, 1)
    assert not work_once("count", 7)
    assert job_about("count", 7).state == JobState.DONE


def test_a_lease_that_ran_out_does_not_let_its_holder_write(steps: list[Step]) -> None:
    job = enqueue()
    first = claim_job(job.pk)
    assert first is not None
    Job.objects.filter(pk=job.pk).update(lease_until=Now() - timedelta(seconds=1))
    put_back_lost_jobs()
    second = claim_job(job.pk)
    assert second is not None
    second.heartbeat(3)
    with pytest.raises(LeaseLost):
        first.heartbeat(9)
    assert not end_claim(first)
    assert not release_claim(first)
    assert job_about("count", 7).position == 3


def test_a_worker_that_died_without_a_word_is_not_waited_for(steps: list[Step]) -> None:
    """Its lease still lasts, but neither it nor the job was heard of lately."""
    enqueue()
    now, ago = timezone.now(), timedelta(seconds=30)
    for name, seen_at in (("here:1", now - ago), ("here:2", now)):
        Worker.objects.create(name=name, host="here", pid=1, version="1", started_at=now, seen_at=seen_at)
    for name, state in (("here:2", JobState.RUNNING), ("here:1", JobState.WAITING)):
        hold_by_dead_worker("count", 7)
        Job.objects.update(claimed_by=name, heartbeat_at=now - ago, lease_until=now + ago, attempts=1)
        put_back_lost_jobs()
        assert job_about("count", 7).state == state


def test_deaths_before_the_last_progress_do_not_count_where_work_resumes(steps: list[Step]) -> None:
    job = enqueue()
    for position in (1, 2, 3):
        claim = claim_job(job.pk)
        assert claim is not None
        claim.heartbeat(position)
        assert job_about("count", 7).attempts == 1
        Job.objects.update(claimed_by="elsewhere:1", lease_until=Now() - timedelta(hours=1))
        put_back_lost_jobs()
        assert job_about("count", 7).state == JobState.WAITING
    kill_worker_at("count", 7)
    assert job_about("count", 7).state == JobState.SET_ASIDE


def test_a_job_is_set_aside_after_two_deaths_and_named_by_the_doctor_until_it_is_retried(steps: list[Step]) -> None:
    enqueue()
    kill_worker_at("count", 7)
    assert job_about("count", 7).state == JobState.WAITING
    kill_worker_at("count", 7)
    job = job_about("count", 7)
    assert (job.state, job.attempts) == (JobState.SET_ASIDE, 2)
    assert job.reason == "Set aside: the worker died 2 times at this work. Check the worker's log."
    assert not work_once("count", 7)
    assert [str(one) for one in list_jobs_set_aside()] == ["count 7"]
    (finding,) = check_jobs()
    assert finding.summary == f"count 7: {job.reason}"
    enqueue_job("count", 7, evaluation=None, retry=False)
    kill_worker_at("count", 7)
    assert job_about("count", 7).state == JobState.SET_ASIDE, "one more death, for what is new, and not two"
    call_command("retry_job", "count", "7", stdout=io.StringIO())
    assert not work_once("count", 7)
    assert job_about("count", 7).state == JobState.DONE
    with pytest.raises(CommandError, match="No job “count 7” is set aside"):
        call_command("retry_job", "count", "7")


def test_a_fault_is_no_death(steps: list[Step]) -> None:
    def fault(claim: JobClaim) -> bool:
        raise ValueError("fault")

    steps[:] = [fault, fault, fault]
    enqueue()
    kill_worker_at("count", 7)
    for _ in range(3):
        with pytest.raises(ValueError, match="fault"):
            work_once("count", 7)
        job = job_about("count", 7)
        assert (job.state, job.attempts, job.reason) == (JobState.WAITING, 1, "ValueError: fault")
        assert not work_once("count", 7), "it is left alone for a while"
        Job.objects.update(not_before=None)
    assert not work_once("count", 7)
    assert job_about("count", 7).state == JobState.DONE


def test_a_job_whose_faults_count_is_set_aside_with_the_last_of_them() -> None:
    def fault(claim: JobClaim) -> bool:
        raise ValueError("no such column")

    register_job_kind(JobKind("count", fault, counts_faults=True))
    enqueue()
    for state in (JobState.WAITING, JobState.SET_ASIDE):
        with pytest.raises(ValueError, match="no such column"):
            work_once("count", 7)
        assert job_about("count", 7).state == state
        Job.objects.update(not_before=None)
    reason = "Set aside: this work failed 2 times, last with “ValueError: no such column”. Check the worker's log."
    assert job_about("count", 7).reason == reason


def test_a_job_that_goes_on_keeps_the_death_before_it(steps: list[Step]) -> None:
    steps[:] = [lambda _: False]
    enqueue()
    kill_worker_at("count", 7)
    assert work_once("count", 7)
    assert job_about("count", 7).attempts == 1
    kill_worker_at("count", 7)
    assert job_about("count", 7).state == JobState.SET_ASIDE


def test_what_is_refused_fails_with_the_reason(steps: list[Step]) -> None:
    def refuse(claim: JobClaim) -> bool:
        raise InputRefused("The filter is gone.")

    steps[:] = [refuse]
    enqueue()
    assert not work_once("count", 7)
    job = job_about("count", 7)
    assert (job.state, job.reason) == (JobState.FAILED, "The filter is gone.")


def test_a_pause_is_kept_and_the_sweep_tells_workers_of_what_is_due(
    steps: list[Step], nudges: Nudges, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    def pause(claim: JobClaim) -> bool:
        claim.pause = timedelta(seconds=60)
        return False

    steps[:] = [pause]
    job = enqueue()
    assert not work_once("count", 7)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        sweep_jobs()
    assert nudged_jobs(nudges) == []
    Job.objects.update(not_before=Now() - timedelta(seconds=1))
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        sweep_jobs()
    assert nudged_jobs(nudges) == [job.pk]


def test_a_process_works_on_as_many_of_a_kind_as_it_may(steps: list[Step]) -> None:
    register_job_kind(JobKind("count", lambda _: True, per_worker=1))
    first, second = (enqueue_job("count", number, evaluation=None) for number in (1, 2))
    assert claim_job(first.pk) is not None
    assert claim_job(second.pk) is None
    assert not work_once("count", 2)
    Job.objects.filter(pk=first.pk).update(claimed_by="another:1")
    assert claim_job(second.pk) is not None


def test_a_command_works_on_a_job_to_its_end(steps: list[Step]) -> None:
    steps[:] = [lambda _: False, lambda _: False]
    enqueue()
    hold_by_dead_worker("count", 7)
    work_while_due("count", 7)
    assert (job_about("count", 7).state, steps) == (JobState.DONE, [])


def test_progress_has_one_shape(steps: list[Step]) -> None:
    """4 of 10 in 2 seconds: 2 a second, 3 seconds left."""
    assert measure_job_progress(None).position == 0
    job = enqueue()
    assert measure_job_progress(job).per_second is None
    now = timezone.now()
    Job.objects.update(position=4, begun_at=now - timedelta(seconds=2), finished_at=now, state=JobState.CANCELLED)
    told = measure_job_progress(job_about("count", 7))
    assert (told.position, told.total, told.per_second, told.seconds_left) == (4, 10, 2.0, 3.0)


def test_a_job_of_this_process_is_claimed_from_the_start(steps: list[Step]) -> None:
    claim = start_claimed_job("count", 7, evaluation=None)
    assert claim_job(claim.job.pk) is None
    claim.heartbeat(1)
    assert job_about("count", 7).position == 1


# ---- one process of the whole site at a time -----------------------------------------------------


def test_one_process_holds_a_lease_of_the_site_and_another_takes_it_over_when_it_ran_out() -> None:
    with site_lease("sweep", 60) as ours:
        assert ours
        with site_lease("sweep", 60) as again:
            assert not again
        with site_lease("another", 60) as other:
            assert other
    with site_lease("sweep", 60, rest=60) as ours:
        assert ours
    with site_lease("sweep", 60) as too_soon:
        assert not too_soon
    Lease.objects.filter(name="sweep").update(until=Now())
    with site_lease("sweep", 60) as ours:
        assert ours
        Lease.objects.filter(name="sweep").update(until=Now() - timedelta(seconds=1))
        with site_lease("sweep", 60) as over:
            assert over
