"""The people of the tests, and what each may do in the evaluation of the fixture `evaluation`."""

from dataclasses import dataclass
from typing import Final

from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.evaluations import make_member, make_user


@dataclass(frozen=True)
class Persona:
    username: str
    role: Role | None  # None: no member of any evaluation

    def join(self, evaluation: Evaluation) -> User:
        """Make the account, and a member of that evaluation of it."""
        if self.role is None:
            raise ValueError(f"{self.username} takes part in no evaluation")
        return make_member(evaluation, self.role, self.username)

    def make(self) -> User:
        """Make the account alone."""
        return make_user(self.username)


OWNER: Final = Persona("olive", Role.OWNER)
MANAGER: Final = Persona("mary", Role.MANAGER)
REVIEWERS: Final = (Persona("rita", Role.REVIEWER), Persona("rob", Role.REVIEWER))
ADJUDICATOR: Final = Persona("ada", Role.ADJUDICATOR)
VIEWER: Final = Persona("victor", Role.VIEWER)
STRANGER: Final = Persona("sam", None)
