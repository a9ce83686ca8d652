"""The list of comparisons as a place of work: filters in the address, saved filters, tags, and who may do what."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.comparisons import selectors as comparisons_selectors
from evaluations.comparisons import services as comparisons_services
from evaluations.comparisons.selectors import find_comparisons
from evaluations.comparisons.services import create_saved_filter, tag_comparisons
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.roles import Role
from evaluations.models import comparison_filter
from evaluations.models.comparisons import Comparison, SavedFilter, Tag, TagChange, Tagging
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.queues import Queue
from tests.comparisons.test_list_page import page, shown
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, make_imported_votes, make_judge_verdicts, make_review
from tests.helpers.job_work import work_once
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_owner(client: Client, evaluation: Evaluation) -> Client:
    client.force_login(evaluation.memberships.get().user)
    return client


@pytest.fixture
def four(evaluation: Evaluation) -> list[Comparison]:
    made = [make_comparison(evaluation, category=name) for name in ("math", "math", "poems", "poems")]
    make_judge_verdicts(made[0], as_stored=ALL_A, swapped=ALL_A)
    make_review(make_human(evaluation, "ann"), made[1], ALL_A)
    tag_comparisons(evaluation, [made[2].pk], "hard", user=None)
    return made


def act(client: Client, query: dict[str, object] | None = None, **given: object) -> str:
    address = reverse("comparisons_bulk_action", args=["study"], query=query or {})
    return html_of(client.post(address, given, follow=True))


JUDGED: dict[str, object] = {"rater": "judge:longest", "aspect": "clarity", "choice": "A"}
EVERY_FILTER: list[tuple[dict[str, object], list[int]]] = [
    (JUDGED, [0]),
    ({"rater": "human:ann"}, [1]),
    ({"reviews": "saved"}, [1]),
    ({"reviews": "none", "category": "math"}, [0]),
    ({"tag": "hard"}, [2]),
    ({"candidate": "alpha", "against": "beta", "category": "poems"}, [2, 3]),
    ({"origin": "by_hand", "tag": "hard"}, [2]),
    ({"disagreement": "open"}, []),
    ({"q": "France", "category": "poems"}, [2, 3]),
]


@pytest.mark.parametrize(("query", "places"), EVERY_FILTER)
def test_every_filter_stands_in_the_address_and_costs_the_same_however_many_there_are(
    as_owner: Client, evaluation: Evaluation, four: list[Comparison], query: dict[str, object], places: list[int]
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(as_owner, **query)
        return len(captured)

    assert shown(page(as_owner, **query)) == [four[place].pk for place in places]
    few = queries()
    for _ in range(5):
        make_comparison(evaluation, category="math")
    assert queries() <= few


def test_pieces_change_nothing_in_either_direction(
    as_owner: Client, evaluation: Evaluation, four: list[Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_selectors, "FIRST_BLOCK", 1)
    monkeypatch.setattr(comparison_filter, "FEW_COMPARISONS", 0)  # else the two of them would be asked for at once
    wanted = [ComparisonFilter(category="poems")]
    forwards = find_comparisons(evaluation, wanted)
    backwards = find_comparisons(evaluation, wanted, after=four[3].pk + 1, backwards=True)
    assert forwards.ids == [four[2].pk, four[3].pk]
    assert backwards.ids == forwards.ids[::-1]
    assert find_comparisons(evaluation, wanted, size=1).continues_after == four[2].pk
    hurried = find_comparisons(evaluation, wanted, seconds=0)
    assert (hurried.is_whole, hurried.continues_after) == (False, four[0].pk)


def test_pages_lead_back(as_owner: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    pks = [make_comparison(evaluation).pk for _ in range(60)]
    assert ">Previous<" not in page(as_owner)
    assert ">Previous<" in page(as_owner, after=pks[49])
    assert shown(page(as_owner, before=pks[50])) == pks[:50]
    assert shown(page(as_owner, before=pks[55])) == pks[5:55]


def test_where_nothing_matches_it_says_which_filter_excludes(as_owner: Client, four: list[Comparison]) -> None:
    text = page(as_owner, category="math", tag="hard")
    assert "Remove one of these conditions" in text
    assert "category is “math”" in text


def test_whoever_filters_by_a_choice_has_seen_it(as_owner: Client, four: list[Comparison]) -> None:
    page(as_owner, tag="hard")
    assert not Event.objects.filter(verb=SAW_VERDICTS).exists()
    page(as_owner, **JUDGED)
    seen = set(Event.objects.filter(verb=SAW_VERDICTS).values_list("object_id", flat=True))
    assert seen == {four[0].pk, four[1].pk}  # of few, those left out are told apart, where somebody chose


@pytest.mark.parametrize(
    "query", [JUDGED, {"rater": "human:ann"}, {"reviews": "saved"}, {"tag": "hard"}, {"candidate": "alpha"}]
)
def test_a_reviewer_finds_out_nothing_by_filtering(
    client: Client, evaluation: Evaluation, four: list[Comparison], query: dict[str, object]
) -> None:
    create_saved_filter(evaluation, "judged", ComparisonFilter(reviews="saved"), user=None)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    everything = [one.pk for one in four]
    assert shown(page(client, **query)) == everything
    assert shown(page(client, saved_filter="judged")) == everything
    assert "hard" not in page(client)
    assert client.get(reverse("saved_filters", args=["study"])).status_code == 403
    assert act(client, act="tag", tag="x", comparison=[four[0].pk]).count("Your role does not let you")
    assert Tagging.objects.count() == 1


# ---- acting on them


def test_the_chosen_ones_are_tagged_and_it_is_undone(as_owner: Client, four: list[Comparison]) -> None:
    text = act(as_owner, act="tag", tag="odd", comparison=[four[0].pk, four[1].pk])
    assert "“odd” added to 2 comparisons" in text
    assert shown(page(as_owner, tag="odd")) == [four[0].pk, four[1].pk]
    step = TagChange.objects.latest("pk")
    as_owner.post(reverse("tag_undo", args=["study", step.pk]))
    assert "No matching comparisons" in page(as_owner, tag="odd")


@pytest.mark.parametrize(("act", "said"), [("tag", "up to 60 characters"), ("queue", "a name of 1 to 120 characters")])
def test_a_name_that_is_too_long_is_refused_in_words(
    as_owner: Client, four: list[Comparison], act: str, said: str
) -> None:
    sent = {"act": act, act: "y" * 121, "comparison": four[0].pk}
    assert said in html_of(as_owner.post(reverse("comparisons_bulk_action", args=["study"]), sent, follow=True))


def test_what_was_chosen_for_a_refused_act_is_still_chosen_once(
    as_owner: Client, evaluation: Evaluation, four: list[Comparison]
) -> None:
    ann = make_member(evaluation, Role.REVIEWER)
    ticked = f'value="{four[1].pk}" checked'
    refused = act(as_owner, act="tag", which="selected", comparison=[four[1].pk, "x"], queue="hard", people=ann.pk)
    assert "Enter a tag of up to" in refused
    assert refused.count(" checked aria-label=") == 1
    assert ticked in refused
    assert f'name="people" value="{ann.pk}" checked' in refused
    assert 'name="queue" value="hard"' in refused
    assert '<details class="card bulk-actions" id="act" open>' in refused
    again = html_of(as_owner.get(reverse("comparisons", args=["study"])))
    assert ticked not in again
    assert 'id="act" open' not in again


def test_all_that_match_are_counted_first(as_owner: Client, four: list[Comparison]) -> None:
    query: dict[str, object] = {"category": "math"}
    asked = act(as_owner, query, act="tag", tag="odd", which="all")
    assert "Add the tag “odd” to 2 comparisons?" in asked
    assert not Tag.objects.filter(name="odd").exists()
    assert "added to 2" in act(as_owner, query, act="tag", tag="odd", which="all", confirmed="on")


def test_very_many_are_left_to_the_worker(
    as_owner: Client, four: list[Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_services, "MAX_TAGGED_AT_ONCE", 1)
    query: dict[str, object] = {"category": "math"}
    assert "more than 1 comparison?" in act(as_owner, query, act="tag", tag="odd", which="all")
    act(as_owner, query, act="tag", tag="odd", which="all", confirmed="on")
    work_once("tag", TagChange.objects.latest("pk").pk)
    assert shown(page(as_owner, tag="odd")) == [four[0].pk, four[1].pk]
    assert "Narrow the filter" in act(as_owner, query, act="queue", queue="r", which="all")


def test_the_chosen_ones_become_a_queue(as_owner: Client, four: list[Comparison]) -> None:
    act(as_owner, act="queue", queue="First these", comparison=[four[3].pk, four[1].pk])
    made = Queue.objects.get(name="First these")
    assert set(made.slots.values_list("item__comparison", flat=True)) == {four[1].pk, four[3].pk}
    assert as_owner.get(reverse("queue", args=["study", made.pk])).status_code == 200


# ---- saved filters


def test_a_filter_is_saved_with_a_name_and_deleted_by_it(as_owner: Client, four: list[Comparison]) -> None:
    save = reverse("saved_filter_new", args=["study"], query={"category": "math"})
    as_owner.post(save, {"name": "numbers"})
    made = SavedFilter.objects.get()
    assert made.comparison_filter == ComparisonFilter(category="math")
    assert shown(page(as_owner, saved_filter="numbers")) == [four[0].pk, four[1].pk]
    as_owner.post(reverse("saved_filter_rename", args=["study", made.pk]), {"name": "sums"})
    assert "sums" in html_of(as_owner.get(reverse("saved_filters", args=["study"])))
    as_owner.post(reverse("saved_filter_delete", args=["study", made.pk]), {"name": "numbers"})
    assert SavedFilter.objects.exists()
    as_owner.post(reverse("saved_filter_delete", args=["study", made.pk]), {"name": "sums"})
    assert not SavedFilter.objects.exists()


def test_the_page_of_the_report_takes_a_slice(as_owner: Client, evaluation: Evaluation, four: list[Comparison]) -> None:
    make_imported_votes(four[0], "bob", ALL_A)
    create_saved_filter(evaluation, "numbers", ComparisonFilter(category="math"), user=None)
    text = html_of(as_owner.get(reverse("report_part", args=["study", "agreement"], query={"saved_filter": "numbers"})))
    assert "Only comparisons of the saved filter “numbers”: category is “math”." in text


def test_what_a_search_found_is_marked_and_nothing_in_it_is_html(as_owner: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation, response_a="<script>alert(1)</script> and a needle & more")
    text = page(as_owner, q="needle")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; and a </span>" in text or "<mark>needle</mark> &amp; more" in text
    assert "<script>alert" not in text
