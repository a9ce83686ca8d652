"""The probe finds, before a judge's first verdict, how its requests must be written."""

from dataclasses import dataclass, field, replace
from typing import Final

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import ReplyShape, RequestShape
from evaluations.judges.calls.work_session import WorkSession
from evaluations.llm.exchange import SHAPES_TO_TRY, SettingRefused, adapt_to_refusal
from evaluations.models.judges import Judge

PROBE_CHECK_SECONDS: Final = 0.05


@dataclass
class CapabilityProbe:
    """What a session tries while the model's abilities are unknown. The first real verdict is the probe."""

    bout: WorkSession
    trying: ReplyShape = SHAPES_TO_TRY[0]
    sent_as: RequestShape = field(default_factory=RequestShape)

    def begin_with(self, found: JsonMapping) -> None:
        """Begin as the latest handshake of the model ended; what is refused all the same is written otherwise."""
        if found and self.is_open:
            self.trying = ReplyShape(found["shape"])
            self.sent_as = adaptations_for_judge(self.bout.judge, RequestShape.from_json(found["sent_as"]))

    @property
    def is_open(self) -> bool:
        return self.bout.is_probing

    @property
    def may_change_shape(self) -> bool:
        return self.bout.shape is None and self.trying != SHAPES_TO_TRY[-1]

    @property
    def shape(self) -> ReplyShape:
        return self.bout.shape or self.trying

    @property
    def settings(self) -> RequestShape:
        return self.sent_as if self.is_open else RequestShape.from_json(self.bout.judge.sent_as)

    def room(self, room: int, held: int) -> int:
        """One request in flight while it is open: a server that takes no schema is to refuse one, not all."""
        return min(room, 1 - held) if self.is_open else room

    def was_refused(self, shape: ReplyShape) -> None:
        """Go on to the next shape; plain text comes last and is refused by nobody."""
        if shape == self.trying:
            self.trying = SHAPES_TO_TRY[SHAPES_TO_TRY.index(shape) + 1]

    def was_refused_setting(self, error: SettingRefused) -> bool:
        """Write the setting another way from now on, or leave it out; false where there is no other way."""
        changed = adapt_to_refusal(self.sent_as, error)
        if changed is None or not self.is_open:
            return False
        self.sent_as = changed
        return True

    def was_taken(self, shape: ReplyShape) -> "FoundCapabilities | None":
        """What to freeze, where this answer is the first that tells of it."""
        if not self.is_open:
            return None
        found = FoundCapabilities(shape if self.bout.shape is None else None, self.sent_as)
        self.bout.judge.asked_as = found.shape or self.bout.judge.asked_as
        self.bout.judge.sent_as = self.sent_as.as_json()
        self.bout.settings_sums.clear()
        return found


def adaptations_for_judge(judge: Judge, sent_as: RequestShape) -> RequestShape:
    """The part of a handshake's adaptations that concerns this judge's settings."""
    sets = {"temperature": judge.temperature is not None, "seed": judge.seed is not None}
    sets |= {
        "logprobs": judge.logprobs,
        "top_logprobs": judge.logprobs,
        "reasoning_effort": bool(judge.reasoning_effort),
    }
    left_out = tuple(name for name in sent_as.left_out if sets.get(name, True))
    return replace(sent_as, left_out=left_out, limit_name=sent_as.limit_name if judge.max_tokens else "")


@dataclass(frozen=True)
class FoundCapabilities:
    """What the first answer showed: the ``shape`` where it was not chosen, and how settings are written."""

    shape: ReplyShape | None
    sent_as: RequestShape
