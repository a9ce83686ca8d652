"""Pairs of responses that are here: counted before they are made, made once, and beside each other by rating."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from evaluations.comparisons.pairing import selectors as pairing_selectors
from evaluations.comparisons.pairing.selectors import (
    PairCount,
    count_pairs,
    find_neighbours,
    pair_responses,
    rank_by_results,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.pairing import parse_pairing
from evaluations.domain.roles import Role
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.pairs import services as pairs_services
from evaluations.imports.pairs.services import start_pairing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.imports import Import
from tests.comparisons.test_pairing import named, responses
from tests.factories.evaluations import make_member
from tests.factories.imports import import_rows, verdict_row
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db


def answers(*names: str, key: str = "q1") -> list[dict[str, str]]:
    return [{"query_id": key, "query": f"Why {key}?", "candidate": name, "response": f"{name}."} for name in names]


def pairs_here() -> set[tuple[str, str]]:
    rows = Comparison.objects.values_list("response_a__candidate__name", "response_b__candidate__name")
    return set(rows)


def rated(evaluation: Evaluation) -> None:
    """c beats b once and loses once, as b and a do to each other, but c won more often: c, b, a."""
    import_rows(evaluation, *answers("a", "b", "c"), pair="all")
    said = [("a", "b", "B", 2), ("a", "b", "A", 1), ("b", "c", "B", 2), ("b", "c", "A", 1)]
    told = [
        verdict_row(
            "q1", candidate_a=first, candidate_b=second, choice=choice, rater=f"{first}{second}{choice}{number}"
        )
        for first, second, choice, times in said
        for number in range(times)
    ]
    import_rows(evaluation, *told)


def test_neighbours_are_beside_each_other_among_those_that_answered() -> None:
    ranking = ["w", "x", "y", "z"]
    assert find_neighbours({"w", "y", "z"}, ranking) == {frozenset("wy"), frozenset("yz")}
    assert find_neighbours({"w", "y", "z", "new"}, ranking) - find_neighbours({"w", "y", "z"}, ranking) == {
        frozenset(("new", "y"))
    }
    assert find_neighbours({"q", "p", "r"}, ranking) == {frozenset("pq"), frozenset("qr")}


def test_random_pairs_keep_their_lots_when_others_come() -> None:
    few, more = responses("a", "b", "c"), responses("a", "b", "c", "d")
    way = parse_pairing("random:2")
    before, after = set(named(pair_responses(few, way, "seed"))), set(named(pair_responses(more, way, "seed")))
    assert {pair for pair in after if "d" not in pair} <= before


def test_candidates_are_ranked_by_what_was_chosen(evaluation: Evaluation) -> None:
    rated(evaluation)
    ranking = rank_by_results(evaluation)
    assert ranking.names == ("c", "b", "a")
    assert ranking.by.startswith("Bradley–Terry")


def test_of_very_many_comparisons_some_drawn_at_random_rank(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated(evaluation)  # three comparisons, of which two tell of all three candidates
    monkeypatch.setattr(pairing_selectors, "ENOUGH_COMPARISONS", 2)
    first, second, last = Comparison.objects.order_by("pk")
    for place, one in enumerate((first, last, second)):
        Comparison.objects.filter(pk=one.pk).update(random_order=place)
    pairs = [{one.response_a.candidate.name, one.response_b.candidate.name} for one in (first, last)]
    assert pairs == [{"a", "b"}, {"b", "c"}]
    assert rank_by_results(evaluation).by.endswith("of 2 comparisons drawn at random")
    assert rank_by_results(evaluation).names == ("c", "b", "a")
    monkeypatch.setattr(pairing_selectors, "ENOUGH_COMPARISONS", 1)  # says nothing of c
    assert rank_by_results(evaluation).by.endswith("so far")


def test_without_choices_scores_rank(evaluation: Evaluation) -> None:
    import_rows(evaluation, *answers("a", "b", "c"), pair="baseline:a")
    told = {"query_id": "q1", "rater": "ann", "rater_kind": "human"}
    import_rows(
        evaluation, *({**told, "candidate": name, "value": value} for name, value in (("a", 3), ("b", 5), ("c", 1)))
    )
    assert rank_by_results(evaluation).names == ("b", "a", "c")


def test_nobody_is_beside_anybody_without_a_rating(evaluation: Evaluation) -> None:
    import_rows(evaluation, *answers("a", "b"))
    with pytest.raises(InputRefused, match="there are none yet"):
        start_pairing(evaluation, parse_pairing("adjacent"), confirmed=False, user=None)


def test_what_is_counted_is_what_is_made_and_only_once(evaluation: Evaluation) -> None:
    rated(evaluation)
    import_rows(evaluation, *answers("a", "b", "c", "d", key="q2"), pair="baseline:a")  # a-b, a-c, a-d
    ways = [parse_pairing(way) for way in ("all", "baseline:b", "adjacent")]
    # Of q2 are left b-c, b-d, c-d; b against the others b-c, b-d; c-b is beside, b-a is here, d meets b.
    counted = count_pairs(evaluation, ways, rank_by_results(evaluation).names)
    assert counted == PairCount({"all": 3, "baseline:b": 2, "adjacent": 2}, queries=2)
    importing = start_pairing(evaluation, parse_pairing("adjacent"), confirmed=False, user=None)
    while continue_import(importing, seconds=0):
        importing.refresh_from_db()
    importing.refresh_from_db()
    assert importing.new_rows == {"comparisons": 2}
    assert {("b", "c"), ("b", "d")} <= pairs_here()
    with pytest.raises(InputRefused, match="exist already"):
        start_pairing(evaluation, parse_pairing("adjacent"), confirmed=False, user=None)


def test_very_many_pairs_are_made_only_where_that_is_confirmed(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing_selectors, "CONFIRMED_ABOVE", 1)
    import_rows(evaluation, *answers("a", "b", "c"), pair="random:1")
    with pytest.raises(InputRefused, match="would create 2 comparisons"):
        start_pairing(evaluation, parse_pairing("all"), confirmed=False, user=None)
    assert start_pairing(evaluation, parse_pairing("all"), confirmed=True, user=None).pk


def test_where_time_is_up_the_page_says_so_and_what_is_missing_is_made_once_confirmed(
    evaluation: Evaluation, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs_services, "COUNTING_SECONDS", 0)
    monkeypatch.setattr(pairing_selectors, "QUERIES_PER_BLOCK", 1)
    client.force_login(make_member(evaluation, Role.MANAGER))
    import_rows(evaluation, *answers("a", "b"), *answers("a", "b", "c", key="q2"), pair="baseline:a")
    address = reverse("pairs", args=["study"])
    text = html_of(client.get(address))
    assert "Counted for the first 1 prompt only." in text
    assert '<code>all</code></th><td class="number">at least 0</td>' in text
    assert "All pairs exist." not in text
    refused = client.post(address, {"pair": "all", "do": "make"})
    assert refused.status_code == 422
    assert "too many to count them all" in html_of(refused)
    client.post(address, {"pair": "all", "confirmed": "on", "do": "make"})
    importing = Import.objects.latest("pk")
    event = Event.objects.get(verb="began storing", object_id=importing.pk)
    assert event.after == {"pair": "all", "comparisons_at_least": 0}
    continue_import(importing)
    assert pairs_here() == {("a", "b"), ("a", "c"), ("b", "c")}


def test_the_command_counts_first_and_makes_then(evaluation: Evaluation) -> None:
    import_rows(evaluation, *answers("a", "b", "c"), pair="baseline:a")
    out = io.StringIO()
    call_command("make_pairs", "study", "--dry-run", stdout=out)
    assert out.getvalue() == "1 comparison would be created.\n"
    call_command("make_pairs", "study", stdout=out)
    assert out.getvalue().endswith("1 comparison created.\n")
    with pytest.raises(CommandError, match="Unknown pairing"):
        call_command("make_pairs", "study", "--pair", "some")


def test_the_page_counts_each_way_and_makes_one(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.MANAGER))
    address = reverse("pairs", args=["study"])
    assert "No responses yet" in html_of(client.get(address))
    import_rows(evaluation, *answers("a", "b", "c"), pair="baseline:a")
    text = html_of(client.get(address))
    assert '<code>all</code></th><td class="number">1</td>' in text
    assert '<code>baseline:a</code></th><td class="number">0</td>' in text
    told = {"pair": "baseline", "baseline": "b", "pairs_each": "1"}
    fragment = html_of(client.post(address, told, headers={"HX-Request": "true"}))
    assert '<code>baseline:b</code></th><td class="number">1</td>' in fragment
    assert "<html" not in fragment
    answer = client.post(address, {**told, "do": "make"})
    importing = Import.objects.latest("pk")
    assert answer["Location"] == reverse("import", args=["study", importing.pk])
    continue_import(importing)
    assert pairs_here() == {("a", "b"), ("a", "c"), ("b", "c")}
    assert "Imported" in html_of(client.get(answer["Location"]))
