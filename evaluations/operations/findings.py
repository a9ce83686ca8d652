"""What was found about one part of the installation, with advice for each problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The state of one part. ``advice`` is empty if there is nothing to do."""

    part: str
    health: Health
    summary: str
    advice: str = ""


Findings = Iterator[Finding]


def ok_finding(part: str, summary: str) -> Finding:
    return Finding(part, Health.OK, summary)


def warning_finding(part: str, summary: str, advice: str) -> Finding:
    return Finding(part, Health.WARNING, summary, advice)


def problem_finding(part: str, summary: str, advice: str) -> Finding:
    return Finding(part, Health.PROBLEM, summary, advice)
