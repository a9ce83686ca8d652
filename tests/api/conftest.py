"""What the tests of the API share: a token, and a client that sends it."""

import pytest

from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.helpers.api_client import ApiClient, token_for


@pytest.fixture
def asking(owner: User, evaluation: Evaluation) -> ApiClient:
    """The owner's program, with a token for everything."""
    return ApiClient(token_for(owner))


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What is sent to workers, instead of sending it."""
    from celery.contrib.django.task import DjangoTask

    sent: list[tuple[int, ...]] = []
    monkeypatch.setattr(DjangoTask, "apply_async", lambda self, ids, **options: sent.append(ids))
    return sent
