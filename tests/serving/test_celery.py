from judgeweb.celery import app


def test_the_periodic_tasks_leave_no_file_that_a_kill_could_cut_off() -> None:
    beat = app.Beat()
    assert beat.app is not None
    assert beat.app.conf.beat_scheduler == "celery.beat:Scheduler"
    assert {"sweep", "look for a local server"} <= set(beat.app.conf.beat_schedule)
