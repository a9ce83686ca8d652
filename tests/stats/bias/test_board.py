from dataclasses import asdict, replace
from json import dumps

import numpy as np
import pytest

from evaluations.domain.texts import Markup
from evaluations.stats.bias.board import NO_FAMILIES, NO_FAMILY, NOT_ONE_OF_BOTH, BiasBoard, bias_board
from evaluations.stats.bias.paired_sides import human_sides
from evaluations.stats.bias.position import ONE_ORDER
from evaluations.stats.bias.tendency import NO_CHOICE, NO_VERDICT, NO_VOTES
from evaluations.stats.bias.traits import comparison_traits
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, IntArray
from evaluations.stats.items import Items
from evaluations.stats.votes import Votes, majority_of_votes

LIST, BOLD = Markup.LIST.value, Markup.EMPHASIS.value

#                      0     1     2     3     4     5         6     7
JUDGE = np.array([     A,    A,    B,    TIE,  A,    BOTH_BAD, B,    MISSING])  # fmt: skip
LENGTH_A = np.array([  9,    9,    9,    9,    1,    1,        5,    9])  # fmt: skip
LENGTH_B = np.array([  1,    1,    1,    1,    9,    9,        5,    1])  # fmt: skip
MARKUP_A = np.array([  LIST, LIST, 0,    LIST, BOLD, 0,        LIST, LIST])  # fmt: skip
MARKUP_B = np.array([  0,    LIST, BOLD, 0,    0,    LIST,     BOLD, 0])  # fmt: skip
CANDIDATE_A = np.array([0,   0,    0,    0,    1,    1,        0,    0])  # fmt: skip
CANDIDATE_B = np.array([1,   1,    1,    1,    2,    2,        2,    1])  # fmt: skip
CATEGORY = np.array([  0,    0,    1,    1,    MISSING, 0,     0,    1])  # fmt: skip
ITEMS = Items(
    cluster=np.arange(8),
    category=CATEGORY,
    categories=("maths", "prose"),
    candidate_a=CANDIDATE_A,
    candidate_b=CANDIDATE_B,
    candidates=("alpha", "beta", "gamma"),
    families=("Swan", "Goose", ""),
    characters_a=LENGTH_A,
    characters_b=LENGTH_B,
    markup_a=MARKUP_A,
    markup_b=MARKUP_B,
    query=np.arange(8),
    stratum=np.zeros(8, dtype=np.int64),
)


def votes(*rows: tuple[int, int]) -> Votes:
    """Item and choice, each by a person of its own."""
    item, choice = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return Votes(item, np.arange(len(item)), np.zeros_like(item), choice)


# Items 0 and 2: A, A and B. Items 1 and 6: B. Item 3: A. Item 4: a tie. Item 7, which the judge has nothing on: A.
VOTES = votes((0, A), (0, A), (0, B), (2, A), (2, A), (2, B), (1, B), (6, B), (3, A), (4, TIE), (7, A))


def board(judge: IntArray = JUDGE, said: Votes = VOTES, items: Items = ITEMS, family: str = "swan") -> BiasBoard:
    ground = comparison_traits(items)
    most = majority_of_votes(said.item, said.choice, len(items)).choice
    nothing = np.full(len(items), MISSING)
    return bias_board(ground, human_sides(ground, most, said), judge, judge, nothing, family)


def test_the_longer_is_counted_where_lengths_differ_and_a_side_was_chosen() -> None:
    # Items 0 and 1: the longer, A. Item 2: the shorter. Item 4: the shorter. Items 3, 5: no side; 6: equally long.
    found = board().length
    assert (found.longer.judge.value, found.longer.judge.n) == (0.5, 4)
    assert found.equal == 1


def test_people_stand_beside_the_judge_on_what_both_chose_a_side_of() -> None:
    found = board().length.longer
    # Majorities on items 0 A, 1 B, 2 A, all with A the longer; 3 is a tie of the judge's, 4 of people's. Judge: 0, 1.
    assert [found.majority.judge.value, found.majority.people.value] == pytest.approx([2 / 3, 2 / 3])
    assert (found.majority.difference.value, found.majority.difference.n) == (0, 3)
    # Votes on them: A A B, B, A A B. The judge chose the longer beside 4 of the 7, people 4 times.
    assert [found.votes.judge.value, found.votes.people.value] == pytest.approx([4 / 7, 4 / 7])
    assert found.votes.difference.n == 7


def test_markup_counts_where_one_response_alone_has_it() -> None:
    found = board().markup
    # Lists in one response alone: items 0 (A, chosen), 3 and 5 (no side), 6 (A, B chosen), 7 (no verdict).
    assert (found["list"].judge.value, found["list"].judge.n) == (0.5, 2)
    # Emphasis: 2 (B, chosen), 4 (A, chosen), 6 (B, chosen).
    assert (found["emphasis"].judge.value, found["emphasis"].judge.n) == (1, 3)
    # Any: 0 (A, chosen), 2 (B, chosen), 4 (A, chosen); item 6 has some on both sides.
    assert (found["any"].judge.value, found["any"].judge.n) == (1, 3)
    assert (found["table"].judge.value, found["table"].judge.why) == (None, NO_CHOICE)
    assert list(found) == ["any", "list", "heading", "emphasis", "table", "code"]


def test_both_bad_is_no_side_as_a_tie_is_not() -> None:
    # Items 3 and 5 of the 7 with a verdict.
    found = board().ties
    assert [found.judge.value, found.judge.n] == pytest.approx([2 / 7, 7])
    # Votes on items with a verdict: 10, of them one tie; the judge's is beside the vote on item 3.
    assert (found.votes.people.value, found.votes.judge.value) == (0.1, 0.1)


def test_a_family_is_known_by_its_name_in_any_case_and_only_where_both_are_set() -> None:
    # Alpha is a swan and beta a goose; gamma is of no known family, so items 4 to 6 say nothing. A, A, B; a tie.
    found = board(family=" SWAN").same_family
    assert [found.judge.value, found.judge.n] == pytest.approx([2 / 3, 3])
    assert board(family="goose").same_family.judge.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("families", "family", "why"),
    [
        (("Swan", "Goose", ""), " ", NO_FAMILY),
        (("", "", ""), "swan", NO_FAMILIES),
        (("Swan", "Goose", ""), "duck", NOT_ONE_OF_BOTH),
        (("Swan", "swan", ""), "swan", NOT_ONE_OF_BOTH),
    ],
)
def test_without_two_families_there_is_no_preference_for_one(families: tuple[str, ...], family: str, why: str) -> None:
    found = board(items=replace(ITEMS, families=families), family=family).same_family
    for number in (found.judge, found.majority.people, found.votes.difference):
        assert (number.value, number.why) == (None, why)


def test_strata_hold_their_own_items_alone() -> None:
    maths, prose = board().by_category.strata
    assert (maths.name, prose.name) == (("maths",), ("prose",))
    # Maths: items 0, 1 the longer, 5 no side, 6 equally long. Prose: 2 the shorter, 3 a tie, 7 nothing.
    assert (maths.longer.value, maths.longer.n) == (1, 2)
    assert (prose.longer.value, prose.longer.n) == (0, 1)
    assert (maths.ties.value, prose.ties.value) == (0.25, 0.5)
    # Votes: on items 0 and 1 A A B B, on 2 A A B; on 3 no side of the judge's.
    assert [maths.people_longer.value, prose.people_longer.value] == pytest.approx([0.5, 2 / 3])
    assert [stratum.name for stratum in board().by_pair.strata] == [
        ("alpha", "beta"),
        ("beta", "gamma"),
        ("alpha", "gamma"),
    ]


def test_a_judge_that_said_nothing_has_reasons_and_no_numbers() -> None:
    found = board(judge=np.full(8, MISSING))
    assert found.position.consistency.share.why == ONE_ORDER
    assert found.ties.judge.why == NO_VERDICT
    assert found.ties.votes.people.why == NO_VOTES
    assert found.length.longer.judge.why == NO_CHOICE
    assert found.length.equal == 0


def test_nobody_voted_and_nothing_compared_make_a_board_all_the_same() -> None:
    assert board(said=votes()).ties.votes.people.why == NO_VOTES
    nothing = np.array([], dtype=np.int64)
    none = Items(nothing, nothing, (), nothing, nothing, (), (), *[nothing] * 6)
    empty = board(judge=nothing, said=votes(), items=none)
    assert empty.ties.judge.why == NO_VERDICT
    assert empty.by_pair.strata == ()


def test_a_board_is_plain_json_without_a_number_that_is_none() -> None:
    printed = dumps(asdict(board()), allow_nan=False)
    assert '"people_slope"' in printed
