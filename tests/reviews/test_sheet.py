"""What a person may see of a comparison at each step, and in which terms."""

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.reviews import Reveal, ReviewState
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.baseline_rules import TEXT_BLIND_RULES
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Judge, find_rater_of_user
from evaluations.models.users import User
from evaluations.reviews.queues.calibration import create_calibration
from evaluations.reviews.queues.services import archive_queue
from evaluations.reviews.selectors import draw_bit, get_order_shown
from evaluations.reviews.services import get_review_rubric, save_final_choices, save_first_choices
from evaluations.reviews.sheet import ReviewSheet, build_sheet
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    ALL_TIE,
    make_imported_votes,
    make_judge_rater,
    make_judge_score,
    make_judge_verdicts,
    make_scoring_judge,
)

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def compared(owner: User, order: ShownOrder, **columns: object) -> Comparison:
    """A comparison that this person meets in that order; the judge's choice is B as stored."""
    evaluation = make_evaluation(owner)
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation).judge, **columns}, user=owner)
    comparison = make_comparison(evaluation, response_a="first", response_b="second")
    while get_order_shown(owner, comparison) != order:
        comparison = make_comparison(evaluation, response_a="first", response_b="second")
    make_judge_verdicts(comparison, as_stored=ALL_B, swapped=ALL_B, rationale="Longer")
    return comparison


def sheet(owner: User, comparison: Comparison) -> ReviewSheet:
    evaluation = comparison.evaluation
    return build_sheet(owner, comparison, get_review_rubric(evaluation), find_rater_of_user(owner, evaluation))


def test_the_order_stays_the_same_however_often_the_page_is_opened(owner: User) -> None:
    comparison = compared(owner, ShownOrder.SWAPPED)
    before = sheet(owner, comparison)
    assert (before.left.text, before.right.text) == ("second", "first")
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    after = sheet(owner, comparison)
    assert (after.left, after.right) == (before.left, before.right)


def test_the_order_is_drawn_for_each_person_and_comparison_on_its_own() -> None:
    people = [User(pk=number) for number in range(20)]
    comparisons = [Comparison(pk=number) for number in range(100)]
    swapped = [draw_bit("order", owner, comparison) for owner in people for comparison in comparisons]
    # 2,000 fair draws: 1,000 expected, standard deviation 22.4; five of them either way.
    assert 888 <= sum(swapped) <= 1112
    other = [draw_bit("reveal", owner, comparison) for owner in people for comparison in comparisons]
    assert 888 <= sum(one == another for one, another in zip(swapped, other, strict=True)) <= 1112


def test_before_the_first_save_nothing_of_the_judge_is_there(owner: User) -> None:
    before = sheet(owner, compared(owner, ShownOrder.AS_STORED))
    assert before.stage == "choose"
    assert before.judge is None
    assert all(line.judge is None and line.first is None for line in before.lines)


@pytest.mark.parametrize(("order", "judge_side", "agrees"), [("as_stored", "B", False), ("swapped", "A", True)])
def test_after_it_the_judge_speaks_in_terms_of_left_and_right(
    owner: User, order: ShownOrder, judge_side: str, agrees: bool
) -> None:
    comparison = compared(owner, order)
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    after = sheet(owner, comparison)
    assert after.stage == "confirm"
    assert {line.judge.choice for line in after.lines if line.judge} == {judge_side}
    assert {line.first for line in after.lines} == {Choice.A}
    assert after.differing == (0 if agrees else 6)


@pytest.mark.parametrize("order", ["as_stored", "swapped"])
def test_words_of_the_judge_say_whether_they_call_the_sides_the_other_way_round(owner: User, order: ShownOrder) -> None:
    comparison = compared(owner, order)
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    judge = sheet(owner, comparison).judge
    assert judge is not None
    other = "swapped" if order == "as_stored" else "as_stored"
    assert [(one.text, one.swapped) for one in judge.rationales] == [
        (f"Longer ({order})", False),
        (f"Longer ({other})", True),
    ]


def test_orders_that_disagree_are_said_to(owner: User) -> None:
    comparison = compared(owner, ShownOrder.AS_STORED)
    torn = make_comparison(comparison.evaluation)
    make_judge_verdicts(torn, as_stored=ALL_A, swapped=ALL_B)
    save_first_choices(owner, torn, choices=ALL_A, version=0)
    judge = sheet(owner, torn).judge
    assert judge is not None
    depth = judge.choices["depth"]
    assert (depth.choice, depth.inconsistent, depth.orders) == (Choice.TIE, True, 2)


def test_where_the_judge_is_never_shown_it_is_not_there_afterwards_either(owner: User) -> None:
    comparison = compared(owner, ShownOrder.AS_STORED, reveal=Reveal.NEVER)
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    after = sheet(owner, comparison)
    assert (after.stage, after.judge) == ("done", None)


def test_where_the_judge_stands_from_the_start_it_is_there_before(owner: User) -> None:
    before = sheet(owner, compared(owner, ShownOrder.AS_STORED, reveal=Reveal.SHOWN))
    assert before.stage == "choose"
    assert before.judge is not None


def test_an_answer_that_came_after_the_review_was_final_is_not_revealed(owner: User) -> None:
    comparison = compared(owner, ShownOrder.AS_STORED)
    later = make_comparison(comparison.evaluation)
    save_first_choices(owner, later, choices=ALL_A, version=0)
    make_judge_verdicts(later, as_stored=ALL_B, swapped=ALL_B)
    assert sheet(owner, later).judge is None


def test_votes_of_other_people_are_never_on_the_sheet(owner: User) -> None:
    comparison = compared(owner, ShownOrder.AS_STORED)
    make_imported_votes(comparison, "annotator1", ALL_TIE)
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    assert {line.first for line in sheet(owner, comparison).lines} == {Choice.A}


def test_a_confirmed_sheet_shows_first_and_final_and_the_notes(owner: User) -> None:
    comparison = compared(owner, ShownOrder.SWAPPED)
    review = save_first_choices(owner, comparison, choices=ALL_B, version=0)
    save_final_choices(
        owner,
        comparison,
        choices={**ALL_B, "depth": Choice.A},
        notes={"depth": "More detail."},
        version=review.version,
    )
    done = sheet(owner, comparison)
    depth = next(line for line in done.lines if line.aspect.key == "depth")
    assert (done.stage, depth.first, depth.final, depth.note) == ("done", Choice.B, Choice.A, "More detail.")


def scored(owner: User, order: ShownOrder) -> Comparison:
    """A comparison that this person meets in that order; a judge of single responses gave A 4 and B 2.5 on clarity."""
    evaluation = make_evaluation(owner)
    scorer = make_scoring_judge(evaluation, aspect="clarity", margin=1.0)
    change_evaluation(evaluation, {"shown_judge": scorer.judge}, user=owner)
    comparison = make_comparison(evaluation)
    while get_order_shown(owner, comparison) != order:
        comparison = make_comparison(evaluation)
    make_judge_score(scorer, comparison.response_a, 4, aspect="clarity", rationale="Short and right.")
    for sample, score in enumerate((2, 3)):
        make_judge_score(scorer, comparison.response_b, score, aspect="clarity", sample=sample, rationale="Wrong.")
    return comparison


@pytest.mark.parametrize(
    ("order", "choice", "remark", "first"),
    [
        (ShownOrder.AS_STORED, Choice.A, "4 to 2.5, derived from scores, margin 1.0", "Short and right."),
        (ShownOrder.SWAPPED, Choice.B, "2.5 to 4, derived from scores, margin 1.0", "Wrong."),
    ],
)
def test_a_choice_derived_from_scores_is_revealed_as_what_it_is(
    owner: User, order: ShownOrder, choice: Choice, remark: str, first: str
) -> None:
    comparison = scored(owner, order)
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    judge = sheet(owner, comparison).judge
    assert judge is not None
    assert list(judge.choices) == ["clarity"]
    assert (judge.choices["clarity"].choice, judge.choices["clarity"].remark) == (choice, remark)
    assert (judge.rationales[0].text, judge.rationales[0].about) == (first, "A")
    assert {one.swapped for one in judge.rationales} == {False}


def test_without_a_score_of_both_there_is_nothing_to_reveal(owner: User) -> None:
    comparison = scored(owner, ShownOrder.AS_STORED)
    comparison.response_b.scores.all().delete()
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    assert sheet(owner, comparison).judge is None


def test_what_stands_in_an_open_calibration_shows_no_judge_to_who_opens_it_by_its_address(owner: User) -> None:
    comparison = compared(owner, ShownOrder.AS_STORED, reveal=Reveal.SHOWN)
    assert sheet(owner, comparison).judge is not None
    make_imported_votes(comparison, "gold", ALL_TIE, kind="gold")
    calibration = create_calibration(comparison.evaluation, name="Calibration", comparisons=[comparison.pk], user=None)
    assert sheet(owner, comparison).judge is None
    archive_queue(calibration, None)
    assert sheet(owner, comparison).judge is not None


def speaking(owner: User, *, in_both_orders: bool) -> Comparison:
    """A judge that is shown from the start has answered here."""
    comparison = compared(owner, ShownOrder.AS_STORED, reveal=Reveal.SHOWN)
    other = make_comparison(comparison.evaluation)
    make_judge_verdicts(other, rationale="Longer", as_stored=ALL_B)
    if in_both_orders:
        make_judge_verdicts(other, rationale="Longer", swapped=ALL_B)
    return other


def test_from_the_start_a_judge_that_was_asked_in_one_order_gives_its_choices_and_no_words(owner: User) -> None:
    comparison = speaking(owner, in_both_orders=False)
    judge = sheet(owner, comparison).judge
    assert judge is not None
    assert (len(judge.choices), judge.rationales) == (6, ())
    save_first_choices(owner, comparison, choices=ALL_A, version=0)
    after = sheet(owner, comparison).judge
    assert after is not None
    assert [one.text for one in after.rationales] == ["Longer (as_stored)"]


def test_from_the_start_a_judge_that_was_asked_in_both_orders_gives_its_words_too(owner: User) -> None:
    judge = sheet(owner, speaking(owner, in_both_orders=True)).judge
    assert judge is not None
    assert [one.swapped for one in judge.rationales] == [False, True]


@pytest.mark.parametrize("rule", sorted(TEXT_BLIND_RULES))
def test_a_rule_that_reads_no_text_is_shown_after_the_first_save_only(owner: User, rule: str) -> None:
    comparison = compared(owner, ShownOrder.AS_STORED, reveal=Reveal.SHOWN)
    Judge.objects.update(model=rule)
    comparison.evaluation.refresh_from_db()
    assert sheet(owner, comparison).judge is None
    assert save_first_choices(owner, comparison, choices=ALL_A, version=0).state == ReviewState.FIRST
    assert sheet(owner, comparison).judge is not None
