"""Python imports this at its start: the clock of the process is off by JUDGEWEB_TEST_CLOCK_SECONDS.

Only the time of day is: a program that shifts the clocks of timers too (faketime) makes Celery hang.
"""

import datetime
import os
import time
from typing import Any

SHIFT = float(os.environ.get("JUDGEWEB_TEST_CLOCK_SECONDS", "0"))

right_time, right_time_ns = time.time, time.time_ns
RightDatetime: Any = datetime.datetime


class SkewedType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, RightDatetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, RightDatetime)


class SkewedDatetime(RightDatetime, metaclass=SkewedType):  # type: ignore[misc]
    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return RightDatetime(*arguments, **named)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return RightDatetime.now(tz) + datetime.timedelta(seconds=SHIFT)

    @classmethod
    def utcnow(cls) -> Any:
        return RightDatetime.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=SHIFT)


if SHIFT:
    time.time = lambda: right_time() + SHIFT
    time.time_ns = lambda: right_time_ns() + int(SHIFT * 1e9)
    datetime.datetime = SkewedDatetime  # type: ignore[misc]
