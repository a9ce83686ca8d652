import numpy as np

from evaluations.domain import CallState, Rules, SplitRule
from evaluations.stats.coding import CHOICES, IntArray
from evaluations.stats.consolidation import STATES, Unanswered, Verdicts
from evaluations.stats.judges import JudgeMaterial, JudgeReport, Reference, judge_report
from evaluations.stats.majority import majority
from evaluations.stats.sentences import sentence
from evaluations.stats.votes import Votes

OFFERED = range(3)


def codes(choices: str) -> IntArray:
    """One letter a comparison: A, B, t for a tie; a dot for none."""
    return np.array(["ABt".find(choice) for choice in choices], dtype=np.int64)


def held_against(choices: str, items: int) -> Reference:
    chosen = codes(choices)
    where = np.flatnonzero(chosen >= 0)
    nobody = np.zeros_like(where)
    votes = Votes(where, nobody, nobody, chosen[where])
    return Reference(votes, majority(where, chosen[where], items, SplitRule.TIE), None)


def judged(judge: str, people: str = "", gold: str = "", label: str | None = None) -> JudgeReport:
    """A judge asked once about every comparison; where it has no choice its call was refused."""
    chosen = codes(judge)
    items = len(chosen)
    answered, failed = np.flatnonzero(chosen >= 0), np.flatnonzero(chosen < 0)
    plain = np.zeros_like(answered)
    material = JudgeMaterial(
        name="judge",
        rater_id=1,
        kind="llm",
        label=label,
        verdicts=Verdicts(answered, plain, plain, chosen[answered], plain.astype(bool)),
        unanswered=Unanswered(
            failed,
            np.zeros_like(failed),
            np.zeros_like(failed),
            np.full(len(failed), STATES.index(CallState.REFUSED)),
        ),
    )
    references = held_against(people, items), held_against(gold, items)
    return judge_report(material, *references, references[1].majority.choice, OFFERED, Rules())


def test_it_says_how_often_they_agree_and_how_often_chance_would() -> None:
    # 30 of 40; the judge says A on 20, people on 20: chance is a half.
    found = judged("A" * 20 + "B" * 20, people="A" * 15 + "B" * 20 + "A" * 5)
    assert sentence("GPT", {"Overall": found}) == (
        "GPT agrees with the majority of people on 30 of 40 comparisons (75%); "
        "choosing blindly as often as they do would give 50%."
    )


def test_a_baseline_is_called_one() -> None:
    found = judged("AB" * 20, people="AB" * 20, label="baseline, not an LLM")
    assert sentence("longest", {"Overall": found}) == (
        "longest (baseline, not an LLM) agrees with the majority of people on 40 of 40 comparisons (100%)."
    )


def test_over_several_aspects_it_names_the_least_and_the_most() -> None:
    by_aspect = {
        "Clarity": judged("AB" * 20, people="A" * 40),
        "Depth": judged("AB" * 20, people="AB" * 20),
        "Safety": judged("A" * 40),
    }
    assert sentence("GPT", by_aspect) == (
        "GPT agrees with the majority of people on 50% of comparisons for clarity, where it agrees least, "
        "to 100% for depth, where it agrees most."
    )


def test_where_only_gold_is_there_it_speaks_of_gold() -> None:
    assert sentence("GPT", {"Overall": judged("A" * 40, gold="A" * 30 + "B" * 10)}).startswith(
        "GPT agrees with gold on 30 of 40 comparisons (75%)"
    )


def test_few_comparisons_and_missing_answers_are_said() -> None:
    said = sentence("GPT", {"Overall": judged("AB..", people="AB")})
    assert "It rests on as few as 2 comparisons: expect it to move." in said
    assert "It was asked about 2 more without a complete answer." in said


def test_with_nobody_to_hold_it_against_it_says_that() -> None:
    assert sentence("GPT", {"Overall": judged("ABt")}) == (
        "GPT has a verdict on 3 comparisons, but none that people or gold have a choice on."
    )


def test_the_letters_of_these_tests_are_the_codes_of_the_choices() -> None:
    assert [CHOICES[code] for code in codes("ABt")] == ["A", "B", "tie"]
