"""Packed votes: packed as they are read, and equal to a recount of the verdicts.

Tests of what writes verdicts use the fixture `consistent_packed_votes`, which recounts after each of them.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.choices import PACKED_CHOICES, ShownOrder
from evaluations.domain.packed_votes import SLOTS_PER_BLOCK, block_of_slot, pack_choices, shift_of_slot
from evaluations.domain.texts import Markup
from evaluations.examples.services import load_example
from evaluations.models.comparisons import Response
from evaluations.models.imports import Import
from evaluations.models.rubrics import Aspect
from evaluations.models.transactions import MIN_BULK_ROWS, TRANSACTION_SECONDS
from evaluations.models.verdicts import PackedVotes
from evaluations.verdicts.packed_votes import count_milliseconds_since_epoch
from tests.factories.evaluations import make_evaluation, make_user
from tests.factories.imports import comparison_row, import_rows, verdict_row
from tests.factories.packed_votes import assert_packed_votes_match

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions of 64 rows, so that a file of a few takes several."""
    for database in MIN_BULK_ROWS:
        monkeypatch.setitem(MIN_BULK_ROWS, database, 64)
        monkeypatch.setitem(TRANSACTION_SECONDS, database, 0.0)


@given(st.dictionaries(st.integers(0, 3 * SLOTS_PER_BLOCK - 1), st.sampled_from(PACKED_CHOICES)))
def test_what_is_packed_is_found_again_at_its_place(choices: dict[int, str]) -> None:
    blocks = pack_choices(choices)
    assert all(0 <= number < 1 << 60 for number in blocks.values())
    for place in range(3 * SLOTS_PER_BLOCK):
        code = blocks.get(block_of_slot(place), 0) >> shift_of_slot(place) & 7
        assert (PACKED_CHOICES[code - 1] if code else None) == choices.get(place)


@pytest.mark.usefixtures("small_steps")
def test_an_import_of_far_apart_aspects_makes_one_row_of_packed_votes() -> None:
    evaluation = make_evaluation()
    keys = [f"q{number}" for number in range(70)]  # more than one batch holds
    import_rows(evaluation, *(comparison_row(key) for key in keys))
    rows = [
        verdict_row(key, aspect=aspect, choice=choice)
        for aspect, choice in (("safety", "A"), ("depth", "tie"))
        for key in keys
    ]
    marks = [
        verdict_row(
            keys[0], aspect="tone", rater="gpt", rater_kind="judge", choice="inconsistent", shown_swapped="folded"
        )
    ]
    import_rows(evaluation, *rows, *marks)
    assert_packed_votes_match()
    assert PackedVotes.objects.count() == len(keys) + 1
    places = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "slot"))
    both = pack_choices({places["safety"]: "A", places["depth"]: "tie"})[0]
    assert set(PackedVotes.objects.filter(rater__name="ann").values_list("first_choices", "shown")) == {(both, 2)}
    folded = PackedVotes.objects.get(rater__name="gpt")
    assert (folded.first_choices, folded.inconsistent_aspects) == (
        pack_choices({places["tone"]: "tie"})[0],
        1 << places["tone"],
    )
    assert list(ShownOrder)[folded.shown] == ShownOrder.FOLDED


def test_responses_say_which_markdown_they_hold() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, comparison_row("q1", response_a="- one\n- two", response_b="# Head\n\n**Strong**"))
    found = dict(Response.objects.values_list("candidate__name", "markup"))
    assert found == {"alpha": Markup.LIST, "beta": Markup.HEADING | Markup.EMPHASIS}


def test_the_example_has_consistent_packed_votes() -> None:
    load_example(owner=make_user())
    assert_packed_votes_match()
    assert PackedVotes.all_rows.count() > 50


@pytest.mark.usefixtures("small_steps")
def test_what_a_person_chose_at_different_moments_stands_apart_however_a_file_is_cut_into_batches() -> None:
    evaluation = make_evaluation()
    keys = [f"q{number}" for number in range(70)]  # more than one batch holds
    import_rows(evaluation, *(comparison_row(key) for key in keys))
    moments = {"safety": "2026-01-10T08:00:00Z", "depth": "2026-03-10T08:00:00.9996Z", "tone": "2026-01-10T08:00:00Z"}
    import_rows(
        evaluation,
        *(verdict_row(key, aspect=aspect, created_at=told_at) for aspect, told_at in moments.items() for key in keys),
    )
    assert_packed_votes_match()
    places = dict(Aspect.objects.filter(evaluation=evaluation).values_list("key", "slot"))
    january = pack_choices({places["safety"]: "A", places["tone"]: "A"})[0]
    march = pack_choices({places["depth"]: "A"})[0]
    assert set(PackedVotes.objects.values_list("first_choices", "decided_at_ms")) == {
        (january, 1_768_032_000_000),
        (march, 1_773_129_600_999),
    }


def test_a_day_to_come_and_none_are_the_day_on_which_the_file_came_in() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, comparison_row("q1"))
    import_rows(evaluation, verdict_row("q1", created_at="2999-01-01T00:00:00Z"), verdict_row("q1", rater="ben"))
    came = count_milliseconds_since_epoch(Import.objects.latest("pk").created_at)
    assert set(PackedVotes.objects.values_list("decided_at_ms", flat=True)) == {came}
    assert_packed_votes_match()


def test_what_an_import_has_brought_is_not_read_whole_again_at_each_step(small_steps: None) -> None:
    evaluation = make_evaluation()
    keys = [f"q{number}" for number in range(70)]
    import_rows(evaluation, *(comparison_row(key) for key in keys))
    with CaptureQueriesContext(connection) as asked:
        import_rows(evaluation, *(verdict_row(key, aspect=aspect) for aspect in ("safety", "depth") for key in keys))
    queries = [
        one["sql"]
        for one in asked
        if one["sql"].startswith("SELECT") and 'FROM "evaluations_packedvotes"' in one["sql"]
    ]
    read = [sql for sql in queries if '"comparison_id" IN' in sql]
    assert len(read) > 1
    # SQLite would take the index of the import before all others, and read as far as the import has come.
    assert not [sql for sql in read if '"source_import_id" =' in sql]
