"""Verdicts from the database into arrays: the same few queries, however many verdicts there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db.models import QuerySet

from evaluations.domain import RaterKind, Rules
from evaluations.models import Aspect, Comparison, Rater
from evaluations.services.reporting.deriving import FromScores, read_scored
from evaluations.services.reporting.preferring import Preferred, read_preferred
from evaluations.services.reporting.scoring_votes import joined, read_scored_votes
from evaluations.services.reporting.unpacking import JudgeBallots, Places, read_judges
from evaluations.services.reporting.voting import PeopleBallots, PeopleRows, read_confirmed, read_people
from evaluations.stats.anchoring import Confirmed
from evaluations.stats.coding import IntArray
from evaluations.stats.consolidation import Unanswered, Verdicts


@dataclass(frozen=True)
class Gathered:
    """``comparisons``: their ids in order; a comparison's place in it is its item number everywhere else.

    ``judges``: by rater id, of those that were asked about pairs; ``scored`` has the others. ``scored_votes``: what
    people's scores say, by aspect id. ``confirmed``: by the id of the judge that was shown, and the aspect's place.
    """

    comparisons: IntArray
    people: PeopleBallots
    scored_votes: Mapping[int, PeopleRows]
    confirmed: Mapping[tuple[int, int], Confirmed]
    gold: PeopleBallots
    judges: Mapping[int, JudgeBallots]
    scored: FromScores
    preferred: Preferred

    def votes(self, aspect: Aspect) -> PeopleRows:
        """People's votes on an aspect, given as choices or as scores."""
        scores = (self.scored_votes.get(aspect.pk), self.preferred.people.get(aspect.pk))
        return joined([self.people.on(aspect.place), *(one for one in scores if one is not None)])

    def gold_votes(self, aspect: Aspect) -> PeopleRows:
        scores = self.preferred.gold.get(aspect.pk)
        return joined([self.gold.on(aspect.place), *([] if scores is None else [scores])])

    def aspects(self, known: Iterable[Aspect]) -> set[int]:
        """The ids of those on which somebody said something."""
        places = self.people.aspects | self.gold.aspects
        places = places.union(*(ballots.aspects for ballots in self.judges.values()))
        of_scores = {*self.scored_votes, *self.preferred.people, *self.preferred.gold}
        of_scores |= {aspect for _, aspect in (*self.scored.verdicts, *self.preferred.verdicts)}
        return of_scores | {aspect.pk for aspect in known if aspect.place in places}

    def is_derived(self, aspect: Aspect) -> bool:
        """Whether choices on it were derived from scores."""
        of_people = (self.scored_votes, self.preferred.people, self.preferred.gold)
        of_judges = (self.scored.verdicts, self.preferred.verdicts)
        return any(aspect.pk in found for found in of_people) or any(
            about == aspect.pk for found in of_judges for _, about in found
        )

    def is_chosen(self, aspect: Aspect) -> bool:
        """Whether anybody chose between two responses on it."""
        places = (self.people.aspects, self.gold.aspects, *(ballots.aspects for ballots in self.judges.values()))
        return any(aspect.place in found for found in places)

    def said_by(self, rater: Rater, known: Iterable[Aspect]) -> set[int]:
        """The ids of the aspects on which a judge said something."""
        chosen = self.judges[rater.pk].aspects if rater.pk in self.judges else set()
        derived = (*self.scored.verdicts, *self.preferred.verdicts)
        return {aspect.pk for aspect in known if aspect.place in chosen} | {
            aspect for judge, aspect in derived if judge == rater.pk
        }

    def said(self, rater: Rater, aspect: Aspect) -> tuple[Verdicts, Unanswered]:
        """What a judge said on an aspect, and its calls without an answer on it."""
        if (rater.pk, aspect.pk) in self.preferred.verdicts:
            unanswered = self.preferred.unanswered.get(rater.pk, NO_CALLS)
            return self.preferred.verdicts[rater.pk, aspect.pk], unanswered
        if rater.pk in self.judges:
            return self.judges[rater.pk].verdicts(aspect.place), self.judges[rater.pk].unanswered(aspect.place)
        scored = self.scored
        return scored.verdicts.get((rater.pk, aspect.pk), Verdicts()), scored.unanswered.get(rater.pk, NO_CALLS)

    def states(self, rater: Rater, unanswered: Unanswered) -> IntArray:
        """The state of each of these calls, once: a call on a response stands with every comparison it is in."""
        if unanswered is self.preferred.unanswered.get(rater.pk):
            return self.preferred.states[rater.pk]
        return unanswered.state if rater.pk in self.judges else self.scored.states.get(rater.pk, NOTHING)

    def repaired(self, rater: Rater) -> int:
        """How many of a judge's calls were answered when asked a second time."""
        return self.judges[rater.pk].repaired if rater.pk in self.judges else self.scored.repaired.get(rater.pk, 0)

    def elsewhere(self, rater: Rater) -> int:
        """How many of a judge's calls without an answer count on none of the aspects on which it chose something."""
        return self.judges[rater.pk].elsewhere if rater.pk in self.judges else 0

    def was_asked(self, rater: Rater) -> bool:
        if rater.pk in self.judges and self.judges[rater.pk].was_asked:
            return True
        if any(judge == rater.pk for judge, _ in self.preferred.verdicts):
            return True
        return rater.pk in self.scored.unanswered or any(judge == rater.pk for judge, _ in self.scored.verdicts)


NOTHING: Final = np.empty(0, dtype=np.int64)
NO_CALLS: Final = Unanswered(NOTHING, NOTHING, NOTHING)


def gather(places: Places, comparisons: QuerySet[Comparison], raters: Iterable[Rater], rules: Rules) -> Gathered:
    """Everything that these raters said on these comparisons; ``places`` holds their ids.

    Votes carry their days; of reviews confirmed after a reveal only those of the days that the rules name are here.
    """
    by_kind = {kind: [rater for rater in raters if rater.kind == kind] for kind in RaterKind}
    people, judges = by_kind[RaterKind.HUMAN], by_kind[RaterKind.JUDGE]
    pointwise = [rater for rater in judges if rater.judge and rater.judge.is_pointwise]
    number = {rater.pk: place for place, rater in enumerate(people)}
    return Gathered(
        comparisons=places.ids,
        people=read_people(people, places),
        scored_votes=read_scored_votes(comparisons, number, places.ids),
        confirmed=read_confirmed(people, places, rules.since, rules.until),
        gold=read_people(by_kind[RaterKind.GOLD], places),
        judges=read_judges([rater for rater in judges if rater not in pointwise], places),
        scored=read_scored(comparisons, places.ids, pointwise),
        preferred=read_preferred(comparisons, places.ids, by_kind),
    )
