"""What is there twice: counted before it is stored, listed, put together, and looked for elsewhere."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.imports import preview
from evaluations.imports.duplicates import selectors as duplicates_selectors
from evaluations.imports.duplicates.selectors import QUERIES_PER_GROUP, find_near_duplicates
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_evaluation, make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db


def shown(client: Client, evaluation: Evaluation) -> str:
    return " ".join(html_of(client.get(reverse("duplicates", args=[evaluation.slug]))).split())


def test_an_import_counts_queries_that_are_here_under_another_id(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("q1", query="Why is the sky blue?"))
    rows = [
        comparison_row("q2", query="why is  the sky BLUE"),
        comparison_row("q3", query="Who?"),
        comparison_row("q1"),
    ]
    told = preview_rows(evaluation, encode_jsonl(rows)).summary.warnings
    assert told[0].startswith("1 prompt exists under another id")


def test_of_a_long_file_every_query_is_looked_for(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates_selectors, "KEYS_PER_LOOKUP", 2)
    monkeypatch.setattr(preview, "CHECKED_ROWS_PER_BATCH", 4)  # a comparison and the two responses that it brings
    import_rows(evaluation, comparison_row("q1", query="Why?"), comparison_row("q2", query="Who?"))
    told = {"a": "why", "b": "New?", "c": "who", "d": "WHY", "q2": "Who?", "e": "where"}
    rows = [comparison_row(key, query=query) for key, query in told.items()]
    assert (
        preview_rows(evaluation, encode_jsonl([*rows, comparison_row("a", query="why", candidate_b="gamma")]))
        .summary.warnings[0]
        .startswith("3 prompts exist under another id")
    )


def test_groups_are_shown_by_their_first_queries_with_all_of_them_counted(evaluation: Evaluation) -> None:
    import_rows(evaluation, *(comparison_row(f"why{n:02}", query="Why?") for n in range(QUERIES_PER_GROUP + 2)))
    import_rows(evaluation, comparison_row("who1", query="Who?"), comparison_row("who2", query="who", cluster="why00"))
    import_rows(evaluation, comparison_row("alone", query="Where?"))
    groups = {group.queries[0].key: group for group in find_near_duplicates(evaluation)}
    assert set(groups) == {"why00", "who1"}
    why, who = groups["why00"], groups["who1"]
    assert (why.number, why.exact, why.clusters) == (QUERIES_PER_GROUP + 2, True, QUERIES_PER_GROUP + 2)
    assert [query.key for query in why.queries] == [f"why{n:02}" for n in range(QUERIES_PER_GROUP)]
    assert (who.number, who.exact, who.clusters, len(who.queries)) == (2, False, 2, 2)
    numbers = sorted(group.key for group in groups.values())
    assert [group.key for group in find_near_duplicates(evaluation, numbers[0])] == numbers[1:]


def test_alike_queries_are_put_in_one_cluster_with_all_of_theirs(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    assert "No near-duplicate prompts." in shown(manager_signed_in, evaluation)
    import_rows(
        evaluation,
        comparison_row("q1", query="Why?"),
        comparison_row("q2", query="why", cluster="c2"),
        comparison_row("q3", query="Who?", cluster="c2", response_a="x", response_b="x"),
    )
    text = shown(manager_signed_in, evaluation)
    assert "<strong>2 prompts</strong>" in text
    assert '<span class="badge">near-duplicate</span>' in text
    assert "<code>q3</code> 2 models: x" in text
    assert "2 prompts: Rayleigh scattering." in text
    before = Evaluation.objects.get().comparisons_changed_at
    told = {"near_duplicate_key": str(Query.objects.get(key="q1").near_duplicate_key)}
    manager_signed_in.post(reverse("duplicates_merge", args=[evaluation.slug]), told)
    assert set(Query.objects.values_list("cluster", flat=True)) == {"q1"}
    assert Query.objects.values("cluster_number").distinct().count() == 1
    assert Evaluation.objects.get().comparisons_changed_at != before
    assert "in one cluster" in shown(manager_signed_in, evaluation)


def test_queries_that_stand_elsewhere_are_named_to_whoever_may_see_them(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    other, hidden = make_evaluation(), make_evaluation()
    for one in (evaluation, other, hidden):
        import_rows(one, comparison_row("q1", query="A secret?"))
    assert "No overlap with your other evaluations." in shown(manager_signed_in, evaluation)
    manager_signed_in.force_login(member := make_member(evaluation, Role.MANAGER))
    other.memberships.create(user=member, role=Role.VIEWER)
    text = shown(manager_signed_in, evaluation)
    assert f"1 prompt also in {other.name}" in text
    assert hidden.name not in text


def test_a_test_set_is_held_against_the_queries_and_not_kept(manager_signed_in: Client, evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("q1", query="Why is the sky blue?"), comparison_row("q2", query="Who?"))
    file = SimpleUploadedFile("bench.csv", b"prompt,answer\nwhy is the sky blue,x\nSomething else,y\n")
    text = html_of(manager_signed_in.post(reverse("duplicates", args=[evaluation.slug]), {"file": file}))
    assert "1 prompt also in bench.csv." in text
    assert manager_signed_in.post(reverse("duplicates", args=[evaluation.slug])).status_code == 422
