"""All that the selected raters chose on the selected comparisons, as arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import PackedVotes, Score
from evaluations.stats.anchoring import ConfirmedChoices
from evaluations.stats.coding import IntArray
from evaluations.stats.judge_verdicts import JudgeVerdicts, UnansweredCalls
from evaluations.verdicts.judge_arrays import ComparisonPositions, JudgeArrays, read_judge_arrays
from evaluations.verdicts.score_arrays import (
    ImportedScoreArrays,
    ScoreArrays,
    join_vote_arrays,
    read_imported_score_arrays,
    read_score_arrays,
    read_scored_vote_arrays,
)
from evaluations.verdicts.vote_arrays import (
    PackedVoteArrays,
    VoteArrays,
    read_confirmed_choices,
    read_packed_vote_arrays,
)


def list_counted_raters(evaluation: Evaluation, rules: ReportRules) -> list[Rater]:
    """Everyone whose verdicts count, by name: those whom the rules select, without excluded reviewers."""
    return leave_out_excluded(list_selected_raters(evaluation, rules), rules)


def list_selected_raters(evaluation: Evaluation, rules: ReportRules) -> list[Rater]:
    """Everyone whom the rules select, by name. A pattern narrows people and judges each to those it matches.

    A kind in which it matches nobody stays whole: `expert_*` keeps the judges that experts are compared with.
    """
    current = Rater.objects.current().filter(evaluation=evaluation).select_related("judge__rubric_version__rubric")
    raters = list(current.order_by("name", "pk"))
    matching = {rater.pk for rater in raters if fnmatchcase(rater.name, rules.raters)}
    if raters and not matching:
        raise InputRefused(f"No rater's name matches “{rules.raters}”.")
    narrowed = {kind for kind in RaterKind if any(rater.kind == kind and rater.pk in matching for rater in raters)}
    remaining = [rater for rater in raters if rater.pk in matching or rater.kind not in narrowed]
    remaining = filter_raters_by_name(remaining, RaterKind.JUDGE, rules.judges)
    return filter_raters_by_name(remaining, RaterKind.HUMAN, rules.reviewers)


def leave_out_excluded(raters: Sequence[Rater], rules: ReportRules) -> list[Rater]:
    """The raters without reviewers whom the owner excluded, unless the rules include these."""
    if rules.with_excluded:
        return list(raters)
    for rater in raters:
        if rater.is_excluded and rater.name in rules.reviewers:
            raise InputRefused(f"“{rater.name}” is excluded from results. Include excluded reviewers to see them.")
    return [rater for rater in raters if not rater.is_excluded]


def list_judges_in_claim_family(evaluation: Evaluation) -> list[Rater]:
    """The judges with answers: claims of a report are controlled over all of them, whatever its filters leave out."""
    judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE)
    chose = PackedVotes.objects.filter(rater=OuterRef("pk"))
    scored = Score.objects.filter(rater=OuterRef("pk"))
    answering = judges.filter(Exists(chose) | Exists(scored))
    return list(answering.select_related("judge__rubric_version__rubric").order_by("name", "pk"))


def filter_raters_by_name(raters: Sequence[Rater], kind: RaterKind, names: Sequence[str]) -> list[Rater]:
    """Keep raters of one kind by name, if names are given; raters of other kinds are kept."""
    existing = {rater.name for rater in raters if rater.kind == kind}
    for name in names:
        if name not in existing:
            what = "judge" if kind == RaterKind.JUDGE else "reviewer"
            raise InputRefused(f"There is no {what} “{name}” here.")
    return [rater for rater in raters if rater.kind != kind or not names or rater.name in names]


@dataclass(frozen=True)
class VerdictArrays:
    """``comparisons``: their ids in order; a comparison's place in it is its item number everywhere else.

    ``judges``: by rater id, of those that were asked about pairs; ``scored`` has the others. ``scored_votes``: what
    people's scores say, by aspect id. ``confirmed``: by the id of the judge that was shown, and the aspect's place.
    """

    comparisons: IntArray
    people: PackedVoteArrays
    scored_votes: Mapping[int, VoteArrays]
    confirmed: Mapping[tuple[int, int], ConfirmedChoices]
    gold: PackedVoteArrays
    judges: Mapping[int, JudgeArrays]
    scored: ScoreArrays
    preferred: ImportedScoreArrays

    def votes(self, aspect: Aspect) -> VoteArrays:
        """People's votes on an aspect, given as choices or as scores."""
        scores = (self.scored_votes.get(aspect.pk), self.preferred.people.get(aspect.pk))
        return join_vote_arrays([self.people.on(aspect.slot), *(arrays for arrays in scores if arrays is not None)])

    def gold_votes(self, aspect: Aspect) -> VoteArrays:
        scores = self.preferred.gold.get(aspect.pk)
        return join_vote_arrays([self.gold.on(aspect.slot), *([] if scores is None else [scores])])

    def aspects(self, known: Iterable[Aspect]) -> set[int]:
        """The ids of those on which somebody said something."""
        places = self.people.aspects | self.gold.aspects
        places = places.union(*(arrays.aspects for arrays in self.judges.values()))
        of_scores = {*self.scored_votes, *self.preferred.people, *self.preferred.gold}
        of_scores |= {aspect for _, aspect in (*self.scored.verdicts, *self.preferred.verdicts)}
        return of_scores | {aspect.pk for aspect in known if aspect.slot in places}

    def is_derived(self, aspect: Aspect) -> bool:
        of_people = (self.scored_votes, self.preferred.people, self.preferred.gold)
        of_judges = (self.scored.verdicts, self.preferred.verdicts)
        return any(aspect.pk in by_aspect for by_aspect in of_people) or any(
            about == aspect.pk for by_aspect in of_judges for _, about in by_aspect
        )

    def is_chosen(self, aspect: Aspect) -> bool:
        places = (self.people.aspects, self.gold.aspects, *(arrays.aspects for arrays in self.judges.values()))
        return any(aspect.slot in slots for slots in places)

    def get_judged_aspects(self, rater: Rater, known: Iterable[Aspect]) -> set[int]:
        """The ids of the aspects on which a judge said something."""
        chosen = self.judges[rater.pk].aspects if rater.pk in self.judges else set()
        derived = (*self.scored.verdicts, *self.preferred.verdicts)
        return {aspect.pk for aspect in known if aspect.slot in chosen} | {
            aspect for judge, aspect in derived if judge == rater.pk
        }

    def get_judge_verdicts(self, rater: Rater, aspect: Aspect) -> tuple[JudgeVerdicts, UnansweredCalls]:
        """What a judge said on an aspect, and its calls without an answer on it."""
        if (rater.pk, aspect.pk) in self.preferred.verdicts:
            unanswered = self.preferred.unanswered.get(rater.pk, NO_CALLS)
            return self.preferred.verdicts[rater.pk, aspect.pk], unanswered
        if rater.pk in self.judges:
            return self.judges[rater.pk].verdicts(aspect.slot), self.judges[rater.pk].unanswered(aspect.slot)
        scored = self.scored
        return scored.verdicts.get((rater.pk, aspect.pk), JudgeVerdicts()), scored.unanswered.get(rater.pk, NO_CALLS)

    def states(self, rater: Rater, unanswered: UnansweredCalls) -> IntArray:
        """The state of each of these calls, once: a call on a response stands with every comparison it is in."""
        if unanswered is self.preferred.unanswered.get(rater.pk):
            return self.preferred.states[rater.pk]
        return unanswered.state if rater.pk in self.judges else self.scored.states.get(rater.pk, NO_STATES)

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


NO_STATES: Final = np.empty(0, dtype=np.int64)
NO_CALLS: Final = UnansweredCalls(NO_STATES, NO_STATES, NO_STATES)


def read_verdict_arrays(
    places: ComparisonPositions, comparisons: QuerySet[Comparison], raters: Iterable[Rater], rules: ReportRules
) -> VerdictArrays:
    """Everything that these raters said on these comparisons; ``places`` holds their ids.

    Votes carry their days; of reviews confirmed after a reveal only those of the days that the rules name are here.
    """
    by_kind = {kind: [rater for rater in raters if rater.kind == kind] for kind in RaterKind}
    people, judges = by_kind[RaterKind.HUMAN], by_kind[RaterKind.JUDGE]
    pointwise = [rater for rater in judges if rater.judge and rater.judge.is_pointwise]
    number = {rater.pk: place for place, rater in enumerate(people)}
    return VerdictArrays(
        comparisons=places.ids,
        people=read_packed_vote_arrays(people, places),
        scored_votes=read_scored_vote_arrays(comparisons, number, places.ids),
        confirmed=read_confirmed_choices(people, places, rules.since, rules.until),
        gold=read_packed_vote_arrays(by_kind[RaterKind.GOLD], places),
        judges=read_judge_arrays([rater for rater in judges if rater not in pointwise], places),
        scored=read_score_arrays(comparisons, places.ids, pointwise),
        preferred=read_imported_score_arrays(comparisons, places.ids, by_kind),
    )
