"""The table of one comparison, row by row."""

import pytest

from evaluations.domain.choices import Choice, ScoreRule, ShownOrder
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.runs import Call
from evaluations.verdicts.vote_table import JudgeAnswer, ScoredSides, VoteCell, VoteRow, build_vote_table
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.verdicts import (
    SIX_ASPECT_KEYS,
    make_imported_votes,
    make_judge_rater,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scored_review,
)

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture
def comparison() -> Comparison:
    return make_comparison(make_evaluation())


def only_row(comparison: Comparison) -> VoteRow:
    (row,) = build_vote_table(comparison, with_judges=True).rows
    return row


def cell(comparison: Comparison, aspect: str = "helpfulness") -> VoteCell | None:
    table = build_vote_table(comparison, with_judges=True)
    return table.rows[0].cells[[one.key for one in table.aspects].index(aspect)]


def test_aspects_stand_in_the_order_of_the_rubric_and_others_after_them(comparison: Comparison) -> None:
    make_imported_votes(comparison, "ann", {"overall": "A", "charm": "B"})
    assert [aspect.key for aspect in build_vote_table(comparison, with_judges=True).aspects] == [
        *SIX_ASPECT_KEYS,
        "charm",
        "overall",
    ]


def test_a_persons_final_choice_counts_and_the_first_is_told_where_it_differs(comparison: Comparison) -> None:
    first, final = {"helpfulness": A, "depth": B}, {"depth": TIE}
    make_review(make_human(comparison.evaluation), comparison, first, final=final, notes={"depth": "on reflection"})
    assert cell(comparison, "helpfulness") == VoteCell((A,))
    assert cell(comparison, "depth") == VoteCell((TIE,), first=B, note="on reflection")
    assert cell(comparison, "safety") is None


def test_before_the_final_choices_the_first_stand(comparison: Comparison) -> None:
    make_review(make_human(comparison.evaluation), comparison, {"helpfulness": B}, confirmed=False)
    assert cell(comparison) == VoteCell((B,))


def test_of_two_reviews_of_one_person_the_newest_that_is_confirmed_stands(comparison: Comparison) -> None:
    ann = make_human(comparison.evaluation)
    for choice, confirmed in ((A, True), (B, True), (TIE, False)):
        make_review(ann, comparison, {"helpfulness": choice}, confirmed=confirmed)
        make_next_rubric_version(comparison.evaluation)
    assert cell(comparison) == VoteCell((B,))


def test_every_vote_of_an_imported_person_is_told(comparison: Comparison) -> None:
    make_imported_votes(comparison, "ann", {"helpfulness": "A"}, sample=0, rationale="clear")
    make_imported_votes(comparison, "ann", {"helpfulness": "B"}, sample=1)
    assert cell(comparison) == VoteCell((A, B), note="clear")


def test_a_judges_orders_become_one_choice(comparison: Comparison) -> None:
    orders = ((ShownOrder.AS_STORED, A), (ShownOrder.SWAPPED, B))
    make_judge_verdicts(comparison, as_stored={"helpfulness": A, "depth": B}, swapped={"helpfulness": B, "depth": B})
    assert cell(comparison, "helpfulness") == VoteCell((TIE,), inconsistent=True, orders=orders)
    assert cell(comparison, "depth") == VoteCell((B,), orders=((ShownOrder.AS_STORED, B), (ShownOrder.SWAPPED, B)))


def test_a_judge_that_did_not_answer_in_every_order_has_no_choice(comparison: Comparison) -> None:
    make_judge_verdicts(comparison, as_stored={"helpfulness": A}, swapped=CallState.TRUNCATED)
    assert cell(comparison) == VoteCell((), orders=((ShownOrder.AS_STORED, A),))


def test_failed_calls_are_told_with_their_error(comparison: Comparison) -> None:
    make_judge_verdicts(comparison, as_stored=CallState.REFUSED)
    Call.objects.update(error="“I cannot help with that.”")
    row = only_row(comparison)
    call_id = Call.objects.get().pk
    assert row.answers == (
        JudgeAnswer(ShownOrder.AS_STORED, 0, "refused", error="“I cannot help with that.”", call_id=call_id),
    )
    assert row.answers[0].failed


def test_a_rule_that_gives_no_reasons_has_nothing_to_tell(comparison: Comparison) -> None:
    make_judge_verdicts(comparison, as_stored={"helpfulness": A})
    assert only_row(comparison).answers == ()


def test_the_rationale_of_an_imported_judge_is_told_once_for_all_its_aspects(comparison: Comparison) -> None:
    rater = make_judge_rater(comparison.evaluation, "imported")
    make_imported_votes(comparison, rater.name, {"helpfulness": "A", "depth": "B"}, kind="judge", rationale="because")
    assert only_row(comparison).answers == (JudgeAnswer(ShownOrder.UNKNOWN, 0, rationale="because"),)


def test_gold_comes_first_then_people_then_judges_and_judges_can_be_left_out(comparison: Comparison) -> None:
    make_judge_verdicts(comparison, judge="a-judge", as_stored={"helpfulness": A})
    make_judge_verdicts(comparison, judge="silent", as_stored=CallState.FAILED)
    for name in ("zoe", "ann"):
        make_review(make_human(comparison.evaluation, name), comparison, {"helpfulness": A})
    make_imported_votes(comparison, "key", {"helpfulness": A}, kind="gold")
    names = [row.name for row in build_vote_table(comparison, with_judges=True).rows]
    assert names == ["key", "ann", "zoe", "a-judge", "silent"]
    without = build_vote_table(comparison, with_judges=False).rows
    assert RaterKind.JUDGE not in {row.kind for row in without}
    assert len(without) == 3


def test_the_label_stands_under_its_aspect(comparison: Comparison) -> None:
    make_review(make_human(comparison.evaluation), comparison, {"helpfulness": A, "depth": A})
    make_review(make_human(comparison.evaluation), comparison, {"helpfulness": A, "depth": B})
    table = build_vote_table(comparison, with_judges=True)
    labels = {aspect.key: label for aspect, label in zip(table.aspects, table.labels, strict=True)}
    assert labels["helpfulness"] is not None
    assert labels["helpfulness"].choice == A
    assert labels["depth"] is not None
    assert labels["depth"].choice is None
    assert labels["safety"] is None


def test_a_person_who_scores_stands_with_scores_and_the_choice_that_they_make(comparison: Comparison) -> None:
    """Margin 0.5: 4 to 2 → A first; 3 to 3 → tie in the end."""
    review = make_scored_review(
        make_human(comparison.evaluation, "ann"),
        comparison,
        {"clarity": (4, 2)},
        final={"clarity": (3, 3)},
        note="hard",
    )
    review.scores.filter(stage="final", response=comparison.response_b).update(note="Lyon is fine too.")
    table = build_vote_table(comparison, with_judges=False)
    (row,) = table.rows
    assert (row.name, row.kind, row.notes) == ("ann", RaterKind.HUMAN, ("hard",))
    place = [aspect.key for aspect in table.aspects].index("clarity")
    assert row.cells[place] == VoteCell(
        (TIE,), first=A, note="Lyon is fine too.", scored=ScoredSides(3.0, 3.0, ScoreRule(0.5))
    )
    label = table.labels[place]
    assert label is not None
    assert (label.choice, label.in_words) == (TIE, "1 reviewer")
