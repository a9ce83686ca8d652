"""The import pages: what will be stored, every bad row by line, and live progress."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from pytest_django import DjangoAssertNumQueries

from evaluations.domain.files import ImportState
from evaluations.domain.roles import Role
from evaluations.imports import preview
from evaluations.imports.lifecycle import continue_import, fail_import
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from tests.factories.evaluations import make_evaluation, make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, score_row, verdict_row
from tests.helpers.broken_files import WHOLE
from tests.helpers.job_work import waiting, work_once
from tests.helpers.packed_files import as_parquet, zipped
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def upload(
    client: Client, evaluation: Evaluation, content: bytes, name: str = "rows.jsonl", **fields: str
) -> HttpResponse:
    """Upload a file, and change these options on its card."""
    address = reverse("imports", args=[evaluation.slug])
    answer = client.post(address, {"file": SimpleUploadedFile(name, content)})
    if fields and answer.status_code == 302:
        options = {"format": "auto", "pair": "all", **fields}
        pk = Import.objects.latest("pk").pk
        sent = {f"{pk}-{field}": value for field, value in options.items()}
        answer = client.post(reverse("imports_store", args=[evaluation.slug]), sent)
    return answer  # type: ignore[return-value]


def page(client: Client, name: str, importing: Import) -> str:
    answer = client.get(reverse(name, args=[importing.evaluation.slug, importing.pk]))
    assert answer.status_code == 200
    return html_of(answer)


def press(client: Client, name: str, importing: Import, **fields: str) -> HttpResponse:
    return client.post(reverse(name, args=[importing.evaluation.slug, importing.pk]), fields)  # type: ignore[return-value]


def test_the_empty_list_says_how_to_fill_it(manager_signed_in: Client, evaluation: Evaluation) -> None:
    text = html_of(manager_signed_in.get(reverse("imports", args=[evaluation.slug])))
    assert "No data yet" in text
    assert '<input type="file" name="file" id="id_file" multiple' in text


def test_a_file_is_shown_before_anything_of_it_is_stored(manager_signed_in: Client, evaluation: Evaluation) -> None:
    rows = [comparison_row(f"q{number}", query="Why **blue**?") for number in range(5)]
    answer = upload(manager_signed_in, evaluation, encode_jsonl(rows))
    importing = Import.objects.get()
    assert answer["Location"] == reverse("imports", args=[evaluation.slug])
    text = page(manager_signed_in, "import", importing)
    assert "Import 5 rows" in text
    assert "Format: Comparisons. 5 prompts, 10 responses, 5 comparisons" in text
    assert "Why <strong>blue</strong>?" in text
    assert not Comparison.all_rows.exists()


def test_the_page_says_which_format_was_recognised(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation, encode_jsonl([{"prompt": "Why?", "chosen": "So.", "rejected": "No."}]))
    assert "Format: Preferences." in page(manager_signed_in, "import", Import.objects.get())


def test_comparisons_of_responses_are_counted_before_any_is_made(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in ("alpha", "beta")]
    upload(manager_signed_in, evaluation, encode_jsonl(rows), pair="baseline", baseline="beta")
    text = page(manager_signed_in, "import", Import.objects.latest("pk"))
    assert "1 prompt, 2 responses, 1 comparison" in text
    assert "1 comparison will be created (pairing: baseline:beta)." in text
    assert not Comparison.all_rows.exists()
    import_rows(evaluation, *rows)
    upload(manager_signed_in, evaluation, encode_jsonl(rows))
    text = page(manager_signed_in, "import", Import.objects.latest("pk"))
    assert "No pairs yet" in text
    assert "Everything in this file is already here." in text
    Comparison.objects.all().delete()
    upload(manager_signed_in, evaluation, encode_jsonl(rows))
    importing = Import.objects.latest("pk")
    assert "Create 1 comparison<" in page(manager_signed_in, "import", importing)
    press(manager_signed_in, "import_store", importing)
    continue_import(Import.objects.get(pk=importing.pk))
    assert Comparison.objects.count() == 1


def test_every_bad_row_stands_by_its_line(manager_signed_in: Client, evaluation: Evaluation) -> None:
    lines = encode_jsonl([comparison_row(f"q{number}") for number in range(30)]).split(b"\n")
    lines[16] = b"{"
    upload(manager_signed_in, evaluation, b"\n".join(lines))
    text = page(manager_signed_in, "import", Import.objects.get())
    assert "Import 29 valid rows<" in text
    assert '<td class="number">17</td><td>not valid JSON: expecting property name' in text


def test_storing_runs_in_the_background_and_the_page_follows_it(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row(f"q{number}") for number in range(40)]))
    importing = Import.objects.get()
    assert press(manager_signed_in, "import_store", importing).status_code == 302
    assert waiting("import") == [importing.pk]
    assert "waiting for a worker" in page(manager_signed_in, "import", importing)
    assert continue_import(Import.objects.get(), seconds=0)
    done = Import.objects.get().rows_stored
    assert f"{done} of 40 rows" in page(manager_signed_in, "import_progress", importing)
    while continue_import(Import.objects.get(), seconds=0):
        pass
    answer = manager_signed_in.get(reverse("import_progress", args=[evaluation.slug, importing.pk]))
    assert answer["HX-Refresh"] == "true"
    text = page(manager_signed_in, "import", importing)
    assert "Imported" in text
    assert "Run a judge" in text


def test_bad_rows_are_left_out_only_where_that_is_asked_for(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row(), comparison_row("q2", response_b=None)]))
    importing = Import.objects.get()
    refused = press(manager_signed_in, "import_store", importing)
    assert refused.status_code == 422
    assert "has 1 invalid row. Fix the file, or import the valid rows only." in html_of(refused)
    assert press(manager_signed_in, "import_store", importing, skip_bad="1").status_code == 302
    continue_import(Import.objects.get())
    assert Comparison.objects.count() == 1
    assert "Not imported." in page(manager_signed_in, "import", importing)


def test_a_checked_file_can_be_discarded(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row()]))
    press(manager_signed_in, "import_cancel", Import.objects.get())
    importing = Import.objects.get()
    assert importing.state == ImportState.CANCELLED
    assert "Nothing was imported" in page(manager_signed_in, "import", importing)
    assert press(manager_signed_in, "import_cancel", importing).status_code == 422


def test_storing_can_be_cancelled(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row(f"q{number}") for number in range(40)]))
    importing = Import.objects.get()
    press(manager_signed_in, "import_store", importing)
    answer = press(manager_signed_in, "import_cancel", importing)
    assert answer["Location"] == reverse("imports", args=[evaluation.slug])
    asked = manager_signed_in.get(reverse("import_progress", args=[evaluation.slug, importing.pk]))
    assert asked.status_code == 286
    assert "HX-Refresh" not in asked
    assert not continue_import(Import.objects.get())
    assert not Comparison.all_rows.exists()


def test_what_failed_can_be_stored_again(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row()]))
    importing = Import.objects.get()
    press(manager_signed_in, "import_store", importing)
    fail_import(importing, "Interrupted.")
    text = page(manager_signed_in, "import", importing)
    assert "Interrupted." in text
    assert "Retry" in text
    press(manager_signed_in, "import_store", importing)
    continue_import(Import.objects.get())
    assert Comparison.objects.count() == 1


def test_a_long_file_is_checked_in_the_background(
    manager_signed_in: Client, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "QUICK_CHECK_BYTES", 10)
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row()]))
    importing = Import.objects.get()
    assert waiting("import") == [importing.pk]
    assert "Waiting for a worker" in page(manager_signed_in, "import", importing)
    continue_import(importing)
    assert "Import 1 row<" in page(manager_signed_in, "import", importing)


def test_verdicts_are_shown_in_the_words_of_the_file(manager_signed_in: Client, evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    upload(
        manager_signed_in, evaluation, encode_jsonl([verdict_row(candidate_a="beta", candidate_b="alpha", choice="A")])
    )
    text = page(manager_signed_in, "import", Import.objects.latest("pk"))
    assert 'A <span class="muted">beta</span>' in text
    assert "No rubric of this evaluation has the aspect overall." in text
    assert "1 row names the models in reverse order" in text


def test_scores_are_shown_with_what_they_mean(manager_signed_in: Client, evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    rows = encode_jsonl([score_row(value=1), score_row(candidate="beta", value=2.5), score_row(candidate="omega")])
    upload(manager_signed_in, evaluation, rows, lower_is_better="on", derive_pairs="0.5")
    importing = Import.objects.latest("pk")
    text = page(manager_signed_in, "import", importing)
    assert "2 scores" in " ".join(text.split())
    assert '<td>beta</td><td>ann <span class="muted">human</span></td>' in text
    assert '<td class="number">2.5</td>' in text
    assert "Lower scores are better: overall." in text
    assert "Scores within 0.5 of each other are a tie." in text
    assert "model “omega” is not in this evaluation" in text
    press(manager_signed_in, "import_store", importing, skip_bad="1")
    continue_import(Import.objects.get(pk=importing.pk))
    assert "See results" in page(manager_signed_in, "import", importing)


def test_scores_that_are_here_can_be_stored_again_for_the_comparisons_they_make(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    rows = [{"query_id": "q1", "query": "Why?", "candidate": name, "response": name} for name in ("alpha", "beta")]
    import_rows(evaluation, *rows, pair="random:1")
    Comparison.objects.all().delete()
    scores = [score_row(), score_row(candidate="beta")]
    import_rows(evaluation, *scores)
    upload(manager_signed_in, evaluation, encode_jsonl(scores))
    assert "Everything in this file is already here." in page(manager_signed_in, "import", Import.objects.latest("pk"))
    upload(manager_signed_in, evaluation, encode_jsonl(scores), derive_pairs="0")
    importing = Import.objects.latest("pk")
    text = page(manager_signed_in, "import", importing)
    assert "Everything in this file is already here." not in text
    assert "Create 1 comparison<" in text
    press(manager_signed_in, "import_store", importing)
    continue_import(Import.objects.get(pk=importing.pk))
    assert Comparison.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("rows.jsonl", b"", "rows.jsonl is empty (0 bytes)."),
        ("rows.jsonl", bytes(range(256)) * 40, "rows.jsonl is a binary file, not text"),
        ("rows.csv", b"query_id,query,candidate_a,response_a,candidate_b\n", "has no column “response_b”"),
        ("rows.csv", b"\xe9t\xe9,query\n", "rows.csv is not UTF-8"),
        ("rows.jsonl", b"garbage without end " * 100_000, "match none"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_on_the_form_and_not_kept(
    manager_signed_in: Client,
    evaluation: Evaluation,
    kept: Callable[[], list[str]],
    name: str,
    content: bytes,
    sentence: str,
) -> None:
    answer = upload(manager_signed_in, evaluation, content, name)
    assert answer.status_code == 422
    assert sentence in html_of(answer)
    assert not Import.objects.exists()


def test_a_file_that_is_too_large_is_refused_with_the_limit(
    manager_signed_in: Client, evaluation: Evaluation, settings: LazySettings
) -> None:
    settings.MAX_UPLOAD_BYTES = 2 * 1024 * 1024
    answer = upload(manager_signed_in, evaluation, b"x" * (2 * 1024 * 1024 + 1))
    assert answer.status_code == 422
    assert "The file is larger than 2 MB, the limit of this server." in html_of(answer)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"pair": "baseline"}, "Choose the baseline model."),
        ({"pair": "random"}, "Enter the number of random pairs per prompt."),
        ({"derive_pairs": "-1"}, "Ensure this value is greater than or equal to 0."),
    ],
)
def test_what_is_asked_for_must_be_whole(
    manager_signed_in: Client, evaluation: Evaluation, fields: dict[str, str], sentence: str
) -> None:
    answer = upload(manager_signed_in, evaluation, encode_jsonl([comparison_row()]), **fields)
    assert answer.status_code == 422
    assert sentence in html_of(answer)


def test_prefix_and_rater_are_taken_from_the_card(manager_signed_in: Client, evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("n-q1"))
    row = {"query_id": "q1", "candidate_a": "alpha", "candidate_b": "beta", "choice": "tie"}
    fields = {"id_prefix": "n-", "rater": "ann", "rater_kind": "human"}
    upload(manager_signed_in, evaluation, encode_jsonl([row]), **fields)
    importing = Import.objects.latest("pk")
    assert (importing.rows_stored, importing.bad_rows) == (1, [])


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.ADJUDICATOR, Role.VIEWER])
def test_only_who_may_change_an_evaluation_sees_its_imports(client: Client, evaluation: Evaluation, role: Role) -> None:
    importing = import_rows(evaluation, comparison_row())
    client.force_login(make_member(evaluation, role))
    for name, of in [
        ("imports", []),
        ("import", [importing.pk]),
        ("import_progress", [importing.pk]),
    ]:
        assert client.get(reverse(name, args=[evaluation.slug, *of])).status_code == 403
    for name in ("import_store", "import_cancel"):
        assert press(client, name, importing).status_code == 403


def test_an_import_of_another_evaluation_is_not_there(manager_signed_in: Client, evaluation: Evaluation) -> None:
    other = import_rows(make_evaluation(), comparison_row())
    for name in ("import", "import_progress"):
        assert manager_signed_in.get(reverse(name, args=[evaluation.slug, other.pk])).status_code == 404


def test_the_list_costs_the_same_queries_however_long_it_is(
    manager_signed_in: Client, evaluation: Evaluation, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    address = reverse("imports", args=[evaluation.slug])
    other = make_member(evaluation, Role.MANAGER)
    for number in range(60):
        Import.objects.create(
            evaluation=evaluation,
            file_name=f"file{number}",
            sha256="",
            format="auto",
            user=other,
            brings="verdicts",
        )
    with django_assert_max_num_queries(10) as asked:
        first = html_of(manager_signed_in.get(address))
    assert first.count("<tr>") == 51
    assert first.count("verdicts") == 50
    unread = ("bad_rows", "summary_json")
    listed = [one["sql"] for one in asked.captured_queries if "LIMIT 51" in one["sql"]]
    assert listed
    assert not any(name in sql for sql in listed for name in unread)
    assert 'rel="next"' in first


def test_what_may_hold_more_than_it_is_long_is_checked_in_the_background(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    rows = [comparison_row(f"q{number}") for number in range(3)]
    for name, content in {
        "rows.jsonl.gz": gzip.compress(encode_jsonl(rows)),
        "rows.parquet": as_parquet(rows),
        "rows.zip": zipped({"rows.parquet": as_parquet(rows)}),
    }.items():
        upload(manager_signed_in, evaluation, content, name)
        importing = Import.objects.latest("pk")
        assert waiting("import")[-1] == importing.pk
        continue_import(importing)
        assert "Import 3 rows" in page(manager_signed_in, "import", importing)
        press(manager_signed_in, "import_cancel", importing)


def test_a_packed_file_that_breaks_off_is_refused_on_its_page_and_not_kept(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    upload(manager_signed_in, evaluation, gzip.compress(encode_jsonl([comparison_row()]))[:-9], "rows.jsonl.gz")
    importing = Import.objects.get()
    continue_import(importing)
    assert "rows.jsonl.gz is damaged or truncated: its gzip data breaks" in page(manager_signed_in, "import", importing)
    importing.refresh_from_db()
    assert (importing.state, bool(importing.file)) == (ImportState.FAILED, False)
    assert not Comparison.all_rows.exists()


def test_an_upload_is_renamed_where_it_is_kept_and_not_copied(
    manager_signed_in: Client, evaluation: Evaluation, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 100
    seen: list[int] = []
    was = preview.hash_file

    def sum_of(file: BinaryIO) -> str:
        seen.append(os.fstat(file.fileno()).st_ino)
        return was(file)

    monkeypatch.setattr(preview, "hash_file", sum_of)
    upload(manager_signed_in, evaluation, encode_jsonl([comparison_row()]))
    assert seen == [os.stat(Import.objects.get().file.path).st_ino]
    assert not list(Path(settings.SCRATCH_DIR).iterdir())


@pytest.mark.parametrize(("name", "content", "sentence"), WHOLE.values(), ids=list(WHOLE))
def test_a_hostile_upload_is_refused_in_one_sentence_on_the_page(
    manager_signed_in: Client,
    evaluation: Evaluation,
    kept: Callable[[], list[str]],
    name: str,
    content: bytes,
    sentence: str,
) -> None:
    answer = upload(manager_signed_in, evaluation, content, name)
    if importing := Import.objects.first():  # what is packed is checked by a worker
        assert answer.status_code == 302
        continue_import(importing)
        importing.refresh_from_db()
        assert (importing.state, bool(importing.file)) == (ImportState.FAILED, False)
        text = page(manager_signed_in, "import", importing)
    else:
        assert answer.status_code == 422
        text = html_of(answer)
    assert escape(sentence) in text
    assert not Query.all_rows.exists()
    assert kept() == []


def test_the_preview_begins_with_the_models(manager_signed_in: Client, evaluation: Evaluation) -> None:
    row = {"query_id": "q1", "query": "Why?", "response": "x", "candidate": "alpha"}
    upload(manager_signed_in, evaluation, encode_jsonl([row]), candidate="omega")
    text = page(manager_signed_in, "import", Import.objects.get())
    assert "Model (set for the whole file): omega (1 response)." in text
    assert "The names in the file are not used: “alpha” (1 row)." in text
    assert text.index("Model (set") < text.index("<dt>row</dt>")


def test_what_happens_to_a_second_response_is_chosen_on_the_form(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    import_rows(evaluation, comparison_row())
    rows = encode_jsonl([comparison_row(response_a="Other.")])
    asked = html_of(manager_signed_in.get(upload(manager_signed_in, evaluation, rows)["Location"]))
    assert "1 response differs from an existing one" in asked
    assert 'name="do" value="import"' not in asked  # nothing is imported before somebody decides
    importing = Import.objects.latest("pk")
    assert "already has another response to prompt" in page(manager_signed_in, "import", importing)
    answer = manager_signed_in.post(
        reverse("imports_store", args=[evaluation.slug]), {"do": "import", "ready": importing.pk}
    )
    assert answer.status_code == 422
    assert "has responses that differ. Choose what to do with them." in html_of(answer)
    upload(manager_signed_in, evaluation, rows, new_response="skip")
    assert "<dt>skipped</dt><dd>1</dd>" in page(manager_signed_in, "import", Import.objects.latest("pk"))


def test_an_import_is_undone_with_one_button(manager_signed_in: Client, evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    page = reverse("import", args=[evaluation.slug, importing.pk])
    text = " ".join(html_of(manager_signed_in.get(page)).split())
    assert "Undo import" in text
    answer = manager_signed_in.post(reverse("import_undo", args=[evaluation.slug, importing.pk]), follow=True)
    assert "Import of rows.jsonl undone." in html_of(answer)
    assert waiting("undo_import") == [importing.pk]
    work_once("undo_import", importing.pk)
    assert not Comparison.all_rows.exists()
    text = html_of(manager_signed_in.get(page))
    assert "This import was undone." in text
    assert "Undo import" not in text


def test_an_undo_that_is_refused_says_why(manager_signed_in: Client, evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    import_rows(evaluation, verdict_row())
    answer = manager_signed_in.post(reverse("import_undo", args=[evaluation.slug, importing.pk]))
    assert answer.status_code == 422
    assert "builds on it. Undo that one first." in html_of(answer)


def test_where_an_import_cannot_be_undone_the_reason_stands_in_place_of_the_button(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    importing = import_rows(evaluation, comparison_row())
    import_rows(evaluation, verdict_row())
    text = html_of(manager_signed_in.get(reverse("import", args=[evaluation.slug, importing.pk])))
    assert "builds on it. Undo that one first." in text
    assert "Undo import" not in text


def test_whoever_may_not_import_may_not_undo(client: Client, evaluation: Evaluation) -> None:
    importing = import_rows(evaluation, comparison_row())
    for role, status in ((Role.REVIEWER, 403), (Role.ADJUDICATOR, 403), (None, 404)):
        client.force_login(make_member(evaluation if role else make_evaluation(), role or Role.OWNER))
        assert client.post(reverse("import_undo", args=[evaluation.slug, importing.pk])).status_code == status
    assert Comparison.objects.count() == 1
