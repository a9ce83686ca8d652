"""Finding comparisons, and how far raters have come with them."""

from itertools import combinations_with_replacement
from typing import Any

import pytest

from evaluations.comparisons import selectors as comparisons_selectors
from evaluations.comparisons.selectors import (
    MAX_BLOCK,
    find_comparisons,
    list_if_few_distinguishable,
    next_block_length,
)
from evaluations.domain.choices import Choice
from evaluations.domain.files import ImportState
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.judges import CallState
from evaluations.models import comparison_filter
from evaluations.models.comparison_filter import filter_evaluation
from evaluations.models.comparisons import Comparison, Query, Response, Tag, Tagging
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.selection import list_categories
from evaluations.models.verdicts import Adjudication, Label
from evaluations.verdicts.vote_counts import VoteCounts, count_raters
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_user
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    get_or_make_aspect,
    make_import,
    make_imported_votes,
    make_judge_verdicts,
    make_review,
)

pytestmark = pytest.mark.django_db


def test_categories_are_told_once_in_order_and_only_of_finished_imports() -> None:
    evaluation = make_evaluation()
    for category in ("poems", "facts", "facts", ""):
        make_comparison(evaluation, category=category)
    make_comparison(make_evaluation(), category="elsewhere")
    for state, category in ((ImportState.DONE, "done"), (ImportState.STORING, "storing")):
        hidden = make_comparison(evaluation, category=category).query
        Query.objects.filter(pk=hidden.pk).update(source_import=make_import(evaluation, state))
    assert list_categories(evaluation) == ["done", "facts", "poems"]
    assert list_categories(evaluation, limit=1) == ["done"]


def test_filters_hold_together() -> None:
    evaluation = make_evaluation()
    wanted = make_comparison(evaluation, query="Sing of Troy", category="poems", candidates=("alpha", "gamma"))
    make_comparison(evaluation, query="Sing of Troy", category="facts", candidates=("alpha", "gamma"))
    make_comparison(evaluation, query="Sing of Rome", category="poems", candidates=("alpha", "gamma"))
    make_comparison(evaluation, query="Sing of Troy", category="poems", candidates=("alpha", "beta"))
    assert list(filter_evaluation(evaluation, ComparisonFilter(text="TROY", category="poems", candidate="gamma"))) == [
        wanted
    ]


# ---- page by page --------------------------------------------------------------------------------

NUMBER = 24
# Each filter, and on which of the comparisons it holds.
HOLDS: dict[str, tuple[dict[str, Any], set[int]]] = {
    "candidate": ({"candidate": "gamma"}, set(range(0, NUMBER, 5))),
    "category": ({"category": "poems"}, {3, 4, 10, 23}),
    "rare tag": ({"tags": ("rare",)}, {3}),
    "common tag": ({"tags": ("common",)}, set(range(0, NUMBER, 3))),
    "no tag": ({"tags": ("unused",)}, set()),
    "both tags": ({"tags": ("rare", "common")}, {3}),
    "flagged": ({"flagged": True}, {4, 11, 12}),
    "resolved": ({"disagreement": "resolved"}, {3, 7}),
    "import": ({"source": 1}, {7, 8, 9, 10}),
    "words": ({"text": "needle"}, {3, 12, 13}),
    "saved": ({"reviews": "saved"}, set(range(0, NUMBER, 4))),
    "no review": ({"reviews": "none"}, set(range(NUMBER)) - set(range(0, NUMBER, 4))),
    "by hand": ({"origin": "by_hand"}, set(range(NUMBER)) - {7, 8, 9, 10}),
    "label": ({"aspect": "clarity", "choice": "B"}, set(range(0, NUMBER, 4))),
    "judge chose": ({"rater": "judge:longest", "aspect": "clarity", "choice": "A"}, set(range(0, NUMBER, 2))),
}


@pytest.fixture
def filled() -> Evaluation:
    evaluation = make_evaluation()
    brought, tags = make_import(evaluation), {}
    for name in ("rare", "common", "unused"):
        tags[name] = Tag.objects.create(evaluation=evaluation, name=name)
    clarity = get_or_make_aspect(evaluation, "clarity")
    for number in range(NUMBER):
        one = make_comparison(
            evaluation,
            query=f"{'Needle' if number in HOLDS['words'][1] else 'Straw'} {number}",
            category="poems" if number in HOLDS["category"][1] else "facts",
            candidates=("alpha", "gamma" if number % 5 == 0 else "beta"),
        )
        for name in ("rare", "common"):
            if number in HOLDS[f"{name} tag"][1]:
                Tagging.objects.create(tag=tags[name], comparison=one)
        if number in HOLDS["resolved"][1]:
            Adjudication.objects.create(
                comparison=one, aspect=clarity, user=make_user(), choice=Choice.A, reason="So it is."
            )
        if number in HOLDS["import"][1]:
            Comparison.objects.filter(pk=one.pk).update(source_import=brought, origin="imported")
        if number in HOLDS["flagged"][1]:
            (Response if number == 4 else Query).objects.filter(
                pk=one.response_b_id if number == 4 else one.query_id
            ).update(flags="forged_verdict")
        if number in HOLDS["saved"][1]:
            make_review(make_human(evaluation), one, {"clarity": "B"})
            Label.objects.create(comparison=one, aspect=clarity, choice="B", source="majority", votes=1, unanimous=True)
        make_judge_verdicts(one, as_stored={"clarity": "A" if number % 2 == 0 else "B"})
    make_comparison(make_evaluation(), category="poems")
    return evaluation


def every_page(evaluation: Evaluation, wanted: list[ComparisonFilter], *, backwards: bool) -> list[int]:
    ids, place = list[int](), 10**9 if backwards else 0
    while True:
        found = find_comparisons(evaluation, wanted, after=place, size=3, backwards=backwards, seconds=60)
        assert found.is_whole
        assert len(found.ids) <= 3
        ids += found.ids
        if found.continues_after is None:
            return ids
        place = found.continues_after


@pytest.mark.parametrize("few", [0, 2, 400], ids=["nothing is few", "two are few", "all are few"])
def test_every_two_filters_find_what_both_hold_on_whichever_way_it_is_looked_for(
    few: int, filled: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_filter, "FEW_COMPARISONS", few)
    monkeypatch.setattr(comparisons_selectors, "FIRST_BLOCK", 5)
    monkeypatch.setattr(comparisons_selectors, "FEW_LEFT", 2)
    ids = list(Comparison.objects.filter(evaluation=filled).order_by("pk").values_list("pk", flat=True))
    source = Import.objects.get(evaluation=filled).pk
    wrong = []
    for (one, (said, holds)), (other, (more, too)) in combinations_with_replacement(HOLDS.items(), 2):
        wanted = [
            ComparisonFilter(**{**part, **({"source": source} if "source" in part else {})}) for part in (said, more)
        ]
        meant = [ids[number] for number in sorted(holds & too)]
        for backwards in (False, True):
            found = every_page(filled, wanted, backwards=backwards)
            if found != (meant[::-1] if backwards else meant):
                wrong.append((one, other, backwards, found, meant))
    assert wrong == []


def test_a_filter_that_finds_few_is_answered_whole_however_little_time_there_is(
    filled: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_selectors, "FIRST_BLOCK", 1)
    for name in ("rare tag", "category", "flagged", "resolved", "saved", "by hand", "label", "words"):
        said, holds = HOLDS[name]
        found = find_comparisons(filled, [ComparisonFilter(**said)], seconds=0)
        assert (len(found.ids), found.is_whole) == (len(holds), True), name
    assert not find_comparisons(filled, [ComparisonFilter(reviews="none")], seconds=0).is_whole


def test_of_few_those_that_a_choice_leaves_out_are_told_apart_too(
    filled: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = list(Comparison.objects.filter(evaluation=filled).order_by("pk").values_list("pk", flat=True))
    judged: dict[str, Any] = {"rater": "judge:longest", "aspect": "clarity", "choice": "A"}

    def told_apart(**said: Any) -> set[int]:
        return {ids.index(one.pk) for one in list_if_few_distinguishable(filled, [ComparisonFilter(**said, **judged)])}

    assert told_apart(category="poems") == {3, 4, 10, 23}
    assert told_apart(candidate="gamma") == {0, 5, 10, 15, 20}
    assert told_apart(tags=("common",)) == {0, 3, 6, 9, 12, 15, 18, 21}
    assert told_apart(category="facts") == set()  # twenty are many
    # What could not be looked through in time takes nothing away from what was found.
    monkeypatch.setattr(comparisons_selectors, "SMALL_SEARCH_SECONDS", 0.0)
    monkeypatch.setattr(comparisons_selectors, "FIRST_BLOCK", 6)
    assert told_apart(candidate="gamma") == {0, 5}


def test_raters_are_counted_once_however_much_they_said() -> None:
    evaluation = make_evaluation()
    comparison, untouched = make_comparison(evaluation), make_comparison(evaluation)
    make_review(make_human(evaluation), comparison, ALL_A, final=ALL_B)
    make_imported_votes(comparison, "expert", ALL_A, kind="gold")
    make_judge_verdicts(comparison, as_stored=ALL_A, swapped=ALL_B)
    make_judge_verdicts(comparison, judge="slow", as_stored=CallState.RUNNING, swapped=CallState.FAILED)
    told = count_raters([comparison.pk, untouched.pk])
    assert told[comparison.pk] == VoteCounts(people=1, gold=1, judges=1, waiting=1, failed=1)
    assert told[untouched.pk] == VoteCounts()


@pytest.mark.parametrize(
    ("length", "took", "left", "following"),
    [
        (4_000, 0.001, 0.24, 16_000),  # four times as long where there is time
        (64_000, 0.001, 0.24, MAX_BLOCK),
        (64_000, 0.2, 0.05, 16_000),  # only as long as is left of the time
        (64_000, 2.0, 0.001, comparisons_selectors.FIRST_BLOCK),
        (4_000, 0.0, 0.24, 16_000),
    ],
)
def test_the_next_piece_should_end_in_time(length: int, took: float, left: float, following: int) -> None:
    assert next_block_length(length, took, left) == following
