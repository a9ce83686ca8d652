"""Scores into an evaluation: the numbers as they are, the rubric that comes with them, and pairs to compare."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState, NewResponse
from evaluations.domain.roles import RaterKind
from evaluations.imports.lifecycle import clean_up_import, continue_import, sweep_imports
from evaluations.imports.services import discard_import, start_storing
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect
from evaluations.models.runs import Call
from evaluations.models.transactions import MIN_BULK_ROWS, TRANSACTION_SECONDS
from evaluations.models.verdicts import Score, Verdict
from tests.factories.evaluations import make_evaluation, make_user
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, score_row, verdict_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consistent_packed_votes")]


@pytest.fixture(autouse=True)
def batches_of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    for database in MIN_BULK_ROWS:
        monkeypatch.setitem(MIN_BULK_ROWS, database, 64)
        monkeypatch.setitem(TRANSACTION_SECONDS, database, 0.0)


@pytest.fixture
def compared(evaluation: Evaluation) -> Evaluation:
    """One comparison of alpha and beta on q1."""
    import_rows(evaluation, comparison_row())
    return evaluation


def response_row(key: str, candidate: str, **columns: Any) -> dict[str, Any]:
    return {"query_id": key, "query": "Why?", "candidate": candidate, "response": f"{candidate}!", **columns}


def one_reason(evaluation: Evaluation, *rows: dict[str, Any], **options: Any) -> str:
    """The reason of the only bad row, which must be the last."""
    (bad,) = preview_rows(evaluation, encode_jsonl(rows), **options).bad_rows
    assert bad["line"] == len(rows)
    return str(bad["reason"])


def scales(evaluation: Evaluation) -> list[tuple[int, str, float | None, float | None, float, bool]]:
    """Version, aspect, lowest, highest, margin and direction in the rubrics of imported scores."""
    asked = RubricAspect.objects.filter(version__rubric__evaluation=evaluation, version__rubric__kind="pointwise")
    columns = ("version__number", "aspect__key", "scale_min", "scale_max", "tie_margin", "lower_is_better")
    return list(asked.order_by("version__number", "position").values_list(*columns))


# ---- rows -------------------------------------------------------------------------------------


def test_a_score_is_stored_as_it_is_and_brings_a_rubric_with_the_scale_seen(compared: Evaluation) -> None:
    importing = import_rows(compared, score_row(value=2.5, rationale="Thin."), score_row(candidate="beta", value=-1))
    first, second = Score.objects.order_by("pk")
    assert (first.value, first.response.candidate.name, first.rater.name, first.rater.kind) == (
        *(2.5, "alpha"),
        *("ann", "human"),
    )
    assert (first.aspect.key, first.sample, first.stage, first.rationale) == ("overall", 0, "first", "Thin.")
    assert (second.value, first.rater.user, first.rater.verdicts_changed_at is not None) == (-1.0, None, True)
    assert importing.new_rows == {"scores": 2}
    assert importing.summary.warnings == [
        "The import adds a rubric named “imported scores” for overall, with the scale of the file."
    ]
    assert importing.summary.notes == ["Higher scores are better: overall."]
    rubric = Rubric.objects.get(evaluation=compared, origin="imported")
    assert (rubric.name, rubric.kind) == ("imported scores", "pointwise")
    assert rubric.versions.get().frozen_at is not None
    assert scales(compared) == [(1, "overall", -1.0, 2.5, 0.0, False)]


def test_ranks_stay_as_they_are_and_their_direction_stands_in_the_rubric(compared: Evaluation) -> None:
    importing = import_rows(compared, score_row(value=1), score_row(candidate="beta", value=2), lower_is_better=True)
    assert sorted(Score.objects.values_list("value", flat=True)) == [1.0, 2.0]
    assert scales(compared) == [(1, "overall", 1.0, 2.0, 0.0, True)]
    assert importing.summary.notes == ["Lower scores are better: overall."]


def test_an_imported_judge_needs_no_endpoint(compared: Evaluation) -> None:
    import_rows(
        compared, score_row(rater="reward", rater_kind="judge", value=0.25), score_row(rater="key", rater_kind="gold")
    )
    judge = Judge.objects.get()
    assert (judge.name, judge.kind, judge.endpoint) == ("reward", "imported", None)
    assert sorted(Score.objects.values_list("rater__kind", flat=True)) == ["gold", "judge"]


def test_the_same_scores_twice_change_nothing_and_another_value_is_bad(compared: Evaluation) -> None:
    rows = [score_row(), score_row(value=5), score_row(candidate="beta", value=0.1), score_row(rater="bob")]
    assert import_rows(compared, *rows).rows_stored == 4
    assert sorted(Score.objects.values_list("rater__name", "response__candidate__name", "sample", "value")) == [
        ("ann", "alpha", 0, 4.0),
        ("ann", "alpha", 1, 5.0),
        ("ann", "beta", 0, 0.1),
        ("bob", "alpha", 0, 4.0),
    ]
    again = import_rows(compared, *rows)
    assert (again.rows_stored, again.rows_unchanged) == (0, 4)
    assert len(scales(compared)) == 1
    assert one_reason(compared, score_row(sample=1, value=4)) == (
        "the same score in this evaluation has the value 5, not 4"
    )
    assert one_reason(compared, score_row(sample=7, value=0.1), score_row(sample=7, value=0.30000000000000004)) == (
        "the same score in line 1 has the value 0.1, not 0.30000000000000004"
    )


def test_a_failure_to_score_is_a_call_without_an_answer(compared: Evaluation) -> None:
    row = score_row(rater="gpt", rater_kind="judge", value="refused", rationale="I cannot.")
    importing = import_rows(compared, row, {**row, "aspect": "style"}, {**row, "value": 3})
    assert importing.new_rows == {"failures": 1, "scores": 1}
    assert importing.summary.samples[0].scores[0].failure == "refused"
    call = Call.objects.get()
    assert (call.state, call.sample, call.rationale, call.comparison) == ("refused", 0, "I cannot.", None)
    assert (call.response and call.response.candidate.name, call.judge.kind, call.source_import) == (
        *("alpha", "imported"),
        importing,
    )
    # It brings no aspect and is no part of a scale; the third row is the second sample of the first.
    assert (Score.objects.get().sample, Aspect.objects.filter(key="style").exists()) == (1, False)
    assert scales(compared) == [(1, "overall", 3, 3, 0, False)]
    assert import_rows(compared, row, {**row, "aspect": "style"}, {**row, "value": 3}).rows_unchanged == 3
    assert one_reason(compared, {**row, "value": "failed"}) == (
        "the same score in this evaluation has the value refused, not failed"
    )


def test_a_cancelled_import_takes_its_failures_with_it(compared: Evaluation) -> None:
    rows = [score_row(rater="gpt", rater_kind="judge", value="failed") for _ in range(90)]
    importing = preview_rows(compared, encode_jsonl(rows))
    start_storing(importing, skip_bad=False, user=None)
    assert continue_import(importing, seconds=0)
    assert Call.all_rows.exists()
    assert not Call.objects.exists()
    discard_import(importing, user=None)
    clean_up_import(importing)
    assert not Call.all_rows.exists()


def test_a_contradiction_is_found_across_batches_of_a_file(compared: Evaluation) -> None:
    many = [score_row(sample=sample, value=sample % 5) for sample in range(2_100)]
    assert one_reason(compared, *many, score_row(sample=3, value=9)) == (
        "the same score in line 4 has the value 3, not 9"
    )


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"key": "q9"}, "prompt “q9” is not in this evaluation"),
        ({"candidate": "omega"}, "model “omega” is not in this evaluation"),
        ({"candidate": "gamma"}, "prompt “q1” has no response of “gamma”"),
        ({"key": "q2", "candidate": "beta"}, "prompt “q2” has 2 responses of “beta”: unclear which is meant"),
    ],
)
def test_a_score_on_what_is_not_here_is_bad(compared: Evaluation, change: dict[str, Any], because: str) -> None:
    rows = comparison_row("q2", candidate_b="gamma"), comparison_row("q2"), comparison_row("q2", response_b="Dust.")
    import_rows(compared, *rows, new_response=NewResponse.KEEP)
    assert one_reason(compared, score_row(**change)) == because


def test_nobody_who_works_here_is_given_imported_scores(compared: Evaluation) -> None:
    Rater.objects.create(evaluation=compared, kind=RaterKind.HUMAN, name="ann", user=make_user())
    assert one_reason(compared, score_row()) == "“ann” is a user here. Rename the imported reviewer"
    Judge.objects.create(
        evaluation=compared, name="longest", kind="rule", rubric_version=compared.review_rubric, fingerprint="x"
    )
    assert one_reason(compared, score_row(rater="longest", rater_kind="judge")) == (
        "“longest” is a judge of this evaluation. Rename the imported judge"
    )


def test_who_gave_verdicts_on_an_aspect_gives_it_no_scores_nor_the_other_way_round(compared: Evaluation) -> None:
    import_rows(compared, verdict_row())
    assert one_reason(compared, score_row(aspect="depth"), score_row(rater="bob"), score_row()) == (
        "“ann” already has verdicts on overall, which would count twice with these scores. "
        "Rename the aspect of the scores"
    )
    import_rows(compared, score_row(aspect="depth"), score_row(rater="bob"))
    assert one_reason(compared, verdict_row(rater="carl"), verdict_row(aspect="depth")) == (
        "“ann” already has scores on depth, which would count twice with these verdicts. "
        "Rename the aspect of the verdicts"
    )


def test_scores_of_an_aspect_that_people_compare_by_join_it_with_a_rubric_of_their_own(compared: Evaluation) -> None:
    before = Aspect.objects.count()
    importing = import_rows(
        compared, score_row(aspect="Depth", value=80), score_row(aspect="depth", candidate="beta", value=60)
    )
    assert Aspect.objects.count() == before
    assert Score.objects.earliest("pk").aspect == Aspect.objects.get(evaluation=compared, key="depth")
    assert importing.summary.warnings[0].startswith("The import adds a rubric named “imported scores”")
    assert scales(compared) == [(1, "depth", 60.0, 80.0, 0.0, False)]
    import_rows(compared, verdict_row(rater="bob", aspect="depth"))
    assert not Rubric.objects.filter(evaluation=compared, name="imported").exists()


# ---- the rubric that comes with them ----------------------------------------------------------


def test_the_scale_grows_by_versions_with_what_is_seen(compared: Evaluation) -> None:
    import_rows(compared, score_row(value=3))
    import_rows(compared, score_row(candidate="beta", value=5), score_row(candidate="beta", aspect="depth", value=0))
    assert import_rows(compared, score_row(rater="bob", value=4)).summary.warnings == []
    assert scales(compared) == [
        (1, "overall", 3.0, 3.0, 0.0, False),
        (2, "overall", 3.0, 5.0, 0.0, False),
        (2, "depth", 0.0, 0.0, 0.0, False),
    ]


def test_bad_rows_are_no_part_of_the_scale(compared: Evaluation) -> None:
    import_rows(
        compared, score_row(), score_row(candidate="omega", value=99), score_row(rater="bob", value="?"), skip_bad=True
    )
    assert scales(compared) == [(1, "overall", 4.0, 4.0, 0.0, False)]


def test_of_an_aspect_the_same_end_is_better_throughout(compared: Evaluation) -> None:
    import_rows(compared, score_row(value=1), lower_is_better=True)
    with pytest.raises(InputRefused) as refused:
        preview_rows(compared, encode_jsonl([score_row(candidate="beta", value=2)]))
    assert str(refused.value) == (
        "For overall, lower scores are better in this evaluation. Set the same for this file, or rename its aspect."
    )
    import_rows(compared, score_row(candidate="beta", aspect="depth", value=2))
    with pytest.raises(InputRefused, match="For depth, higher scores are better in this evaluation"):
        preview_rows(compared, encode_jsonl([score_row(aspect="depth")]), lower_is_better=True)


def test_a_direction_that_was_settled_since_the_check_stores_nothing(compared: Evaluation) -> None:
    importing = preview_rows(compared, encode_jsonl([score_row(value=1)]))
    import_rows(compared, score_row(rater="bob", value=1), lower_is_better=True)
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    assert importing.state == ImportState.FAILED
    assert importing.reason.startswith("For overall, lower scores are better in this evaluation")
    assert Score.all_rows.get().rater.name == "bob"


@pytest.mark.parametrize("margin", [-1.0, float("nan"), float("inf")])
def test_a_margin_is_a_number_from_0_up(compared: Evaluation, margin: float) -> None:
    with pytest.raises(InputRefused, match=r"The tie margin must be 0 or more\."):
        preview_rows(compared, encode_jsonl([score_row()]), derive_pairs=margin)


def test_a_margin_that_makes_all_scores_ties_is_refused(compared: Evaluation) -> None:
    rows = encode_jsonl([score_row(value=1), score_row(candidate="beta", value=5)])
    with pytest.raises(InputRefused) as refused:
        preview_rows(compared, rows, derive_pairs=4)
    assert str(refused.value) == "A tie margin of 4 makes every pair of overall scores a tie: they range from 1 to 5."
    assert preview_rows(compared, rows, derive_pairs=3.5).rows_bad == 0
    assert (
        preview_rows(compared, encode_jsonl([score_row()]), derive_pairs=3.5).rows_bad == 0
    )  # one value says nothing of a scale


def test_another_margin_is_told_and_holds_for_the_scores_that_are_here(compared: Evaluation) -> None:
    rows = [score_row(value=1), score_row(candidate="beta", value=5)]
    import_rows(compared, *rows, derive_pairs=1)
    Rater.objects.update(verdicts_changed_at=None)
    assert import_rows(compared, *rows).summary.warnings[1:] == []  # none given: it stays
    assert Rater.objects.get(name="ann").verdicts_changed_at is None
    again = import_rows(compared, *rows, derive_pairs=2)
    assert again.rows_unchanged == 2
    assert again.summary.warnings[1:] == [
        "The tie margin of overall changes from 1 to 2. Choices derived from existing scores change with it."
    ]
    assert [(version, margin) for version, _, _, _, margin, _ in scales(compared)] == [(1, 1.0), (2, 2.0)]
    changed = Rater.objects.get(name="ann").verdicts_changed_at
    assert changed is not None
    assert changed <= timezone.now()


# ---- pairs ------------------------------------------------------------------------------------


def test_of_every_two_responses_to_a_scored_query_a_comparison_is_made_where_there_is_none() -> None:
    evaluation = make_evaluation()
    names = ("alpha", "beta", "gamma")
    import_rows(evaluation, *(response_row(key, name) for key in ("q1", "q2") for name in names), pair="baseline:beta")
    rows = [score_row(candidate="alpha", value=1), score_row(candidate="gamma", value=2)]
    import_rows(evaluation, *rows)
    assert Comparison.objects.count() == 4
    importing = import_rows(evaluation, *rows, derive_pairs=0)
    assert (importing.rows_unchanged, importing.new_rows) == (2, {"comparisons": 1})
    made = Comparison.objects.get(source_import=importing)
    assert (made.query.key, made.response_a.candidate.name, made.response_b.candidate.name, made.origin) == (
        *("q1", "alpha"),
        *("gamma", "paired"),
    )
    assert importing.summary.notes[1] == ("Responses with scores are paired. Scores within 0 of each other are a tie.")
    assert import_rows(evaluation, *rows, derive_pairs=0).new_rows == {}


def test_pairs_are_made_in_as_many_turns_as_it_takes() -> None:
    evaluation = make_evaluation()
    keys = [f"q{number}" for number in range(50)]
    import_rows(evaluation, *(response_row(key, name) for key in keys for name in ("a", "b")), pair="baseline:a")
    import_rows(evaluation, *(response_row(key, "c") for key in keys), pair="baseline:c")
    assert Comparison.objects.count() == 150
    Comparison.objects.filter(response_a__candidate__name="a", response_b__candidate__name="c").delete()
    rows = [score_row(key, name) for key in keys for name in ("a", "c")]
    importing = preview_rows(evaluation, encode_jsonl(rows), derive_pairs=0)
    start_storing(importing, skip_bad=False, user=None)
    turns = 1
    while continue_import(importing, seconds=0):
        assert not Score.objects.exists()
        turns += 1
    assert turns > 3
    assert Comparison.objects.filter(source_import=importing).count() == 50


# ---- invisible until done, and swept where it will never be ------------------------------------


def half_stored(evaluation: Evaluation) -> Import:
    rows = [score_row(rater=f"p{number}", aspect="tone", rater_kind="judge") for number in range(100)]
    importing = preview_rows(evaluation, encode_jsonl(rows))
    start_storing(importing, skip_bad=False, user=None)
    assert continue_import(importing, seconds=0)
    return importing


def test_nobody_sees_a_score_before_the_last_step(compared: Evaluation) -> None:
    half_stored(compared)
    assert (Score.all_rows.count(), Score.objects.count()) == (64, 0)
    assert not Rubric.objects.filter(name="imported scores").exists()


def test_a_cancelled_import_of_scores_leaves_nothing(compared: Evaluation) -> None:
    discard_import(half_stored(compared), user=None)
    assert sweep_imports() == []
    assert not Score.all_rows.exists()
    assert not Rater.objects.exists()
    assert not Judge.objects.exists()
    assert not Aspect.objects.filter(key="tone").exists()
    assert Comparison.objects.count() == 1


# ---- SQuALITY ---------------------------------------------------------------------------------

REVIEW = {f"{aspect}-{what}": 1 for aspect in ("correctness", "selection", "overall") for what in ("rank", "rating")}


def story(**systems: str) -> dict[str, Any]:
    told = {name: {"response": text, "reviews": [{"worker_id": "3", **REVIEW}]} for name, text in systems.items()}
    return {"passage-id": "50827", "questions": {"0": told}}


def test_a_story_brings_its_responses_and_their_scores_at_once() -> None:
    evaluation = make_evaluation()
    importing = import_rows(evaluation, story(bart="x", human="y"), derive_pairs=0)
    assert importing.new_rows == {"queries": 1, "responses": 2, "scores": 12, "comparisons": 1}
    assert importing.summary.notes[:2] == [
        "Lower scores are better: correctness, overall, selection.",
        "Higher scores are better: correctness_rating, overall_rating, selection_rating.",
    ]
    assert Query.objects.get().cluster == "50827"
    assert import_rows(evaluation, story(bart="x", human="y"), derive_pairs=0).rows_unchanged == 1


def test_a_question_whose_words_are_here_keeps_them() -> None:
    evaluation = make_evaluation()
    row = response_row("50827-0", "bart", query="What is the plot?", response="x", cluster="50827")
    import_rows(evaluation, row)
    importing = import_rows(evaluation, story(bart="x", human="y"), derive_pairs=0)
    assert importing.new_rows == {"responses": 1, "scores": 12, "comparisons": 1}
    assert Query.objects.get().text == "What is the plot?"
    assert Candidate.objects.count() == Response.objects.count() == 2


@pytest.mark.data
def test_squality_is_stored_whole_and_the_second_time_not_at_all(acceptance_data: Path) -> None:
    evaluation = make_evaluation()
    content = (acceptance_data / "squality_human_eval" / "all-responses.jsonl").read_bytes()
    for expected in ((20, 0), (0, 20)):
        importing = preview_rows(evaluation, content, derive_pairs=0)
        start_storing(importing, skip_bad=False, user=None)
        continue_import(importing)
        importing.refresh_from_db()
        assert (importing.rows_stored, importing.rows_unchanged) == expected
    counts = {model: model.all_rows.count() for model in (Query, Response, Comparison, Score, Verdict)}
    assert counts == {Query: 100, Response: 300, Comparison: 300, Score: 900 * 6, Verdict: 0}
    assert {row[2:4] for row in scales(evaluation) if row[5]} == {(1.0, 3.0)}
