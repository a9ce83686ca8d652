import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from evaluations.domain.reports import SplitRule
from evaluations.stats.coding import MISSING, TIE, A, B, IntArray
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO
from evaluations.stats.estimates import Estimate
from evaluations.stats.human_ceiling import (
    CONSTANT,
    NO_OTHER_VOTES,
    NO_SIDES,
    CeilingLevel,
    HumanCeiling,
    human_ceiling,
)
from evaluations.stats.polls import make_poll
from evaluations.stats.significance import t_975
from evaluations.stats.votes import Votes

NAMES = ("ann", "ben", "cem")
RNG = np.random.default_rng(2)


def beside(judge: IntArray, people: IntArray, clusters: IntArray | None = None) -> HumanCeiling:
    """``people``: items × people."""
    item, rater = np.indices(people.shape)
    found = make_poll(
        Votes(item.ravel(), rater.ravel(), item.ravel() * 0, people.ravel()),
        np.arange(len(people)) if clusters is None else clusters,
    )
    return human_ceiling(judge[found.items], found, found.majority_of_the_others(SplitRule.TIE), NAMES)


def numbers(level: CeilingLevel) -> list[Estimate]:
    kappa = level.cohen_kappa
    return [level.judge, level.people, level.difference, kappa.judge, kappa.people, kappa.difference]


def values(level: CeilingLevel) -> list[float | None]:
    return [number.value for number in numbers(level)]


def drawn(items: int, people: int = 3, missing: float = 0.1) -> tuple[IntArray, IntArray]:
    """A judge that knows the truth on .6 of the items, people on .75; some say nothing now and then."""
    truth = RNG.integers(3, size=(items, 1))
    them = np.where(RNG.random((items, people)) < 0.75, truth, RNG.integers(3, size=(items, people)))
    them[RNG.random((items, people)) < missing] = MISSING
    judge = np.where(RNG.random(items) < 0.6, truth[:, 0], RNG.integers(3, size=items))
    judge[RNG.random(items) < missing] = MISSING
    return judge, them


def test_judge_and_person_are_both_held_against_those_that_remain() -> None:
    # ann, ben, cem and the judge. 0: A A B, A: without ann a split → tie, nobody agrees; without ben the same; without
    # cem A, and the judge agrees. 1: B B B, B: all agree. 2: A A, judge B: only people agree. 3: ann alone: no company.
    people = np.array([[A, A, B], [B, B, B], [A, A, MISSING], [A, MISSING, MISSING]])
    level = beside(np.array([A, B, B, A]), people).s1
    # Of ann: items 0 1 2, judge right on 1, she on 1 2. ben the same. cem: items 0 1, judge right on both, he on 1.
    by_name = {one.rater: (one.judge.n, one.judge.value, one.people.value) for one in level.left_out}
    assert by_name == {"ann": (3, 1 / 3, 2 / 3), "ben": (3, 1 / 3, 2 / 3), "cem": (2, 1.0, 0.5)}
    # Each person weighs the same, whatever they voted on.
    assert level.n == 8
    assert values(level)[:3] == pytest.approx([5 / 9, 11 / 18, -1 / 18])


def test_without_ties_all_three_choose_a_side() -> None:
    people = np.array([[A, A, MISSING], [A, TIE, MISSING], [TIE, A, MISSING], [B, A, MISSING], [B, B, MISSING]])
    found = beside(np.array([A, A, A, TIE, A]), people)
    # Left are the first and the last item: the judge agrees on one of them with each of the others, people on both.
    assert found.s2.n == 4
    assert values(found.s2)[:3] == pytest.approx([0.5, 1, -0.5])
    assert found.s1.n == 10


def test_where_nobody_has_company_it_says_so() -> None:
    found = beside(np.array([A, B]), np.array([[A, MISSING, MISSING], [MISSING, B, MISSING]]))
    for level in (found.s1, found.s2):
        assert {number.why for number in numbers(level)} == {NO_OTHER_VOTES}
        assert level.left_out == ()
    assert beside(np.array([TIE, TIE]), np.full((2, 3), A)).s2.judge.why == NO_SIDES


def test_a_kappa_is_of_the_people_who_have_one_beside_the_judge() -> None:
    # ann and ben choose both sides, the judge only A: it tells no comparison from another.
    people = np.array([[A, A], [B, B], [A, B], [B, A]])
    level = beside(np.full(4, A), people).s1
    assert {number.why for number in numbers(level)[3:]} == {CONSTANT}
    # cem says only A: he has no kappa, so that the judge's beside him does not count.
    with_cem = beside(np.array([A, B, A, A]), np.column_stack([people, np.full(4, A)])).s1
    two = beside(np.array([A, B, A, A]), people).s1
    assert with_cem.cohen_kappa.judge.value is not None
    assert with_cem.n > two.n
    constant = beside(np.full(4, A), np.full((4, 2), A)).s1
    assert {number.why for number in numbers(constant)[3:]} == {CONSTANT}
    assert values(constant)[:3] == [1, 1, 0]


def test_who_has_no_kappa_moves_that_of_the_others_by_nothing() -> None:
    # On 50 more items ann, cem and the judge all say A, and cem on no other: agreement of 1, and no kappa of his.
    judge, people = drawn(150, people=2, missing=0)
    alone = np.full((50, 3), A)
    alone[:, 1] = MISSING
    both = np.vstack([np.column_stack([people, np.full(150, MISSING)]), alone])
    cluster = np.concatenate([np.arange(150), np.arange(50)])
    level = beside(np.concatenate([judge, np.full(50, A)]), both, cluster).s1
    assert {one.rater: one.judge.value for one in level.left_out}["cem"] == 1
    for number in (level.cohen_kappa.judge, level.cohen_kappa.people, level.cohen_kappa.difference):
        assert number.ci95 is not None
        assert number.value is not None
        assert np.isfinite(number.ci95).all()
        assert number.ci95[0] < number.value < number.ci95[1]


def test_it_is_what_one_finds_person_by_person() -> None:
    judge, people = drawn(200)
    shares, kappas = [], []
    for who in range(3):
        rows = []
        for item in range(200):
            others = [int(code) for place, code in enumerate(people[item]) if place != who and code != MISSING]
            if others and MISSING not in (judge[item], people[item, who]):
                rows.append((judge[item], people[item, who], others[0] if len(set(others)) == 1 else TIE))
        columns = np.array(rows).T
        shares.append([float((columns[side] == columns[2]).mean()) for side in (0, 1)])
        kappas.append([cohen_kappa_score(columns[side], columns[2]) for side in (0, 1)])
    level = beside(judge, people).s1
    by_hand = [*np.mean(shares, axis=0), *np.mean(kappas, axis=0)]
    assert values(level) == pytest.approx(
        [*by_hand[:2], by_hand[0] - by_hand[1], *by_hand[2:], by_hand[2] - by_hand[3]]
    )


@pytest.mark.parametrize(("items", "clusters"), [(240, 80), (2 * BOOTSTRAP_UP_TO + 4, BOOTSTRAP_UP_TO + 2)])
def test_its_intervals_are_as_wide_as_those_of_a_jackknife_of_clusters(items: int, clusters: int) -> None:
    judge, people = drawn(items)
    cluster = np.arange(items) * clusters // items
    some = np.arange(clusters) if clusters < 100 else RNG.choice(clusters, 100, replace=False)
    left = [values(beside(judge[cluster != one], people[cluster != one], cluster[cluster != one]).s1) for one in some]
    for number, without in zip(numbers(beside(judge, people, cluster).s1), np.array(left, dtype=float).T, strict=True):
        assert number.ci95 is not None
        assert number.value is not None
        error = math.sqrt(((without - number.value) ** 2).mean() * clusters)
        width = t_975(clusters - 1) * error
        # Of the many clusters some are left out, not all: the error of the error is 7 %.
        assert (number.ci95[1] - number.ci95[0]) / 2 == pytest.approx(width, rel=0.12 if clusters < 100 else 0.25)


def test_the_difference_is_paired() -> None:
    # A judge that says what one of the people says moves with them: the difference varies less than either.
    _, people = drawn(600, missing=0)
    level = beside(np.where(RNG.random(600) < 0.9, people[:, 0], B), people).s1
    widths = [number.ci95[1] - number.ci95[0] for number in numbers(level)[:3] if number.ci95 is not None]
    assert len(widths) == 3
    assert widths[2] < 0.9 * math.hypot(widths[0], widths[1])


def test_too_few_clusters_leave_shares_by_wilson_and_nothing_else() -> None:
    judge, people = drawn(30)
    level = beside(judge, people).s1
    assert all((number.ci95_rule or "").startswith("Wilson") for number in (level.judge, level.people))
    for number in (level.difference, level.cohen_kappa.judge, level.left_out[0].difference):
        assert "Too few clusters for a CI (" in (number.ci95_why or "")
