"""Labels from imported scores: whoever scored both responses has a vote, whichever of them came first."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from evaluations.comparisons.manual_comparisons import ManualComparison, add_comparison
from evaluations.domain.jobs import JobState
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.verdicts import Label, Score
from evaluations.verdicts import label_updates
from evaluations.verdicts.label_updates import are_votes_left, find_score_imports, recount_labels_later
from evaluations.verdicts.votes import update_labels
from tests.factories.imports import comparison_row, import_rows, score_row, verdict_row
from tests.helpers.job_work import job_about, work_all, work_once

pytestmark = pytest.mark.django_db
NAMES = ("alpha", "beta", "gamma")


def responses(*keys: str, names: tuple[str, ...] = NAMES) -> list[dict[str, Any]]:
    return [{"query_id": key, "query": key, "candidate": name, "response": name} for key in keys for name in names]


def settled(importing: Import) -> None:
    """Count what came with it, and whatever it made count anew, as a worker does."""
    work_all("count_labels")


def labels() -> dict[tuple[str, str, str], tuple[str, str, int]]:
    columns = ("comparison__response_a__candidate__name", "comparison__response_b__candidate__name", "aspect__key")
    rows = Label.objects.values_list(*columns, "choice", "source", "votes")
    return {(a, b, aspect): (choice, source, votes) for a, b, aspect, choice, source, votes in rows}


def test_two_scores_of_a_person_are_a_vote(evaluation: Evaluation) -> None:
    import_rows(evaluation, *responses("q1"))
    rows = [score_row(candidate=name, value=value) for name, value in zip(NAMES, (3, 1, 1), strict=True)]
    settled(import_rows(evaluation, *rows, score_row(candidate="alpha", value=1, rater="bob")))
    assert labels() == {
        ("alpha", "beta", "overall"): ("A", "single", 1),
        ("alpha", "gamma", "overall"): ("A", "single", 1),
        ("beta", "gamma", "overall"): ("tie", "single", 1),
    }
    settled(import_rows(evaluation, score_row(candidate="gamma", value=9, rater="bob")))
    assert labels()["alpha", "gamma", "overall"] == ("", "split", 2)
    settled(import_rows(evaluation, verdict_row(rater="carl", choice="tie"), verdict_row(rater="dora", choice="tie")))
    assert labels()["alpha", "beta", "overall"] == ("tie", "majority", 3)


def test_judges_and_gold_have_no_vote(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    for kind in ("judge", "gold"):
        settled(import_rows(evaluation, *(score_row(candidate=name, rater="x", rater_kind=kind) for name in NAMES[:2])))
    assert labels() == {}


def test_a_comparison_that_is_made_of_scored_responses_later_is_labelled_too(evaluation: Evaluation) -> None:
    import_rows(evaluation, *responses("q1"), pair="baseline:gamma")
    rows = [score_row(candidate="alpha", value=1), score_row(candidate="beta", value=2)]
    settled(import_rows(evaluation, *rows, lower_is_better=True))
    assert labels() == {}
    settled(import_rows(evaluation, *responses("q1")))
    assert labels() == {("alpha", "beta", "overall"): ("A", "single", 1)}


def test_a_comparison_that_is_written_by_hand_is_labelled_too(evaluation: Evaluation) -> None:
    import_rows(evaluation, *responses("q1"), pair="baseline:gamma")
    settled(import_rows(evaluation, score_row(candidate="alpha", value=1), score_row(candidate="beta", value=2)))
    add_comparison(evaluation, ManualComparison("q1", "alpha", "alpha", "beta", "beta"), user=None)
    assert Comparison.objects.count() == 3
    work_all("count_labels")
    assert labels() == {("alpha", "beta", "overall"): ("B", "single", 1)}


def test_another_margin_changes_the_labels_of_the_scores_that_are_here(evaluation: Evaluation) -> None:
    import_rows(evaluation, *responses("q1", "q2"))
    first = [score_row(candidate="alpha", value=1), score_row(candidate="beta", value=3)]
    settled(import_rows(evaluation, *first))
    assert labels()["alpha", "beta", "overall"][0] == "B"
    other = [score_row("q2", "alpha", 1), score_row("q2", "gamma", 9)]
    settled(import_rows(evaluation, *other, derive_pairs=2))
    assert labels()["alpha", "beta", "overall"][0] == "tie"


def test_a_recount_that_is_called_for_while_another_goes_on_is_not_lost(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_rows(evaluation, comparison_row())
    importing = import_rows(evaluation, score_row(candidate="alpha", value=1), score_row(candidate="beta", value=3))
    done = update_labels

    def called_for_meanwhile(ids: Sequence[int]) -> None:
        done(ids)
        recount_labels_later(find_score_imports(Score.objects.all()))

    monkeypatch.setattr(label_updates, "update_labels", called_for_meanwhile)
    assert not work_once("count_labels", importing.pk)
    assert are_votes_left(evaluation)
    monkeypatch.undo()
    assert not work_once("count_labels", importing.pk)
    assert job_about("count_labels", importing.pk).state == JobState.DONE


@pytest.mark.parametrize("seed", range(3))
def test_the_labels_are_what_counting_by_hand_gives(evaluation: Evaluation, seed: int) -> None:
    rng = random.Random(seed)
    keys = ("q1", "q2", "q3")
    import_rows(evaluation, *responses(*keys), pair="baseline:beta")
    for rater in ("ann", "bob", "carl"):
        rows = [
            score_row(key, name, rng.randint(1, 4), rater=rater, sample=sample, aspect=aspect)
            for key in keys
            for name in NAMES
            for sample in (0, 1)
            for aspect in ("depth", "overall")
            if rng.random() < 0.7
        ]
        settled(import_rows(evaluation, *rows, derive_pairs=1, lower_is_better=True))
    votes: dict[tuple[int, str], Counter[str]] = {}
    for one in Comparison.objects.all():
        for mine in Score.objects.filter(response=one.response_a):
            about = {"aspect": mine.aspect, "rater": mine.rater, "sample": mine.sample}
            for other in Score.objects.filter(response=one.response_b, **about):
                choice = "tie" if abs(mine.value - other.value) <= 1 else "A" if mine.value < other.value else "B"
                votes.setdefault((one.pk, mine.aspect.key), Counter())[choice] += 1
    due = {}
    for subject, given in votes.items():
        (choice, most), *others = given.most_common()
        due[subject] = ("" if others and others[0][1] == most else choice, given.total())
    kept = Label.objects.values_list("comparison_id", "aspect__key", "choice", "votes")
    assert {(pk, aspect): (choice, n) for pk, aspect, choice, n in kept} == due
    assert Comparison.objects.count() == 9
