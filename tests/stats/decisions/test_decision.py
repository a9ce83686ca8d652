"""The decision on a judge: the order of the rules, what each needs, and its words."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from evaluations.domain.decisions import DEFAULT_BARS, AspectOutcome, DecisionBars, Outcome
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.decisions.contrasts import UNKNOWN_BOUNDS
from evaluations.stats.decisions.decision import Shown, choose_outcome
from evaluations.stats.decisions.judges import decide_judges
from evaluations.stats.decisions.results import Decision
from tests.stats.decisions.study import aspect_material, verdicts_of
from tests.stats.match_items import make_match_items

SHARES = (0.42, 0.42, 0.16)
KNOWN = Shown(reviewers_agree=True, far_below=False, close=False, above_constant=False, difference=UNKNOWN_BOUNDS)


@pytest.mark.parametrize(
    ("shown", "n", "is_unreliable", "is_covered", "outcome"),
    [
        (replace(KNOWN, reviewers_agree=False), 100, False, True, Outcome.CLARIFY_RUBRIC),
        (replace(KNOWN, reviewers_agree=False, close=True), 100, True, True, Outcome.CLARIFY_RUBRIC),
        (replace(KNOWN, reviewers_agree=False), 99, False, True, Outcome.NOT_ENOUGH_DATA),
        (replace(KNOWN, reviewers_agree=False), 99, True, True, Outcome.NOT_RELIABLE),
        (replace(KNOWN, far_below=True, above_constant=True), 60, False, True, Outcome.NOT_RELIABLE),
        (replace(KNOWN, close=True, above_constant=True), 60, True, True, Outcome.NOT_RELIABLE),
        (replace(KNOWN, close=True, above_constant=True), 60, False, True, Outcome.STAND_IN),
        (replace(KNOWN, close=True, above_constant=True), 60, False, False, Outcome.SPOT_CHECKS),
        (replace(KNOWN, above_constant=True), 60, False, True, Outcome.SPOT_CHECKS),
        (KNOWN, 500, False, True, Outcome.NOT_ENOUGH_DATA),
    ],
)
def test_the_first_rule_that_applies_decides(
    shown: Shown, n: int, is_unreliable: bool, is_covered: bool, outcome: Outcome
) -> None:
    assert choose_outcome(shown, n, is_unreliable=is_unreliable, is_covered=is_covered) is outcome


def decide(
    items: int = 200,
    aspects: int = 6,
    *,
    reviewers: int = 2,
    knows: float = 0.8,
    judge: Sequence[float] | None = None,
    always: int | None = None,
    failed: BoolArray | None = None,
    follows: IntArray | None = None,
    bars: DecisionBars = DEFAULT_BARS,
    family: int = 1,
    seed: int = 7,
) -> Decision:
    """A judge that knows the truth of each aspect with these probabilities, or that always chooses the same.

    ``follows``: the side that it chooses instead, on two items in three.
    """
    rng = np.random.default_rng(seed)
    cluster, materials = np.arange(items), {}
    for number in range(aspects):
        truth = rng.choice(3, size=items, p=SHARES)
        known = np.full(reviewers + 1, knows)
        known[-1] = knows if judge is None else judge[number]
        guesses = rng.choice(3, size=(reviewers + 1, items), p=SHARES)
        chosen = np.where(rng.random((reviewers + 1, items)) < known[:, None], truth, guesses)
        own = chosen[-1] if always is None else np.full(items, always)
        if follows is not None:
            own = np.where(rng.random(items) < 2 / 3, follows, own)
        name = f"Aspect {number}"
        materials[f"a{number}"] = aspect_material(name, list(chosen[:-1]), {"gpt": verdicts_of(own, failed)}, cluster)
    side = np.zeros(items, dtype=np.int64)
    longer = np.where(np.arange(items) % 2, 50, -50)
    decisions = decide_judges(materials, make_match_items(side, side + 1, longer_by=longer), {}, bars, family)
    return decisions["gpt"]


def test_a_judge_like_a_reviewer_can_stand_in() -> None:
    made = decide()
    assert made.outcome is Outcome.STAND_IN
    assert made.headline == "Can stand in for a reviewer"
    assert made.sentence == (
        f"Reviewers agree with it {made.levels.judge.value:.0%} of the time and with each other "
        f"{made.levels.reviewers.value:.0%} (n = 200). Any gap is under 5 points."
    )
    assert {aspect.outcome for aspect in made.aspects.values()} == {AspectOutcome.STAND_IN}
    assert made.at_least is not None
    assert made.at_least > -0.05


def test_the_headline_names_every_aspect_that_is_not_shown() -> None:
    made = decide(300, judge=[0.68, *[0.82] * 5])
    assert made.outcome is Outcome.STAND_IN
    assert made.aspects["a0"].outcome is AspectOutcome.NOT_SHOWN
    assert made.headline == "Can stand in for a reviewer (inconclusive for aspect 0)"


def test_an_aspect_that_is_not_reliable_is_named_whatever_the_decision_is() -> None:
    made = decide(400, judge=[0.3, *[0.85] * 5])
    assert made.aspects["a0"].outcome is AspectOutcome.NOT_RELIABLE
    assert made.outcome in (Outcome.STAND_IN, Outcome.SPOT_CHECKS)
    assert "Not reliable for aspect 0." in made.sentence


def test_a_judge_far_below_reviewers_is_not_reliable() -> None:
    made = decide(judge=[0.4] * 6)
    assert made.outcome is Outcome.NOT_RELIABLE
    assert made.reasons == (made.sentence,)
    assert made.sentence.startswith("Reviewers agree with it ")


@pytest.mark.parametrize("always", [0, 1, 2], ids=["A", "B", "tie"])
def test_a_constant_answer_never_stands_in(always: int) -> None:
    assert decide(always=always).outcome is Outcome.NOT_RELIABLE


def test_a_judge_a_little_below_is_used_with_spot_checks() -> None:
    made = decide(1_000, judge=[0.70] * 6)
    assert made.outcome is Outcome.SPOT_CHECKS
    checks = made.spot_checks
    assert checks is not None
    assert checks.n is not None
    assert made.headline == f"Use with spot checks (review {checks.per_100} per 100)"
    assert f"Review {checks.n} of the next 1,000 to know win rates to ±5 points." in made.sentence


def test_a_small_next_batch_says_what_reviewing_all_of_it_would_give() -> None:
    made = decide(60, judge=[0.70] * 6)
    assert made.outcome is Outcome.SPOT_CHECKS
    assert made.headline == "Use with spot checks"
    assert "Even reviewing all of the next 60 gives win rates only to ±" in made.sentence


def test_a_tenth_of_failed_calls_makes_a_judge_not_reliable() -> None:
    failed = np.arange(200) % 10 == 0
    made = decide(failed=failed)
    assert made.outcome is Outcome.NOT_RELIABLE
    assert "Calls failed on 10% of comparisons (limit 5%)." in made.reasons
    assert made.gauges.failures.exceeds
    assert made.coverage.judged == 180
    assert decide(failed=failed, bars=replace(DEFAULT_BARS, failures=0.2)).outcome is not Outcome.NOT_RELIABLE


def test_a_judge_that_follows_length_is_not_reliable() -> None:
    longer = np.where(np.arange(300) % 2, 0, 1)
    made = decide(300, follows=longer)
    assert made.gauges.length.exceeds
    assert any(reason.startswith("It chooses the longer response") for reason in made.reasons)


def test_reviewers_who_guess_are_told_to_clarify_the_rubric() -> None:
    made = decide(400, knows=0.0)
    assert made.outcome is Outcome.CLARIFY_RUBRIC
    assert made.sentence.startswith("Reviewers agree with each other ")
    assert "Unclear: aspect 0, aspect 1" in made.sentence


def test_few_items_are_not_enough_data() -> None:
    made = decide(8)
    assert made.outcome is Outcome.NOT_ENOUGH_DATA
    assert made.more == 100
    assert made.headline == "Not enough data (needs about 100 more comparisons with two reviews)"
    assert made.sentence == "Only 8 comparisons have the judge’s verdict and two reviews."


def test_without_two_reviews_nothing_is_decided() -> None:
    made = decide(reviewers=1)
    assert made.outcome is Outcome.NOT_ENOUGH_DATA
    assert (made.n, made.more, made.at_least) == (0, 100, None)
    assert made.levels.judge.value is None
    assert made.levels.judge.why == "No comparison has a verdict of the judge and two reviews."


def test_more_judges_need_more_evidence() -> None:
    alone, among_many = decide(60), decide(60, family=40)
    assert among_many.level == pytest.approx(0.05 / 40)
    assert alone.at_least is not None
    assert among_many.at_least is not None
    assert among_many.at_least < alone.at_least


def test_bars_move_the_decision() -> None:
    assert decide(120, judge=[0.70] * 6).outcome is not Outcome.STAND_IN
    lenient = replace(DEFAULT_BARS, stand_in=0.3, unreliable=0.4)
    assert decide(120, judge=[0.70] * 6, bars=lenient).outcome is Outcome.STAND_IN


def test_reviewers_who_always_agree_on_one_choice_show_nothing_about_a_judge() -> None:
    """R and C are both 1: any judge that says the same agrees as well as a constant answer."""
    cluster, always = np.arange(150), np.zeros(150, dtype=np.int64)
    material = aspect_material("Safety", [always, always], {"gpt": verdicts_of(always)}, cluster)
    side = np.zeros(150, dtype=np.int64)
    made = decide_judges({"safety": material}, make_match_items(side, side + 1), {}, DEFAULT_BARS, 1)["gpt"]
    assert made.outcome is Outcome.CLARIFY_RUBRIC
    assert made.levels.judge.value == 1


def test_false_claims_of_an_exchangeable_judge_stay_rare() -> None:
    """A judge at the bar is called fit in 5 % of samples, and a reviewer's equal never not reliable."""
    outcomes = [decide(100, seed=seed).outcome for seed in range(40)]
    assert outcomes.count(Outcome.NOT_RELIABLE) == 0
    assert outcomes.count(Outcome.STAND_IN) > 30
