"""What people are called in files that are not to name them: reviewer-1 and so on, the same in every file of a study.

Numbers are dealt by lot when a person is first met, and kept: neither their order nor a list of names gives one away.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Max, Q

from evaluations.domain import RaterKind
from evaluations.models import Alias, Evaluation, Rater, User

CALL: Final = re.compile(r"(?<![\w.@+-])@([\w.@+-]+)")


@dataclass(frozen=True)
class Aliases:
    by_rater: Mapping[int, str]
    by_username: Mapping[str, str]

    def in_text(self, text: str) -> str:
        """The same with everyone it calls as @name by their alias. Names without the sign stay: nobody finds them."""
        known = {name.casefold(): alias for name, alias in self.by_username.items()}

        def renamed(call: re.Match[str]) -> str:
            name = call[1]
            for end in range(len(name), 0, -1):
                if name[:end].casefold() in known and not name[end:].strip(".-+@"):
                    return f"@{known[name[:end].casefold()]}{name[end:]}"
            return call[0]

        return CALL.sub(renamed, text)


@transaction.atomic
def aliases_of(evaluation: Evaluation) -> Aliases:
    """An alias for everyone who may be named, dealt now to those who have none yet."""
    Evaluation.objects.select_for_update().get(pk=evaluation.pk)  # two who deal at once would give a number twice
    raters = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN)
    imported = list(raters.filter(user__isnull=True).values_list("pk", flat=True))
    users = dict(
        User.objects.filter(
            Q(memberships__evaluation=evaluation)
            | Q(raters__evaluation=evaluation)
            | Q(comments__comparison__evaluation=evaluation)
            | Q(adjudications__comparison__evaluation=evaluation)
        ).values_list("pk", "username")
    )
    known = Alias.objects.filter(evaluation=evaluation)
    met = {(one.user_id, one.rater_id) for one in known}
    new = [(pk, None) for pk in users if (pk, None) not in met] + [
        (None, pk) for pk in imported if (None, pk) not in met
    ]
    secrets.SystemRandom().shuffle(new)
    first = 1 + (known.aggregate(last=Max("number"))["last"] or 0)
    Alias.objects.bulk_create(
        Alias(evaluation=evaluation, user_id=user, rater_id=rater, number=number)
        for number, (user, rater) in enumerate(new, first)
    )
    dealt = list(Alias.objects.filter(evaluation=evaluation))
    of_user = {one.user_id: one.name for one in dealt if one.user_id}
    of_rater = {one.rater_id: one.name for one in dealt if one.rater_id}
    mine = raters.filter(user__isnull=False).values_list("pk", "user_id")
    return Aliases(
        by_rater=of_rater | {pk: of_user[user] for pk, user in mine if user in of_user},
        by_username={name: of_user[pk] for pk, name in users.items()},
    )
