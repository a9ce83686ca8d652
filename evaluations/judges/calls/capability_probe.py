"""The probe that finds, before a judge's first verdict, how its requests must be written."""

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
    """The request settings that a session tries until a first verdict has confirmed them."""

    session: WorkSession
    trying: ReplyShape = SHAPES_TO_TRY[0]
    request_shape: RequestShape = field(default_factory=RequestShape)

    def start_from_check(self, findings: JsonMapping) -> None:
        """Start from the latest check of the model; refusals still change the settings."""
        if findings and self.is_open:
            self.trying = ReplyShape(findings["shape"])
            request_shape = RequestShape.from_json(findings["request_shape"])
            self.request_shape = adaptations_for_judge(self.session.judge, request_shape)

    @property
    def is_open(self) -> bool:
        return self.session.is_probing

    @property
    def may_change_shape(self) -> bool:
        return self.session.shape is None and self.trying != SHAPES_TO_TRY[-1]

    @property
    def shape(self) -> ReplyShape:
        return self.session.shape or self.trying

    @property
    def settings(self) -> RequestShape:
        return self.request_shape if self.is_open else RequestShape.from_json(self.session.judge.request_shape)

    def room(self, room: int, unstored: int) -> int:
        """Allow one request in flight while the probe is open: a server without schemas then refuses one, not all."""
        return min(room, 1 - unstored) if self.is_open else room

    def record_refused_shape(self, shape: ReplyShape) -> None:
        """Move on to the next shape; plain text is last, and no server refuses it."""
        if shape == self.trying:
            self.trying = SHAPES_TO_TRY[SHAPES_TO_TRY.index(shape) + 1]

    def adapt_setting(self, error: SettingRefused) -> bool:
        """Change how the setting is sent, or omit it; False if nothing is left to try."""
        changed = adapt_to_refusal(self.request_shape, error)
        if changed is None or not self.is_open:
            return False
        self.request_shape = changed
        return True

    def record_success(self, shape: ReplyShape) -> "FoundCapabilities | None":
        """The capabilities to freeze on the judge, if this answer is the first to show them."""
        if not self.is_open:
            return None
        capabilities = FoundCapabilities(shape if self.session.shape is None else None, self.request_shape)
        self.session.judge.reply_shape = capabilities.shape or self.session.judge.reply_shape
        self.session.judge.request_shape = self.request_shape.as_json()
        self.session.settings_sums.clear()
        return capabilities


def adaptations_for_judge(judge: Judge, request_shape: RequestShape) -> RequestShape:
    """The check's adaptations that concern settings of this judge."""
    is_set = {
        "temperature": judge.temperature is not None,
        "seed": judge.seed is not None,
        "logprobs": judge.logprobs,
        "top_logprobs": judge.logprobs,
        "reasoning_effort": bool(judge.reasoning_effort),
    }
    left_out = tuple(name for name in request_shape.left_out if is_set.get(name, True))
    return replace(request_shape, left_out=left_out, limit_name=request_shape.limit_name if judge.max_tokens else "")


@dataclass(frozen=True)
class FoundCapabilities:
    """The capabilities that the first answer showed: the ``shape`` unless it was chosen, and how settings are sent."""

    shape: ReplyShape | None
    request_shape: RequestShape
