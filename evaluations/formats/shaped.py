"""What the same thing said becomes in a format, made once: the engine shares what is equal between rows."""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

MOST: Final = 50_000
Made = TypeVar("Made")


class Shaped(Generic[Made]):
    """``shape``: what is made of something that was said, and of the names under which it stands."""

    def __init__(self, shape: Callable[..., Made]) -> None:
        self.shape = shape
        self.known: dict[tuple[object, ...], tuple[Any, Made]] = {}

    def of(self, told: Any, *names: str) -> Made:
        # What is known is held, so that no other object can come to stand under its number.
        held = self.known.get((id(told), *names))
        if held is not None:
            return held[1]
        made = self.shape(told, *names)
        if len(self.known) < MOST:
            self.known[id(told), *names] = told, made
        return made
