"""A backup from the page of exports: for owners, in the background, and taken by owners alone."""

import io
import re
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.events import DOWNLOADED
from evaluations.domain.files import ExportState
from evaluations.domain.jobs import JobState
from evaluations.domain.roles import Role
from evaluations.exports.services import start_export
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.jobs import Job
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_member
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import Nudges, job_about, nudged_jobs, work_once
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
MAY_EXPORT = [Role.MANAGER, Role.ADJUDICATOR, Role.VIEWER]
REFUSED = "Your role does not let you make or download backups of this evaluation."


@pytest.fixture(autouse=True)
def one_comparison(evaluation: Evaluation) -> None:
    make_comparison(evaluation)


@pytest.fixture
def backup(evaluation: Evaluation, owner: User) -> Export:
    export = start_export(evaluation, written_as="backup", user=owner, in_background=True)
    work_once("export", export.pk)
    export.refresh_from_db()
    return export


def page(client: Client, name: str, *more: int) -> str:
    answer = client.get(reverse(name, args=["study", *more]))
    assert answer.status_code == 200
    return html_of(answer)


def test_an_owner_makes_one_in_the_background_and_takes_it(
    evaluation: Evaluation, owner: User, nudges: Nudges, django_capture_on_commit_callbacks: Any
) -> None:
    client = sign_in_client(owner)
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(reverse("export_new", args=["study"]), {"written_as": "backup", "anonymised": "on"})
    export = Export.objects.get()
    assert answer["Location"] == reverse("export", args=["study", export.pk])
    waiting = job_about("export", export.pk)
    assert (export.state, export.options, nudged_jobs(nudges)) == (ExportState.WAITING, {}, [waiting.pk])
    assert "0 rows" in " ".join(page(client, "export", export.pk).split())
    work_once("export", export.pk)
    shown = page(client, "export", export.pk)
    assert "manage.py restore" in shown
    assert "A label may rest on" not in shown
    file = client.get(reverse("export_file", args=["study", export.pk]))
    with zipfile.ZipFile(io.BytesIO(b"".join(file.streaming_content))) as whole:  # type: ignore[attr-defined]
        assert whole.testzip() is None
        assert "tables/comparison.jsonl" in whole.namelist()
    assert Event.objects.filter(verb=DOWNLOADED, user=owner).count() == 1


def test_the_page_asks_for_nothing_else_and_says_what_is_in_it(evaluation: Evaluation, owner: User) -> None:
    sent = {"written_as": "backup", "step": "look"}
    text = html_of(sign_in_client(owner).post(reverse("export_new", args=["study"]), sent))
    assert "One zip file with the whole evaluation" in text
    assert "Back up</button>" in text
    for field in ("anonymised", "policy", "saved_filter", "shares"):
        assert f'name="{field}"' not in text
    assert "would be written of" not in text
    assert "what was left out" not in text


@pytest.mark.parametrize("role", MAY_EXPORT)
def test_whoever_does_not_own_it_neither_makes_nor_takes_one(
    evaluation: Evaluation, backup: Export, role: Role
) -> None:
    client = sign_in_client(make_member(evaluation, role))
    assert 'value="backup"' not in page(client, "export_new")
    for step in ("", "look"):
        answer = client.post(reverse("export_new", args=["study"]), {"written_as": "backup", "step": step})
        assert answer.status_code == 403
        assert REFUSED in html_of(answer)
    assert Export.objects.count() == 1
    address = reverse("export_file", args=["study", backup.pk])
    assert client.get(address).status_code == 403
    assert address not in page(client, "exports")
    shown = page(client, "export", backup.pk)
    assert address not in shown
    assert "so only owners can download it" in shown


def test_an_owner_is_offered_it(evaluation: Evaluation, owner: User, backup: Export) -> None:
    client = sign_in_client(owner)
    assert 'value="backup"' in page(client, "export_new")
    assert reverse("export_file", args=["study", backup.pk]) in page(client, "exports")


def test_a_reviewer_has_no_way_to_it(evaluation: Evaluation, backup: Export) -> None:
    reviewer = make_member(evaluation, Role.REVIEWER)
    client, asking = sign_in_client(reviewer), ApiClient(token_for(reviewer))
    assert client.post(reverse("export_new", args=["study"]), {"written_as": "backup"}).status_code == 403
    assert client.get(reverse("export_file", args=["study", backup.pk])).status_code == 403
    assert asking.post("/evaluations/study/exports", {"format": "backup"}).status_code == 403
    assert asking.get(f"/evaluations/study/exports/{backup.pk}/file").status_code == 403
    assert Export.objects.count() == 1


@pytest.mark.parametrize("role", MAY_EXPORT)
def test_over_the_api_it_is_for_owners_too(evaluation: Evaluation, backup: Export, role: Role) -> None:
    asking = ApiClient(token_for(make_member(evaluation, role)))
    made = asking.post("/evaluations/study/exports", {"format": "backup"})
    assert (made.status_code, REFUSED in made.json()["detail"]) == (403, True)
    assert asking.get(f"/evaluations/study/exports/{backup.pk}/file").status_code == 403
    assert Export.objects.count() == 1


def test_only_an_owner_cancels_one(evaluation: Evaluation, owner: User) -> None:
    export = start_export(evaluation, written_as="backup", user=owner, in_background=True)
    viewer = make_member(evaluation, Role.VIEWER)
    address = reverse("export_cancel", args=["study", export.pk])
    assert "Cancel</button>" not in page(sign_in_client(viewer), "export", export.pk)
    assert sign_in_client(viewer).post(address).status_code == 403
    assert ApiClient(token_for(viewer)).post(f"/evaluations/study/exports/{export.pk}/cancel").status_code == 403
    export.refresh_from_db()
    assert export.state == ExportState.WAITING
    assert "Cancel</button>" in page(sign_in_client(owner), "export", export.pk)
    sign_in_client(owner).post(address)
    export.refresh_from_db()
    assert export.state == ExportState.CANCELLED


def test_the_list_of_formats_tells_which_is_whole(owner: User) -> None:
    listed = ApiClient(token_for(owner)).get("/export-formats").json()["items"]
    assert [one["name"] for one in listed if one["is_whole"]] == ["backup"]


def test_while_it_is_written_the_page_has_an_end_in_sight(evaluation: Evaluation, owner: User, backup: Export) -> None:
    begun = timezone.now() - timedelta(days=1)
    Export.objects.filter(pk=backup.pk).update(state=ExportState.UNFINISHED)
    told = {"state": JobState.RUNNING, "position": 1_728_000_000, "total": 2_000_000_000, "begun_at": begun}
    Job.objects.filter(subject=backup.pk).update(**told)
    shown = " ".join(page(sign_in_client(owner), "export", backup.pk).split())
    assert '<progress aria-label="Export progress" value="1728000000" max="2000000000">' in shown
    assert "1,728,000,000 of 2,000,000,000 rows" in shown
    # 1,728,000,000 rows in 86,400 seconds are 20,000 a second; an hour that this test takes makes it 19,200.
    assert re.search(r"(20,000|19,\d\d\d) per second", shown)


def test_what_is_missing_of_it_can_be_had_alone(evaluation: Evaluation, owner: User, backup: Export) -> None:
    address = reverse("export_file", args=["study", backup.pk])
    whole = b"".join(sign_in_client(owner).get(address).streaming_content)  # type: ignore[attr-defined]
    rest = sign_in_client(owner).get(address, headers={"range": "bytes=100-"})
    assert (rest.status_code, b"".join(rest.streaming_content)) == (206, whole[100:])  # type: ignore[attr-defined]


def test_a_program_of_the_owner_makes_and_takes_one(
    evaluation: Evaluation, owner: User, nudges: Nudges, django_capture_on_commit_callbacks: Any
) -> None:
    asking = ApiClient(token_for(owner))
    with django_capture_on_commit_callbacks(execute=True):
        made = asking.post("/evaluations/study/exports", {"format": "backup"}).json()
    waiting = job_about("export", made["id"])
    assert (made["state"], made["expected"], nudged_jobs(nudges)) == ("waiting", None, [waiting.pk])
    work_once("export", made["id"])
    told = asking.get(f"/evaluations/study/exports/{made['id']}").json()
    file = b"".join(asking.get(f"/evaluations/study/exports/{made['id']}/file").streaming_content)
    assert (told["state"], told["bytes"]) == ("done", len(file))
    refused = asking.post("/evaluations/study/exports", {"format": "backup", "anonymise": True})
    assert (refused.status_code, "Remove the filters and options" in refused.json()["detail"]) == (422, True)
