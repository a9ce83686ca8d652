"""What other programs may leave in the queue of a worker: each is dropped, and work goes on."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import redis

from evaluations.jobs.nudges import WorkerTask
from evaluations.models.jobs import Job, Worker
from tests.factories.evaluations import make_evaluation
from tests.helpers.worker_processes import WORKER, environment_on_test_database, run_celery, until

pytestmark = [pytest.mark.worker, pytest.mark.django_db(transaction=True)]

QUEUE = "judgeweb.garbage"


def message(task: str, body: Any, **properties: Any) -> bytes:
    """A message in the form that Redis and the folder hold."""
    return json.dumps(
        {
            "body": base64.b64encode(json.dumps(body).encode()).decode(),
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "headers": {"task": task, "id": "1", "lang": "py", "root_id": "1", "parent_id": None, "group": None},
            "properties": {
                "body_encoding": "base64",
                "delivery_info": {"exchange": "", "routing_key": QUEUE},
                "delivery_tag": "1",
                **properties,
            },
        }
    ).encode()


GARBAGE = (
    *(b"", b"\xff\xfe\x00", b'{"half', b"[]", b"17", b"null", b"{}"),
    message("another.application", [[1], {}, {}]),
    message(WorkerTask.WORK_ON_JOB, [["one", "two"], {}, {}]),
    message(WorkerTask.WORK_ON_JOB, "no arguments"),
    message(WorkerTask.WORK_ON_JOB, [[1], {}, {}], body_encoding="nobody knows"),
)


def leave_garbage(environment: dict[str, str], folder: Path) -> None:
    if (broker := environment.get("CELERY_BROKER_URL", "")).startswith("redis"):
        with redis.Redis.from_url(broker) as server:
            server.lpush(f"{QUEUE}:{QUEUE}", *GARBAGE)
    else:
        for number, garbage in enumerate(GARBAGE):
            (folder / "broker" / f"{number}_garbage.{QUEUE}.msg").write_bytes(garbage)


def is_empty(environment: dict[str, str], folder: Path) -> bool:
    if (broker := environment.get("CELERY_BROKER_URL", "")).startswith("redis"):
        with redis.Redis.from_url(broker) as server:
            return not server.exists(f"{QUEUE}:{QUEUE}")
    return not list((folder / "broker").glob(f"*.{QUEUE}.msg"))


def test_garbage_in_the_queue_is_dropped_and_work_goes_on(tmp_path: Path) -> None:
    environment = {**environment_on_test_database(tmp_path), "JUDGEWEB_QUEUE_PREFIX": "garbage"}
    evaluation = make_evaluation()
    (tmp_path / "broker").mkdir()
    leave_garbage(environment, tmp_path)
    with run_celery(environment, *WORKER) as worker:
        until(lambda: is_empty(environment, tmp_path), 60)
        until(Worker.objects.alive().exists, 60)
        job = Job.objects.create(kind="render_ahead", subject=evaluation.pk, evaluation=evaluation)
        until(lambda: Job.objects.get(pk=job.pk).state == "done", 60)
        assert worker.poll() is None
