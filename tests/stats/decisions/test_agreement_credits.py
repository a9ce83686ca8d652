"""Half credits of judge, left-out reviewer and constant answers, worked by hand."""

import numpy as np
import pytest

from evaluations.stats.decisions.agreement_credits import judge_credits, reviewer_credits
from tests.stats.decisions.study import poll_of, verdicts


def test_only_items_with_two_reviewers_count() -> None:
    made = reviewer_credits(poll_of("AB.A", "A..B"))
    assert made.item.tolist() == [0, 3]
    assert made.score.tolist() == [1, 0.5]
    assert made.square.tolist() == [1, 0.5]


def test_equal_choices_count_1_opposite_ones_0_and_a_side_with_a_tie_half() -> None:
    made = reviewer_credits(poll_of("AAA=", "AB=="))
    assert made.reviewer.tolist() == [1, 0, 0.5, 1]


def test_a_reviewer_is_averaged_over_all_pairs() -> None:
    """A, A, B and a tie: of the 6 pairs AA agrees 1, three pairs of a side and the tie ½, two AB 0: 2.5 of 6."""
    made = reviewer_credits(poll_of("A", "A", "B", "="))
    assert made.reviewer.tolist() == [pytest.approx(2.5 / 6)]
    # Always A: 1 + 1 + 0 + ½ of 4; always B: ½ + 1 of 4; always tie: ½ + ½ + ½ + 1 of 4.
    assert made.constant[:, 0].tolist() == [0.625, 0.375, 0.625]


def test_both_bad_counts_as_a_tie() -> None:
    made = reviewer_credits(poll_of("x", "="))
    assert made.reviewer.tolist() == [1]
    judge = judge_credits(verdicts("x"), made)
    assert judge.judge.tolist() == [1]


def test_a_judge_earns_its_mean_credit_with_each_vote_and_nothing_for_a_failed_call() -> None:
    made = reviewer_credits(poll_of("AAAAA", "AB=A="))
    judge = judge_credits(verdicts("AAA!."), made)
    assert judge.item.tolist() == [0, 1, 2, 3]  # on the last it was not asked
    assert judge.judge.tolist() == [1, 0.5, 0.75, 0]
    assert judge.constant.mean(axis=1).tolist() == [pytest.approx(x) for x in (3.25 / 4, 0.75 / 4, 2.25 / 4)]
    assert judge.best_constant == 0


def test_a_split_needs_no_rule() -> None:
    """Against A and B every choice earns the same."""
    made = reviewer_credits(poll_of("AAA", "BBB"))
    assert judge_credits(verdicts("AB="), made).judge.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("seed", range(3))
def test_credits_equal_those_of_a_naive_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    letters = np.array(list("AB=x."))
    reviewers = ["".join(rng.choice(letters, size=40, p=[0.3, 0.3, 0.1, 0.1, 0.2])) for _ in range(5)]
    judge = "".join(rng.choice(list("AB=x!."), size=40))
    made = judge_credits(verdicts(judge), reviewer_credits(poll_of(*reviewers)))
    for at, item in enumerate(made.item.tolist()):
        votes = [one[item] for one in reviewers if one[item] != "."]
        pairs = [(one, other) for i, one in enumerate(votes) for j, other in enumerate(votes) if i != j]
        assert made.reviewer[at] == pytest.approx(np.mean([credit(*pair) for pair in pairs]))
        own = judge[item]
        assert made.judge[at] == pytest.approx(0 if own == "!" else np.mean([credit(own, vote) for vote in votes]))
    asked = [n for n in range(40) if judge[n] != "." and sum(one[n] != "." for one in reviewers) > 1]
    assert made.item.tolist() == asked


def credit(one: str, other: str) -> float:
    ties = ("=", "x")
    if one == other or (one in ties and other in ties):
        return 1.0
    return 0.5 if (one in ties) != (other in ties) else 0.0
