"""Finding, before a judge's first verdict, how its requests must be written for its server and model to take them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evaluations.domain import ReplyShape, SentAs
from evaluations.models import Judge
from evaluations.outside.errors import SettingRefused
from evaluations.services.judging.working import Bout

# From what holds a reply to its form the most to what every server takes.
TRIED_IN_TURN: Final = (ReplyShape.JSON_SCHEMA, ReplyShape.JSON_OBJECT, ReplyShape.TEXT)
LOOK_AGAIN_SECONDS: Final = 0.05
# The model refuses the number, and not its name.
OUT_OF_RANGE: Final = re.compile(
    r"less than|greater than|at most|at least|between|range of|<=|>=|too large|exceed", re.I
)
OTHER_NAME: Final = re.compile(r"instead|unsupported|not supported|extra input|unrecogni[sz]ed", re.I)
# Settings without which the judge is asked where its model refuses them; "native" is the protocol of the dialect's own.
MAY_BE_LEFT_OUT: Final = (
    *("temperature", "seed", "reasoning_effort", "logprobs", "top_logprobs", "native"),
    *("thinking", "reasoning_summary"),  # what a dialect sends together with an effort
)


@dataclass
class Probe:
    """What a bout tries while it is not known what the judge's model takes. The first real verdict is the probe."""

    bout: Bout
    trying: ReplyShape = TRIED_IN_TURN[0]
    sent_as: SentAs = field(default_factory=SentAs)

    def begin_with(self, found: Mapping[str, Any]) -> None:
        """Begin as the latest handshake of the model ended; what is refused all the same is written otherwise."""
        if found and self.is_open:
            self.trying = ReplyShape(found["shape"])
            self.sent_as = of_this_judge(self.bout.judge, SentAs.from_json(found["sent_as"]))

    @property
    def is_open(self) -> bool:
        return self.bout.is_probing

    @property
    def may_change_shape(self) -> bool:
        return self.bout.shape is None and self.trying != TRIED_IN_TURN[-1]

    @property
    def shape(self) -> ReplyShape:
        return self.bout.shape or self.trying

    @property
    def settings(self) -> SentAs:
        return self.sent_as if self.is_open else SentAs.from_json(self.bout.judge.sent_as)

    def room(self, room: int, held: int) -> int:
        """One request in flight while it is open: a server that takes no schema is to refuse one, not all."""
        return min(room, 1 - held) if self.is_open else room

    def was_refused(self, shape: ReplyShape) -> None:
        """Go on to the next shape; plain text comes last and is refused by nobody."""
        if shape == self.trying:
            self.trying = TRIED_IN_TURN[TRIED_IN_TURN.index(shape) + 1]

    def was_refused_setting(self, error: SettingRefused) -> bool:
        """Write the setting another way from now on, or leave it out; false where there is no other way."""
        changed = rewritten(self.sent_as, error)
        if changed is None or not self.is_open:
            return False
        self.sent_as = changed
        return True

    def was_taken(self, shape: ReplyShape) -> "Found | None":
        """What to freeze, where this answer is the first that tells of it."""
        if not self.is_open:
            return None
        found = Found(shape if self.bout.shape is None else None, self.sent_as)
        self.bout.judge.asked_as = found.shape or self.bout.judge.asked_as
        self.bout.judge.sent_as = self.sent_as.as_json()
        self.bout.settings_sums.clear()
        return found


def of_this_judge(judge: Judge, sent_as: SentAs) -> SentAs:
    """As much of what a handshake found as concerns what this judge sets."""
    sets = {"temperature": judge.temperature is not None, "seed": judge.seed is not None}
    sets |= {
        "logprobs": judge.logprobs,
        "top_logprobs": judge.logprobs,
        "reasoning_effort": bool(judge.reasoning_effort),
    }
    left_out = tuple(name for name in sent_as.left_out if sets.get(name, True))
    return replace(sent_as, left_out=left_out, limit_name=sent_as.limit_name if judge.max_tokens else "")


@dataclass(frozen=True)
class Found:
    """What the first answer told: the ``shape`` where it was not chosen, and how the settings are written."""

    shape: ReplyShape | None
    sent_as: SentAs


def rewritten(sent_as: SentAs, error: SettingRefused) -> SentAs | None:
    """How a judge is sent after this refusal; None where that leaves nothing to try."""
    setting = error.setting
    if setting == "system":
        return None if sent_as.system_folded else replace(sent_as, system_folded=True)
    if setting == "max_tokens":
        # Once: a second refusal is of the number, not of its name.
        if OUT_OF_RANGE.search(str(error)) and not OTHER_NAME.search(str(error)):
            return None
        return replace(sent_as, limit_name=error.instead) if error.instead and not sent_as.limit_name else None
    if setting not in MAY_BE_LEFT_OUT or setting in sent_as.left_out:
        return None
    return replace(sent_as, left_out=(*sent_as.left_out, setting))
