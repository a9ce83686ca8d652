import numpy as np
import pytest

from evaluations.domain.choices import PACKED_CHOICES
from evaluations.domain.judges import CallState
from evaluations.domain.reports import ReportRules, SplitRule
from evaluations.stats.bias.strata import single_stratum
from evaluations.stats.coding import IntArray
from evaluations.stats.judge_agreement import ReferenceVotes
from evaluations.stats.judge_report import JudgeMaterial, JudgeReport, judge_report
from evaluations.stats.judge_sentences import judge_sentence
from evaluations.stats.judge_verdicts import STATES, JudgeAnswers, JudgeVerdicts, UnansweredCalls, consolidate_verdicts
from evaluations.stats.polls import make_poll
from evaluations.stats.simultaneous_intervals import NO_COMPANY, Claim, SimultaneousDifference
from evaluations.stats.votes import Votes

OFFERED = range(3)


def codes(choices: str) -> IntArray:
    """One letter a comparison: A, B, t for a tie; a dot for none."""
    return np.array(["ABt".find(choice) for choice in choices], dtype=np.int64)


def held_against(*people: str, items: int) -> ReferenceVotes:
    """What each person chose, every comparison a cluster of its own."""
    chosen = np.array([codes(choices.ljust(items, ".")) for choices in people])
    rater, item = np.nonzero(chosen >= 0)
    found = make_poll(Votes(item, rater, np.zeros_like(item), chosen[rater, item]), np.arange(items))
    return ReferenceVotes(
        found, found.majority(SplitRule.TIE), None, tuple(f"person {one}" for one in range(len(people)))
    )


def judged(judge: str, *people: str, gold: str = "", label: str | None = None) -> JudgeReport:
    """A judge asked once about every comparison; where it has no choice its call was refused."""
    chosen = codes(judge)
    items = len(chosen)
    answered, failed = np.flatnonzero(chosen >= 0), np.flatnonzero(chosen < 0)
    verdicts = JudgeVerdicts((JudgeAnswers(0, answered, chosen[answered].astype(np.int8), is_single=True),))
    state = np.full(len(failed), STATES.index(CallState.REFUSED))
    unanswered = UnansweredCalls(failed, np.zeros_like(failed), state)
    material = JudgeMaterial(
        name="judge",
        rater_id=1,
        kind="llm",
        label=label,
        verdicts=verdicts,
        individual=verdicts,
        consolidated=consolidate_verdicts(verdicts, unanswered, items),
        states=state,
        selected=np.ones(items, dtype=bool),
    )
    them, labels = held_against(*(people or ("",)), items=items), held_against(gold, items=items)
    others = them.poll.majority_of_the_others(SplitRule.TIE)
    alone = np.arange(items)
    return judge_report(
        material,
        them,
        others,
        labels,
        codes(gold.ljust(items, ".")),
        alone,
        single_stratum(alone),
        OFFERED,
        ReportRules(),
    )


def test_it_says_how_often_they_agree_and_how_often_chance_would() -> None:
    # 30 of 40; the judge says A on 20, people on 20: chance is a half.
    found = judged("A" * 20 + "B" * 20, "A" * 15 + "B" * 20 + "A" * 5)
    assert judge_sentence("GPT", {"Overall": found}) == (
        "GPT agrees with the only reviewer of each comparison on 30 of 40 comparisons (75% [60–87]); "
        "chance agreement is 50%."
    )


def test_a_baseline_is_called_one() -> None:
    found = judged("AB" * 20, "AB" * 20, label="rule-based")
    assert judge_sentence("longest", {"Overall": found}) == (
        "longest (rule-based) agrees with the only reviewer of each comparison on 40 of 40 comparisons (100% [91–100])."
    )


def test_over_several_aspects_it_names_the_least_and_the_most() -> None:
    by_aspect = {
        "Clarity": judged("AB" * 20, "A" * 40),
        "Depth": judged("AB" * 20, "AB" * 20),
        "Safety": judged("A" * 40),
    }
    assert judge_sentence("GPT", by_aspect) == (
        "GPT agrees with the only reviewer of each comparison on 50% [35–67] of 40 comparisons for clarity "
        "(lowest) to 100% [91–100] of 40 for depth (highest)."
    )


def test_shares_that_are_equal_have_the_interval_of_the_fewest_comparisons() -> None:
    # 8 of 10 and 32 of 40 are both 80 %, and nobody knows the first as well as the second.
    by_aspect = {"Clarity": judged("AB" * 20, "AB" * 16 + "BA" * 4), "Depth": judged("AB" * 5, "AB" * 4 + "BA")}
    few = by_aspect["Depth"].judge_human.majority.with_ties.agreement.ci95
    assert few is not None
    assert (
        f"on 80% [{100 * few[0]:.0f}–{100 * few[1]:.0f}] of 10 to 40 comparisons for each of 2 aspects. Based on as "
        "few as 10 comparisons"
    ) in judge_sentence("GPT", by_aspect)


def test_people_and_gold_are_both_named_with_the_aspect_that_each_is_about() -> None:
    by_aspect = {"Clarity": judged("AB" * 20, "AB" * 20, "AB" * 20), "Depth": judged("AB" * 20, gold="AB" * 20)}
    assert judge_sentence("GPT", by_aspect) == (
        "GPT agrees with the reviewer majority on 40 of 40 comparisons for clarity (100% [91–100]). It agrees with "
        "gold on 40 of 40 comparisons for depth (100% [91–100])."
    )


def test_a_judge_that_makes_one_choice_throughout_is_said_to() -> None:
    assert "It chose A on all 40 of these comparisons." in judge_sentence(
        "GPT", {"Overall": judged("A" * 40, "AB" * 20)}
    )
    assert "It chose" not in judge_sentence("GPT", {"Overall": judged("A" * 39 + "B", "AB" * 20)})
    assert "It chose" not in judge_sentence("GPT", {"Overall": judged("A" * 9, "AB" * 4)})
    both = {"Clarity": judged("t" * 40, "AB" * 20), "Depth": judged("AB" * 20, "AB" * 20)}
    assert "It chose tie on all 40 of these comparisons for clarity." in judge_sentence("GPT", both)


def test_only_all_of_them_are_all_of_them() -> None:
    found = judged("A" * 400, "A" * 399 + "B")
    assert "399 of 400 comparisons (99.8% [" in judge_sentence("GPT", {"Overall": found})


def test_coverage_names_the_aspect_that_it_is_about() -> None:
    by_aspect = {"Clarity": judged("AB" * 20, "AB" * 20), "Depth": judged("AB" + "." * 38, "AB" * 20)}
    said = judge_sentence("GPT", by_aspect)
    assert "It has a verdict on 2 of 40 comparisons for depth (fewest)." in said


def test_where_only_gold_is_there_it_speaks_of_gold() -> None:
    assert judge_sentence("GPT", {"Overall": judged("A" * 40, gold="A" * 30 + "B" * 10)}).startswith(
        "GPT agrees with gold on 30 of 40 comparisons (75% [59–87])"
    )


def shown(value: float | None, half: float = 0.1, claim: Claim = Claim.NONE, family: int = 6) -> SimultaneousDifference:
    if value is None:
        return SimultaneousDifference(None, None, None, Claim.NONE, family, None, NO_COMPANY)
    return SimultaneousDifference(value, (value - half, value + half), None, claim, family, "max-|t|", None)


def test_the_judge_is_set_beside_reviewers_only_where_both_are_compared_with_the_same_others() -> None:
    # Of 100 comparisons the people agree on 90, the judge says B throughout. Each person is compared with the other.
    found = judged("B" * 100, "A" * 70 + "B" * 30, "A" * 60 + "B" * 40)
    level = found.ceiling.s1
    assert [level.judge.value, level.people.value] == pytest.approx([0.35, 0.9])
    assert judge_sentence("GPT", {"Overall": found}, {"Overall": shown(-0.55, 0.1, Claim.BELOW)}).endswith(
        "With the same leave-one-out majorities, it agrees on 35% [26–44] and a reviewer on 90% [83–95], n = 200 "
        "votes: below reviewers by 55 points (simultaneous 95% CI −65 to −45). It chose B on all 100 of these "
        "comparisons."
    )
    alone = judged("B" * 100, "A" * 70 + "B" * 30)
    assert "Against the same" not in judge_sentence("GPT", {"Overall": alone}, {"Overall": shown(None)})


def test_what_is_not_shown_over_all_differences_is_not_claimed_of_one() -> None:
    found = judged("B" * 99 + "A", "A" * 70 + "B" * 30, "A" * 60 + "B" * 40)
    assert judge_sentence("GPT", {"Overall": found}, {"Overall": shown(-0.05)}).endswith(
        ": difference not significant."
    )
    assert judge_sentence("GPT", {"Overall": found}, {"Overall": shown(-0.004, 0.002, Claim.BELOW)}).endswith(
        "below reviewers by 0.4 points (simultaneous 95% CI −1 to −0.2)."
    )
    few = SimultaneousDifference(-0.5, None, None, Claim.NONE, 6, None, "Too few clusters for a CI (9 < 40).")
    said = judge_sentence("GPT", {"Overall": found}, {"Overall": few})
    assert said.endswith(": difference not tested. Too few clusters for a CI (9 < 40).")
    by_holm = SimultaneousDifference(
        -0.5, None, 0.0042, Claim.BELOW, 6, "cluster t", "Too few clusters for a CI (30 < 40)."
    )
    assert judge_sentence("GPT", {"Overall": found}, {"Overall": by_holm}).endswith(
        "below reviewers by 50 points (p = 0.004)."
    )
    by_holm = SimultaneousDifference(-0.5, None, 0.0002, Claim.BELOW, 6, "cluster t", None)
    assert judge_sentence("GPT", {"Overall": found}, {"Overall": by_holm}).endswith("by 50 points (p < 0.001).")
    # Without the whole family nothing is claimed.
    for word in ("below", "above", "less", "more"):
        assert word not in judge_sentence("GPT", {"Overall": found})


def test_over_several_aspects_it_names_every_aspect_on_which_a_difference_is_shown() -> None:
    people = "AB" * 30 + "AAAB" * 10, "AB" * 30 + "ABBB" * 10
    by_aspect = {name: judged("A" * 99 + "B", *people) for name in ("Clarity", "Depth", "Safety", "Tone", "Use")}
    claims = dict(
        zip(
            by_aspect,
            (
                shown(-0.12, claim=Claim.BELOW),
                shown(0.01, claim=Claim.ABOVE),
                shown(-0.2, claim=Claim.BELOW),
                shown(-0.3),
                shown(None),
            ),
            strict=True,
        )
    )
    assert judge_sentence("GPT", by_aspect, claims).endswith(
        "With the same leave-one-out majorities, over all 6 differences at once: below reviewers on clarity (12 "
        "points, 95% CI −22 to −2) and safety (20 points, 95% CI −30 to −10); above reviewers on depth (1 point, "
        "95% CI −9 to +11); difference not significant on 1 aspect."
    )


def test_few_comparisons_and_missing_answers_are_said() -> None:
    said = judge_sentence("GPT", {"Overall": judged("AB..", "AB")})
    assert "Based on as few as 2 comparisons: it may change with more data." in said
    assert said.endswith("It has a verdict on 2 of 4 comparisons. 2 of 4 calls failed (2 refused).")


def test_with_nobody_to_hold_it_against_it_says_that() -> None:
    assert judge_sentence("GPT", {"Overall": judged("ABt")}) == (
        "GPT has a verdict on 3 of 3 comparisons, none with a reviewer majority or a gold label. "
        "No comparison has a choice on both sides."
    )


def test_the_letters_of_these_tests_are_the_codes_of_the_choices() -> None:
    assert [PACKED_CHOICES[code] for code in codes("ABt")] == ["A", "B", "tie"]
