from collections import Counter
from dataclasses import replace

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import RULE_JUDGE_TEXTS
from evaluations.domain.rubrics import AspectSpec
from evaluations.domain.texts import PairTexts
from evaluations.judge_prompts.baseline_rules import (
    BASELINE_RULES,
    RuleQuestion,
    choose_at_random,
    choose_first_shown,
    choose_longest,
)

CLARITY = AspectSpec("clarity", "Clarity", "")


def question(
    a: int = 1, b: int = 1, shown: ShownOrder = ShownOrder.AS_STORED, comparison: int = 1, seed: int = 0
) -> RuleQuestion:
    pair = PairTexts(
        [{"role": "user", "content": "?"}],
        [{"role": "assistant", "content": "x" * a}],
        [{"role": "assistant", "content": "x" * b}],
    )
    return RuleQuestion(comparison, pair, shown, CLARITY, seed)


def chosen(a: int, b: int) -> Choice:
    return choose_longest(question(a, b))


def test_the_longer_response_wins_and_five_percent_of_the_longer_is_a_tie() -> None:
    # 95 to 100 differs by exactly 5 % of the longer, 94 to 100 by more.
    assert [chosen(100, 95), chosen(95, 100), chosen(100, 94), chosen(94, 100)] == ["tie", "tie", "A", "B"]
    assert [chosen(0, 0), chosen(1, 0), chosen(20, 19)] == ["tie", "A", "tie"]


def test_first_chooses_the_place_and_never_the_response() -> None:
    assert [choose_first_shown(question(shown=shown)) for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED)] == [
        "A",
        "B",
    ]


def test_random_draws_the_same_every_time_and_each_choice_about_as_often() -> None:
    asked = [
        question(comparison=number, shown=shown)
        for number in range(3000)
        for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED)
    ]
    drawn_once = [choose_at_random(one) for one in asked]
    assert drawn_once == [choose_at_random(one) for one in asked]
    # 6,000 draws of three: 2,000 each, give or take four standard deviations of 36.5.
    assert all(abs(count - 2000) < 146 for count in Counter(drawn_once).values())
    # Orders draw apart: of 3,000 pairs a third agree, give or take four standard deviations of 25.8.
    agreeing = sum(one == other for one, other in zip(drawn_once[::2], drawn_once[1::2], strict=True))
    assert abs(agreeing - 1000) < 104


def test_random_draws_apart_for_each_seed_comparison_order_and_aspect() -> None:
    asked = [question(comparison=number) for number in range(50)]
    once = [choose_at_random(one) for one in asked]
    assert once != [choose_at_random(replace(one, seed=1)) for one in asked]
    assert once != [choose_at_random(replace(one, shown=ShownOrder.SWAPPED)) for one in asked]
    assert once != [choose_at_random(replace(one, aspect=replace(CLARITY, key="depth"))) for one in asked]


def test_random_never_says_tie_where_none_is_offered() -> None:
    sides = replace(CLARITY, offers_tie=False)
    assert {choose_at_random(replace(question(comparison=number), aspect=sides)) for number in range(50)} == {"A", "B"}


def test_every_rule_is_told_in_words() -> None:
    assert set(BASELINE_RULES) == set(RULE_JUDGE_TEXTS)
