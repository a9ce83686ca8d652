"""What was refused is said on the page that comes next."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from evaluations.domain import InputRefused


@contextmanager
def told_if_refused(request: HttpRequest, otherwise: Callable[[], None] = lambda: None) -> Iterator[None]:
    """For a step that leads to the same page either way: what follows the refusal inside is not done."""
    try:
        yield
    except InputRefused as refused:
        messages.error(request, str(refused))
        otherwise()
