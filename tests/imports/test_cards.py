"""Several files dropped at once: a card each, checked together, imported and undone by one button."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from evaluations.domain.files import ImportState
from evaluations.domain.roles import Role
from evaluations.imports.lifecycle import UNDO_JOB
from evaluations.models.comparisons import Candidate, Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from tests.factories.evaluations import make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, verdict_row
from tests.helpers.job_work import waiting, work_once
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

FALCON, BASELINE = "outputs-falcon-7b-v2.jsonl", "baseline-prod.jsonl"


def responses(name: str, number: int = 3, **columns: Any) -> bytes:
    rows = [
        {"query_id": f"q{place}", "query": f"Why {place}?", "response": f"{name} {place}", **columns}
        for place in range(number)
    ]
    return encode_jsonl(rows)


def drop(client: Client, evaluation: Evaluation, **files: bytes) -> HttpResponse:
    sent = [SimpleUploadedFile(name, content) for name, content in files.items()]
    return client.post(reverse("imports", args=[evaluation.slug]), {"file": sent})  # type: ignore[return-value]


def drop_two(client: Client, evaluation: Evaluation) -> list[Import]:
    drop(client, evaluation, **{FALCON: responses("falcon"), BASELINE: responses("baseline")})
    return list(Import.objects.order_by("pk"))


def press(client: Client, evaluation: Evaluation, **fields: Any) -> HttpResponse:
    return client.post(reverse("imports_store", args=[evaluation.slug]), fields)  # type: ignore[return-value]


def import_all(client: Client, evaluation: Evaluation) -> HttpResponse:
    return press(client, evaluation, do="import", ready=list(Import.objects.values_list("pk", flat=True)))


def finish_imports() -> None:
    """Work on the jobs of imports until none waits, as a worker would."""
    for kind in ("import", UNDO_JOB) * 4:
        for pk in waiting(kind):
            work_once(kind, pk)


def cards_page(client: Client, evaluation: Evaluation, query: str = "") -> str:
    return html_of(client.get(reverse("imports", args=[evaluation.slug]) + query))


def test_two_files_of_responses_foresee_their_pairs_and_one_button_makes_them(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    first, second = drop_two(manager_signed_in, evaluation)
    assert (first.summary.pairs_expected, second.summary.pairs_expected) == (0, 3)
    text = cards_page(manager_signed_in, evaluation)
    assert "<strong>3 comparisons</strong> of baseline-prod vs. falcon-7b-v2" in text
    assert "3 of 3 prompts matched" in text
    assert "Import 2 files" in text
    answer = import_all(manager_signed_in, evaluation)
    assert answer["Location"].endswith(f"?imported={first.pk},{second.pk}")
    finish_imports()
    assert Comparison.objects.count() == 3
    done = html_of(manager_signed_in.get(answer["Location"]))
    assert "Imported 3 comparisons." in done
    assert reverse("run_new", args=[evaluation.slug]) in done
    assert "Importing 2 files." in done  # with Undo


def test_a_typed_name_wins_and_the_files_after_it_are_checked_again(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    first, second = drop_two(manager_signed_in, evaluation)
    changed = {f"{first.pk}-candidate": "falcon", f"{first.pk}-format": "auto", f"{first.pk}-pair": "all"}
    press(manager_signed_in, evaluation, **changed)
    second.refresh_from_db()
    assert [(pair.first, pair.second) for pair in second.summary.pairs] == [("baseline-prod", "falcon")]
    typed = {f"{second.pk}-candidate": "base", f"{second.pk}-format": "auto", f"{second.pk}-pair": "all"}
    press(manager_signed_in, evaluation, do="import", ready=[first.pk, second.pk], **typed)
    finish_imports()
    assert set(Candidate.objects.values_list("name", flat=True)) == {"base", "falcon"}


def test_the_second_file_waits_until_the_first_is_imported(manager_signed_in: Client, evaluation: Evaluation) -> None:
    first, second = drop_two(manager_signed_in, evaluation)
    import_all(manager_signed_in, evaluation)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == (ImportState.STORING, ImportState.PREVIEWED)
    assert second.queued_by is not None
    assert "Waiting for the file before it." in cards_page(manager_signed_in, evaluation)
    finish_imports()
    second.refresh_from_db()
    assert second.state == ImportState.DONE
    assert second.queued_by is None


def test_both_files_are_undone_by_one_button(manager_signed_in: Client, evaluation: Evaluation) -> None:
    imports = drop_two(manager_signed_in, evaluation)
    import_all(manager_signed_in, evaluation)
    finish_imports()
    ids = ",".join(str(importing.pk) for importing in imports)
    manager_signed_in.post(reverse("imports_undo", args=[evaluation.slug]), {"ids": ids})
    assert not Comparison.objects.exists()
    finish_imports()
    assert set(Import.objects.values_list("state", flat=True)) == {ImportState.UNDONE}
    assert not Candidate.objects.exists()


def test_an_undo_that_is_refused_undoes_none_of_the_files(manager_signed_in: Client, evaluation: Evaluation) -> None:
    imports = drop_two(manager_signed_in, evaluation)
    import_all(manager_signed_in, evaluation)
    finish_imports()
    verdict = verdict_row("q0", candidate_a="baseline-prod", candidate_b="falcon-7b-v2")
    import_rows(evaluation, verdict)
    ids = ",".join(str(importing.pk) for importing in imports)
    answer = manager_signed_in.post(reverse("imports_undo", args=[evaluation.slug]), {"ids": ids}, follow=True)
    assert "Undo that one first." in html_of(answer)
    assert Comparison.objects.count() == 3


def test_undo_takes_back_what_still_waits(manager_signed_in: Client, evaluation: Evaluation) -> None:
    first, second = drop_two(manager_signed_in, evaluation)
    import_all(manager_signed_in, evaluation)
    manager_signed_in.post(reverse("imports_undo", args=[evaluation.slug]), {"ids": f"{first.pk},{second.pk}"})
    finish_imports()
    second.refresh_from_db()
    assert (second.state, second.queued_by) == (ImportState.PREVIEWED, None)
    assert not Comparison.all_rows.exists()


def test_a_discarded_file_no_longer_counts_for_the_others(manager_signed_in: Client, evaluation: Evaluation) -> None:
    first, second = drop_two(manager_signed_in, evaluation)
    manager_signed_in.post(reverse("import_cancel", args=[evaluation.slug, first.pk]))
    second.refresh_from_db()
    assert (second.summary.pairs_expected, second.new_queries) == (0, 3)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_kept(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    answer = drop(manager_signed_in, evaluation, **{"empty.jsonl": b"", BASELINE: responses("baseline")})
    assert answer.status_code == 422
    assert "empty.jsonl is empty (0 bytes)." in html_of(answer)
    assert Import.objects.get().file_name == BASELINE


def test_two_files_with_different_responses_of_one_model_need_a_decision(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    files = {"a.jsonl": responses("one", candidate="alpha"), "b.jsonl": responses("two", candidate="alpha")}
    drop(manager_signed_in, evaluation, **files)
    first, second = Import.objects.order_by("pk")
    assert (first.is_ready, second.is_ready, second.summary.conflicts) == (True, False, 3)
    assert "in another file that is not imported yet" in second.bad_rows[0]["reason"]
    for option, stored in (("replace", 3), ("keep", 3), ("skip", 0)):
        sent = {f"{second.pk}-format": "auto", f"{second.pk}-pair": "all", f"{second.pk}-new_response": option}
        press(manager_signed_in, evaluation, **sent)
        second.refresh_from_db()
        assert (second.summary.conflicts, second.rows_bad, second.rows_stored) == (0, 0, stored)


def test_a_refused_option_is_said_on_the_card_and_changes_nothing(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    first, _ = drop_two(manager_signed_in, evaluation)
    sent = {f"{first.pk}-format": "verdicts", f"{first.pk}-pair": "all"}
    answer = press(manager_signed_in, evaluation, **sent)
    assert answer.status_code == 422
    assert "has no column" in html_of(answer)
    first.refresh_from_db()
    assert (first.state, first.format) == (ImportState.PREVIEWED, "responses")


def test_files_of_others_are_no_cards_and_do_not_count(
    manager_signed_in: Client, client: Client, evaluation: Evaluation
) -> None:
    drop(manager_signed_in, evaluation, **{FALCON: responses("falcon")})
    other = Client()
    other.force_login(make_member(evaluation, Role.MANAGER))
    drop(other, evaluation, **{BASELINE: responses("baseline")})
    assert Import.objects.latest("pk").summary.pairs_expected == 0
    assert 'class="card stack import-card"' in cards_page(other, evaluation)
    assert cards_page(other, evaluation).count("import-card") == 1


def test_verdicts_dropped_with_their_comparisons_are_checked_again_after_these(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    drop(
        manager_signed_in,
        evaluation,
        **{"rows.jsonl": encode_jsonl([comparison_row()]), "votes.jsonl": encode_jsonl([verdict_row()])},
    )
    first, second = Import.objects.order_by("pk")
    assert not second.is_ready
    press(manager_signed_in, evaluation, do="import", ready=[first.pk])
    finish_imports()
    second.refresh_from_db()
    assert (second.is_ready, second.rows_bad) == (True, 0)
