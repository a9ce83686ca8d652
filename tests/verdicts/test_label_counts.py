"""The labels that are kept: worked by hand, and equal to a recount after whatever was done."""

import io
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from pytest_django import DjangoAssertNumQueries

from evaluations.disagreements.services import resolve_aspect, withdraw_resolution
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.imports import ImportRequest
from evaluations.domain.jobs import JobState
from evaluations.domain.reviews import ReviewState, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.imports.lifecycle import clean_up_import, continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import discard_import, start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Label, Review, Verdict
from evaluations.reviews.answers import Answers, ScorePair
from evaluations.reviews.services import reopen_for_judge, save_final_choices, save_first_choices, undo_last_step
from evaluations.rubrics.services import add_rubric
from evaluations.tasks import sweep
from evaluations.verdicts import label_updates
from evaluations.verdicts.label_updates import are_votes_left, recount_labels_later
from evaluations.verdicts.votes import compute_label_rows, update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, verdict_row
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    ALL_TIE,
    get_or_make_aspect,
    make_imported_votes,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scored_review,
)
from tests.helpers.job_work import Nudges, job_about, kill_worker_at, nudged_jobs, work_all, work_once

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


def kept() -> dict[tuple[int, int], tuple[str, str, int, bool]]:
    rows = Label.objects.values_list("comparison_id", "aspect_id", "choice", "source", "votes", "unanimous")
    return {(one, aspect): (choice, source, votes, same) for one, aspect, choice, source, votes, same in rows}


def label_of(one: Comparison, aspect: str = "clarity") -> tuple[str, str, int, bool] | None:
    return kept().get((one.pk, get_or_make_aspect(one.evaluation, aspect).pk))


# ---- by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "row"),
    [
        ([A], ("A", "single", 1, True)),
        ([A, A], ("A", "majority", 2, True)),
        ([A, A, B], ("A", "majority", 3, False)),
        ([TIE, TIE, A], ("tie", "majority", 3, False)),
        ([A, B, TIE, A], ("A", "majority", 4, False)),
        ([A, B], ("", "split", 2, False)),
        ([A, A, B, B, TIE], ("", "split", 5, False)),
    ],
)
def test_the_row_says_choice_source_votes_and_whether_they_are_one(
    evaluation: Evaluation, votes: list[Choice], row: tuple[str, str, int, bool]
) -> None:
    one = make_comparison(evaluation)
    for choice in votes:
        make_review(make_human(evaluation), one, {"clarity": choice})
    update_labels([one.pk])
    assert label_of(one) == row


def test_neither_calibration_nor_what_is_not_confirmed_nor_gold_nor_judges_vote(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation)
    make_review(make_human(evaluation), one, {"clarity": A}, selection_method=SelectionMethod.CALIBRATION)
    make_review(make_human(evaluation), one, {"clarity": A}, confirmed=False)
    make_imported_votes(one, "expert", {"clarity": A}, kind="gold")
    make_judge_verdicts(one, as_stored={"clarity": A})
    update_labels([one.pk])
    assert kept() == {}


def test_who_reviews_again_by_another_version_has_one_vote_that_of_the_newest_review(evaluation: Evaluation) -> None:
    one, ann = make_comparison(evaluation), make_human(evaluation)
    make_review(ann, one, {"clarity": A, "depth": TIE})
    again = make_review(ann, one, {"clarity": B}, rubric_version=make_next_rubric_version(evaluation))
    make_review(ann, one, {"clarity": A}, rubric_version=make_next_rubric_version(evaluation), confirmed=False)
    update_labels([one.pk])
    assert label_of(one) == ("B", "single", 1, True)
    assert label_of(one, "depth") == ("tie", "single", 1, True)
    Review.objects.filter(pk=again.pk).update(state=ReviewState.DRAFT)
    update_labels([one.pk])
    assert label_of(one) == ("A", "single", 1, True)


def test_scores_that_follow_choices_are_the_one_vote_of_the_person(evaluation: Evaluation) -> None:
    one, ann = make_comparison(evaluation), make_human(evaluation)
    make_review(ann, one, {"clarity": A})
    make_scored_review(ann, one, {"clarity": (2, 4)})
    update_labels([one.pk])
    assert label_of(one) == ("B", "single", 1, True)


def test_what_came_with_an_import_counts_once_the_import_is_done(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation)
    make_imported_votes(one, "ann", {"clarity": B})
    Import.objects.update(state=ImportState.STORING)
    update_labels([one.pk])
    assert kept() == {}
    Import.objects.update(state=ImportState.DONE)
    update_labels([one.pk])
    assert label_of(one) == ("B", "single", 1, True)


def test_only_rows_that_changed_are_written_and_the_queries_do_not_grow(
    evaluation: Evaluation, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """On SQLite: votes, whether there are scores, settled, what stands; then one for new rows, one for changed ones."""
    those = [make_comparison(evaluation) for _ in range(3)]
    reviews = [make_review(make_human(evaluation), one, {"clarity": A, "safety": B}) for one in those]
    ids = [one.pk for one in those]
    locking = int(connection.features.has_select_for_update)
    with django_assert_num_queries(5 + locking):
        update_labels(ids)
    with django_assert_num_queries(4 + locking):
        update_labels(ids)
    before = dict(Label.objects.values_list("pk", "created_at"))
    Verdict.objects.filter(review=reviews[0], aspect__key="safety", stage="final").update(choice=TIE)
    with django_assert_num_queries(5 + locking):
        update_labels(ids)
    assert dict(Label.objects.values_list("pk", "created_at")) == before
    assert label_of(those[0], "safety") == ("tie", "single", 1, True)


# ---- equal to a recount -----------------------------------------------------------------------


def counted_by_hand(evaluation: Evaluation) -> dict[tuple[int, int], tuple[str, str, int, bool]]:
    """What the rows must say, counted row by row without any of the product's own counting."""
    votes: dict[tuple[int, int], list[str]] = defaultdict(list)
    newest: dict[tuple[int, int, int], tuple[int, str]] = defaultdict(lambda: (0, ""))
    for said in Verdict.all_rows.filter(comparison__evaluation=evaluation).select_related(
        "rater", "review", "source_import"
    ):
        if said.rater.kind != "human":
            continue
        if said.source_import is not None and said.source_import.state == "done":
            votes[said.comparison_id, said.aspect_id].append(said.choice)
        review = said.review
        if (
            review is not None
            and review.selection_method != "calibration"
            and (review.state, said.stage) == ("final",) * 2
        ):
            key = (said.comparison_id, said.aspect_id, said.rater_id)
            newest[key] = max(newest[key], (review.pk, said.choice))
    for review in Review.objects.filter(comparison__evaluation=evaluation, state="final").exclude(
        selection_method="calibration"
    ):
        numbers = {(one.aspect_id, one.response_id): one.value for one in review.scores.filter(stage="final")}
        for aspect in {aspect for aspect, _ in numbers}:
            a = numbers[aspect, review.comparison.response_a_id]
            b = numbers[aspect, review.comparison.response_b_id]
            key = (review.comparison_id, aspect, review.rater_id)
            newest[key] = max(newest[key], (review.pk, "tie" if abs(a - b) <= 0.5 else "A" if a > b else "B"))
    for (one, aspect, _), (_, choice) in newest.items():
        votes[one, aspect].append(choice)
    rows = {}
    for subject, choices in votes.items():
        ranked = Counter(choices).most_common()
        if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
            rows[subject] = ("", "split", len(choices), False)
        else:
            source = "single" if len(choices) == 1 else "majority"
            rows[subject] = (ranked[0][0], source, len(choices), len(ranked) == 1)
    for settled in Adjudication.objects.filter(comparison__evaluation=evaluation):
        subject = (settled.comparison_id, settled.aspect_id)
        choices = votes[subject]
        rows[subject] = (settled.choice, "adjudicated", len(choices), len(set(choices)) < 2)
    return rows


def scores_from_1_to_5(evaluation: Evaluation) -> RubricVersion:
    """Two aspects, each a tie within a half."""
    asked = tuple(
        AspectSpec(key, key.title(), "", scale_min=1, scale_max=5, scale_step=0.5, tie_margin=0.5)
        for key in ("clarity", "depth")
    )
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", asked, ("clarity", "depth"))
    return add_rubric(evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)


class Story:
    """Two comparisons, two people, an adjudicator, and files: everything that can change a label."""

    def __init__(self, pointwise: bool) -> None:
        self.evaluation = make_evaluation()
        self.pointwise = pointwise
        import_rows(self.evaluation, comparison_row("q1"), comparison_row("q2"))
        self.comparisons = list(Comparison.objects.filter(evaluation=self.evaluation).order_by("pk"))
        self.people = [make_member(self.evaluation, Role.REVIEWER) for _ in range(2)]
        self.ada = make_member(self.evaluation, Role.ADJUDICATOR)
        self.files = 0
        judge = make_judge_verdicts(self.comparisons[0], as_stored=ALL_A, swapped=ALL_A).judge
        self.evaluation.shown_judge = judge
        if pointwise:
            self.evaluation.review_rubric = scores_from_1_to_5(self.evaluation)
        self.evaluation.save()

    def step(self, what: str, which: int, who: int, choice: Choice) -> None:
        steps: dict[str, Callable[[Comparison, User, Choice], None]] = {
            "save": self.save,
            "undo": self.undo,
            "look again": self.look_again,
            "change the rubric": self.change_rubric,
            "calibrate": self.calibrate,
            "adjudicate": self.adjudicate,
            "withdraw": self.withdraw,
            "import": self.bring,
            "cancelled import": self.cancel,
        }
        with suppress(InputRefused):  # what the product refuses changes nothing: the recount shows it
            steps[what](Comparison.objects.get(pk=self.comparisons[which].pk), self.people[who], choice)

    def save(self, one: Comparison, user: User, choice: Choice) -> None:
        choices: Answers = {Choice.A: ALL_A, Choice.B: ALL_B, Choice.TIE: ALL_TIE}[choice]
        if self.pointwise:
            scores = {Choice.A: ScorePair(4, 2), Choice.B: ScorePair(2, 5), Choice.TIE: ScorePair(3, 3.5)}[choice]
            choices = {"clarity": scores, "depth": ScorePair(scores.right, scores.left)}
        review = self.review_of(one, user)
        version = review.version if review else 0
        if review is not None and review.state == ReviewState.FIRST:
            save_final_choices(user, one, choices=choices, notes={}, version=version)
        else:
            save_first_choices(user, one, choices=choices, version=version)

    def undo(self, one: Comparison, user: User, _: Choice) -> None:
        if review := self.review_of(one, user):
            undo_last_step(user, review, version=review.version)

    def look_again(self, one: Comparison, user: User, _: Choice) -> None:
        """The judge answers what it had not, and the person confirms in sight of it."""
        if not self.pointwise and not one.calls.exists():
            make_judge_verdicts(one, as_stored=ALL_A, swapped=ALL_A)
        if review := self.review_of(one, user):
            reopen_for_judge(user, review, version=review.version)

    def change_rubric(self, _: Comparison, __: User, ___: Choice) -> None:
        make_next_rubric_version(self.evaluation)

    def calibrate(self, one: Comparison, user: User, _: Choice) -> None:
        """It was a calibration all along: as if it had been picked so before its first save."""
        if (review := self.review_of(one, user)) and review.state == ReviewState.DRAFT:
            Review.objects.filter(pk=review.pk).update(selection_method=SelectionMethod.CALIBRATION)

    def adjudicate(self, one: Comparison, _: User, choice: Choice) -> None:
        aspect = get_or_make_aspect(self.evaluation, "clarity")
        standing = Adjudication.objects.filter(comparison=one, aspect=aspect).first()
        version = standing.version if standing else 0
        resolve_aspect(one, aspect, choice=choice, reason="Because.", version=version, user=self.ada)

    def withdraw(self, one: Comparison, _: User, __: Choice) -> None:
        if standing := Adjudication.objects.filter(comparison=one).first():
            withdraw_resolution(standing, version=standing.version, user=self.ada)

    def bring(self, one: Comparison, user: User, choice: Choice) -> None:
        importing = self.file(one, user, choice)
        continue_import(importing)
        work_all("count_labels")

    def cancel(self, one: Comparison, user: User, choice: Choice) -> None:
        """Stored, but cancelled before its last step."""
        importing = self.file(one, user, choice)
        continue_import(importing, seconds=0)
        assert Verdict.all_rows.filter(source_import=importing).exists()
        discard_import(importing, user=None)
        clean_up_import(importing)
        work_all("count_labels")

    def file(self, one: Comparison, user: User, choice: Choice) -> Import:
        self.files += 1
        rows = encode_jsonl(
            [verdict_row(one.query.key, rater=f"imported {self.files}", aspect="clarity", choice=choice)]
        )
        importing = preview_file(self.evaluation, io.BytesIO(rows), "f.jsonl", ImportRequest(), user=None)
        start_storing(importing, skip_bad=False, user=None)
        return importing

    def review_of(self, one: Comparison, user: User) -> Review | None:
        asked = self.evaluation.review_rubric
        return Review.objects.filter(comparison=one, rater__user=user, rubric_version=asked).first()


STEPS = st.tuples(
    st.sampled_from(
        [
            "save",
            "save",
            "save",
            "undo",
            "look again",
            "change the rubric",
            "calibrate",
            "adjudicate",
            "withdraw",
            "import",
            "cancelled import",
        ]
    ),
    st.sampled_from([0, 0, 1]),
    st.sampled_from([0, 0, 1]),
    st.sampled_from([A, B, TIE]),
)


class TestAfterAnything(TestCase):
    @settings(max_examples=30)
    @given(st.booleans(), st.lists(STEPS, min_size=4, max_size=12))
    def test_the_kept_rows_equal_a_recount(self, pointwise: bool, steps: list[Any]) -> None:
        story = Story(pointwise)
        for step in steps:
            story.step(*step)
            assert kept() == counted_by_hand(story.evaluation), step
        recounted = compute_label_rows([one.pk for one in story.comparisons])
        assert {subject: tuple(row) for subject, row in recounted.items()} == kept()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_vote_at_once_the_second_sees_both_votes(evaluation: Evaluation) -> None:
    """Eight people vote on one comparison in the same moment: the row that is left counts all eight."""
    one = make_comparison(evaluation)
    people = [make_human(evaluation) for _ in range(8)]
    get_or_make_aspect(evaluation, "clarity")
    ready = threading.Barrier(len(people))

    def vote(rater: Rater) -> None:
        ready.wait()
        try:
            with transaction.atomic():
                make_review(rater, one, {"clarity": A})
                update_labels([one.pk])
        finally:
            connection.close()

    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(vote, people))
    assert label_of(one) == ("A", "majority", 8, True)


def test_a_vote_that_is_taken_back_takes_its_label_with_it() -> None:
    for pointwise in (False, True):
        story = Story(pointwise)
        for step in (("save", 1, 0, A), ("save", 1, 1, B), ("undo", 1, 0, A)):
            story.step(*step)
        label = label_of(story.comparisons[1])  # what is on the left, and so A or B, was drawn
        assert label is not None
        assert label[1:] == ("single", 1, True)
        story.step("undo", 1, 1, A)
        assert label_of(story.comparisons[1]) is None


# ---- imports ----------------------------------------------------------------------------------


def bring_votes(evaluation: Evaluation, comparisons: int) -> Import:
    import_rows(evaluation, *(comparison_row(f"q{number}") for number in range(comparisons)))
    return import_rows(evaluation, *(verdict_row(f"q{number}", aspect="clarity") for number in range(comparisons)))


def test_the_votes_of_an_import_are_counted_in_pieces_where_the_last_one_stopped(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_updates, "get_comparisons_per_batch", lambda _: 2)
    importing = bring_votes(evaluation, 5)
    assert kept() == {}
    assert work_once("count_labels", importing.pk, seconds=0)
    assert len(kept()) == 2
    kill_worker_at("count_labels", importing.pk)
    assert are_votes_left(evaluation)
    assert work_once("count_labels", importing.pk, seconds=0)
    assert not work_once("count_labels", importing.pk, seconds=0)
    assert kept() == counted_by_hand(evaluation)
    assert job_about("count_labels", importing.pk).state == JobState.DONE


def test_the_sweep_tells_workers_of_votes_that_are_not_counted(
    evaluation: Evaluation, nudges: Nudges, django_capture_on_commit_callbacks: Any
) -> None:
    imports = (
        import_rows(evaluation, comparison_row("q1")),
        import_rows(evaluation, verdict_row("q1", aspect="clarity")),
    )
    with django_capture_on_commit_callbacks(execute=True):
        sweep()
    assert {job_about("count_labels", one.pk).pk for one in imports} <= set(nudged_jobs(nudges))
    work_all("count_labels")
    assert label_of(Comparison.objects.get()) == ("A", "single", 1, True)
    assert not are_votes_left(evaluation)


def test_an_import_that_is_not_done_leaves_no_label(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation)
    make_imported_votes(one, "ann", {"clarity": B})
    for state in (ImportState.STORING, ImportState.FAILED, ImportState.CANCELLED):
        Import.objects.update(state=ImportState.DONE)
        recount_labels_later([Import.objects.get().pk])
        Import.objects.update(state=state)
        work_all("count_labels")
    assert kept() == {}


def test_gold_that_was_imported_makes_no_label(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("q1"))
    import_rows(evaluation, verdict_row("q1", aspect="clarity", rater_kind="gold"))
    work_all("count_labels")
    assert kept() == {}
