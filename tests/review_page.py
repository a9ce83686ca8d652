"""The review page for tests: its addresses, what stands on it, and a first save."""

import re
from typing import Any

from django.test import Client
from django.urls import reverse

from evaluations.domain import Choice
from evaluations.models import Comparison, Evaluation
from tests.making import make_comparison
from tests.saying import SIX, judge_says

HTMX = {"HX-Request": "true"}


def address(name: str, comparison: Comparison) -> str:
    return reverse(name, args=[comparison.evaluation.slug, comparison.pk])


def page_of(browser: Client, comparison: Comparison) -> str:
    return browser.get(address("review_comparison", comparison)).content.decode()


def judged(evaluation: Evaluation, **columns: Any) -> Comparison:
    """A comparison on which the judge chose response A everywhere, but is torn about depth."""
    comparison = make_comparison(evaluation, candidates=("gpt-secret", "llama-secret"), **columns)
    said = dict.fromkeys(SIX, Choice.A)
    judge_says(
        comparison,
        judge="longest wins",
        rationale="Judge thinks so",
        as_stored=said,
        swapped={**said, "depth": Choice.B},
    )
    return comparison


def choices(value: str = "A", **others: str) -> dict[str, str]:
    chosen = {f"choice_{key}": others.get(key, value) for key in SIX}
    return {"version": "0", "active_ms": "1200", **chosen}


def save(browser: Client, comparison: Comparison, **how: Any) -> Any:
    return browser.post(address("review_save", comparison), choices(), **how)


def hidden(html: str, form: str) -> dict[str, str]:
    """The hidden fields of a form, by its id."""
    start = html.index(f'<form id="{form}"') if f'<form id="{form}"' in html else html.index(f'id="{form}" method')
    return dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="(.*?)"', html[start : html.index("</form>", start)])
    )
