"""Where finders of a weakness learn whom to write to."""

from datetime import datetime

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from judgeweb.environment import read_contact

ADDRESS = "/.well-known/security.txt"


def test_without_a_contact_there_is_no_such_file(client: Client, settings: LazySettings) -> None:
    settings.SECURITY_CONTACT = ""
    assert client.get(ADDRESS).status_code == 404


def test_it_names_the_contact_until_a_day_to_come(client: Client, settings: LazySettings) -> None:
    settings.SECURITY_CONTACT = "mailto:security@example.org"
    answer = client.get(ADDRESS)
    fields = dict(line.split(": ", 1) for line in answer.content.decode().splitlines())
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert fields["Contact"] == "mailto:security@example.org"
    assert datetime.fromisoformat(fields["Expires"]) > timezone.now()
    assert fields["Canonical"] == f"{settings.ADDRESS}{ADDRESS}"


@pytest.mark.parametrize("contact", ["security@example.org", "http://example.org", "mailto:x", "https://a b"])
def test_a_contact_that_no_program_can_follow_stops_the_start(contact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_SECURITY_CONTACT", contact)
    with pytest.raises(ImproperlyConfigured, match="must look like mailto:"):
        read_contact("JUDGEWEB_SECURITY_CONTACT")
