import numpy as np

from evaluations.domain.reports import SideCoding, SplitRule
from evaluations.stats.coding import MISSING, TIE, A, B
from evaluations.stats.judge_agreement import ReferenceVotes, judge_human_agreement
from evaluations.stats.polls import make_poll
from evaluations.stats.votes import Votes

NAMES = ("ann", "ben")


def test_a_judge_stands_beside_each_person_by_name_and_beside_all_their_votes() -> None:
    # Items 0 1 2: ann A B A, ben A – B; on the last ann votes twice, A and B, which is a tie of hers. The judge: A A A.
    item, rater, choice = np.array([(0, 0, A), (1, 0, B), (2, 0, A), (0, 1, A), (2, 1, B), (2, 0, B)]).T
    found = make_poll(Votes(item, rater, item * 0, choice), np.arange(3))
    people = ReferenceVotes(found, found.majority(SplitRule.TIE), None, NAMES)
    held = judge_human_agreement(np.array([A, A, A]), people, 3, SideCoding.CANDIDATE)
    assert (held.votes.with_ties.agree, held.votes.with_ties.n) == (3, 6)
    # Majorities A, B, B.
    assert (held.majority.with_ties.agree, held.majority.with_ties.n, held.majority.n_split) == (1, 3, 0)
    by_name = {one.rater: (one.with_ties.agree, one.with_ties.n, one.without_ties.n) for one in held.people}
    assert by_name == {"ann": (1, 3, 2), "ben": (1, 2, 2)}


def test_the_splits_are_counted_where_the_judge_has_a_verdict() -> None:
    item, rater, choice = np.array([(0, 0, A), (0, 1, B), (1, 0, TIE), (1, 1, B)]).T
    found = make_poll(Votes(item, rater, item * 0, choice), np.arange(2))
    people = ReferenceVotes(found, found.majority(SplitRule.DROP), None, NAMES)
    held = judge_human_agreement(np.array([A, MISSING]), people, 3, SideCoding.CANDIDATE)
    assert (held.majority.n_split, held.majority.with_ties.n) == (1, 0)
