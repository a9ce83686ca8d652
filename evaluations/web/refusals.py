"""Refusals as messages on the next page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from evaluations.domain.errors import InputRefused


@contextmanager
def show_refusal(request: HttpRequest, otherwise: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Show a refusal raised inside the block as a message on the next page."""
    try:
        yield
    except InputRefused as refused:
        messages.error(request, str(refused))
        otherwise()
