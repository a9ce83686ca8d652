"""A worker whose connection to RabbitMQ is cut, and whose broker is emptied: work goes on by itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job, Worker
from tests.factories.evaluations import make_evaluation
from tests.helpers.own_servers import TcpProxy, build_rabbitmq, control_rabbitmq, running
from tests.helpers.worker_processes import WORKER, environment_on_test_database, run_celery, until

pytestmark = [pytest.mark.worker, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]

SECONDS = 60


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[TcpProxy]:
    """A proxy in front of a broker of our own."""
    (tmp_path / "rabbitmq").mkdir()
    with running(build_rabbitmq(tmp_path / "rabbitmq")) as server:
        control_rabbitmq(server, "await_startup")
        proxy = TcpProxy(server.port)
        yield proxy
        proxy.close()


def is_done(evaluation: Evaluation) -> bool:
    job = Job.objects.get(kind="render_ahead", evaluation=evaluation)
    return job.state == "done"


def work_is_done_for_a_new_evaluation() -> None:
    """No message is sent from here: the worker's own messages bring the job, or its sweeps do."""
    evaluation = make_evaluation()
    Job.objects.create(kind="render_ahead", subject=evaluation.pk, evaluation=evaluation)
    until(lambda: is_done(evaluation), SECONDS)


def test_a_worker_lives_through_cut_connections_and_a_broker_that_is_away(rabbitmq: TcpProxy, tmp_path: Path) -> None:
    environment = environment_on_test_database(tmp_path)
    environment["CELERY_BROKER_URL"] = f"amqp://guest:guest@127.0.0.1:{rabbitmq.port}//"
    with run_celery(environment, *WORKER) as worker:
        until(Worker.objects.alive().exists, SECONDS)
        work_is_done_for_a_new_evaluation()
        for fault in (rabbitmq.cut, rabbitmq.refuse, rabbitmq.recover, rabbitmq.go_silent, rabbitmq.recover):
            fault()
            work_is_done_for_a_new_evaluation()
        assert worker.poll() is None
