"""Labels by the policy of the evaluation, worked by hand."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.disagreements.services import resolve_aspect
from evaluations.domain.choices import Choice, LabelPolicy, LabelSource
from evaluations.domain.judges import CallState, RunState
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.runs import Run
from evaluations.verdicts.labels import DecidedLabel, decide_labels
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import (
    get_or_make_aspect,
    make_imported_votes,
    make_judge_rater,
    make_judge_score,
    make_judge_verdicts,
    make_review,
    make_scoring_judge,
)

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    return make_comparison(evaluation)


def label(comparison: Comparison, aspect: str = "clarity") -> DecidedLabel | None:
    return decide_labels(comparison.evaluation, [comparison.pk]).get(comparison.pk, {}).get(aspect)


def vote(comparison: Comparison, *choices: Choice) -> None:
    for choice in choices:
        make_review(make_human(comparison.evaluation), comparison, {"clarity": choice})


def test_one_vote_is_a_label_with_the_source_single(comparison: Comparison) -> None:
    vote(comparison, B)
    assert label(comparison) == DecidedLabel(B, LabelSource.SINGLE, 1, {B: 1})


def test_the_choice_that_leads_alone_is_the_label(comparison: Comparison) -> None:
    vote(comparison, A, B, A, TIE)
    assert label(comparison) == DecidedLabel(A, LabelSource.MAJORITY, 4, {A: 2, B: 1, TIE: 1})


def test_a_tie_can_be_the_label_like_any_other_choice(comparison: Comparison) -> None:
    vote(comparison, TIE, TIE, A)
    assert label(comparison) == DecidedLabel(TIE, LabelSource.MAJORITY, 3, {TIE: 2, A: 1})


@pytest.mark.parametrize("choices", [(A, B), (A, TIE), (A, B, TIE), (A, A, B, B, TIE)])
def test_a_split_gives_no_label(comparison: Comparison, choices: tuple[Choice, ...]) -> None:
    vote(comparison, *choices)
    given = label(comparison)
    assert given is not None
    assert (given.choice, given.source, given.n) == (None, LabelSource.SPLIT, len(choices))


@pytest.mark.parametrize("kind", ["llm", "rule"])
def test_a_judge_never_breaks_a_split_and_a_rule_never_labels_at_all(evaluation: Evaluation, kind: str) -> None:
    split, untouched = make_comparison(evaluation), make_comparison(evaluation)
    vote(split, A, B)
    for one in (split, untouched):
        make_judge_verdicts(one, kind=kind, as_stored={"clarity": A}, swapped={"clarity": A})
    assert label(split) == DecidedLabel(None, LabelSource.SPLIT, 2, {A: 1, B: 1})
    assert label(untouched) == (DecidedLabel(A, LabelSource.JUDGE, 1, {A: 1}, "longest") if kind == "llm" else None)


def test_the_final_choice_counts_and_not_the_first(comparison: Comparison) -> None:
    make_review(make_human(comparison.evaluation), comparison, {"clarity": A}, final={"clarity": B})
    assert label(comparison) == DecidedLabel(B, LabelSource.SINGLE, 1, {B: 1})


def test_a_first_choice_that_was_not_confirmed_is_no_vote(comparison: Comparison) -> None:
    make_review(make_human(comparison.evaluation), comparison, {"clarity": A}, confirmed=False)
    assert label(comparison) is None


def test_imported_votes_of_people_count_as_final_and_gold_counts_not_at_all(comparison: Comparison) -> None:
    make_imported_votes(comparison, "ann", {"clarity": B})
    make_imported_votes(comparison, "expert", {"clarity": A}, kind="gold")
    vote(comparison, B)
    assert label(comparison) == DecidedLabel(B, LabelSource.MAJORITY, 2, {B: 2})


def test_every_aspect_is_labelled_on_its_own(comparison: Comparison) -> None:
    for safety in (A, B):
        make_review(make_human(comparison.evaluation), comparison, {"clarity": A, "safety": safety})
    given = decide_labels(comparison.evaluation, [comparison.pk])[comparison.pk]
    assert {aspect: (one.choice, one.source) for aspect, one in given.items()} == {
        "clarity": (A, LabelSource.MAJORITY),
        "safety": (None, LabelSource.SPLIT),
    }


def says(comparison: Comparison, **choices: Choice) -> None:
    """Judges, by name, each the same in both orders."""
    for name, choice in choices.items():
        make_judge_verdicts(
            comparison, judge=name, kind="llm", as_stored={"clarity": choice}, swapped={"clarity": choice}
        )


def sent_together(evaluation: Evaluation, *names: str) -> None:
    batch = uuid.uuid4()
    for name in names:
        judge = make_judge_rater(evaluation, name, kind="rule" if name == "longest" else "llm").judge
        assert judge is not None
        Run.objects.create(evaluation=evaluation, judge=judge, batch=batch, state=RunState.DONE)


def show(evaluation: Evaluation, name: str) -> None:
    evaluation.shown_judge = make_judge_rater(evaluation, name, kind="rule" if name == "longest" else "llm").judge
    evaluation.save()


def test_an_adjudication_overrules_every_vote_and_says_by_whom(comparison: Comparison) -> None:
    vote(comparison, A, A, B)
    settle(comparison, TIE)
    assert label(comparison) == DecidedLabel(TIE, LabelSource.ADJUDICATED, 3, {A: 2, B: 1}, "ada")


def test_what_was_settled_without_a_vote_is_a_label_too(comparison: Comparison) -> None:
    says(comparison, one=A)
    settle(comparison, B)
    assert label(comparison) == DecidedLabel(B, LabelSource.ADJUDICATED, 0, {}, "ada")


def settle(comparison: Comparison, choice: Choice) -> None:
    ada = make_member(comparison.evaluation, Role.ADJUDICATOR, "ada")
    clarity = get_or_make_aspect(comparison.evaluation, "clarity")
    resolve_aspect(comparison, clarity, choice=choice, reason="Because.", version=0, user=ada)


def test_one_person_outweighs_every_judge(comparison: Comparison) -> None:
    sent_together(comparison.evaluation, "one", "two")
    says(comparison, one=A, two=A)
    vote(comparison, B)
    assert label(comparison) == DecidedLabel(B, LabelSource.SINGLE, 1, {B: 1})


def test_where_no_person_voted_most_judges_of_the_panel_decide(comparison: Comparison) -> None:
    sent_together(comparison.evaluation, "one", "two", "three")
    says(comparison, one=A, two=B, three=B)
    assert label(comparison) == DecidedLabel(B, LabelSource.PANEL, 3, {A: 1, B: 2}, "one, three, two")


def test_a_panel_without_a_strict_majority_says_tie(comparison: Comparison) -> None:
    sent_together(comparison.evaluation, "one", "two")
    says(comparison, one=A, two=B)
    assert label(comparison) == DecidedLabel(TIE, LabelSource.PANEL, 2, {A: 1, B: 1}, "one, two")


def test_a_panel_of_which_fewer_than_half_answered_says_nothing_and_the_shown_judge_does(
    comparison: Comparison,
) -> None:
    sent_together(comparison.evaluation, "one", "two", "three")
    says(comparison, one=A, beside=B)
    assert label(comparison) is None
    show(comparison.evaluation, "beside")
    assert label(comparison) == DecidedLabel(B, LabelSource.JUDGE, 1, {B: 1}, "beside")
    says(comparison, two=A)
    assert label(comparison) == DecidedLabel(A, LabelSource.PANEL, 2, {A: 2}, "one, two")


def test_the_newest_panel_counts_and_rules_have_no_seat(comparison: Comparison) -> None:
    sent_together(comparison.evaluation, "one", "two")
    sent_together(comparison.evaluation, "two", "three")
    sent_together(comparison.evaluation, "one", "longest")
    sent_together(comparison.evaluation, "one")
    says(comparison, one=A, two=B, three=B)
    assert label(comparison) == DecidedLabel(B, LabelSource.PANEL, 2, {B: 2}, "three, two")


def test_of_several_judges_only_the_shown_one_speaks_alone(comparison: Comparison) -> None:
    says(comparison, one=A, two=B)
    assert label(comparison) is None
    show(comparison.evaluation, "two")
    assert label(comparison) == DecidedLabel(B, LabelSource.JUDGE, 1, {B: 1}, "two")


def test_a_shown_rule_does_not_speak_and_the_only_other_judge_does(comparison: Comparison) -> None:
    show(comparison.evaluation, "longest")
    make_judge_verdicts(comparison, as_stored={"clarity": A})
    assert label(comparison) is None
    says(comparison, one=B)
    assert label(comparison) == DecidedLabel(B, LabelSource.JUDGE, 1, {B: 1}, "one")


def test_a_judge_that_lacks_an_order_says_nothing(comparison: Comparison) -> None:
    make_judge_verdicts(comparison, judge="one", kind="llm", as_stored={"clarity": A}, swapped=CallState.FAILED)
    assert label(comparison) is None


def test_a_judge_of_single_responses_labels_by_what_its_scores_come_to(comparison: Comparison) -> None:
    scorer = make_scoring_judge(comparison.evaluation, margin=0.5, aspect="clarity")
    make_judge_score(scorer, comparison.response_a, 3, aspect="clarity")
    assert label(comparison) is None
    make_judge_score(scorer, comparison.response_b, 4, aspect="clarity")
    assert label(comparison) == DecidedLabel(B, LabelSource.JUDGE, 1, {B: 1}, "scorer")


def test_under_the_policy_of_people_no_judge_labels(comparison: Comparison) -> None:
    says(comparison, one=A)
    comparison.evaluation.label_policy = LabelPolicy.PEOPLE
    assert label(comparison) is None


def test_who_may_not_see_judges_is_told_only_what_people_say(comparison: Comparison) -> None:
    says(comparison, one=A)
    assert decide_labels(comparison.evaluation, [comparison.pk], judges=False) == {}


def test_every_source_has_its_words() -> None:
    told = [
        DecidedLabel(A, LabelSource.ADJUDICATED, 2, {A: 1, B: 1}, "ada"),
        DecidedLabel(A, LabelSource.MAJORITY, 3, {B: 1, A: 2}),
        DecidedLabel(A, LabelSource.SINGLE, 1, {A: 1}),
        DecidedLabel(None, LabelSource.SPLIT, 2, {Choice.BOTH_BAD: 1, B: 1}),
        DecidedLabel(A, LabelSource.PANEL, 3, {A: 3}, "one, three, two"),
        DecidedLabel(A, LabelSource.JUDGE, 1, {A: 1}, "gpt-x"),
    ]
    assert [one.in_words for one in told] == [
        "resolved by ada",
        "2 of 3",
        "1 reviewer",
        "2 votes, no majority",
        "panel of 3 judges",
        "judge gpt-x",
    ]
    assert [one.votes_in_words for one in told[:4]] == ["A 1, B 1", "A 2, B 1", "A 1", "B 1, both bad 1"]


def test_any_number_of_comparisons_and_judges_is_labelled_in_the_same_few_queries(evaluation: Evaluation) -> None:
    comparisons = [make_comparison(evaluation) for _ in range(5)]

    def queries(ids: list[int]) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert len(decide_labels(evaluation, ids)) == len(ids)
        return len(captured)

    vote(comparisons[0], A, B, A)
    says(comparisons[0], one=A)
    few = queries([comparisons[0].pk])
    for one in comparisons[1:]:
        vote(one, A, B, A)
        says(one, one=A, two=B, three=TIE)
    assert queries([one.pk for one in comparisons]) == few
    assert few <= 9
