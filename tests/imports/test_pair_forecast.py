"""The comparisons of a file's responses are counted before any is made, and so many are made."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from evaluations.imports.lifecycle import continue_import
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, score_row

QUERIES = ("q1", "q2", "q3")
NAMES = ("alpha", "beta", "gamma", "delta")
WAYS = st.sampled_from(["all", "baseline:beta", "random:1", "random:3"])


def response(key: str, name: str, text: str = "", query: str = "Why?") -> dict[str, Any]:
    return {"query_id": key, "query": query, "candidate": name, "response": text or f"{name} says"}


# Some rows are there twice, some say otherwise what the query is and are bad.
RESPONSES = st.lists(
    st.builds(
        response,
        st.sampled_from(QUERIES),
        st.sampled_from(NAMES),
        st.sampled_from(["", "", "something else"]),
        st.sampled_from(["Why?", "Why?", "Why?", "What?"]),
    ),
    min_size=1,
    max_size=14,
)
SCORES = st.lists(
    st.builds(score_row, st.sampled_from(QUERIES), st.sampled_from(NAMES), st.sampled_from([1, 2, 3])),
    min_size=1,
    max_size=8,
)
# beta answers what is in the file, or is known from before: a baseline that nobody knows is refused.
KNOWN = response("q0", "beta")


def stored(importing: Import) -> Import:
    start_storing(importing, skip_bad=True, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    return importing


def made_as_foreseen(importing: Import) -> None:
    """So many, and all else that was said to be new too."""
    foreseen, told = importing.summary.pairs_expected, importing.new_rows
    before = Comparison.objects.count()
    stored(importing)
    assert Comparison.objects.count() - before == foreseen
    assert importing.new_rows == told


class AnyFile(TestCase):
    @given(st.lists(st.tuples(RESPONSES, WAYS), max_size=2), st.booleans(), RESPONSES, WAYS)
    @settings(max_examples=40, deadline=None)
    def test_so_many_comparisons_are_made_as_were_foreseen(
        self, before: list[tuple[list[dict[str, Any]], str]], by_hand: bool, rows: list[dict[str, Any]], way: str
    ) -> None:
        evaluation = make_evaluation()
        import_rows(evaluation, KNOWN)
        for some, one_way in before:
            import_rows(evaluation, *some, pair=one_way, skip_bad=True)
        if by_hand:
            import_rows(evaluation, comparison_row("q1", query="Why?", response_a="alpha says"), skip_bad=True)
        made_as_foreseen(preview_rows(evaluation, encode_jsonl(rows), pair=way))

    @given(RESPONSES, WAYS, SCORES, st.sampled_from([None, 0.0]))
    @settings(max_examples=25, deadline=None)
    def test_scores_make_so_many_comparisons_as_were_foreseen(
        self, rows: list[dict[str, Any]], way: str, scores: list[dict[str, Any]], margin: float | None
    ) -> None:
        evaluation = make_evaluation()
        import_rows(evaluation, KNOWN)
        import_rows(evaluation, *rows, pair=way, skip_bad=True)
        made_as_foreseen(preview_rows(evaluation, encode_jsonl(scores), derive_pairs=margin))


@pytest.mark.django_db
def test_pairs_of_neighbours_are_foreseen_by_the_ratings_of_the_moment(evaluation: Evaluation) -> None:
    import_rows(evaluation, *(response("q1", name) for name in NAMES))
    import_rows(evaluation, *(score_row("q1", name, value) for value, name in enumerate(NAMES)))
    importing = preview_rows(evaluation, encode_jsonl([response("q2", name) for name in NAMES]), pair="adjacent")
    assert importing.summary.pairs_expected == 3  # alpha-beta, beta-gamma, gamma-delta
    made_as_foreseen(importing)


@pytest.mark.django_db
def test_what_is_here_already_is_not_foreseen_again(evaluation: Evaluation) -> None:
    rows = [response(key, name) for key in QUERIES for name in NAMES]
    assert preview_rows(evaluation, encode_jsonl(rows)).new_rows == {
        "queries": 3,
        "responses": 12,
        "comparisons": 18,
    }
    import_rows(evaluation, *rows, pair="baseline:beta")
    importing = preview_rows(evaluation, encode_jsonl(rows))
    # Six of each query, of which the baseline met three.
    assert (importing.rows_stored, importing.summary.pairs_expected) == (0, 9)
    made_as_foreseen(importing)
    assert preview_rows(evaluation, encode_jsonl(rows)).summary.pairs_expected == 0


@pytest.mark.django_db
def test_a_file_that_brings_comparisons_foresees_no_pairs(evaluation: Evaluation) -> None:
    importing = preview_rows(evaluation, encode_jsonl([comparison_row("q1")]))
    assert (importing.summary.pairs_expected, importing.new_rows["comparisons"]) == (0, 1)


@pytest.mark.django_db
def test_many_comparisons_at_once_are_warned_of(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluations.imports.preview.CONFIRMED_ABOVE", 5)
    importing = preview_rows(evaluation, encode_jsonl([response("q1", name) for name in NAMES]))
    assert importing.summary.warnings == ["This creates 6 comparisons. For fewer, pair with a baseline or at random."]
