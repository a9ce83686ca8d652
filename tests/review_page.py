"""The addresses of one comparison on the review page, and the page as a browser gets it."""

from django.test import Client
from django.urls import reverse

from evaluations.models import Comparison


def address(name: str, comparison: Comparison) -> str:
    return reverse(name, args=[comparison.evaluation.slug, comparison.pk])


def page_of(browser: Client, comparison: Comparison) -> str:
    return browser.get(address("review_comparison", comparison)).content.decode()
