"""A backup and what is restored of it: every row, every reference, nothing of what is broken."""

import hashlib
import io
import json
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings, settings
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.backups import services as backups_services
from evaluations.backups.selectors import BACKUP_TABLES, EXCLUDED_MODELS, MATCHED_MODELS, build_backup
from evaluations.backups.services import RestoredEvaluation, restore_backup
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.imports import ImportRequest
from evaluations.domain.judges import BatchState, RunState
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.judges.endpoints.grants import grant_endpoint, is_granted
from evaluations.judges.runs.services import start_run
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.imports import Import
from evaluations.models.judges import Endpoint, Price
from evaluations.models.runs import Batch, Call, Run
from evaluations.models.users import User
from evaluations.reports.selectors import get_full_report
from evaluations.reviews.answers import SingleScore
from evaluations.reviews.queues.items import ensure_queue_is_filled
from evaluations.reviews.services import save_first_choices
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.evaluations import make_comparison, make_evaluation, make_member
from tests.factories.full_evaluation import make_full_evaluation
from tests.factories.imports import import_rows
from tests.factories.verdicts import ALL_A, ALL_B, ALL_TIE, make_judge_rater, make_judge_verdicts, make_review
from tests.helpers.running_product import ROOT, environment_for

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_folder(settings: LazySettings, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For uploads: other processes of the same run store theirs meanwhile."""
    settings.MEDIA_ROOT = str(tmp_path_factory.mktemp("media"))


def backup_of(evaluation: Evaluation) -> bytes:
    return b"".join(build_backup(evaluation))


def restored_from(content: bytes, **options: Any) -> RestoredEvaluation:
    return restore_backup(io.BytesIO(content), name="study.zip", **{"slug": "restored-study", **options})


def tables_in(content: bytes) -> dict[str, list[Any]]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {
            Path(name).stem: [json.loads(line) for line in file.read(name).splitlines()]
            for name in file.namelist()
            if name.startswith("tables/")
        }


def changed(content: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """The same ZIP with one of its files changed."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(written, "w") as new:
        for entry in old.namelist():
            new.writestr(entry, change(old.read(entry)) if entry == name else old.read(entry))
    return written.getvalue()


def test_every_table_of_the_product_is_backed_up_or_left_out_on_purpose() -> None:
    named = [*(table.model for table in BACKUP_TABLES), *EXCLUDED_MODELS, *MATCHED_MODELS]
    assert len(named) == len(set(named))
    assert set(named) == set(apps.get_app_config("evaluations").get_models())


def test_a_row_of_every_kind_comes_back_and_refers_to_what_it_did() -> None:
    """All ids of the one are 770,100; of the other each is that of its own table."""
    original = make_full_evaluation(770_100).evaluation
    Run.objects.update(state=RunState.DONE)
    Batch.objects.update(state=BatchState.DONE)
    Import.objects.update(state=ImportState.DONE)
    content = backup_of(original)
    restored = restored_from(content).evaluation
    again = tables_in(backup_of(restored))
    before = tables_in(content)
    assert set(again) == set(before) == {table.name for table in BACKUP_TABLES}
    for table in BACKUP_TABLES:
        references = {table.columns[0], *(f.column for f in table.fields if f.is_relation)}
        plain = [place for place, name in enumerate(table.columns) if name not in references]
        rows = [[row[place] for place in plain] for row in again[table.name][1:] if table.name != "event"]
        told = [[row[place] for place in plain] for row in before[table.name][1:] if table.name != "event"]
        if table.name in ("comparison", "import", "run", "savedfilter"):
            assert len(rows) == len(told)  # what they say of ids is another test's
        else:
            assert rows == told, table.name


def study() -> Evaluation:
    """People and a judge on comparisons that came in a file."""
    evaluation = make_evaluation()
    rows = [
        {"query_id": f"q{n}", "query": f"Question {n}?", "candidate_a": "x", "response_a": f"one {n}"}
        | {"candidate_b": "y", "response_b": f"two {n}", "category": "é"}
        for n in range(4)
    ]
    file = io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())
    brought = preview_file(evaluation, file, "rows.jsonl", ImportRequest(), user=None)
    start_storing(brought, skip_bad=False, user=None)
    continue_import(brought)
    people = [evaluation.raters.create(kind="human", name=name) for name in ("ann", "bob")]
    said = (ALL_A, ALL_B, ALL_TIE, ALL_A)
    for number, comparison in enumerate(evaluation.comparisons.order_by("pk")):
        make_judge_verdicts(comparison, as_stored=said[number], swapped=ALL_TIE)
        for place, person in enumerate(people):
            make_review(person, comparison, said[(number + place) % 4])
    return evaluation


def exported(evaluation: Evaluation) -> bytes:
    export = start_export(evaluation, written_as="jsonl", user=None)
    return b"".join(stream_export(export, evaluation.comparisons.all()))


def report_in_words(evaluation: Evaluation) -> str:
    """Without the numbers of rows, which are others in each copy."""
    told = json.dumps(get_full_report(evaluation, ReportRules()).as_json(), indent=1, allow_nan=False)
    return re.sub(r'"rater_id": \d+', '"rater_id": 0', told)


def test_what_was_restored_exports_and_reports_the_same() -> None:
    original = study()
    restored = restored_from(backup_of(original)).evaluation
    assert exported(restored) == exported(original)
    assert exported(original).count(b'"ann"') > 0
    told, again = map(report_in_words, (original, restored))
    assert again.replace(restored.slug, "") == told.replace(original.slug, "")
    assert "krippendorff_alpha" in told


def test_a_site_with_a_database_of_its_own_gives_it_back_the_same(tmp_path: Path) -> None:
    """An SQLite database: on PostgreSQL this is the way to the other database and back."""
    original, out, back = study(), tmp_path / "out.zip", tmp_path / "back.zip"
    out.write_bytes(backup_of(original))
    there = environment_for(tmp_path / "there", DATABASE_URL="")
    for command in (["migrate"], ["restore", str(out)], ["backup", original.slug, "--out", str(back)]):
        subprocess.run([sys.executable, "manage.py", *command, "-v", "0"], cwd=ROOT, env=there, check=True, timeout=120)
    restored = restored_from(back.read_bytes()).evaluation
    assert exported(restored) == exported(original)
    told, again = map(report_in_words, (original, restored))
    assert again.replace(restored.slug, "") == told.replace(original.slug, "")


def test_what_comparisons_repeat_of_their_responses_is_that_of_the_copy() -> None:
    restored = restored_from(backup_of(study())).evaluation
    for one in restored.comparisons.select_related("response_a", "response_b", "query"):
        assert one.candidate_a == one.response_a.candidate_id
        assert one.candidate_b == one.response_b.candidate_id
        assert one.category == one.query.category == "é"
    assert restored.candidates.filter(pk=restored.comparisons.all()[0].candidate_a).exists()


def test_reviews_of_single_responses_come_back() -> None:
    evaluation = make_evaluation(slug="study")
    row = {"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": "Because."}
    import_rows(evaluation, row, format="responses")
    version = create_builtin_rubric(evaluation, builtin="summary-rating", user=None)
    change_evaluation(evaluation, {"review_rubric": version}, user=None)
    ensure_queue_is_filled(evaluation)
    reviewer = make_member(evaluation, Role.REVIEWER)
    save_first_choices(reviewer, Comparison.reviewable.get(), choices={"overall": SingleScore(4)}, version=0)
    restored = restored_from(backup_of(evaluation)).evaluation
    single = Comparison.reviewable.get(evaluation=restored)
    assert single.is_single
    assert single.response_a.query.evaluation == restored
    assert {score.value for score in single.reviews.get().scores.all()} == {4.0}


def test_the_uploaded_file_comes_along() -> None:
    restored = restored_from(backup_of(study())).evaluation
    [brought] = Import.objects.filter(evaluation=restored)
    assert brought.file.read().startswith(b'{"query_id": "q0"')
    assert brought.file_name == "rows.jsonl"


def test_it_can_be_restored_beside_itself_again_and_again() -> None:
    content = backup_of(study())
    slugs = [restored_from(content, slug=f"copy-{n}").evaluation.slug for n in range(3)]
    assert slugs == ["copy-0", "copy-1", "copy-2"]
    assert Evaluation.objects.count() == 4
    make_comparison(Evaluation.objects.get(slug="copy-2"))  # the next ids are free


def test_the_same_evaluation_gives_the_same_bytes() -> None:
    evaluation = study()
    assert backup_of(evaluation) == backup_of(evaluation)


def test_people_are_matched_by_name_and_strangers_cannot_sign_in() -> None:
    evaluation = study()
    owner = evaluation.memberships.get().user
    content = backup_of(evaluation)
    assert restored_from(content, slug="one").matched == (owner.username,)
    User.objects.filter(pk=owner.pk).update(username="somebody-else")
    restored = restored_from(content, slug="two")
    assert restored.made == (owner.username,)
    made = User.objects.get(username=owner.username)
    assert (made.is_active, made.has_usable_password()) == (False, True) or not made.has_usable_password()
    assert [one.user for one in restored.evaluation.memberships.all()] == [made]


def test_whoever_restores_may_own_it_too() -> None:
    person = User.objects.create_user("rita")
    restored = restored_from(backup_of(study()), owner=person).evaluation
    assert restored.memberships.get(user=person).role == "owner"
    assert Event.objects.filter(evaluation=restored, verb="restored", user=person).count() == 1


def test_an_endpoint_of_the_same_address_and_key_is_used_and_no_other() -> None:
    evaluation = study()
    endpoint = Endpoint.objects.create(name="e", base_url="https://example.org/v1", key_variable="A_API_KEY")
    evaluation.judges.update(endpoint=endpoint, kind="llm", rubric_version=evaluation.review_rubric, model="m")
    content = backup_of(evaluation)
    assert {one.endpoint for one in restored_from(content, slug="one").evaluation.judges.all()} == {endpoint}
    Endpoint.objects.filter(pk=endpoint.pk).update(key_variable="B_API_KEY")
    [judge] = restored_from(content, slug="two").evaluation.judges.all()
    assert judge.endpoint is not None
    assert (judge.endpoint.name, judge.endpoint.key_variable) == ("e 2", "")


def judged_by_a_model() -> tuple[Evaluation, Endpoint]:
    """A study whose judge is asked at an endpoint that sends a second secret."""
    evaluation = study()
    endpoint = Endpoint.objects.create(
        name="the gate",
        base_url="https://example.org/v1",
        key_variable="A_API_KEY",
        max_in_flight=7,
        timeout_seconds=30,
        extra_headers={"X-Title": "t", "X-Gate": "Bearer $JUDGEWEB_KEY_GATE"},
        extra_query={"version": "2", "gate": "$JUDGEWEB_KEY_GATE"},
        extra_body={"top_p": 0.9, "metadata": {"gate": ["$JUDGEWEB_KEY_GATE"]}},
    )
    Price.objects.create(endpoint=endpoint, model="m", tokens_in=1, tokens_cached=2, tokens_out=3, source="s")
    evaluation.judges.update(endpoint=endpoint, kind="llm", rubric_version=evaluation.review_rubric, model="m")
    return evaluation, endpoint


@pytest.mark.parametrize("budget", [None, 1_000_000_000])
def test_a_restored_evaluation_may_use_no_endpoint_that_is_not_offered(budget: int | None) -> None:
    evaluation, endpoint = judged_by_a_model()
    grant_endpoint(endpoint, evaluation, budget=budget, user=None)
    restored = restored_from(backup_of(evaluation), slug="one")
    assert (restored.ungranted, restored.new_endpoints) == ((endpoint,), ())
    assert not is_granted(endpoint, restored.evaluation)
    with pytest.raises(InputRefused, match="is not granted to this evaluation"):
        start_run(restored.evaluation.judges.get(), user=None)
    Endpoint.objects.update(is_offered=True)
    assert restored_from(backup_of(evaluation), slug="two").ungranted == ()


def test_an_endpoint_that_is_new_to_the_site_is_sent_no_secret_and_offered_to_nobody() -> None:
    evaluation, endpoint = judged_by_a_model()
    content = with_manifest_endpoint(
        backup_of(evaluation), base_url="https://evil.example/v1", is_offered=True, daily_budget=1, paused_until="2030"
    )
    restored = restored_from(content)
    [made] = restored.new_endpoints
    assert restored.ungranted == (made,)
    assert (made.name, made.base_url, made.key_variable) == ("the gate 2", "https://evil.example/v1", "")
    assert (made.is_offered, made.daily_budget, made.paused_until) == (False, None, None)
    assert (made.max_in_flight, made.timeout_seconds) == (7, 30)
    assert (made.extra_headers, made.extra_query, made.extra_body) == (
        {"X-Title": "t"},
        {"version": "2"},
        {"top_p": 0.9},
    )
    columns = ("model", "tokens_in", "tokens_cached", "tokens_out", "batch_percent", "source")
    assert list(made.prices.values_list(*columns)) == list(endpoint.prices.values_list(*columns))
    assert Event.objects.get(object_type="endpoint", verb="created").after["base_url"] == made.base_url


def with_manifest_endpoint(content: bytes, **columns: Any) -> bytes:
    def change(text: bytes) -> bytes:
        manifest = json.loads(text)
        [endpoint] = manifest["endpoints"].values()
        endpoint.update(columns)
        return json.dumps(manifest).encode()

    return changed(content, "manifest.json", change)


def test_an_answer_that_another_evaluation_bought_stands_on_its_own() -> None:
    evaluation, other = study(), study()
    bought = Call.objects.filter(judge__evaluation=other).first()
    Call.objects.filter(judge__evaluation=evaluation).update(copied_from=bought)
    restored = restored_from(backup_of(evaluation)).evaluation
    assert set(Call.objects.filter(judge__evaluation=restored).values_list("copied_from", flat=True)) == {None}


def test_nothing_is_backed_up_while_requests_of_a_paused_run_are_in_flight() -> None:
    evaluation = study()
    call = Call.all_rows.filter(run__evaluation=evaluation).order_by("pk").last()
    assert call is not None
    Call.all_rows.filter(pk=call.pk).update(
        state="running", lease=uuid.uuid4(), lease_until=Now() + timedelta(minutes=1)
    )
    with pytest.raises(InputRefused, match="Wait a moment, then back up"):
        backup_of(evaluation)


def test_nothing_is_backed_up_while_a_run_is_under_way() -> None:
    evaluation = study()
    start_run(make_judge_rater(evaluation, "other").judge, user=None)  # type: ignore[arg-type]
    with pytest.raises(InputRefused, match="Pause or cancel it, then back up"):
        backup_of(evaluation)


# ---- what is refused -------------------------------------------------------------------------


def refused(content: bytes, **options: Any) -> str:
    before = Evaluation.objects.count(), User.objects.count(), Event.objects.count()
    with pytest.raises(InputRefused) as refusal:
        restored_from(content, **options)
    assert (Evaluation.objects.count(), User.objects.count(), Event.objects.count()) == before
    return str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b'{"query_id": "q1"}\n', b"PK\x05\x06" + b"\x00" * 18])
def test_what_is_no_backup_is_refused(content: bytes) -> None:
    assert refused(content).startswith("study.zip cannot be restored: it is ")


def test_a_backup_that_was_cut_off_is_refused() -> None:
    content = backup_of(study())
    assert "it is damaged or not a ZIP" in refused(content[: len(content) // 2])


def test_a_table_that_is_not_what_the_manifest_says_is_refused() -> None:
    content = backup_of(study())
    cut = changed(content, "tables/verdict.jsonl", lambda table: table[: table.rindex(b"\n", 0, -1) + 1])
    assert "its table of verdicts is not what its manifest says. Nothing was stored." in refused(cut)
    odd = changed(content, "tables/query.jsonl", lambda table: table.replace(b"Question 1", b"Question 2"))
    assert "its table of queries is not what its manifest says" in refused(odd)


def with_manifest(content: bytes, **said: Any) -> bytes:
    return changed(content, "manifest.json", lambda text: json.dumps({**json.loads(text), **said}).encode())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"migration": "9999_later"}, "which is newer: upgrade this site first"),
        ({"version": 3}, "which is newer"),
        ({"version": 1}, "a version of judgeweb before release 0.1.0 made it"),
        ({"kind": "something"}, "the manifest has no format name"),
        ({"people": []}, "its manifest is damaged"),
        ({"evaluation": {"slug": "x"}}, "its manifest is damaged"),
    ],
)
def test_a_manifest_that_cannot_be_followed_is_refused(said: dict[str, Any], why: str) -> None:
    assert why in refused(with_manifest(backup_of(study()), **said))


def files_stored() -> set[Path]:
    return {path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()}


def test_an_upload_that_is_missing_or_damaged_is_found_before_anything_is_stored() -> None:
    content = backup_of(study())
    [name] = [one for one in zipfile.ZipFile(io.BytesIO(content)).namelist() if one.startswith("files/")]
    with_another = with_manifest(content, files={"files/9/none.jsonl": {"import": 1}})
    assert "its file files/9/none.jsonl is missing or damaged" in refused(with_another)
    stored = changed(content, "", bytes)  # as it is, without compression
    damaged = stored.replace(b'{"query_id": "q0"', b'{"query_id": "q9"', 1)
    assert damaged != stored
    assert f"its file {name} is missing or damaged. Nothing was stored." in refused(damaged)


def test_a_file_is_never_stored_outside_its_folder() -> None:
    evaluation = study()
    Import.objects.filter(evaluation=evaluation).update(file_name="../../elsewhere.jsonl")
    before = files_stored()
    assert "has an unsafe name" in refused(backup_of(evaluation))
    assert files_stored() == before
    assert not list(Path(settings.MEDIA_ROOT).parent.glob("*elsewhere*"))


def test_no_file_stays_of_a_restore_that_failed_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> None:
        raise IntegrityError("rows that contradict each other")

    content, before = backup_of(study()), files_stored()
    monkeypatch.setattr(backups_services, "schedule_indexing", failing)
    assert "its rows contradict each other" in refused(content)
    assert files_stored() == before


def test_a_slug_that_is_taken_is_refused() -> None:
    evaluation = study()
    assert "Choose another URL name with --slug" in refused(backup_of(evaluation), slug="")


def test_a_run_at_work_in_a_backup_is_refused() -> None:
    content = with_table(backup_of(study()), "run", state="running")
    assert "is in progress. Pause or cancel it, then back up." in refused(content)


def test_an_archived_run_comes_back_archived() -> None:
    evaluation = study()
    assert evaluation.runs.exists()
    archived_at = timezone.now()
    evaluation.runs.update(archived_at=archived_at)
    restored = restored_from(backup_of(evaluation)).evaluation
    assert {run.archived_at for run in restored.runs.all()} == {archived_at}


def test_what_a_run_keeps_back_is_not_read() -> None:
    evaluation = study()
    content = with_table(with_table(backup_of(evaluation), "run", reserved=5), "call", reserved=5)
    restored = restored_from(content).evaluation
    assert {run.reserved for run in Run.objects.filter(evaluation=restored)} == {0}
    assert {call.reserved for call in Call.objects.filter(judge__evaluation=restored)} == {0}


def with_table(content: bytes, table: str, **values: Any) -> bytes:
    """The backup with these values in every row of a table, and its sum."""
    columns, *rows = tables_in(content)[table]
    for row in rows:
        for column, value in values.items():
            row[columns.index(column)] = value
    lines = "".join(json.dumps(line) + "\n" for line in (columns, *rows)).encode()
    content = changed(content, f"tables/{table}.jsonl", lambda _: lines)
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        recorded = json.loads(file.read("manifest.json"))["tables"]
    recorded[table]["sha256"] = hashlib.sha256(lines).hexdigest()
    return with_manifest(content, tables=recorded)


# ---- the commands ----------------------------------------------------------------------------


def test_the_commands_say_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluation = study()
    path = tmp_path / "study.zip"
    call_command("backup", evaluation.slug, out=path)
    assert [one.name for one in tmp_path.iterdir()] == ["study.zip"]
    call_command("restore", path, slug="elsewhere")
    assert f"Restored “{evaluation.name}” as elsewhere" in capsys.readouterr().out
    with pytest.raises(CommandError, match="An evaluation “elsewhere” already exists"):
        call_command("restore", path, slug="elsewhere")
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("restore", tmp_path / "none.zip")
    with pytest.raises(CommandError, match="No account “nobody”"):
        call_command("restore", path, owner="nobody")


def test_the_command_says_what_an_administrator_has_to_grant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation, endpoint = judged_by_a_model()
    path = tmp_path / "study.zip"
    path.write_bytes(backup_of(evaluation))
    call_command("restore", path, slug="one")
    said = capsys.readouterr().out
    assert "Endpoint “the gate” is not granted to this evaluation" in said
    assert "manage.py grant_endpoint 'the gate' one --budget USD\n" in said
    assert "is new here" not in said
    Endpoint.objects.filter(pk=endpoint.pk).update(key_variable="B_API_KEY")
    call_command("restore", path, slug="two")
    said = capsys.readouterr().out
    assert "Endpoint “the gate 2” (https://example.org/v1) is new here, without a key: " in said
    assert "manage.py grant_endpoint 'the gate 2' two --budget USD\n" in said
