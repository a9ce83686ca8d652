"""What the tests of the API share: a token, and a client that sends it."""

import pytest


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """What is sent to workers, instead of sending it."""
    from celery.contrib.django.task import DjangoTask

    sent: list[tuple[int, ...]] = []
    monkeypatch.setattr(DjangoTask, "apply_async", lambda self, ids, **options: sent.append(ids))
    return sent
