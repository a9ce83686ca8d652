from evaluations.domain import Choice, PairTexts
from evaluations.judge.rules import longest


def chosen(a: int, b: int) -> Choice:
    return longest(
        PairTexts(
            [{"role": "user", "content": "?"}],
            [{"role": "assistant", "content": "x" * a}],
            [{"role": "assistant", "content": "x" * b}],
        )
    )


def test_the_longer_response_wins_and_five_percent_of_the_longer_is_a_tie() -> None:
    # 95 to 100 differs by exactly 5 % of the longer, 94 to 100 by more.
    assert [chosen(100, 95), chosen(95, 100), chosen(100, 94), chosen(94, 100)] == ["tie", "tie", "A", "B"]
    assert [chosen(0, 0), chosen(1, 0), chosen(20, 19)] == ["tie", "A", "tie"]
