"""Queues for tests."""

from typing import Any

from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Queue
from evaluations.models.users import User
from evaluations.reviews.queues.sampler import QueuePlan
from evaluations.reviews.queues.services import create_queue


def make_queue(evaluation: Evaluation, *, name: str = "first", user: User | None = None, **plan: Any) -> Queue:
    return create_queue(evaluation, name, QueuePlan(**plan), user=user)
