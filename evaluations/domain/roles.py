"""The roles of members, the kinds of raters and the scopes of tokens."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    OWNER = "owner"
    MANAGER = "manager"
    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"
    VIEWER = "viewer"


REVIEWING_ROLES: Final = frozenset(Role) - {Role.VIEWER}


# The roles that a join link may give, to anyone who has it.
JOINABLE_ROLES: Final = (Role.REVIEWER, Role.ADJUDICATOR, Role.VIEWER)


class RaterKind(StrEnum):
    HUMAN = "human"
    JUDGE = "judge"
    GOLD = "gold"


class Scope(StrEnum):
    """The scope of an API token. It never allows more than its user may do."""

    READ = "read"
    REVIEW = "review"
    WRITE = "write"
    ADMIN = "admin"


SCOPE_TEXTS: Final[Mapping[Scope, str]] = {
    Scope.READ: "read everything you can see",
    Scope.REVIEW: "review, comment and resolve in your name",
    Scope.WRITE: "import, judge, organize and export",
    Scope.ADMIN: "manage members, settings, accounts and endpoints",
}
