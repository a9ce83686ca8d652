"""Who takes part."""

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    OWNER = "owner"
    MANAGER = "manager"
    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"
    VIEWER = "viewer"


MAY_REVIEW: Final = frozenset(Role) - {Role.VIEWER}


class RaterKind(StrEnum):
    HUMAN = "human"
    JUDGE = "judge"
    GOLD = "gold"
