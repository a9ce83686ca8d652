"""Refusals on pages: the status of the response, and messages on the next page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from evaluations.domain.disk_space import DiskFull
from evaluations.domain.errors import InputRefused


def get_refusal_status(refused: InputRefused) -> int:
    return 507 if isinstance(refused, DiskFull) else 422


@contextmanager
def show_refusal(request: HttpRequest, otherwise: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Show a refusal raised inside the block as a message on the next page."""
    try:
        yield
    except InputRefused as refused:
        messages.error(request, str(refused))
        otherwise()
