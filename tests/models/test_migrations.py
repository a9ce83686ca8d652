"""What the database has beyond its models, and what a database of another version is told."""

import ast
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

import evaluations
from evaluations.models.evaluations import Evaluation
from evaluations.models.migration_history import unknown_migrations
from evaluations.models.verdicts import Label, Review, Verdict
from evaluations.operations.doctor import check_database
from evaluations.operations.findings import Health
from tests.factories.evaluations import make_evaluation

MIGRATIONS = Path(evaluations.__file__).parent / "migrations"
EARLIER_EXPORT = Path(__file__).parent / "earlier_export"
NAMES = ["0001_release_0_1_0", "0002_search_tables"]


@pytest.mark.django_db
def test_every_migration_is_applied_after_those_of_the_release() -> None:
    applied = MigrationRecorder(connection).migration_qs.filter(app="evaluations").order_by("name")
    names = list(applied.values_list("name", flat=True))
    assert names[:2] == NAMES
    assert names == sorted(file.stem for file in MIGRATIONS.glob("0*.py"))
    assert "evaluations_words" in connection.introspection.table_names()
    assert unknown_migrations() == []


@pytest.mark.django_db(transaction=True)
def test_the_search_tables_can_be_dropped_and_created_again() -> None:
    try:
        MigrationExecutor(connection).migrate([("evaluations", NAMES[0])])
        assert "evaluations_words" not in connection.introspection.table_names()
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes("evaluations"))
    assert "evaluations_words" in connection.introspection.table_names()


@pytest.fixture
def database_of_another_version(db: None) -> None:
    recorder = MigrationRecorder(connection)
    for name in ("0001_initial", "0031_comparisons_by_hand"):
        recorder.record_applied("evaluations", name)


@pytest.mark.usefixtures("database_of_another_version")
@pytest.mark.parametrize("command", ["migrate", "make_ready"])
def test_a_database_of_another_version_is_refused_and_left_alone(command: str) -> None:
    with pytest.raises(CommandError) as refusal:
        call_command(command, stdout=io.StringIO())
    sentence = str(refusal.value)
    assert "0031_comparisons_by_hand, which this version does not know. Nothing was changed." in sentence
    assert "export “Everything” and “Verdicts” of each evaluation, and import both files" in sentence
    assert not Evaluation.objects.exists()
    assert unknown_migrations() == ["0001_initial", "0031_comparisons_by_hand"]


@pytest.mark.usefixtures("database_of_another_version")
def test_the_doctor_says_that_a_database_belongs_to_another_version() -> None:
    (found,) = (finding for finding in check_database() if finding.health == Health.PROBLEM)
    assert "belongs to another version of judgeweb" in found.summary


@pytest.mark.django_db
def test_an_evaluation_of_an_earlier_version_is_carried_over_by_two_of_its_exports() -> None:
    evaluation = make_evaluation(slug="carried")
    for command, file in (("import_comparisons", "everything.jsonl"), ("import_verdicts", "verdicts.jsonl")):
        call_command(command, "carried", str(EARLIER_EXPORT / file), stdout=io.StringIO())
    exported = [json.loads(line) for line in (EARLIER_EXPORT / "everything.jsonl").read_text().splitlines()]
    comparisons = {one.query.key: one for one in evaluation.comparisons.select_related("query")}
    assert set(comparisons) == {row["query_id"] for row in exported}
    for row in exported:
        labels = Label.objects.filter(comparison=comparisons[row["query_id"]]).select_related("aspect")
        changed = {
            key for person in row["people"] for key, said in person["choices"].items() if said["first"] != said["final"]
        }
        carried = {label.aspect.key: label.choice for label in labels if label.aspect.key not in changed}
        assert carried == {key: one["choice"] or "" for key, one in row["labels"].items() if key not in changed}
        votes = Verdict.objects.filter(comparison=comparisons[row["query_id"]])
        for person in row["people"]:
            told = dict(votes.filter(rater__name=person["rater"]).values_list("aspect__key", "choice"))
            assert told == {key: said["first"] for key, said in person["choices"].items()}
        for judge in row["judges"]:
            assert votes.filter(rater__name=judge["judge"]).count() == 2 * len(judge["choices"])
    assert not Review.objects.exists()  # lost, with the choices that were changed after the judge was shown


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", "--check", "--dry-run", stdout=io.StringIO())


@pytest.mark.parametrize("file", sorted(MIGRATIONS.glob("0*.py")), ids=lambda file: file.stem)
def test_a_migration_rests_on_nothing_that_may_change(file: Path) -> None:
    """What the program does by now is no rule for what it did then."""
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert imported
    assert not {name for name in imported if name.split(".")[0] == "evaluations"}
