"""How reviewing is organised: the default queue, queues, and comparisons that are given to people by name."""

import re
from dataclasses import replace
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.reviews import AssignmentState, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.queues import Assignment, Queue
from evaluations.models.users import User
from evaluations.reviews.services import save_first_choices
from evaluations.rubrics.services import create_next_version
from tests.factories.evaluations import make_comparison, make_member, make_user
from tests.factories.queue_state import take_next_comparison
from tests.factories.verdicts import ALL_A
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in")]


@pytest.fixture
def filled(evaluation: Evaluation) -> Evaluation:
    for number in range(12):
        make_comparison(evaluation, query=f"Question {number}", category="facts" if number % 3 else "poems")
    return evaluation


def page(client: Client, name: str, *args: object, **query: object) -> str:
    answer = client.get(reverse(name, args=["study", *args], query=query))
    assert answer.status_code == 200, html_of(answer)
    return html_of(answer)


def form(**changed: object) -> dict[str, object]:
    given = {
        "name": "First look",
        "strategy": SelectionMethod.RANDOM,
        "size": 5,
        "random_percent": 20,
        "reviews_wanted": 2,
        "who": "everyone",
        "seed": 3,
    }
    return {**given, **changed}


def make(client: Client, **changed: object) -> Queue:
    answer = client.post(reverse("queue_new", args=["study"]), form(**changed))
    assert answer.status_code == 302, re.findall(r'class="(?:notice )?error"[^>]*>([^<]*)', html_of(answer))
    return Queue.objects.latest("pk")


# ---- the list


def test_without_queues_the_page_says_that_none_are_needed(client: Client, filled: Evaluation) -> None:
    text = page(client, "queues")
    assert "No queues yet (optional)" in text
    assert "unbiased" in text
    assert "0 of 12" in text


def test_an_empty_evaluation_is_led_to_the_import(client: Client, evaluation: Evaluation) -> None:
    assert reverse("import_new", args=["study"]) in page(client, "queues")


def test_every_queue_stands_with_its_order_of_work_and_how_far_it_is(client: Client, filled: Evaluation) -> None:
    make(client)
    text = page(client, "queues")
    assert "First look" in text
    assert "random" in text
    assert "0 of 10" in text


def test_the_lists_queries_do_not_grow_with_the_queues(client: Client, filled: Evaluation) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as context:
            page(client, "queues")
        return len(context)

    make(client, size=1)
    few = queries()
    for number in range(4):
        make(client, name=f"Another {number}", size=1)
    assert queries() == few


@pytest.mark.parametrize("name", ["queues", "queue_new", "calibration_new"])
def test_reviewers_do_not_learn_which_order_of_work_they_are_in(client: Client, filled: Evaluation, name: str) -> None:
    client.force_login(make_member(filled, Role.REVIEWER))
    assert client.get(reverse(name, args=["study"])).status_code == 403


# ---- a new queue


def test_a_queue_is_made_as_it_was_asked_for(client: Client, owner: User, filled: Evaluation) -> None:
    made = make(client)
    assert (made.name, made.kind, made.strategy, made.assigned_only) == ("First look", "review", "random", False)
    assert (made.reviews_wanted, made.seed, made.slots.count(), made.user) == (2, 3, 5, owner)
    assert Event.objects.filter(object_type="queue", object_id=made.pk, user=owner).exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "This field is required"),
        ({"size": 0}, "greater than or equal to 1"),
        ({"random_percent": 101}, "less than or equal to 100"),
        ({"strategy": "longest"}, "not one of the available choices"),
        ({"who": "split"}, "Select at least one reviewer"),
        ({"strategy": "stratified", "strata": ""}, "Choose groups"),
        ({"who": "each", "people": [0]}, "is not a reviewer here"),
        ({"strategy": "flips", "random_percent": 0}, "No matching comparisons"),
        ({"who": "split", "people": "all", "reviews_wanted": 3}, "need at least 3 reviewers"),
    ],
)
def test_what_cannot_be_made_comes_back_with_the_reason(
    client: Client, filled: Evaluation, changed: dict[str, object], words: str
) -> None:
    if changed.get("people") == "all":
        changed = {**changed, "people": [make_member(filled, Role.REVIEWER).pk]}
    answer = client.post(reverse("queue_new", args=["study"]), form(**changed))
    assert answer.status_code == 422
    said = " ".join(re.findall(r'class="(?:notice )?error"[^>]*>([^<]*)', html_of(answer)))
    assert words in said
    assert not Queue.objects.exists()


def test_a_name_is_taken_once(client: Client, filled: Evaluation) -> None:
    make(client)
    assert client.post(reverse("queue_new", args=["study"]), form()).status_code == 422


def test_the_preview_says_what_a_queue_would_hold_and_makes_nothing(client: Client, filled: Evaluation) -> None:
    address = reverse("queue_new", args=["study"], query=form(size=7))
    whole = html_of(client.get(address))
    part = html_of(client.get(address, headers={"HX-Request": "true"}))
    for text in (whole, part):
        assert "7 comparisons" in text
    assert "<form" not in part
    everything = reverse("queue_new", args=["study"], query=form(size=""))
    assert "12 comparisons" in html_of(client.get(everything))
    assert not Queue.objects.exists()


def test_people_by_name_share_a_queue_or_each_do_all_of_it(client: Client, filled: Evaluation) -> None:
    people = [make_member(filled, Role.REVIEWER, name) for name in ("ann", "ben")]
    chosen = [person.pk for person in people]
    shared = make(client, who="split", people=chosen, reviews_wanted=1, size=6)
    each = make(client, name="All of it", who="each", people=chosen, size=6)

    def count_assigned(made: Queue) -> list[int]:
        named = Assignment.objects.filter(slot__queue=made, state=AssignmentState.ASSIGNED)
        return [named.filter(rater__user=person).count() for person in people]

    assert count_assigned(shared) == [3, 3]
    assert sum(count_assigned(each)) >= 6
    assert shared.assigned_only


# ---- one queue


def test_it_shows_how_each_comparison_was_selected_and_for_whom_it_waits(client: Client, filled: Evaluation) -> None:
    ann = make_member(filled, Role.REVIEWER, "ann")
    made = make(client, who="split", people=[ann.pk], reviews_wanted=1)
    text = page(client, "queue", made.pk)
    assert text.count("waiting for ann") == 5
    assert "Random sample" in text
    assert "0 of 5 reviews" in text


def test_a_review_counts_for_its_queue(client: Client, filled: Evaluation) -> None:
    ann = make_member(filled, Role.REVIEWER, "ann")
    made = make(client, who="split", people=[ann.pk], reviews_wanted=1)
    assignment = Assignment.objects.filter(slot__queue=made)[0]
    Assignment.objects.filter(pk=assignment.pk).update(state=AssignmentState.DONE)
    assert "1 of 5 reviews" in page(client, "queue", made.pk)


def test_its_comparisons_are_paged_and_its_queries_do_not_grow(client: Client, evaluation: Evaluation) -> None:
    for number in range(60):
        make_comparison(evaluation, query=f"Question {number}")

    def queries(made: Queue) -> int:
        with CaptureQueriesContext(connection) as context:
            page(client, "queue", made.pk)
        return len(context)

    few, many = make(client, size=3), make(client, name="Larger", size=55)
    page(client, "queue", few.pk)
    assert queries(many) - queries(few) <= 1  # several pages are counted
    following = re.search(r'rel="next" href="\?([^"]+)"', page(client, "queue", many.pk))
    assert following
    second = html_of(client.get(f"{reverse('queue', args=['study', many.pk])}?{following[1]}"))
    assert re.findall(r'data-label="#">(\d+)<', second) == ["51", "52", "53", "54", "55"]


def test_it_is_archived_and_restored_and_both_are_recorded(client: Client, filled: Evaluation) -> None:
    made = make(client)
    client.post(reverse("queue_archive", args=["study", made.pk]))
    made.refresh_from_db()
    assert made.closed_at is not None
    assert "Reviewers no longer get it" in page(client, "queue", made.pk)
    address = reverse("queue", args=["study", made.pk])
    assert address not in (listed := page(client, "queues"))
    assert "Show archived queues" in listed
    assert "All queues are archived" in listed
    listed = page(client, "queues", archived="")
    assert address in listed
    assert "Default queue" not in listed
    client.post(reverse("queue_restore", args=["study", made.pk]))
    made.refresh_from_db()
    assert made.closed_at is None
    verbs = list(
        Event.objects.filter(object_type="queue", object_id=made.pk).order_by("pk").values_list("verb", flat=True)
    )
    assert verbs == ["created queue", "archived", "restored"]
    assert address in (listed := page(client, "queues"))
    assert "archived" not in listed


def ask_by_another_version(evaluation: Evaluation) -> None:
    evaluation.refresh_from_db()
    version = evaluation.review_rubric
    assert version is not None
    create_next_version(version.rubric, replace(version.spec(), instructions="Choose."), user=None, for_reviews=True)


def test_with_another_version_of_the_rubric_a_queue_is_over(client: Client, filled: Evaluation) -> None:
    ann = make_member(filled, Role.REVIEWER, "ann")
    made = make(client)
    assert ">open<" in page(client, "queues")
    ask_by_another_version(filled)
    text = page(client, "queues")
    assert ">open<" not in text
    assert ">outdated<" in text
    text = page(client, "queue", made.pk)
    assert "it was created for version 1 of" in text
    assert reverse("queue_assign", args=["study", made.pk]) not in text
    for name, given in (("queue_assign", {"people": [ann.pk]}), ("queue_archive", {}), ("queue_restore", {})):
        said = html_of(client.post(reverse(name, args=["study", made.pk]), given, follow=True))
        assert ("was created for another rubric version" in said) == (name == "queue_assign")
    assert ">outdated<" in page(client, "queues")


def test_a_queue_without_reviews_is_deleted_from_its_page(client: Client, filled: Evaluation) -> None:
    made = make(client)
    assert "Delete</button>" in page(client, "queue", made.pk)
    answer = html_of(client.post(reverse("queue_delete", args=["study", made.pk]), follow=True))
    assert "“First look” deleted." in answer
    assert "No queues yet" in answer
    event = Event.objects.get(object_type="queue", verb="deleted")
    assert (event.object_id, event.before) == (made.pk, {"name": "First look"})


def test_a_queue_with_a_review_is_not_deleted(client: Client, filled: Evaluation, owner: User) -> None:
    made = make(client)
    comparison = take_next_comparison(owner, filled)
    assert comparison is not None
    save_first_choices(owner, Comparison.objects.get(pk=comparison), choices=ALL_A, version=0)
    assert "Delete</button>" not in page(client, "queue", made.pk)
    answer = html_of(client.post(reverse("queue_delete", args=["study", made.pk]), follow=True))
    assert "“First look” has reviews. Archive it instead." in answer
    assert Queue.objects.filter(pk=made.pk).exists()


@pytest.mark.parametrize("name", ["evaluation_settings", "rubric_next"])
def test_what_another_rubric_would_end_is_said_before(client: Client, filled: Evaluation, name: str) -> None:
    rubric = filled.review_rubric
    assert rubric is not None
    where = [rubric.rubric_id] if name == "rubric_next" else []
    assert "Changing the rubric closes" not in page(client, name, *where)
    ann = make_member(filled, Role.REVIEWER, "ann")
    make(client)
    make(client, name="Ann’s", who="split", people=[ann.pk], reviews_wanted=1, size=3)
    text = " ".join(page(client, name, *where).split())
    assert "closes 2 open queues (First look, Ann’s) and 3 assigned comparisons." in text
    ask_by_another_version(filled)
    assert "Changing the rubric closes" not in page(client, name, *where)


@pytest.mark.parametrize("name", ["queue_assign", "queue_archive", "queue_restore", "queue_delete"])
def test_only_owners_and_managers_change_a_queue(client: Client, filled: Evaluation, name: str) -> None:
    made = make(client)
    client.force_login(make_member(filled, Role.ADJUDICATOR))
    assert client.get(reverse("queue", args=["study", made.pk])).status_code == 200
    assert client.post(reverse(name, args=["study", made.pk])).status_code == 403


def test_people_are_given_a_queue_afterwards(client: Client, filled: Evaluation) -> None:
    made = make(client, reviews_wanted=1)
    ann = make_member(filled, Role.REVIEWER, "ann")
    client.post(reverse("queue_assign", args=["study", made.pk]), {"people": [ann.pk]})
    assert Assignment.objects.filter(rater__user=ann, state=AssignmentState.ASSIGNED).count() == 5


def test_whom_it_is_given_to_must_be_said_and_must_review_here(client: Client, filled: Evaluation) -> None:
    made = make(client)
    address = reverse("queue_assign", args=["study", made.pk])
    assert "Select at least one reviewer" in html_of(client.post(address, follow=True))
    stranger = make_user("stranger")
    assert "is not a reviewer here" in html_of(client.post(address, {"people": [stranger.pk]}, follow=True))


# ---- from the list of comparisons


def test_comparisons_are_given_by_name_from_their_list(client: Client, filled: Evaluation) -> None:
    ann = make_member(filled, Role.REVIEWER, "ann")
    chosen = list(filled.comparisons.order_by("pk").values_list("pk", flat=True)[:2])
    address = reverse("comparisons_bulk_action", args=["study"])
    client.post(address, {"comparison": chosen, "people": [ann.pk], "act": "assign"})
    named = Assignment.objects.filter(rater__user=ann, state=AssignmentState.ASSIGNED)
    assert set(named.values_list("item__comparison", flat=True)) == set(chosen)
    assert "Select at least one comparison" in html_of(
        client.post(address, {"people": [ann.pk], "act": "assign"}, follow=True)
    )
    assert "Select at least one reviewer" in html_of(
        client.post(address, {"comparison": chosen, "act": "assign"}, follow=True)
    )


def test_who_was_given_nothing_is_said_with_the_reason(client: Client, filled: Evaluation) -> None:
    ann = make_member(filled, Role.REVIEWER, "ann")
    one, two = filled.comparisons.order_by("pk")[:2]
    address = reverse("comparisons_bulk_action", args=["study"])

    def give(*chosen: Comparison) -> str:
        given = {"comparison": [each.pk for each in chosen], "people": [ann.pk], "act": "assign"}
        return html_of(client.post(address, given, follow=True))

    assert "1 comparison assigned to ann" in give(one)
    assert "Nothing assigned: ann has already been assigned these." in give(one)
    save_first_choices(ann, one, choices=ALL_A, version=0)
    assert "Nothing assigned: ann has already reviewed these." in give(one)
    assert "Skipped 1 that they already reviewed." in give(one, two)
    assert "ann has already reviewed these or been assigned them." in give(one, two)


def test_giving_leads_back_to_the_same_part_of_the_list(client: Client, filled: Evaluation) -> None:
    ann = make_member(filled, Role.REVIEWER, "ann")
    (address,) = re.findall(r'action="([^"]*/bulk[^"]*)"', page(client, "comparisons", category="facts", q="Question"))
    chosen = filled.comparisons.values_list("pk", flat=True)[:1]
    given = client.post(unescape(address), {"comparison": chosen, "people": [ann.pk], "act": "assign"})
    assert given.headers["Location"] == reverse(
        "comparisons", args=["study"], query={"category": "facts", "q": "Question"}
    )
    refused = client.post(unescape(address), {"people": [ann.pk], "act": "assign"})
    assert refused.headers["Location"] == given.headers["Location"]


def test_only_managers_find_the_boxes(client: Client, filled: Evaluation) -> None:
    assert 'name="comparison"' in page(client, "comparisons")
    client.force_login(make_member(filled, Role.REVIEWER))
    assert 'name="comparison"' not in page(client, "comparisons")
