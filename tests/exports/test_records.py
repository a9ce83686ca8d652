"""What an export rests on, which comparisons it holds, and what becomes of one that a worker writes."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import datasets
import pytest
from django.core.files.base import ContentFile

from evaluations.domain.choices import Choice, LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ExportState
from evaluations.domain.jobs import JobState
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import Role
from evaluations.domain.splits import Split, SplitPart
from evaluations.exports import services as exports_services
from evaluations.exports import writer
from evaluations.exports.failures import INTERRUPTED
from evaluations.exports.options import ExportRequest
from evaluations.exports.participants import assign_pseudonyms
from evaluations.exports.requests import open_export_file
from evaluations.exports.selectors import build_manifest, preview_export
from evaluations.exports.services import delete_export_file, start_export, stop_export
from evaluations.exports.writer import join_blocks, stream_export
from evaluations.formats import hugging_face_export
from evaluations.formats.export_format import encode_manifest
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.jobs import kinds
from evaluations.jobs.kinds import ATTEMPTS, LeaseLost
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.jobs import Job
from evaluations.models.judges import Rater
from evaluations.models.selection import build_part_lookup, get_default_split, select_report_comparisons
from evaluations.models.transactions import PROCESS_STOPPING
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment
from evaluations.stats.rule_descriptions import describe_rules
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.verdicts import get_or_make_aspect, make_imported_votes, make_judge_verdicts, make_review
from tests.helpers.job_work import job_about, kill_worker_at, work_once

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE
CLARITY = ExportRequest(aspect="clarity")


@pytest.fixture
def study(evaluation: Evaluation) -> Evaluation:
    """A person, a judge alone, a tie of people, a split, and nobody."""
    made = [make_comparison(evaluation, key=f"q{number}", query=f"Question {number}?") for number in range(5)]
    ann = make_human(evaluation, "ann")
    make_review(ann, made[0], {"clarity": A})
    make_judge_verdicts(made[0], kind="llm", as_stored={"clarity": B}, swapped={"clarity": B}, rationale="So it is.")
    make_judge_verdicts(made[1], kind="llm", as_stored={"clarity": B}, swapped={"clarity": B})
    make_review(ann, made[2], {"clarity": TIE})
    make_review(ann, made[3], {"clarity": A})
    make_review(make_human(evaluation, "bob"), made[3], {"clarity": B})
    update_labels(one.pk for one in made)
    return evaluation


def exported(evaluation: Evaluation, written_as: str, wanted: ExportRequest) -> tuple[Export, bytes]:
    export = start_export(evaluation, written_as=written_as, user=None, request=wanted)
    written = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    return export, written


def rows_in(written: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.splitlines()]


def test_labels_read_alone_are_those_that_are_read_with_everything(study: Evaluation) -> None:
    lean = {row["query_id"]: row for row in rows_in(exported(study, "dpo", CLARITY)[1])}
    whole = {row["query_id"]: row["labels"] for row in rows_in(exported(study, "jsonl", ExportRequest())[1])}
    assert {key: labels["clarity"]["choice"] for key, labels in whole.items() if labels} == {
        "q0": "A",
        "q1": "B",
        "q2": "tie",
        "q3": None,
    }
    assert sorted(lean) == ["q0", "q1"]
    assert [lean[key]["chosen_model"] for key in sorted(lean)] == ["alpha", "beta"]


def test_the_record_says_what_was_left_out_and_what_the_rows_rest_on(study: Evaluation) -> None:
    export, _ = exported(study, "dpo", CLARITY)
    assert export.counts["comparisons"] == 5
    assert export.counts["labels"] == {"judge": 1, "single": 2, "split": 1}
    assert export.counts["excluded"] == {"no_label": 1, "split": 1, "tie": 1}
    told = build_manifest(export)
    assert told["file"]["sha256"] == export.sha256
    assert (told["label_policy"], told["options"]["aspect"]) == ("people_then_judges", "clarity")
    assert [rubric["name"] for rubric in told["rubrics"]] == ["six-aspect 1"]
    assert [len(judge["fingerprint"]) > 0 for judge in told["judges"]] == [True]
    assert told["product"]["name"] == "judgeweb"
    assert json.loads(encode_manifest(told)) == told


def test_a_policy_of_people_alone_leaves_judges_labels_out(study: Evaluation) -> None:
    export, written = exported(study, "dpo", ExportRequest(aspect="clarity", policy=LabelPolicy.PEOPLE))
    assert [row["query_id"] for row in rows_in(written)] == ["q0"]
    assert export.label_policy == "people"


def test_what_the_page_foresees_is_what_is_written(study: Evaluation) -> None:
    owner = User.objects.get(memberships__evaluation=study)
    foreseen = preview_export(study, "dpo", CLARITY, user=owner, seconds=60)
    export, _ = exported(study, "dpo", CLARITY)
    assert (foreseen.whole, foreseen.comparisons, foreseen.tally.rows) == (True, 5, export.rows)
    assert dict(foreseen.tally.excluded) == export.counts["excluded"]
    assert ("ties", 1) in foreseen.excluded


def test_each_part_alone_and_all_parts_together_hold_the_same(study: Evaluation) -> None:
    split = Split("study", 40, 30, 30)
    whole = rows_in(exported(study, "jsonl", ExportRequest(split=split))[1])
    for part in SplitPart:
        alone = rows_in(exported(study, "jsonl", ExportRequest(split=split, part=part))[1])
        assert [row["query_id"] for row in alone] == [row["query_id"] for row in whole if row["split"] == part]
    assert len({row["split"] for row in whole}) > 1


def test_clusters_that_share_a_query_are_in_one_part_in_sql_and_in_python(evaluation: Evaluation) -> None:
    for number in range(40):
        make_comparison(evaluation, key=f"q{number}", query=f"Question {number // 2}?")
    for number, query in enumerate(Query.objects.order_by("pk")):
        Query.objects.filter(pk=query.pk).update(sha256=f"{number // 2:064}")
    part_of = build_part_lookup(evaluation, get_default_split(evaluation))
    parts = [part_of(f"q{number}") for number in range(40)]
    assert parts[::2] == parts[1::2]
    everything = Comparison.objects.filter(evaluation=evaluation)
    for part in SplitPart:
        found = select_report_comparisons(everything, evaluation, ReportRules(part=part)).values_list(
            "query__key", flat=True
        )
        assert sorted(found) == sorted(f"q{number}" for number in range(40) if parts[number] == part)
    assert "test part" in describe_rules(ReportRules(part=SplitPart.TEST))["comparisons"]


def test_nobody_is_named_in_an_anonymised_export_and_names_are_the_same_in_the_next(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    ann, zoe = make_member(evaluation, Role.ADJUDICATOR, "ann"), make_member(evaluation, Role.ADJUDICATOR, "zoe")
    make_review(Rater.objects.create(evaluation=evaluation, kind="human", name="ann", user=ann), made, {"clarity": A})
    make_imported_votes(made, "carla", {"clarity": B})
    Comment.objects.create(comparison=made, user=zoe, text="@ann, why A? @nobody knows.")
    Adjudication.objects.create(
        comparison=made, aspect=get_or_make_aspect(evaluation, "clarity"), user=zoe, choice="A", reason="So."
    )
    wanted = ExportRequest(anonymised=True)
    _, written = exported(evaluation, "jsonl", wanted)
    assert not [name for name in (b"ann", b"zoe", b"carla") if name in written]
    (row,) = rows_in(written)
    names = assign_pseudonyms(evaluation)
    of_ann, of_zoe = names.by_username["ann"], names.by_username["zoe"]
    assert len({of_ann, of_zoe, *names.by_rater.values()}) == 3
    assert all(name.startswith("reviewer-") for name in names.by_rater.values())
    assert row["comments"][0]["author"] == row["labels"]["clarity"]["by"] == row["adjudications"]["clarity"]["by"]
    assert row["comments"][0]["text"] == f"@{of_ann}, why A? @nobody knows."
    assert sorted(person["rater"] for person in row["people"]) == sorted(names.by_rater.values())
    make_member(evaluation, Role.REVIEWER, "adam")
    assert exported(evaluation, "jsonl", wanted)[1] == written


def test_datasets_reads_what_was_written(study: Evaluation, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for written_as, reader in (("jsonl", "json"), ("csv", "csv"), ("parquet", "parquet")):
        path = tmp_path / f"study.{written_as}"
        path.write_bytes(exported(study, written_as, ExportRequest(split=Split("study")))[1])
        read = datasets.load_dataset(reader, data_files=str(path), split="train", cache_dir=str(tmp_path / written_as))
        assert [row["query_id"] for row in read] == ["q0", "q1", "q2", "q3", "q4"]
    (first, *_) = read
    assert first["messages"] == [{"role": "user", "content": "Question 0?"}]
    assert first["labels"][0]["choice"] == "A"
    (judge,) = first["judges"]
    assert judge["choices"][0]["orders"][0] == {"shown": "as_stored", "choices": ["B"]}
    assert first["split"] in list(SplitPart)


# ---- in the background ----------------------------------------------------------------------


def waiting(evaluation: Evaluation) -> Export:
    return start_export(evaluation, written_as="jsonl", user=None, in_background=True)


def test_a_worker_writes_what_waits_once(study: Evaluation) -> None:
    export = waiting(study)
    job = job_about("export", export.pk)
    assert (export.state, job.state, job.total, job.evaluation) == (ExportState.WAITING, JobState.WAITING, 5, study)
    assert not work_once("export", export.pk)
    export.refresh_from_db()
    job = job_about("export", export.pk)
    assert (export.state, export.rows) == (ExportState.DONE, 5)
    assert (job.state, job.position, job.attempts) == (JobState.DONE, 5, 1)
    assert not work_once("export", export.pk)
    assert job_about("export", export.pk).attempts == 1


def test_what_a_killed_worker_left_is_begun_again_and_given_up_at_last(study: Evaluation) -> None:
    export = waiting(study)
    for attempt in range(1, ATTEMPTS + 1):
        Export.objects.filter(pk=export.pk).update(state=ExportState.UNFINISHED)
        export.refresh_from_db()
        export.file.save("part.jsonl", ContentFile(b"{"))
        name = str(export.file.name)
        kill_worker_at("export", export.pk)
        assert not export.file.storage.exists(name)
        export.refresh_from_db()
        assert export.state == (ExportState.WAITING if attempt < ATTEMPTS else ExportState.FAILED)
    assert (export.state, export.file.name) == (ExportState.FAILED, "")
    assert "export again" in export.reason
    assert job_about("export", export.pk).state == JobState.FAILED
    assert not work_once("export", export.pk)


def test_what_a_killed_worker_left_is_written_whole_by_the_next(study: Evaluation) -> None:
    export = waiting(study)
    Export.objects.filter(pk=export.pk).update(state=ExportState.UNFINISHED)
    kill_worker_at("export", export.pk)
    assert not work_once("export", export.pk)
    export.refresh_from_db()
    assert (export.state, export.rows) == (ExportState.DONE, 5)


def test_one_that_was_being_sent_when_its_process_died_has_failed(study: Evaluation) -> None:
    export = start_export(study, written_as="jsonl", user=None)
    kill_worker_at("send_export", export.pk)
    export.refresh_from_db()
    assert (export.state, export.reason) == (ExportState.FAILED, INTERRUPTED)


def test_a_fault_is_tried_again_once(study: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    export = waiting(study)

    def is_full(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(exports_services, "stream_export", is_full)
    for state in (ExportState.WAITING, ExportState.FAILED):
        Job.objects.update(not_before=None)
        with pytest.raises(OSError, match="disk is full"):
            work_once("export", export.pk)
        export.refresh_from_db()
        assert export.state == state


def test_a_worker_that_is_told_to_leave_puts_it_back(study: Evaluation) -> None:
    export = waiting(study)
    PROCESS_STOPPING.set()
    try:
        assert work_once("export", export.pk)
    finally:
        PROCESS_STOPPING.clear()
    export.refresh_from_db()
    assert (export.state, export.file.name) == (ExportState.WAITING, "")
    assert job_about("export", export.pk).attempts == 0


def test_an_export_that_is_cancelled_while_it_is_written_leaves_no_file(
    study: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "HEARTBEAT_SECONDS", -1.0)
    monkeypatch.setattr(writer, "BLOCK_BYTES", 1)
    export = start_export(study, written_as="jsonl", user=None)
    blocks = stream_export(export, Comparison.objects.filter(evaluation=study))
    next(blocks)
    stop_export(Export.objects.get(pk=export.pk), user=None)
    with pytest.raises(LeaseLost):
        next(blocks)
    export.refresh_from_db()
    assert (export.state, export.file.name) == (ExportState.CANCELLED, "")
    with pytest.raises(InputRefused, match="already ended"):
        stop_export(export, user=None)


# ---- a folder, of which no byte is sent before the last comparison is read


@pytest.fixture
def folder(study: Evaluation, monkeypatch: pytest.MonkeyPatch) -> Export:
    monkeypatch.setattr(kinds, "HEARTBEAT_SECONDS", -1.0)
    wanted = ExportRequest(aspect="clarity")
    return start_export(study, written_as="hugging-face", user=None, request=wanted, in_background=True)


def meanwhile(monkeypatch: pytest.MonkeyPatch, does: Callable[[int], None]) -> None:
    """While it is written, with the number of the comparison that comes in."""
    come_in, seen = hugging_face_export.add_to_dataset, itertools.count(1)

    def add(*given: Any) -> None:
        does(next(seen))
        come_in(*given)

    monkeypatch.setattr(hugging_face_export, "add_to_dataset", add)


def test_it_says_how_far_it_is(folder: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[int] = []
    meanwhile(monkeypatch, lambda _: reached.append(job_about("export", folder.pk).position))
    assert not work_once("export", folder.pk)
    assert reached == [1, 2, 3, 4, 5]


def test_it_can_be_cancelled(folder: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[int] = []

    def cancel(number: int) -> None:
        met.append(number)
        if number == 2:
            stop_export(Export.objects.get(pk=folder.pk), user=None)

    meanwhile(monkeypatch, cancel)
    assert not work_once("export", folder.pk)
    folder.refresh_from_db()
    assert (folder.state, folder.file.name, met) == (ExportState.CANCELLED, "", [1, 2])


def test_it_is_put_back_by_a_worker_that_is_told_to_leave(folder: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[int] = []

    def leave(number: int) -> None:
        met.append(number)
        PROCESS_STOPPING.set()

    meanwhile(monkeypatch, leave)
    try:
        assert work_once("export", folder.pk)
    finally:
        PROCESS_STOPPING.clear()
    folder.refresh_from_db()
    assert (folder.state, folder.file.name, met) == (ExportState.WAITING, "", [1])


def test_the_first_line_is_sent_at_once_and_none_is_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.0, 10.1, 10.2, 10.3, 10.3, 10.4])
    monkeypatch.setattr(writer, "monotonic", lambda: next(clock))
    assert list(join_blocks([b"a", b"b", b"c", b"d", b"e"])) == [b"a", b"bcd", b"e"]


def test_an_owner_deletes_the_file_and_the_record_stays(study: Evaluation) -> None:
    export, _ = exported(study, "jsonl", ExportRequest())
    name = str(export.file.name)
    delete_export_file(export, user=make_user())
    assert not Export._meta.get_field("file").storage.exists(name)
    assert (export.state, export.rows) == (ExportState.DONE, 5)
    assert Event.objects.filter(verb="removed file", object_id=export.pk).count() == 1
    with pytest.raises(InputRefused, match="was deleted"):
        open_export_file(export)


@pytest.mark.parametrize(
    ("written_as", "wanted", "words"),
    [
        ("mt-bench-human", ExportRequest(combine="unanimous"), "Choose the aspect"),
        ("dpo", ExportRequest(aspect="taste"), "Unknown aspect “taste”"),
        ("jsonl", CLARITY, "contains every aspect"),
        ("jsonl", ExportRequest(settings={"layout": "chat"}), "has no setting"),
        ("dpo", ExportRequest(aspect="clarity", settings={"layout": "sideways"}), "Unknown layout “sideways”"),
        ("jsonl", ExportRequest(split=Split("s", 100, 0, 0), part=SplitPart.TEST), "has no test part"),
        ("jsonl", ExportRequest(where=(("category", "none"),)), "No comparison has"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_is_recorded(
    evaluation: Evaluation, written_as: str, wanted: ExportRequest, words: str
) -> None:
    make_comparison(evaluation)
    with pytest.raises(InputRefused, match=words):
        start_export(evaluation, written_as=written_as, user=None, request=wanted)
    assert not Export.objects.exists()


def test_every_format_has_a_name_of_its_own_and_says_what_it_is_for() -> None:
    assert all(one.purpose and one.ending and one.title for one in EXPORT_FORMATS.values())
