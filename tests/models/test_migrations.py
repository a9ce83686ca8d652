"""Databases of earlier versions become what they would be had they been filled by this one."""

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

import evaluations
from evaluations.domain import Markup, cluster_number
from evaluations.models import Ballot, Evaluation, Query, Response
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
