"""Columns that are nothing known: said on a page, tried on the first rows, and remembered."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from evaluations.domain.files import ImportState
from evaluations.domain.roles import Role
from evaluations.formats.record_streams import FIRST_RECORDS
from evaluations.imports.columns.forms import build_mapping_form
from evaluations.imports.columns.services import read_import_sheet
from evaluations.imports.lifecycle import continue_import
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import ColumnMapping, Import
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_member

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

ARENA = (
    "prompt,gpt4_answer,llama_answer,winner,annotator\n"
    "Why is the sky blue?,Rayleigh.,The sea.,gpt4,ann\n"
    "What is 2+2?,4,5,gpt4,bob\n"
    "Who am I?,You.,Me.,tie,ann\n"
)


def upload(client: Client, evaluation: Evaluation, content: str = ARENA, name: str = "arena.csv") -> HttpResponse:
    file = SimpleUploadedFile(name, content.encode())
    return client.post(  # type: ignore[return-value]
        reverse("imports", args=[evaluation.slug]), {"file": file}
    )


def said(**others: str) -> dict[str, str]:
    return {
        "kind": "comparisons",
        "asked_about": "comparisons",
        "words_of": "=winner",
        "column_query_id": "#text",
        "column_query": "=prompt",
        "column_response_a": "=gpt4_answer",
        "column_response_b": "=llama_answer",
        "whole_candidate_a": "gpt4",
        "whole_candidate_b": "llama",
        "column_choice": "=winner",
        "column_rater": "=annotator",
        "whole_rater_kind": "human",
        "word_0": "A",
        "word_1": "tie",
        **others,
    }


def at(client: Client, importing: Import, told: dict[str, str] | None = None, **headers: str) -> HttpResponse:
    address = reverse("column_mapping", args=[importing.evaluation.slug, importing.pk])
    return client.post(address, told, headers=headers) if told else client.get(address)  # type: ignore[return-value]


def test_unknown_columns_lead_to_the_page_that_asks_what_they_mean(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    answer = upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    assert importing.state == ImportState.MAPPING
    assert answer["Location"] == reverse("imports", args=[evaluation.slug])
    assert (
        reverse("column_mapping", args=[evaluation.slug, importing.pk])
        in manager_signed_in.get(answer["Location"]).content.decode()
    )
    text = at(manager_signed_in, importing).content.decode()
    assert '<option value="=prompt" selected>' in text  # guessed by its name
    assert '<option value="#text" selected>' in text  # no column for the query's id
    assert "<code>gpt4</code>" in text  # a word of the choice, whose meaning is asked for
    assert "Why is the sky blue?" in text
    page = manager_signed_in.get(reverse("import", args=[evaluation.slug, importing.pk]))
    assert page["Location"] == reverse("column_mapping", args=[evaluation.slug, importing.pk])


def test_what_was_said_is_checked_stored_and_remembered(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    answer = at(manager_signed_in, importing, said(do="fit"))
    assert answer["Location"] == reverse("imports", args=[evaluation.slug])
    importing.refresh_from_db()
    assert (importing.state, importing.rows_stored, importing.rows_bad) == (ImportState.PREVIEWED, 3, 0)
    manager_signed_in.post(reverse("import_store", args=[evaluation.slug, importing.pk]))
    continue_import(Import.objects.get())
    assert Comparison.objects.count() == 3
    choices = Verdict.objects.order_by("comparison__query__text").values_list("rater__name", "choice")
    assert list(choices) == [("bob", "A"), ("ann", "tie"), ("ann", "A")]
    assert Query.objects.first().metadata == {}  # type: ignore[union-attr]

    upload(manager_signed_in, evaluation, ARENA.replace("2+2", "3+3"), name="more.csv")
    second = Import.objects.latest("pk")
    assert second.state == ImportState.MAPPING  # whose its rows are is asked for each file
    text = at(manager_signed_in, second).content.decode()
    assert "names are not remembered" in text
    assert '<option value="=winner" selected>' in text
    at(manager_signed_in, second, said(do="fit"))
    second.refresh_from_db()
    assert (second.state, second.rows_stored, second.rows_unchanged) == (ImportState.PREVIEWED, 1, 2)


def test_a_remembered_mapping_is_shown_and_can_be_forgotten(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    at(manager_signed_in, importing, said(do="fit"))
    assert "Using the column mapping of" in at(manager_signed_in, importing).content.decode()
    manager_signed_in.post(reverse("column_mapping_forget", args=[evaluation.slug, importing.pk]))
    assert not ColumnMapping.objects.exists()
    upload(manager_signed_in, evaluation, name="more.csv")
    assert Import.objects.latest("pk").state == ImportState.MAPPING


def test_each_change_shows_what_the_first_rows_become(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    text = at(manager_signed_in, importing, said(), **{"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "ann: A gpt4" in " ".join(text.split())
    answer = at(
        manager_signed_in, importing, said(word_0="as_it_stands", whole_candidate_a="x"), **{"HX-Request": "true"}
    )
    told = " ".join(answer.content.decode().split())
    assert "2 of the first 3 rows are invalid: choice “gpt4” is unknown" in told


def test_other_kinds_of_rows_ask_for_other_fields(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    told = {"kind": "scores", "asked_about": "comparisons"}
    text = at(manager_signed_in, importing, told, **{"HX-Request": "true"}).content.decode()
    assert 'name="column_value"' in text
    assert 'name="column_response_a"' not in text


def test_what_is_needed_and_not_said_is_named_at_its_place(manager_signed_in: Client, evaluation: Evaluation) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    answer = at(manager_signed_in, importing, said(do="fit", column_query="", column_candidate_a="=winner"))
    text = answer.content.decode()
    assert answer.status_code == 422
    assert "Choose a column." in text
    assert "not both" in text
    importing.refresh_from_db()
    assert importing.state == ImportState.MAPPING


def test_a_mapping_under_which_no_row_can_be_stored_is_refused(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    answer = at(manager_signed_in, importing, said(do="fit", whole_candidate_b="gpt4"))
    assert answer.status_code == 422
    assert "None of the first 3 rows is valid: both models are “gpt4”" in answer.content.decode()
    assert not ColumnMapping.objects.exists()


def test_a_file_is_discarded_while_its_columns_are_asked_about(
    manager_signed_in: Client, evaluation: Evaluation
) -> None:
    upload(manager_signed_in, evaluation)
    importing = Import.objects.get()
    manager_signed_in.post(reverse("import_cancel", args=[evaluation.slug, importing.pk]))
    importing.refresh_from_db()
    assert importing.state == ImportState.CANCELLED
    assert at(manager_signed_in, importing)["Location"] == reverse("import", args=[evaluation.slug, importing.pk])


def test_a_reviewer_cannot_say_what_columns_mean(
    client: Client, evaluation: Evaluation, manager_signed_in: Client
) -> None:
    upload(manager_signed_in, evaluation)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert at(client, Import.objects.get()).status_code == 403


def test_what_numbers_mean_must_be_chosen(manager_signed_in: Client, evaluation: Evaluation) -> None:
    numbered = ARENA.replace("gpt4,ann", "0,ann").replace("gpt4,bob", "1,bob").replace("tie,ann", "2,ann")
    upload(manager_signed_in, evaluation, numbered)
    importing = Import.objects.get()
    assert '<option value="" selected>–</option>' in at(manager_signed_in, importing).content.decode()
    answer = at(manager_signed_in, importing, said(do="fit", word_0="A", word_1="", word_2="tie"))
    assert answer.status_code == 422
    assert "Choose what this number means." in answer.content.decode()
    importing.refresh_from_db()
    assert importing.state == ImportState.MAPPING
    at(manager_signed_in, importing, said(do="fit", word_0="A", word_1="B", word_2="tie"))
    importing.refresh_from_db()
    assert (importing.state, importing.rows_bad) == (ImportState.PREVIEWED, 0)


def upload_rows(
    client: Client, evaluation: Evaluation, rows: list[dict[str, Any]], name: str = "chats.jsonl"
) -> Import:
    upload(client, evaluation, "".join(f"{json.dumps(row)}\n" for row in rows), "chats.jsonl")
    return Import.objects.latest("pk")


def test_a_value_inside_an_object_is_mapped_like_a_column(manager_signed_in: Client, evaluation: Evaluation) -> None:
    rows = [
        {"task": {"ask": f"Why {number}?"}, "reply": {"choices": [{"message": {"content": f"So {number}."}}]}}
        for number in range(2)
    ]
    importing = upload_rows(manager_signed_in, evaluation, rows)
    assert importing.state == ImportState.MAPPING
    text = at(manager_signed_in, importing).content.decode()
    assert '<option value="=reply.choices.0.message.content"' in text
    mapped = {
        "kind": "responses",
        "asked_about": "responses",
        "column_query_id": "#text",
        "column_query": "=task.ask",
        "column_response": "=reply.choices.0.message.content",
    }
    at(manager_signed_in, importing, {**mapped, "do": "fit"})
    importing.refresh_from_db()
    assert (importing.state, importing.rows_stored) == (ImportState.PREVIEWED, 2)
    sample = importing.summary.samples[0]
    assert (sample.query, sample.responses[0].text) == ("Why 0?", "So 0.")


def test_columns_of_later_rows_can_be_mapped(manager_signed_in: Client, evaluation: Evaluation) -> None:
    rows: list[dict[str, Any]] = [{"ask": f"Why {number}?", "say": "So."} for number in range(FIRST_RECORDS + 5)]
    rows[-1]["topic"] = "last"
    importing = upload_rows(manager_signed_in, evaluation, rows)
    assert '<option value="=topic"' in at(manager_signed_in, importing).content.decode()
    mapped = {
        "kind": "responses",
        "asked_about": "responses",
        "column_query_id": "#text",
        "column_query": "=ask",
        "column_response": "=say",
        "column_category": "=topic",
    }
    answer = at(manager_signed_in, importing, {**mapped, "do": "fit"})
    assert answer.status_code == 302
    importing.refresh_from_db()
    assert (importing.state, importing.rows_bad) == (ImportState.PREVIEWED, 0)


def test_a_typed_model_name_stands_before_a_guessed_column(manager_signed_in: Client, evaluation: Evaluation) -> None:
    importing = upload_rows(manager_signed_in, evaluation, [{"question": "Why?", "system": "alpha", "says": "So."}])
    request = importing.options.request
    reading = replace(request.reading, candidate="typed", format="responses")
    importing.options = replace(importing.options, request=replace(request, reading=reading))
    importing.save()
    form = build_mapping_form(importing, read_import_sheet(importing))
    assert (form.initial["whole_candidate"], form.initial.get("column_candidate")) == ("typed", None)
