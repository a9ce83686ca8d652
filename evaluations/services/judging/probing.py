"""Finding out, once and before its first verdict, which shape of reply a judge's server takes."""

from dataclasses import dataclass
from typing import Final

from evaluations.domain import ReplyShape
from evaluations.services.judging.working import Bout

# From what holds a reply to its form the most to what every server takes.
TRIED_IN_TURN: Final = (ReplyShape.JSON_SCHEMA, ReplyShape.JSON_OBJECT, ReplyShape.TEXT)
LOOK_AGAIN_SECONDS: Final = 0.05


@dataclass
class Probe:
    """What a bout tries while its judge's shape is not known. The first real verdict is the probe."""

    bout: Bout
    trying: ReplyShape = TRIED_IN_TURN[0]

    @property
    def is_open(self) -> bool:
        return self.bout.shape is None

    @property
    def shape(self) -> ReplyShape:
        return self.bout.shape or self.trying

    def room(self, room: int, held: int) -> int:
        """One request in flight while it is open: a server that takes no schema is to refuse one, not all."""
        return min(room, 1 - held) if self.is_open else room

    def was_refused(self, shape: ReplyShape) -> None:
        """Go on to the next shape; plain text comes last and is refused by nobody."""
        self.trying = TRIED_IN_TURN[TRIED_IN_TURN.index(shape) + 1]

    def was_taken(self, shape: ReplyShape) -> ReplyShape | None:
        """The shape to freeze, where this answer is the first that tells of one."""
        if not self.is_open:
            return None
        self.bout.judge.asked_as = shape
        return shape
