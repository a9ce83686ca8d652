"""Adding an endpoint with its test, and starting a run together with a new judge."""

from dataclasses import dataclass, replace
from typing import Unpack

from django.db import transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.texts import find_free_name
from evaluations.judges.endpoints.services import (
    EndpointSettings,
    change_endpoint,
    create_endpoint,
    read_stored_settings,
    request_check,
)
from evaluations.judges.new_run.providers import Provider
from evaluations.judges.runs.selection import RunOptions
from evaluations.judges.runs.services import start_run
from evaluations.judges.services import JudgeSettings, build_judge, create_judge, find_same_judge
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Run
from evaluations.models.users import User


@dataclass(frozen=True)
class EndpointAccess:
    """What it takes to reach a server, as it was entered."""

    base_url: str
    api_key: str = ""
    key_variable: str = ""
    model: str = ""


@transaction.atomic
def add_tested_endpoint(provider: Provider, access: EndpointAccess, *, user: User) -> Endpoint:
    """Add an endpoint, or take the one that has this address without a stored key, and have a worker test it."""
    endpoint = None
    if not access.api_key:
        same = Endpoint.objects.filter(base_url=access.base_url.strip().rstrip("/"), encrypted_key="")
        endpoint = same.filter(key_variable=access.key_variable.strip()).order_by("pk").first()
    if endpoint is None:
        wanted = provider.name if provider.slug != "other" else "LLM server"
        name = find_free_name(wanted, Endpoint.objects.filter(name__startswith=wanted).values_list("name", flat=True))
        settings = EndpointSettings(name, access.base_url, access.key_variable, api_key=access.api_key)
        endpoint = create_endpoint(settings, user=user)
    request_check(endpoint, access.model)
    return endpoint


@transaction.atomic
def retest_endpoint(endpoint: Endpoint, access: EndpointAccess, *, user: User) -> None:
    """Test an endpoint again, with another address or key if they were entered."""
    changed = replace(read_stored_settings(endpoint), base_url=access.base_url)
    if access.api_key:
        changed = replace(changed, api_key=access.api_key, key_variable="")
    elif access.key_variable:
        changed = replace(changed, key_variable=access.key_variable, removes_key=bool(endpoint.encrypted_key))
    change_endpoint(endpoint, changed, user=user)
    request_check(endpoint, access.model)


def start_new_judge(
    evaluation: Evaluation, settings: JudgeSettings, *, user: User | None, **options: Unpack[RunOptions]
) -> Run:
    """Run a judge with these settings: the one that has them already, else a new one."""
    with transaction.atomic():
        judge = find_same_judge(build_judge(evaluation, settings))
        if judge is not None and judge.endpoint != settings.endpoint:
            raise InputRefused(
                f"“{judge.name}” is this judge on “{judge.endpoint}”, which has the same address. Run that one."
            )
        return start_run(judge or create_judge(evaluation, settings, user=user), user=user, **options)


def draft_judge(evaluation: Evaluation, settings: JudgeSettings) -> Judge:
    """The judge that a run with these settings would use, for an estimate: not stored if it is new."""
    if not settings.model.strip():
        raise InputRefused("Choose a model to see the estimate.")
    judge = build_judge(evaluation, settings)
    return find_same_judge(judge) or judge
