"""The help page."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tests.factories.evaluations import make_user

pytestmark = pytest.mark.any_database


@pytest.mark.django_db
def test_it_explains_every_failure_and_the_keys_of_the_review_page(client: Client) -> None:
    client.force_login(make_user())
    page = client.get(reverse("help")).content.decode()
    for word in ("unreadable", "suspect", "refused", "truncated", "too long", "failed", "kappa", "AC1", "alpha"):
        assert word in page
    keys = re.findall(r"<dt>.*?</dd>", (Path(settings.BASE_DIR) / "templates/review/_key_list.html").read_text())
    assert len(keys) > 15
    assert [row for row in keys if row not in page] == []
