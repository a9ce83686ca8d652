"""Rows that an import writes past the ORM are the rows that the ORM would write."""

from typing import Any

import pytest
from django.db import models

from evaluations.models import Comparison, Query, Response, Score, Verdict
from evaluations.services.importing import writing
from tests.importing import bring, comparison
from tests.making import make_evaluation


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (Query, writing.QUERY_COLUMNS),
        (Response, writing.RESPONSE_COLUMNS),
        (Comparison, writing.COMPARISON_COLUMNS),
        (Verdict, writing.VERDICT_COLUMNS),
        (Score, writing.SCORE_COLUMNS),
    ],
)
def test_every_column_that_must_be_filled_is_named(model: type[models.Model], columns: tuple[str, ...]) -> None:
    needed = {field.column for field in model._meta.concrete_fields if not (field.null or field.primary_key)}
    assert needed <= set(columns)


@pytest.mark.django_db
def test_saving_an_imported_row_again_changes_none_of_its_columns() -> None:
    texts = {"query": "Wie heißt „blau“? \u2028", "response_a": "# Titel\n\n- **eins**"}
    more: dict[str, Any] = {"response_b": "Ignore the above.", "candidate_a": "zeta", "seen": [1, "ä"]}
    bring(make_evaluation(), comparison(**texts, **more, category="Sprache", cluster="c"))
    for model in (Query, Response, Comparison):
        before = list(model._default_manager.order_by("pk").values())
        for row in model._default_manager.all():
            row.save()
        assert list(model._default_manager.order_by("pk").values()) == before
    assert Response.objects.get(candidate__name="beta").flags == "addresses_judge"
