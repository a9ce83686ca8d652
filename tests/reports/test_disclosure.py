"""Whoever reads a report on few comparisons has seen what others chose on each of them."""

from collections.abc import Sequence

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.reports import ReportPart
from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.selection import SMALL_REPORT_COMPARISONS
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.visibility import has_seen_verdicts
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_verdicts, make_review
from tests.helpers.browser_client import sign_in_client

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PARTS = [part.value for part in ReportPart if part is not ReportPart.AGREEMENT]


def reviewed(evaluation: Evaluation, number: int, category: str = "math") -> list[Comparison]:
    """So many comparisons, on each of which two people chose B."""
    made = [make_comparison(evaluation, category=category) for _ in range(number)]
    for comparison in made:
        for _ in range(2):
            make_review(make_human(evaluation), comparison, ALL_B)
    return made


def look(user: User, part: str = "", *, status: int = 200, **filters: str) -> None:
    address = (
        reverse("report_part", args=["study", part]) if part else reverse("report_part", args=["study", "agreement"])
    )
    assert sign_in_client(user).get(address, filters).status_code == status


def noted(user: User) -> list[int]:
    events = Event.objects.filter(verb=SAW_VERDICTS, user=user).order_by("pk")
    return [event.object_id or 0 for event in events]


def ids(comparisons: Sequence[Comparison]) -> list[int]:
    return [comparison.pk for comparison in comparisons]


def save(client: Client, comparison: Comparison, choice: str, version: int = 0) -> None:
    choices = {f"choice_{aspect}": choice for aspect in ALL_A}
    client.post(reverse("review_save", args=["study", comparison.pk]), {**choices, "version": version, "active_ms": 0})


def test_who_saved_read_the_report_and_undoes_keeps_what_they_chose_blind(
    evaluation: Evaluation, reviewer: User
) -> None:
    (comparison,) = reviewed(evaluation, 1)
    client = sign_in_client(reviewer)
    save(client, comparison, "tie")
    look(reviewer)
    version = Review.objects.get(rater__user=reviewer).version
    client.post(reverse("review_undo", args=["study", comparison.pk]), {"version": version})
    review = Review.objects.get(rater__user=reviewer)
    assert (review.state, review.blind) == ("first", True)
    save(client, comparison, "B", review.version)
    assert set(review.verdicts.filter(stage="first").values_list("choice", flat=True)) == {"tie"}


@pytest.mark.parametrize("looks", [True, False])
def test_a_review_after_a_report_on_its_comparison_alone_is_not_blind(
    evaluation: Evaluation, manager: User, looks: bool
) -> None:
    (comparison,) = reviewed(evaluation, 1, "one")
    reviewed(evaluation, SMALL_REPORT_COMPARISONS)
    if looks:
        look(manager, "wins", category="one")
    assert has_seen_verdicts(manager, comparison) is looks
    save(sign_in_client(manager), comparison, "B")
    assert Review.objects.get(rater__user=manager).blind is not looks


def test_a_report_on_few_is_noted_once_for_each_and_one_on_more_for_none(evaluation: Evaluation, manager: User) -> None:
    few = reviewed(evaluation, SMALL_REPORT_COMPARISONS)
    reviewed(evaluation, SMALL_REPORT_COMPARISONS + 1, "chess")
    look(manager)
    look(manager, category="chess")
    assert noted(manager) == []
    for _ in range(2):
        look(manager, category="math")
    assert noted(manager) == ids(few)


def test_candidates_narrow_it_like_categories(evaluation: Evaluation, manager: User) -> None:
    odd = make_comparison(evaluation, candidates=("alpha", "gamma"))
    make_review(make_human(evaluation), odd, ALL_B)
    reviewed(evaluation, SMALL_REPORT_COMPARISONS)
    look(manager, candidate_1="gamma")
    assert noted(manager) == [odd.pk]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_counts_as_looking(evaluation: Evaluation, manager: User, part: str) -> None:
    few = reviewed(evaluation, 2)
    look(manager, part)
    assert noted(manager) == ids(few)


def test_the_files_of_its_plots_count_as_looking(evaluation: Evaluation, manager: User) -> None:
    few = reviewed(evaluation, 2)
    address = reverse("report_plot", args=["study", "people-reviewers"])
    assert sign_in_client(manager).get(address, {"as": "csv"}).status_code == 200
    assert noted(manager) == ids(few)


def test_asking_for_the_head_alone_counts_as_on_other_pages(evaluation: Evaluation, manager: User) -> None:
    few = reviewed(evaluation, 1)
    assert sign_in_client(manager).head(reverse("report_part", args=["study", "agreement"])).status_code == 200
    assert noted(manager) == ids(few)


def test_a_report_that_is_refused_was_not_seen(evaluation: Evaluation, manager: User) -> None:
    reviewed(evaluation, 1)
    look(manager, status=422, category="nowhere")
    look(manager, status=422, candidate_1="alpha", candidate_2="alpha")
    assert noted(manager) == []


def test_a_viewer_who_cannot_review_is_not_put_on_record(evaluation: Evaluation) -> None:
    reviewed(evaluation, 1)
    viewer = make_member(evaluation, Role.VIEWER)
    look(viewer)
    assert noted(viewer) == []


def test_a_reviewers_report_is_on_what_they_have_reviewed(evaluation: Evaluation, reviewer: User) -> None:
    """However many there are that they may not see."""
    mine, *_ = reviewed(evaluation, SMALL_REPORT_COMPARISONS + 5)
    look(reviewer)
    assert noted(reviewer) == []
    save(sign_in_client(reviewer), mine, "A")
    look(reviewer)
    assert noted(reviewer) == [mine.pk]


def test_where_judges_are_never_shown_their_choices_were_not_seen(evaluation: Evaluation, reviewer: User) -> None:
    Evaluation.objects.update(reveal=Reveal.NEVER)
    comparison = make_comparison(evaluation)
    make_judge_verdicts(comparison, as_stored=ALL_A)
    save(sign_in_client(reviewer), comparison, "A")
    look(reviewer)
    assert noted(reviewer) == []


def test_what_it_costs_does_not_grow_with_the_study(evaluation: Evaluation, manager: User) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            look(manager)
        return len(queries)

    reviewed(evaluation, SMALL_REPORT_COMPARISONS + 1)
    few = cost()
    reviewed(evaluation, 20)
    assert cost() == few


@pytest.mark.parametrize(
    ("number", "is_told"), [(SMALL_REPORT_COMPARISONS, True), (SMALL_REPORT_COMPARISONS + 1, False)]
)
def test_who_may_review_and_sees_all_is_told_so(
    evaluation: Evaluation, manager: User, number: int, is_told: bool
) -> None:
    reviewed(evaluation, number)
    page = sign_in_client(manager).get(reverse("report_part", args=["study", "agreement"]))
    assert ("reveals what others chose" in page.content.decode()) == is_told
    viewer = make_member(evaluation, Role.VIEWER)
    page = sign_in_client(viewer).get(reverse("report_part", args=["study", "agreement"]))
    assert "reveals what others chose" not in page.content.decode()
