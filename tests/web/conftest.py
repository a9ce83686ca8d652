"""What the tests of pages share."""

import pytest


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The runs that are sent to workers, instead of sending them."""
    from evaluations.tasks import work_run

    sent: list[tuple[int, ...]] = []
    monkeypatch.setattr(work_run, "apply_async", lambda ids, **options: sent.append(ids))
    return sent
