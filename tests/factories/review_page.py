"""Requests to the review page for tests."""

import re
from typing import Any

from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import Choice
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison
from tests.factories.verdicts import SIX_ASPECT_KEYS, make_judge_verdicts
from tests.helpers.page_text import html_of

HTMX = {"HX-Request": "true"}


def review_url(name: str, comparison: Comparison) -> str:
    return reverse(name, args=[comparison.evaluation.slug, comparison.pk])


def get_review_page(browser: Client, comparison: Comparison) -> str:
    return html_of(browser.get(review_url("review_comparison", comparison)))


def make_judged_comparison(evaluation: Evaluation, **columns: Any) -> Comparison:
    """A comparison on which the judge chose response A everywhere, but is torn about depth."""
    comparison = make_comparison(evaluation, candidates=("gpt-secret", "llama-secret"), **columns)
    choices = dict.fromkeys(SIX_ASPECT_KEYS, Choice.A)
    make_judge_verdicts(
        comparison,
        judge="longest wins",
        rationale="Judge thinks so",
        as_stored=choices,
        swapped={**choices, "depth": Choice.B},
    )
    return comparison


def build_choices(value: str = "A", **others: str) -> dict[str, str]:
    chosen = {f"choice_{key}": others.get(key, value) for key in SIX_ASPECT_KEYS}
    return {"version": "0", "active_ms": "1200", **chosen}


def post_first_choices(browser: Client, comparison: Comparison, **how: Any) -> Any:
    return browser.post(review_url("review_save", comparison), build_choices(), **how)


def read_hidden_fields(html: str, form: str) -> dict[str, str]:
    """The hidden fields of a form, by its id."""
    start = html.index(f'<form id="{form}"') if f'<form id="{form}"' in html else html.index(f'id="{form}" method')
    return dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="(.*?)"', html[start : html.index("</form>", start)])
    )
