"""Which votes win rates rest on, and what each stands for."""

from typing import Any

import pytest

from evaluations.domain.reports import ReportRules, SeenRule, SplitRule
from evaluations.domain.reviews import SelectionMethod, StratifyBy
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Queue
from evaluations.reports.selectors import build_report
from evaluations.stats.estimates import Estimate
from evaluations.stats.win_rates import NOT_REVIEWED, WinRate
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.imports import comparison_row, import_rows, score_row
from tests.factories.queues import make_queue
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    make_imported_votes,
    make_judge_verdicts,
    make_review,
    make_scored_review,
)

pytestmark = pytest.mark.django_db


def of_people(evaluation: Evaluation, aspect: str = "clarity", **rules: Any) -> Estimate:
    """The win rate of alpha as people have it."""
    return build_report(evaluation, None, ReportRules(**rules)).wins[aspect].people["alpha"]


def of_judge(evaluation: Evaluation, aspect: str, **rules: Any) -> WinRate:
    """The same beside that of the judge."""
    return build_report(evaluation, None, ReportRules(**rules)).wins[aspect].judges["longest"].rates.candidates["alpha"]


def test_imported_scores_of_people_are_votes_in_win_rates_too(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("q1"), comparison_row("q2"))
    import_rows(
        evaluation,
        *(score_row(key, name, value) for key in ("q1", "q2") for name, value in (("alpha", 4), ("beta", 2))),
    )
    aspect = next(iter(build_report(evaluation, None, ReportRules()).wins))
    found = of_people(evaluation, aspect)
    assert (found.value, found.n) == (1, 2)


def test_scores_in_reviews_are_votes_in_win_rates_too(evaluation: Evaluation) -> None:
    make_scored_review(make_human(evaluation), make_comparison(evaluation), {"clarity": (4, 2)})
    found = of_people(evaluation)
    assert (found.value, found.n) == (1, 1)


def opened_by_hand(evaluation: Evaluation, number: int = 6) -> list[Comparison]:
    """Comparisons with a judge's verdict that ann opened herself, and said A on all aspects."""
    made = [make_comparison(evaluation) for _ in range(number)]
    ann = make_human(evaluation, "ann")
    for one in made:
        make_review(ann, one, ALL_A, selection_method=SelectionMethod.BY_HAND)
        make_judge_verdicts(one, as_stored=ALL_A)
    return made


def test_what_was_opened_by_hand_is_not_drawn_because_another_aspect_has_votes_that_count(
    evaluation: Evaluation,
) -> None:
    made = opened_by_hand(evaluation)
    for one in made:
        make_imported_votes(one, "ben", {"clarity": "B"})
    clarity, depth = of_judge(evaluation, "clarity"), of_judge(evaluation, "depth")
    assert (clarity.people.value, clarity.people.n, clarity.excluded) == (0, 6, 0)
    assert (depth.people.why, depth.people.n, depth.excluded) == (NOT_REVIEWED, 0, 6)


def test_what_was_opened_by_hand_is_not_drawn_because_there_are_votes_of_another_kind(evaluation: Evaluation) -> None:
    """Of imported votes it is not known whether they were blind."""
    for one in opened_by_hand(evaluation):
        make_imported_votes(one, "ben", {"clarity": "B"})
    found = of_judge(evaluation, "clarity", seen=SeenRule.BLIND)
    assert (found.people.n, found.excluded) == (0, 6)


def test_what_was_opened_by_hand_settles_no_split_that_is_to_be_dropped(evaluation: Evaluation) -> None:
    (one,) = opened_by_hand(evaluation, 1)
    for name, choices in (("ben", ALL_A), ("cem", ALL_B)):
        make_review(make_human(evaluation, name), one, choices)
    assert of_people(evaluation, split_rule=SplitRule.DROP).n == 0
    assert of_people(evaluation).value == 0.5


def test_reviews_by_hand_that_saw_the_judge_are_none_that_were_left_out(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation)
    make_review(
        make_human(evaluation), one, ALL_A, selection_method=SelectionMethod.BY_HAND, blind=False, judge_first=True
    )
    make_judge_verdicts(one, as_stored=ALL_A)
    assert of_judge(evaluation, "clarity").excluded == 0
    assert of_judge(evaluation, "clarity", seen=SeenRule.JUDGE).excluded == 1


# ---- strata -----------------------------------------------------------------------------------


def drawn_equally(evaluation: Evaluation, strata: StratifyBy, size: int) -> Queue:
    return make_queue(
        evaluation,
        name=f"by {strata}",
        strategy=SelectionMethod.STRATIFIED,
        strata=strata,
        size=size,
        random_percent=0,
        user=None,
    )


def reviewed(made: Queue) -> None:
    """In every comparison of coding A wins, in every other one B."""
    ann = make_human(made.evaluation)
    for slot in made.slots.select_related("item__comparison__query"):
        one = slot.item.comparison
        choices = ALL_A if one.query.category == "coding" else ALL_B
        make_review(ann, one, choices, selection_method=slot.selection_method, queue=made, probability=slot.probability)


def test_what_queues_drew_equally_of_each_category_stands_for_its_category(evaluation: Evaluation) -> None:
    """Six of coding, two of maths, two of each reviewed: alpha has (6 · 1 + 2 · 0) ÷ 8."""
    for category, number in (("coding", 6), ("maths", 2)):
        for _ in range(number):
            make_comparison(evaluation, category=category)
    reviewed(drawn_equally(evaluation, StratifyBy.CATEGORY, 4))
    found = of_people(evaluation)
    assert found.value == pytest.approx(0.75)
    assert found.n == 4


def test_scores_of_a_stratified_queue_stand_for_their_category_too(evaluation: Evaluation) -> None:
    """Six of coding, two of maths, two of each reviewed; alpha has 5 and 1: (6 · 5 + 2 · 1) ÷ 8."""
    for category, number in (("coding", 6), ("maths", 2)):
        for _ in range(number):
            make_comparison(evaluation, category=category)
    made, ann = drawn_equally(evaluation, StratifyBy.CATEGORY, 4), make_human(evaluation)
    for slot in made.slots.select_related("item__comparison__query"):
        score = 5 if slot.item.comparison.query.category == "coding" else 1
        make_scored_review(
            ann, slot.item.comparison, {"clarity": (score, 3)}, selection_method=slot.selection_method, queue=made
        )
    found = build_report(evaluation, None, ReportRules()).scores["clarity"].candidates["alpha"]
    assert (found.people.value, found.people.n, found.excluded) == pytest.approx((4, 4, 0))


def test_scores_of_what_a_reviewer_opened_are_excluded_from_means(evaluation: Evaluation) -> None:
    ann = make_human(evaluation)
    for score, method in ((5, SelectionMethod.RANDOM), (1, SelectionMethod.BY_HAND)):
        make_scored_review(ann, make_comparison(evaluation), {"clarity": (score, 3)}, selection_method=method)
    found = build_report(evaluation, None, ReportRules()).scores["clarity"].candidates["alpha"]
    assert (found.people.value, found.people.n, found.responses, found.excluded) == (5, 1, 2, 1)


def test_what_is_drawn_at_random_afterwards_counts_with_its_category(evaluation: Evaluation) -> None:
    """Three of six and one of two: each stands for two, whatever probability is stored with it."""
    made = [make_comparison(evaluation, category="coding") for _ in range(6)]
    made += [make_comparison(evaluation, category="maths") for _ in range(2)]
    reviewed(drawn_equally(evaluation, StratifyBy.CATEGORY, 2))
    ben = make_human(evaluation, "ben")
    for one in made[2:4]:
        make_review(ben, one, ALL_A, selection_method=SelectionMethod.RANDOM, probability=0.01)
    assert of_people(evaluation).value == pytest.approx(0.75)


def test_queues_by_category_and_by_pair_of_candidates_make_strata_of_both(evaluation: Evaluation) -> None:
    """Four of alpha and beta in coding, two of them in maths, one of alpha and gamma in either.

    Drawn: of each category one, then of each pair one more: coding and maths of beta, then coding of beta and of
    gamma. Of the strata two of four, one of two, one of one and none of one: (4 · 1 + 2 · 0 + 1 · 1) ÷ 7.
    """
    for category, pair, number in (
        ("coding", ("alpha", "beta"), 4),
        ("maths", ("alpha", "beta"), 2),
        ("coding", ("alpha", "gamma"), 1),
        ("maths", ("alpha", "gamma"), 1),
    ):
        for _ in range(number):
            make_comparison(evaluation, category=category, candidates=pair)
    reviewed(drawn_equally(evaluation, StratifyBy.CATEGORY, 2))
    reviewed(drawn_equally(evaluation, StratifyBy.CANDIDATE_PAIR, 2))
    found = of_people(evaluation)
    assert found.value == pytest.approx(5 / 7)
    assert found.n == 4


def test_a_queue_of_which_nothing_is_reviewed_changes_no_number(evaluation: Evaluation) -> None:
    coding = [make_comparison(evaluation, category="coding") for _ in range(3)]
    maths = make_comparison(evaluation, category="maths")
    ann = make_human(evaluation, "ann")
    for one, choices in ((coding[0], ALL_A), (maths, ALL_B)):
        make_review(ann, one, choices)
    drawn_equally(evaluation, StratifyBy.CATEGORY, 2)
    assert of_people(evaluation).value == 0.5


def test_a_queue_of_strata_that_is_half_done_has_half_of_each(evaluation: Evaluation) -> None:
    for category in ("coding", "maths", "prose"):
        for _ in range(4):
            make_comparison(evaluation, category=category)
    made = drawn_equally(evaluation, StratifyBy.CATEGORY, 12)
    order = list(made.slots.order_by("position").values_list("item__comparison__query__category", flat=True))
    assert sorted(order[:6]) == ["coding", "coding", "maths", "maths", "prose", "prose"]
