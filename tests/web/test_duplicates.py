"""What is there twice: counted before it is stored, listed, put together, and looked for elsewhere."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluations.domain import Role
from evaluations.models import Evaluation, Query
from evaluations.services.importing import likening, previewing
from tests.importing import bring, check, comparison, jsonl
from tests.making import make_evaluation, make_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation()


@pytest.fixture
def manager(client: Client, evaluation: Evaluation) -> Client:
    client.force_login(make_member(evaluation, Role.MANAGER))
    return client


def shown(client: Client, evaluation: Evaluation) -> str:
    return " ".join(client.get(reverse("duplicates", args=[evaluation.slug])).content.decode().split())


def test_an_import_counts_queries_that_are_here_under_another_id(evaluation: Evaluation) -> None:
    bring(evaluation, comparison("q1", query="Why is the sky blue?"))
    rows = [comparison("q2", query="why is  the sky BLUE"), comparison("q3", query="Who?"), comparison("q1")]
    told = check(evaluation, jsonl(rows)).summary["warnings"]
    assert told[0].startswith("1 query is here already under another id")


def test_of_a_long_file_every_query_is_looked_for(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likening, "LOOKED_UP", 2)
    monkeypatch.setattr(previewing, "CHECKED_AT_ONCE", 4)  # a comparison and the two responses that it brings
    bring(evaluation, comparison("q1", query="Why?"), comparison("q2", query="Who?"))
    told = {"a": "why", "b": "New?", "c": "who", "d": "WHY", "q2": "Who?", "e": "where"}
    rows = [comparison(key, query=query) for key, query in told.items()]
    assert (
        check(evaluation, jsonl([*rows, comparison("a", query="why", candidate_b="gamma")]))
        .summary["warnings"][0]
        .startswith("3 queries are here already under another id")
    )


def test_groups_are_shown_by_their_first_queries_with_all_of_them_counted(evaluation: Evaluation) -> None:
    bring(evaluation, *(comparison(f"why{n:02}", query="Why?") for n in range(likening.OF_EACH + 2)))
    bring(evaluation, comparison("who1", query="Who?"), comparison("who2", query="who", cluster="why00"))
    bring(evaluation, comparison("alone", query="Where?"))
    groups = {group.queries[0].key: group for group in likening.alike(evaluation)}
    assert set(groups) == {"why00", "who1"}
    why, who = groups["why00"], groups["who1"]
    assert (why.number, why.exact, why.clusters) == (likening.OF_EACH + 2, True, likening.OF_EACH + 2)
    assert [query.key for query in why.queries] == [f"why{n:02}" for n in range(likening.OF_EACH)]
    assert (who.number, who.exact, who.clusters, len(who.queries)) == (2, False, 2, 2)
    numbers = sorted(group.likeness for group in groups.values())
    assert [group.likeness for group in likening.alike(evaluation, numbers[0])] == numbers[1:]


def test_alike_queries_are_put_in_one_cluster_with_all_of_theirs(manager: Client, evaluation: Evaluation) -> None:
    assert "No two queries are alike" in shown(manager, evaluation)
    bring(
        evaluation,
        comparison("q1", query="Why?"),
        comparison("q2", query="why", cluster="c2"),
        comparison("q3", query="Who?", cluster="c2", response_a="x", response_b="x"),
    )
    text = shown(manager, evaluation)
    assert "<strong>2 queries</strong>" in text
    assert '<span class="badge">alike</span>' in text
    assert "<code>q3</code> 2 candidates: x" in text
    assert "2 queries: Rayleigh scattering." in text
    before = Evaluation.objects.get().comparisons_changed_at
    told = {"likeness": str(Query.objects.get(key="q1").likeness)}
    manager.post(reverse("duplicates_together", args=[evaluation.slug]), told)
    assert set(Query.objects.values_list("cluster", flat=True)) == {"q1"}
    assert Query.objects.values("cluster_number").distinct().count() == 1
    assert Evaluation.objects.get().comparisons_changed_at != before
    assert "in one cluster" in shown(manager, evaluation)


def test_queries_that_stand_elsewhere_are_named_to_whoever_may_see_them(
    manager: Client, evaluation: Evaluation
) -> None:
    other, hidden = make_evaluation(), make_evaluation()
    for one in (evaluation, other, hidden):
        bring(one, comparison("q1", query="A secret?"))
    assert "In no other evaluation" in shown(manager, evaluation)
    manager.force_login(member := make_member(evaluation, Role.MANAGER))
    other.memberships.create(user=member, role=Role.VIEWER)
    text = shown(manager, evaluation)
    assert f"1 also in the evaluation {other.name}" in text
    assert hidden.name not in text


def test_a_test_set_is_held_against_the_queries_and_not_kept(manager: Client, evaluation: Evaluation) -> None:
    bring(evaluation, comparison("q1", query="Why is the sky blue?"), comparison("q2", query="Who?"))
    file = SimpleUploadedFile("bench.csv", b"prompt,answer\nwhy is the sky blue,x\nSomething else,y\n")
    text = manager.post(reverse("duplicates", args=[evaluation.slug]), {"file": file}).content.decode()
    assert "1 query stands in bench.csv too." in text
    assert manager.post(reverse("duplicates", args=[evaluation.slug])).status_code == 422
