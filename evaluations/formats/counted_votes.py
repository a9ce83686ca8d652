"""Which passes of people over an exported comparison hold a vote."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaluations.domain import ReviewState
from evaluations.formats.exported import Person, PersonsChoice
from evaluations.formats.preferred import Account

WITHOUT_VOTE: Final = {
    "person_said_nothing": "a person has not spoken of this aspect",
    "not_confirmed": "a person has not confirmed the first choice",
    "calibration": "given in a calibration round, which counts nowhere",
    "replaced_by_newer_review": "the same person reviewed the comparison again",
}
REVIEWED: Final = -1


def vote_holders(people: Sequence[Person]) -> Mapping[str, Sequence[int]]:
    """Aspect → the places in ``people`` of the passes whose final choice is a vote.

    ``people`` has each person's reviews oldest first: of those that have the aspect the newest holds the vote.
    Imported passes have no order, so all of them do.
    """
    holders: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for place, person in enumerate(people):
        if person["calibration"] or person["state"] != ReviewState.FINAL:
            continue
        imported_as = place if person["rubric"] is None else REVIEWED
        for aspect, choice in person["choices"].items():
            if choice["final"]:
                holders[aspect][person["rater"], imported_as] = place
    return {aspect: list(places.values()) for aspect, places in holders.items()}


def counted_votes(people: Sequence[Person], aspect: str, account: Account) -> Iterator[tuple[Person, PersonsChoice]]:
    """The passes that hold a vote on the aspect, with their choice. The account gets the reasons of all others."""
    holders = vote_holders(people).get(aspect, ())
    for place, person in enumerate(people):
        choice = person["choices"].get(aspect)
        if person["calibration"]:
            account.excluded["calibration"] += 1
        elif choice is None:
            account.excluded["person_said_nothing"] += 1
        elif choice["final"] is None:
            account.excluded["not_confirmed"] += 1
        elif place not in holders:
            account.excluded["replaced_by_newer_review"] += 1
        else:
            yield person, choice
