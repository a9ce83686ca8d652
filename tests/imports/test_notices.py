"""The preview accounts for everything that a file holds, and the import keeps that account."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_evaluation, make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, verdict_row
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

SAID = {"rater": "ann", "rater_kind": "human"}
ROWS = [
    comparison_row("q1", choice="slightly prefer B", **SAID),
    comparison_row("q2", choice="A更差", **SAID),
    comparison_row("q3", choice="A 👎", **SAID),
    comparison_row("q4", response_a="Same.", response_b="Same.", choice="", **SAID),
]
LINES = [
    "2 labels of “choice” not understood, so not imported: “A更差” 1, “A 👎” 1 (lines 2, 3).",
    "1 comparison of two equal responses (line 4).",
]


def test_the_account_is_there_before_anything_is_stored_and_stays_with_the_import() -> None:
    importing = preview_rows(make_evaluation(), encode_jsonl(ROWS))
    assert importing.summary.notices == LINES
    assert (Comparison.all_rows.count(), Verdict.all_rows.count()) == (0, 0)
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    assert importing.summary.notices == LINES
    assert (importing.rows_stored, Comparison.objects.count()) == (4, 4)
    assert [(one.choice, one.note) for one in Verdict.objects.all()] == [("B", "strength: slightly")]


def test_what_a_bad_row_holds_is_not_counted_twice() -> None:
    bad = comparison_row("q1", choice="A更差", candidate_b="alpha", **SAID)
    importing = preview_rows(
        make_evaluation(), encode_jsonl([*ROWS, bad, comparison_row("q2", query="Another?", choice="不选A", **SAID)])
    )
    assert (importing.rows_read, importing.rows_stored, importing.rows_bad) == (6, 4, 2)
    assert importing.summary.notices == LINES


def test_the_same_file_again_gives_the_same_account() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, *ROWS)
    again = preview_rows(evaluation, encode_jsonl(ROWS))
    assert (again.rows_read, again.rows_unchanged, again.summary.notices) == (4, 4, LINES)


def test_a_strength_is_kept_with_the_verdict_whichever_way_round_its_row_stands() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, comparison_row("q1"))
    import_rows(evaluation, verdict_row("q1", choice="[[B>>A]]", candidate_a="beta", candidate_b="alpha"))
    (stored,) = Verdict.objects.all()
    assert (stored.choice, stored.note) == ("A", "strength: >>")


def test_it_is_exported_and_read_back(tmp_path: Path) -> None:
    evaluation = make_evaluation(slug="study")
    import_rows(evaluation, *ROWS)
    path = tmp_path / "verdicts.jsonl"
    call_command("export", "study", "--format", "verdicts", "--out", str(path), stdout=io.StringIO())
    (row,) = map(json.loads, path.read_text().splitlines())
    assert (row["choice"], row["note"]) == ("B", "strength: slightly")
    assert import_rows(evaluation, row).rows_unchanged == 1


def test_the_command_says_it_before_it_stores_and_when_it_stores_nothing(tmp_path: Path) -> None:
    make_evaluation(slug="study")
    path = tmp_path / "rows.jsonl"
    path.write_bytes(encode_jsonl(ROWS))
    for arguments, number in (("--dry-run",), 0), ((), 4):
        out = io.StringIO()
        call_command("import_comparisons", "study", str(path), *arguments, stdout=out)
        models, *others = out.getvalue().splitlines()
        assert models.startswith("Models: alpha (4 comparisons")
        assert others[:2] == LINES
        assert Comparison.objects.count() == number


def test_the_page_and_the_api_have_the_same_lines(client: Client) -> None:
    evaluation = make_evaluation(slug="study")
    manager = make_member(evaluation, Role.MANAGER)
    client.force_login(manager)
    importing = preview_rows(evaluation, encode_jsonl(ROWS))
    page = client.get(reverse("import", args=[evaluation.slug, importing.pk])).content.decode()
    assert all(line in page for line in LINES)
    told = ApiClient(token_for(manager)).get(f"/evaluations/study/imports/{importing.pk}")
    assert told.json()["summary"]["notices"] == LINES
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)
    page = client.get(reverse("import", args=[evaluation.slug, importing.pk])).content.decode()
    assert all(line in page for line in LINES)
