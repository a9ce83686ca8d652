"""Who takes part."""

from enum import StrEnum


class Role(StrEnum):
    OWNER = "owner"
    MANAGER = "manager"
    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"
    VIEWER = "viewer"


class RaterKind(StrEnum):
    HUMAN = "human"
    JUDGE = "judge"
    GOLD = "gold"
