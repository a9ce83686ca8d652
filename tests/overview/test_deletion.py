"""The deletion of a whole evaluation."""

from typing import Any

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from evaluations.domain.jobs import JobState
from evaluations.domain.roles import Role
from evaluations.domain.security import SecurityEventKind
from evaluations.jobs.queue import enqueue_job
from evaluations.jobs.runner import work_on_due_jobs
from evaluations.models.endpoint_grants import EndpointSpending
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.jobs import Job
from evaluations.models.runs import Run
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import ApiToken, User
from evaluations.overview import deletion
from evaluations.overview.deletion import DELETE_EVALUATION
from tests.factories.evaluations import make_member
from tests.factories.full_evaluation import make_full_evaluation
from tests.factories.verdicts import get_or_make_run, make_judge_rater
from tests.helpers.api_client import ApiClient, token_for

pytestmark = pytest.mark.django_db

NUMBER, OTHER_NUMBER = 770_100, 880_200
# Rows of the site, or about texts whichever evaluation they are in.
OF_THE_SITE = {"Endpoint", "Price", "EndpointCheck", "EndpointAccount", "LocalServer", "Rendering", "User", "ApiToken"}


def delete(client: Client, slug: str, name: str) -> Any:
    return client.post(reverse("evaluation_delete", args=[slug]), {"name": name}, follow=True)


def count_rows() -> dict[str, int]:
    models = apps.get_app_config("evaluations").get_models()
    return {model.__name__: getattr(model, "all_rows", model._base_manager).count() for model in models}


def make_free(evaluation: Evaluation) -> Evaluation:
    """The full evaluation has work of every kind in progress."""
    Run.objects.filter(evaluation=evaluation).update(state="done")
    Job.objects.filter(evaluation=evaluation).update(state=JobState.DONE)
    return evaluation


def sign_in_owner(client: Client, evaluation: Evaluation) -> User:
    owner = make_member(evaluation, Role.OWNER, "zoe")
    client.force_login(owner)
    return owner


def test_every_row_of_it_goes_and_no_row_of_another(client: Client) -> None:
    make_full_evaluation(OTHER_NUMBER)
    before = count_rows()
    evaluation = make_free(make_full_evaluation(NUMBER).evaluation)
    sign_in_owner(client, evaluation)
    spending = EndpointSpending.objects.filter(evaluation=evaluation).count()
    assert "deleted" in delete(client, evaluation.slug, evaluation.name).content.decode()
    assert not Evaluation.objects.filter(slug=evaluation.slug).exists()
    work_on_due_jobs(DELETE_EVALUATION)
    assert Job.objects.get(kind=DELETE_EVALUATION).state == JobState.DONE
    assert not Evaluation.objects.filter(pk=evaluation.pk).exists()
    after = count_rows()
    assert {name: number for name, number in after.items() if number < before[name]} == {}
    grown = {name for name, number in after.items() if number > before[name]}
    assert grown - OF_THE_SITE >= {"EndpointSpending", "SecurityEvent"}
    kept = EndpointSpending.objects.filter(evaluation=None, evaluation_name=evaluation.name)
    assert kept.count() >= spending > 0


def test_the_site_keeps_a_record(client: Client, evaluation: Evaluation) -> None:
    owner = sign_in_owner(client, evaluation)
    delete(client, "study", "Study study")
    recorded = SecurityEvent.objects.get(kind=SecurityEventKind.EVALUATION_DELETED)
    assert (recorded.user, recorded.detail) == (owner, "Study study (study)")
    work_on_due_jobs(DELETE_EVALUATION)
    event = Event.objects.get(verb="deleted")
    assert (event.user, event.evaluation, event.before) == (owner, None, {"name": "Study study", "slug": "study"})


def test_the_name_has_to_be_typed(client: Client, evaluation: Evaluation) -> None:
    sign_in_owner(client, evaluation)
    assert "Type the name exactly" in delete(client, "study", "study").content.decode()
    assert Evaluation.objects.filter(slug="study").exists()
    assert not Job.objects.filter(kind=DELETE_EVALUATION).exists()


def test_a_manager_may_not(client: Client, evaluation: Evaluation) -> None:
    client.force_login(make_member(evaluation, Role.MANAGER))
    assert delete(client, "study", "Study study").status_code == 403
    assert "Delete this evaluation" not in client.get(reverse("evaluation_settings", args=["study"])).content.decode()


def test_it_waits_for_runs_and_jobs_but_not_for_counting(client: Client, evaluation: Evaluation) -> None:
    sign_in_owner(client, evaluation)
    judge = make_judge_rater(evaluation).judge
    assert judge is not None
    run = get_or_make_run(judge)
    Run.objects.filter(pk=run.pk).update(state="running")
    assert "A run is in progress" in delete(client, "study", "Study study").content.decode()
    Run.objects.filter(pk=run.pk).update(state="done")
    job = enqueue_job("export", 1, evaluation=evaluation)
    assert "is in progress" in delete(client, "study", "Study study").content.decode()
    job.delete()
    enqueue_job("count_progress", evaluation.pk, evaluation=evaluation)
    delete(client, "study", "Study study")
    assert not Evaluation.objects.filter(slug="study").exists()


def test_files_of_exports_are_deleted(client: Client, evaluation: Evaluation) -> None:
    sign_in_owner(client, evaluation)
    export = Export.objects.create(evaluation=evaluation, format="jsonl", label_policy="majority", state="done")
    export.file.save("labels.jsonl", ContentFile(b"{}"))
    storage, name = export.file.storage, str(export.file.name)
    assert storage.exists(name)
    delete(client, "study", "Study study")
    work_on_due_jobs(DELETE_EVALUATION)
    assert not storage.exists(name)


def test_a_token_of_the_evaluation_opens_nothing_afterwards(client: Client, evaluation: Evaluation) -> None:
    owner = sign_in_owner(client, evaluation)
    token_for(owner)
    token = ApiToken.objects.get(user=owner)
    ApiToken.objects.filter(pk=token.pk).update(evaluation=evaluation)
    delete(client, "study", "Study study")
    token.refresh_from_db()
    assert token.evaluation is None
    assert token.revoked_at is not None


def test_an_interrupted_deletion_goes_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = make_free(make_full_evaluation(NUMBER).evaluation)
    sign_in_owner(client, evaluation)
    delete(client, evaluation.slug, evaluation.name)
    turns = iter([False, False, False, True])
    monkeypatch.setattr(deletion, "is_time_up", lambda _: next(turns, False))
    work_on_due_jobs(DELETE_EVALUATION)
    work_on_due_jobs(DELETE_EVALUATION)
    assert not Evaluation.objects.filter(pk=evaluation.pk).exists()


def test_a_program_of_an_owner_deletes_by_the_name(evaluation: Evaluation, owner: User) -> None:
    program = ApiClient(token_for(owner))
    refused = program.post("/evaluations/study/delete", {"name": "other"})
    assert refused.status_code == 422
    assert "Type the name exactly" in refused.content.decode()
    assert program.post("/evaluations/study/delete", {"name": "Study study"}).json() == {"slug": "study"}
    assert not Evaluation.objects.filter(slug="study").exists()
