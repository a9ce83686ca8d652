"""Agreement within categories and pairs, worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from evaluations.stats.coding import MISSING
from evaluations.stats.decisions.breakdowns import MOST_GROUPS, break_down_agreement
from tests.stats.decisions.study import aspect_material, codes, verdicts
from tests.stats.match_items import make_match_items

CLUSTER = np.arange(6)
CATEGORY = np.array([0, 0, 0, 1, 1, MISSING])


def test_groups_pool_aspects_and_come_largest_first() -> None:
    """Code, the larger: judge and reviewers A A, A A and A against B B on clarity, all A on depth."""
    clarity = aspect_material("Clarity", [codes("AABAAA"), codes("AABABA")], {"gpt": verdicts("AAAAAA")}, CLUSTER)
    depth = aspect_material("Depth", [codes("AAAAAA")] * 2, {"gpt": verdicts("AAA!BA")}, CLUSTER)
    items = make_match_items([0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 2, 2])
    items = replace(items, category=CATEGORY, categories=("code", "math"))
    made = break_down_agreement({"clarity": clarity, "depth": depth}, items)["gpt"]
    code, maths = made.by_category.groups
    assert (code.name, code.n) == (("code",), 3)
    assert code.judge.value == pytest.approx(5 / 6)
    assert code.reviewers.value == 1
    assert code.difference.value == pytest.approx(-1 / 6)
    # Clarity 1 and ½, depth 0 for the failed call and for the opposite.
    assert maths.judge.value == pytest.approx(1.5 / 4)
    assert maths.reviewers.value == pytest.approx(3 / 4)
    assert [group.name for group in made.by_pair.groups] == [
        ("candidate 0", "candidate 1"),
        ("candidate 1", "candidate 2"),
    ]
    assert [group.n for group in made.by_pair.groups] == [4, 2]


def test_judges_without_two_reviews_have_none_and_many_groups_are_counted() -> None:
    single = aspect_material("Clarity", [codes("AABAAA")], {"gpt": verdicts("AAAAAA")}, CLUSTER)
    assert break_down_agreement({"clarity": single}, make_match_items([0] * 6, [1] * 6)) == {}
    n = MOST_GROUPS + 5
    many = aspect_material("Clarity", [codes("A" * n)] * 2, {"gpt": verdicts("A" * n)}, np.arange(n))
    items = replace(
        make_match_items([0] * n, [1] * n),
        category=np.arange(n),
        categories=tuple(f"category {number}" for number in range(n)),
    )
    made = break_down_agreement({"clarity": many}, items)["gpt"]
    assert len(made.by_category.groups) == MOST_GROUPS
    assert made.by_category.left_out == 5
