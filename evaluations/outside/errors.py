"""Why there is no answer, as a tree of errors that say what the caller should do."""

from typing import Any, Final

from evaluations.domain import CallState, ReplyShape
from evaluations.outside.exchange import Usage

LONGEST_PAUSE_SECONDS: Final = 86_400.0 * 2  # that an endpoint is left alone for, whatever its provider says


class LLMError(Exception):
    """Why there is no answer, in one sentence; what the server said, without the key, and what it counted."""

    def __init__(
        self, sentence: str, *, http_status: int | None = None, body: str = "", usage: Usage | None = None
    ) -> None:
        super().__init__(sentence)
        self.http_status = http_status
        self.body = body
        self.usage = usage


class Retry(LLMError):
    """Ask again later: after so many seconds where the server named a time.

    ``busy``: the server turned the request away because there were too many.
    ``unreachable``: there was no answer at all, so that no call of the run can do better.
    """

    def __init__(
        self, sentence: str, *, after: float | None = None, busy: bool = False, unreachable: bool = False, **said: Any
    ) -> None:
        super().__init__(sentence, **said)
        self.after = after
        self.busy = busy
        self.unreachable = unreachable


class TimedOut(Retry):
    """Nothing came in time: the server may have more to do than it can."""


class QuotaUsedUp(Retry):
    """A limit of a day or so is reached: no call can succeed before ``after`` seconds have passed."""

    def __init__(self, sentence: str, *, after: float, **said: Any) -> None:
        super().__init__(sentence, after=after, busy=True, **said)


class StopRun(LLMError):
    """No call of this run can succeed before a person acts."""


class RecordOnCall(LLMError):
    """This one call fails in this state; others may succeed."""

    def __init__(self, state: CallState, sentence: str, **said: Any) -> None:
        super().__init__(sentence, **said)
        self.state = state


class FormatRefused(LLMError):
    """The server does not take a reply of this shape: ask this judge's calls in another, or stop."""

    def __init__(self, shape: ReplyShape, sentence: str, **said: Any) -> None:
        super().__init__(sentence, **said)
        self.shape = shape


class SettingRefused(StopRun):
    """The model does not take this setting of the judge: write it another way or leave it out, or stop.

    ``instead`` is the other name that the setting has, where it has one.
    """

    def __init__(self, setting: str, sentence: str, *, instead: str = "", **said: Any) -> None:
        super().__init__(sentence, **said)
        self.setting = setting
        self.instead = instead
