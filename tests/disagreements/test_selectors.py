"""Where raters differ: found by hand-made votes, by every filter, forwards and backwards."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from evaluations.disagreements.selectors import (
    DisagreementFilter,
    DisagreementKind,
    count_disagreements,
    find_disagreements,
    get_disagreement_judge,
    get_disagreements,
    get_neighbouring_disagreements,
)
from evaluations.disagreements.services import add_comment, resolve_aspect
from evaluations.domain.choices import Choice
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import DifferenceReason
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.comparisons import Candidate, Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Label, Verdict
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.judge_differences import filter_possible_differences
from evaluations.verdicts.reviewer_choices import get_reviewer_choices
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member, make_user
from tests.factories.verdicts import (
    get_or_make_aspect,
    make_import,
    make_judge_rater,
    make_judge_score,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scoring_judge,
)

pytestmark = pytest.mark.django_db

A, B, TIE, BOTH_BAD = Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD


def voted(evaluation: Evaluation, *choices: Choice, aspect: str = "clarity", **columns: object) -> Comparison:
    """A comparison on which people finally chose so."""
    comparison = make_comparison(evaluation, **columns)  # type: ignore[arg-type]
    for choice in choices:
        make_review(make_human(evaluation), comparison, {aspect: choice})
    update_labels([comparison.pk])
    return comparison


def found(wanted: DisagreementFilter) -> list[int]:
    return find_disagreements(wanted).ids


def with_judge(evaluation: Evaluation, **more: object) -> DisagreementFilter:
    judge = make_judge_rater(evaluation)
    change_evaluation(evaluation, {"shown_judge": judge.judge, "resolve_judge_disagreements": True}, user=None)
    return DisagreementFilter(evaluation, judge=get_disagreement_judge(evaluation), **more)  # type: ignore[arg-type]


# ---- between people -------------------------------------------------------------------------


def test_people_differ_where_their_votes_are_not_all_one(evaluation: Evaluation) -> None:
    split, majority = voted(evaluation, A, B), voted(evaluation, A, A, TIE)
    voted(evaluation, A, A)
    voted(evaluation, B)
    voted(make_evaluation(), A, B)
    assert found(DisagreementFilter(evaluation)) == [split.pk, majority.pk]


def test_one_person_who_reviews_again_after_a_change_of_the_rubric_differs_from_nobody(evaluation: Evaluation) -> None:
    comparison, ann = make_comparison(evaluation), make_human(evaluation, "ann")
    for choice in (A, B):
        make_review(ann, comparison, {"clarity": choice})
        make_next_rubric_version(evaluation)
    update_labels([comparison.pk])
    assert found(DisagreementFilter(evaluation)) == []
    (choices,) = get_reviewer_choices(comparison).values()
    assert [(one.current and one.current.choice, one.is_replaced) for one in choices] == [(A, True), (B, False)]


def test_what_was_settled_is_listed_as_settled_and_no_longer_as_open(evaluation: Evaluation) -> None:
    one, other = voted(evaluation, A, B), voted(evaluation, A, B)
    ada = make_member(evaluation, Role.ADJUDICATOR)
    resolve_aspect(one, get_or_make_aspect(evaluation, "clarity"), choice=A, reason="Clear.", version=0, user=ada)
    assert found(DisagreementFilter(evaluation)) == [other.pk]
    assert found(DisagreementFilter(evaluation, resolved=True)) == [one.pk]
    assert found(DisagreementFilter(evaluation, resolved=True, kind=DisagreementKind.JUDGE)) == []
    assert count_disagreements(DisagreementFilter(evaluation)) == (1, 1)


def test_the_words_say_who_chose_what(evaluation: Evaluation) -> None:
    comparison = voted(evaluation, TIE, A, A)
    wanted = with_judge(evaluation)
    make_judge_verdicts(comparison, as_stored={"clarity": B}, swapped={"clarity": B})
    (one,) = get_disagreements(wanted, [comparison.pk])[comparison.pk]
    assert (one.aspect.name, dict(one.votes), one.judge) == ("Clarity", {A: 2, TIE: 1}, B)
    assert list(one.votes) == [A, TIE]
    assert one.kinds == [DisagreementKind.REVIEWERS, DisagreementKind.JUDGE]


def test_it_is_filtered_by_aspect_reason_and_candidates(evaluation: Evaluation) -> None:
    clear = voted(evaluation, A, B)
    deep = voted(evaluation, A, B, aspect="depth", candidates=("alpha", "gamma"))
    Verdict.objects.filter(comparison=deep, stage="final", choice=A).update(reason=DifferenceReason.POSITION)
    alpha, gamma = (Candidate.objects.get(evaluation=evaluation, name=name) for name in ("alpha", "gamma"))
    assert found(DisagreementFilter(evaluation, aspect=get_or_make_aspect(evaluation, "clarity"))) == [clear.pk]
    assert found(DisagreementFilter(evaluation, reason=DifferenceReason.POSITION)) == [deep.pk]
    assert found(DisagreementFilter(evaluation, reason=DifferenceReason.OTHER)) == []
    assert found(DisagreementFilter(evaluation, candidates=(alpha,))) == [clear.pk, deep.pk]
    assert found(DisagreementFilter(evaluation, candidates=(alpha, gamma))) == [deep.pk]


def test_it_is_filtered_by_whom_the_discussion_calls(evaluation: Evaluation) -> None:
    here, _ = voted(evaluation, A, B), voted(evaluation, A, B)
    rita = make_member(evaluation, Role.REVIEWER, "rita")
    add_comment(here, "What do you think, @rita?", aspect=None, user=make_user(), readers=[rita])
    assert found(DisagreementFilter(evaluation, mentioning=rita)) == [here.pk]
    assert found(DisagreementFilter(evaluation, mentioning=make_user())) == []


def test_only_among_comparisons_that_the_person_may_see(evaluation: Evaluation) -> None:
    mine, _ = voted(evaluation, A, B), voted(evaluation, A, B)
    among = Comparison.objects.filter(pk=mine.pk)
    assert found(DisagreementFilter(evaluation, among)) == [mine.pk]
    assert count_disagreements(DisagreementFilter(evaluation, among)) == (1, 0)


# ---- people and a judge ---------------------------------------------------------------------


def test_a_judge_makes_disagreements_only_where_the_evaluation_asks_for_them(evaluation: Evaluation) -> None:
    wanted = with_judge(evaluation)
    assert wanted.judge is not None
    change_evaluation(evaluation, {"resolve_judge_disagreements": False}, user=None)
    assert get_disagreement_judge(evaluation) is None
    change_evaluation(evaluation, {"resolve_judge_disagreements": True, "shown_judge": None}, user=None)
    assert get_disagreement_judge(evaluation) is None


#   label, judge as stored, judge swapped, whether its one verdict differs from the label
CASES = [
    (A, A, A, False),
    (A, B, B, True),
    (A, A, B, True),  # the orders differ: a tie
    (TIE, A, B, False),
    (TIE, A, A, True),
    (TIE, TIE, TIE, False),
    (TIE, TIE, B, False),
    (BOTH_BAD, TIE, TIE, True),
    (BOTH_BAD, BOTH_BAD, BOTH_BAD, False),
    (TIE, BOTH_BAD, BOTH_BAD, True),
]


@pytest.mark.parametrize(("label", "stored", "swapped", "differs"), CASES)
def test_a_judge_differs_where_its_one_verdict_is_not_the_label(
    evaluation: Evaluation, label: Choice, stored: Choice, swapped: Choice, differs: bool
) -> None:
    comparison, wanted = voted(evaluation, label), with_judge(evaluation)
    make_judge_verdicts(comparison, as_stored={"clarity": stored}, swapped={"clarity": swapped})
    assert found(wanted) == ([comparison.pk] if differs else [])
    assert found(DisagreementFilter(evaluation)) == []


def test_a_split_is_no_label_that_a_judge_could_differ_from(evaluation: Evaluation) -> None:
    comparison, wanted = voted(evaluation, A, B), with_judge(evaluation, kind=DisagreementKind.JUDGE)
    make_judge_verdicts(comparison, as_stored={"clarity": TIE}, swapped={"clarity": TIE})
    assert found(wanted) == []


def test_a_verdict_that_lacks_an_order_is_missing_and_differs_from_nothing(evaluation: Evaluation) -> None:
    comparison, wanted = voted(evaluation, A), with_judge(evaluation)
    make_judge_verdicts(comparison, as_stored={"clarity": B}, swapped=CallState.REFUSED)
    assert found(wanted) == []


def test_a_judge_of_ones_choice_is_held_against_people_and_against_what_was_settled(evaluation: Evaluation) -> None:
    open_one, settled = voted(evaluation, A), voted(evaluation, A, B)
    for comparison in (open_one, settled):
        make_judge_verdicts(comparison, judge="second", as_stored={"clarity": B})
    ada = make_member(evaluation, Role.ADJUDICATOR)
    resolve_aspect(settled, get_or_make_aspect(evaluation, "clarity"), choice=A, reason="Clear.", version=0, user=ada)
    second = make_judge_rater(evaluation, "second")
    assert found(DisagreementFilter(evaluation, judge=second, only_judge=True)) == [open_one.pk]
    assert found(DisagreementFilter(evaluation, judge=second, only_judge=True, resolved=True)) == [settled.pk]


@pytest.mark.parametrize(
    ("label", "a", "b", "differs"),
    [
        (A, 4, 3, True),  # within the margin of 1: a tie
        (A, 5, 3, False),
        (B, 3, 5, False),
        (B, 5, 3, True),
        (TIE, 4, 3, False),
        (TIE, 5, 3, True),
        (BOTH_BAD, 3, 3, True),
    ],
)
def test_a_judge_that_scores_differs_by_what_its_scores_make(
    evaluation: Evaluation, label: Choice, a: int, b: int, differs: bool
) -> None:
    comparison, scorer = voted(evaluation, label), make_scoring_judge(evaluation, margin=1.0, aspect="clarity")
    for response, value in ((comparison.response_a, a), (comparison.response_b, b)):
        make_judge_score(scorer, response, value, aspect="clarity")
    wanted = DisagreementFilter(evaluation, judge=scorer, only_judge=True)
    assert found(wanted) == ([comparison.pk] if differs else [])


class TestThePrefilter(TestCase):
    @settings(max_examples=60)
    @given(
        label=st.sampled_from(list(Choice)),
        stored=st.lists(st.sampled_from(list(Choice)), min_size=1, max_size=3),
        swapped=st.lists(st.sampled_from(list(Choice)), max_size=3),
    )
    def test_it_leaves_out_nothing_that_differs(
        self, label: Choice, stored: list[Choice], swapped: list[Choice]
    ) -> None:
        evaluation = make_evaluation()
        comparison, judge = voted(evaluation, label), make_judge_rater(evaluation)
        for shown, choices in (("as_stored", stored), ("swapped", swapped)):
            for sample, choice in enumerate(choices):
                said(judge, comparison, shown, sample, choice)
        told = load_judge_choices(judge, [comparison.pk])[comparison.pk]["clarity"].choice
        passed = filter_possible_differences(Label.objects.filter(comparison=comparison), judge).exists()
        assert passed or told == label
        if max(len(stored), len(swapped)) == 1:
            assert passed == (told != label), "with one sample an order it is exact"


def said(judge: Rater, comparison: Comparison, shown: str, sample: int, choice: Choice) -> None:
    Verdict.objects.create(
        rater=judge,
        comparison=comparison,
        aspect=get_or_make_aspect(comparison.evaluation, "clarity"),
        shown=shown,
        sample=sample,
        choice=choice,
        source_import=make_import(comparison.evaluation),
    )


# ---- a page at a time, and from one to the next ----------------------------------------------


def test_pages_of_both_kinds_follow_each_other_without_a_gap(evaluation: Evaluation) -> None:
    wanted, due = with_judge(evaluation), []
    for number in range(9):
        comparison = voted(evaluation, *((A, B) if number % 3 == 0 else (A,)))
        make_judge_verdicts(comparison, as_stored={"clarity": B if number % 3 == 1 else A})
        if number % 3 != 2:
            due.append(comparison.pk)
    pages, after = [], 0
    for _ in itertools.count():
        page = find_disagreements(wanted, after=after, size=2)
        pages += page.ids
        if page.continues_after is None:
            break
        after = page.continues_after
    assert pages == due
    assert find_disagreements(wanted, after=due[-1], size=2, backwards=True).ids == due[-2:-4:-1]


def test_the_next_and_the_one_before_keep_to_the_filter(evaluation: Evaluation) -> None:
    first, other, last = (voted(evaluation, A, B, aspect=aspect) for aspect in ("clarity", "depth", "clarity"))
    assert get_neighbouring_disagreements(DisagreementFilter(evaluation), other) == (first.pk, last.pk)
    clarity = DisagreementFilter(evaluation, aspect=get_or_make_aspect(evaluation, "clarity"))
    assert get_neighbouring_disagreements(clarity, first) == (None, last.pk)
    assert get_neighbouring_disagreements(clarity, last) == (first.pk, None)
