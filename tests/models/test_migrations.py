"""Databases of earlier versions become what they would be had they been filled by this one."""

import ast
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

import evaluations
from evaluations.domain import Markup, cluster_number
from evaluations.models import Ballot, Call, Evaluation, Query, Response
from evaluations.services.reporting.items import known_comparisons
from tests.ballots import assert_recounted

MIGRATIONS = Path(evaluations.__file__).parent / "migrations"
BEFORE_BALLOTS = [("evaluations", "0006_indexes_of_raters")]


def migrated(targets: list[tuple[str, str]]) -> Any:
    """The database as it was after that migration, and the models of that time."""
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def newest() -> Iterator[list[tuple[str, str]]]:
    leaves = [node for node in MigrationExecutor(connection).loader.graph.leaf_nodes() if node[0] == "evaluations"]
    yield leaves
    migrated(leaves)


def store_a_comparison(apps: Any) -> Any:
    """With the models of another time: all that they hold of it are its columns."""
    models = {name: apps.get_model("evaluations", name) for name in ("Evaluation", "Query", "Candidate", "Response")}
    evaluation = models["Evaluation"].objects.create(slug="old", name="Old")
    query = models["Query"].objects.create(
        evaluation=evaluation, key="q1", cluster="one", messages=[], text="Why?", sha256="", category="math"
    )
    responses = [
        models["Response"].objects.create(
            query=query,
            candidate=models["Candidate"].objects.create(evaluation=evaluation, name=name),
            messages=[{"role": "assistant", "content": text}],
            sha256=name,
            characters=len(text),
        )
        for name, text in (("alpha", "- one\n- two"), ("beta", "One, two."))
    ]
    return apps.get_model("evaluations", "Comparison").objects.create(
        evaluation=evaluation,
        query=query,
        response_a=responses[0],
        response_b=responses[1],
        origin="by_hand",
        shuffle=1,
    )


def store_votes(apps: Any, comparison: Any) -> None:
    """From a file: on two aspects at different moments, on a third at that of the first."""
    get = apps.get_model
    importing = get("evaluations", "Import").objects.create(
        evaluation=comparison.evaluation, file_name="votes.jsonl", sha256="", format="verdicts", state="done"
    )
    rater = get("evaluations", "Rater").objects.create(evaluation=comparison.evaluation, kind="human", name="ann")
    for key, day in (("safety", 1), ("depth", 9), ("tone", 1)):
        aspect = get("evaluations", "Aspect").objects.create(evaluation=comparison.evaluation, key=key, name=key)
        verdict = get("evaluations", "Verdict").objects.create(
            rater=rater, comparison=comparison, aspect=aspect, choice="A", shown="unknown", source_import=importing
        )
        get("evaluations", "Verdict").objects.filter(pk=verdict.pk).update(
            created_at=datetime(2026, 3, day, 12, 30, 0, 250_999, tzinfo=UTC)
        )


@pytest.mark.django_db(transaction=True)
def test_what_is_known_of_comparisons_that_were_there_before_is_filled_in(newest: list[tuple[str, str]]) -> None:
    before = migrated(BEFORE_BALLOTS)
    store_votes(before, store_a_comparison(before))
    migrated(newest)
    assert_recounted()
    assert Ballot.objects.count() == 2
    assert Query.objects.get().cluster_number == cluster_number("one")
    assert list(Response.objects.order_by("pk").values_list("markup", flat=True)) == [Markup.LIST, 0]
    evaluation = Evaluation.objects.get()
    assert evaluation.comparisons_changed_at is not None
    assert known_comparisons(evaluation).categories == ("math",)


@pytest.mark.django_db(transaction=True)
def test_a_later_migration_can_store_rows(newest: list[tuple[str, str]]) -> None:
    store_a_comparison(migrated(newest))
    assert Query.objects.get().key == "q1"


BEFORE_TESTS = [("evaluations", "0034_suspect_calls")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("run", "is_test"),
    [
        (None, True),
        ({"filters": {"after": [1, 99_999_999], "done": 1}}, False),
        ({"filters": {"after": [0, 1], "done": 1}}, True),
        ({"filters": {"after": [1, 99_999_999], "done": 1}, "orders": "swapped"}, True),
        ({"filters": {"after": 5, "only_states": ["failed"]}}, True),
        ({"filters": {"after": [1, 99_999_999], "slice": {"name": "hard", "filter": {}}}}, True),
    ],
)
def test_calls_that_no_run_selected_beside_a_test_become_test_calls(
    newest: list[tuple[str, str]], run: dict[str, Any] | None, is_test: bool
) -> None:
    before = migrated(BEFORE_TESTS)
    comparison = store_a_comparison(before)
    rows = {name: before.get_model("evaluations", name) for name in ("Judge", "Rater", "Run", "Call", "Ballot")}
    brought = {"evaluation": comparison.evaluation, "name": "judge"}
    rubric = before.get_model("evaluations", "Rubric").objects.create(
        evaluation=comparison.evaluation, name="r", kind="pairwise", origin="own"
    )
    version = before.get_model("evaluations", "RubricVersion").objects.create(rubric=rubric, number=1, sha256="")
    judge = rows["Judge"].objects.create(**brought, kind="rule", model="longest", rubric_version=version)
    rater = rows["Rater"].objects.create(**brought, kind="judge", judge=judge)
    of_judge = {"evaluation": comparison.evaluation, "judge": judge, "batch": uuid.uuid4(), "state": "done"}
    test = rows["Run"].objects.create(**of_judge, orders="as-stored", filters={"comparison": comparison.pk})
    if run is not None:
        rows["Run"].objects.create(**of_judge, **run)
    call = rows["Call"].objects.create(
        judge=judge, run=test, comparison=comparison, shown="as_stored", state="answered"
    )
    rows["Ballot"].objects.create(rater=rater, comparison=comparison, shown=0, call=call, first=1)
    migrated(newest)
    assert Call.all_rows.get().is_test == is_test
    assert Ballot.all_rows.exists() != is_test


@pytest.mark.parametrize("file", sorted(MIGRATIONS.glob("0*.py")), ids=lambda file: file.stem)
def test_a_migration_rests_on_nothing_that_may_change(file: Path) -> None:
    """What the program does by now is no rule for what it did then."""
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert not {name for name in imported if name.split(".")[0] == "evaluations"}
