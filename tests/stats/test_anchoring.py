import numpy as np
import pytest

from evaluations.stats.anchoring import (
    EMPTY_ARM,
    NOT_DRAWN,
    NOT_REVEALED,
    AfterReveal,
    ConfirmedChoices,
    anchoring_effect,
    changes_after_reveal,
)
from evaluations.stats.coding import MISSING, TIE, A, B, IntArray
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO
from evaluations.stats.votes import Votes

RNG = np.random.default_rng(4)


def votes(item: IntArray, choice: IntArray) -> Votes:
    return Votes(item, item * 0, item * 0, choice)


def arm(item: IntArray, agreeing: float) -> Votes:
    """Votes of people that agree with a judge who says A throughout, on this share of these items."""
    return votes(item, np.where(RNG.random(len(item)) < agreeing, A, B))


def test_the_effect_is_the_difference_of_the_arms_on_what_the_judge_has_a_verdict_on() -> None:
    # The judge: A A B –. Blind: A B on the first two, A on the last. Shown: A A B.
    judge = np.array([A, A, B, MISSING])
    blind, shown = votes(np.array([0, 1, 3]), np.array([A, B, A])), votes(np.arange(3), np.array([A, A, B]))
    found = anchoring_effect(judge, blind, shown, np.arange(4))
    assert (found.blind.value, found.blind.n, found.shown.value, found.shown.n) == (0.5, 2, 1.0, 3)
    assert (found.difference.value, found.difference.n) == (0.5, 5)


def test_arms_on_clusters_of_their_own_vary_apart() -> None:
    # 3,000 votes an arm, each a cluster: the variances add up.
    items = 2 * (BOOTSTRAP_UP_TO + 1_000)
    places = np.arange(items)
    found = anchoring_effect(np.full(items, A), arm(places[::2], 0.6), arm(places[1::2], 0.7), places)
    assert found.difference.ci95 is not None
    variances = [number.value * (1 - number.value) / number.n for number in (found.blind, found.shown) if number.value]
    margin = 1.959964 * np.sqrt(sum(variances))
    assert (found.difference.ci95[1] - found.difference.ci95[0]) / 2 == pytest.approx(margin, rel=0.001)


def test_arms_on_the_same_clusters_vary_together() -> None:
    # Ten votes a cluster, in half of the clusters all agree: the arms go up and down with the clusters they share.
    items, clusters = 1_000, 100
    judge = np.where(np.arange(items) * clusters // items % 2, A, B)
    same = np.arange(items) * clusters // items
    said = votes(np.arange(items), np.full(items, A))
    shared = anchoring_effect(judge, said, arm(np.arange(items), 0.95), same).difference
    apart = anchoring_effect(
        np.concatenate([judge, judge]),
        said,
        arm(np.arange(items, 2 * items), 0.95),
        np.concatenate([same, same + clusters]),
    ).difference
    assert shared.ci95 is not None
    assert apart.ci95 is not None
    assert shared.ci95[1] - shared.ci95[0] < 0.5 * (apart.ci95[1] - apart.ci95[0])


def test_few_votes_leave_the_shares_with_wilsons_interval_and_the_effect_with_the_reason() -> None:
    places = np.arange(130)
    few, many = arm(places[:30], 0.5), arm(places[30:], 0.5)
    for blind, shown in ((few, many), (many, few)):
        found = anchoring_effect(np.full(130, A), blind, shown, places)
        rules = {number.n: (number.ci95_rule or "").split()[0] for number in (found.blind, found.shown)}
        assert rules == {30: "Wilson,", 100: "bootstrap,"}
        assert found.difference.ci95_why == "Too few clusters for a CI (30 < 40)."


def test_what_was_not_drawn_or_has_one_arm_alone_has_no_effect() -> None:
    nobody = votes(np.arange(0), np.arange(0))
    assert anchoring_effect(np.array([A]), nobody, nobody, np.arange(1)).difference.why == NOT_DRAWN
    one_arm = anchoring_effect(np.array([A]), nobody, votes(np.array([0]), np.array([A])), np.arange(1))
    assert (one_arm.blind.why, one_arm.shown.value, one_arm.difference.why) == (EMPTY_ARM, 1.0, EMPTY_ARM)


def test_what_changed_after_the_reveal_is_a_share_with_an_interval() -> None:
    # 20 of 100 moved: 15 to the judge's A, 5 away from it.
    first = np.concatenate([np.full(15, B), np.full(5, A), np.full(80, TIE)])
    final = np.concatenate([np.full(15, A), np.full(5, B), np.full(80, TIE)])
    confirmed = ConfirmedChoices(np.arange(100), first, final)
    found = changes_after_reveal(np.full(100, A), confirmed, np.arange(100))
    assert (found.changed.value, found.changed.n, found.to_judge, found.away_from_judge) == (0.2, 100, 15, 5)
    assert found.changed.ci95 == pytest.approx((0.13, 0.29), abs=0.015)
    nothing = ConfirmedChoices(first[:0], first[:0], first[:0])
    assert changes_after_reveal(np.full(100, A), nothing, np.arange(100)) == AfterReveal(
        changed=changes_after_reveal(np.full(1, A), nothing, np.arange(1)).changed, to_judge=0, away_from_judge=0
    )
    assert changes_after_reveal(np.full(100, A), nothing, np.arange(100)).changed.why == NOT_REVEALED
