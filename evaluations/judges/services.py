"""Creating judges, putting them in the archive, bringing them back."""

import secrets
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.db.models import ProtectedError
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import ACTIVE_RUN_STATES, RULE_JUDGE_TEXTS, JudgeKind, OutputMode, RunState
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import RubricKind, RubricOrigin, RubricSpec
from evaluations.domain.texts import find_free_name
from evaluations.judge_prompts.baseline_rules import BASELINE_RULES, DEFAULT_RULE_SEEDS, TIE_RULES
from evaluations.judge_prompts.placeholders import is_template
from evaluations.judge_prompts.rubric_checks import refuse_unusable_rubric
from evaluations.judges.endpoints.grants import grant_for_new_judge
from evaluations.judges.endpoints.price_settings import keep_list_price
from evaluations.judges.endpoints.selectors import server_for_endpoint
from evaluations.judges.selectors import judge_fingerprint, judge_settings
from evaluations.llm.request_extras import (
    SEPARATELY_PRICED_FIELDS,
    ExtrasInput,
    check_extra_body,
    check_extra_headers,
    list_unsent_variables,
)
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.net.addresses import refuse_pasted_key
from evaluations.replies.reply_format import wants_two_steps
from evaluations.rubrics.services import freeze_version

# The protocol's values; the server says which of them a model takes.
REASONING_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
MAX_SEED: Final = 2**62  # each sample adds one


@dataclass(frozen=True)
class JudgeSettings:
    """The settings of a new judge. Without an endpoint it is a rule, not a model."""

    name: str
    model: str
    version: RubricVersion | None
    endpoint: Endpoint | None = None
    mode: str = OutputMode.AUTO
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: str = ""
    logprobs: bool = False
    repairs: bool = True
    extra_headers: ExtrasInput = ""
    extra_body: ExtrasInput = ""
    one_aspect_per_call: bool = False


def complete_settings(settings: JudgeSettings, rule: str) -> JudgeSettings:
    """The settings with their defaults: a rule has no model settings, and the name is that of the model or rule."""
    if settings.endpoint is None:
        model = settings.model.strip() or rule or next(iter(RULE_JUDGE_TEXTS))
        settings = JudgeSettings(name=settings.name, model=model, version=settings.version, seed=settings.seed)
    return replace(settings, name=settings.name.strip() or settings.model)


MAX_NAME_LENGTH: Final = 120


def name_judge(evaluation: Evaluation, settings: JudgeSettings) -> JudgeSettings:
    """The settings with a free name: that of the model or rule, then with its rubric, then with a number."""
    taken = set(Judge.objects.filter(evaluation=evaluation).values_list("name", flat=True))
    name = settings.model.strip()[:MAX_NAME_LENGTH]
    if name in taken and settings.version is not None:
        name = find_free_name(f"{name} · {settings.version.rubric.name}"[: MAX_NAME_LENGTH - 4], taken)
    return replace(settings, name=name)


@transaction.atomic
def create_judge(evaluation: Evaluation, settings: JudgeSettings, *, user: User | None) -> Judge:
    """A judge with its rater."""
    judge = build_judge(evaluation, settings)
    if judge.endpoint is not None:
        grant_for_new_judge(judge.endpoint, evaluation, user=user)
    judge.fence_key = choose_fence_key(evaluation)
    refuse_duplicate_judge(judge)
    judge.save()
    assert judge.rubric_version is not None
    freeze_version(judge.rubric_version)
    keep_list_price(judge.endpoint, judge.model, user=user)
    Rater.objects.create(evaluation=evaluation, kind=RaterKind.JUDGE, name=judge.name, judge=judge)
    record_event("created", judge, user=user, evaluation=evaluation, after=judge_settings(judge) | {"name": judge.name})
    return judge


def build_judge(evaluation: Evaluation, settings: JudgeSettings) -> Judge:
    """The judge with these settings, checked and not stored; InputRefused with the first fault."""
    version, endpoint, model = settings.version, settings.endpoint, settings.model.strip()
    if version is None or version.rubric.evaluation_id != evaluation.pk:
        raise InputRefused("A judge needs a rubric version of this evaluation.", field="version")
    refuse_unusable_rubric(version.spec())
    judge = Judge(
        evaluation=evaluation,
        name=settings.name.strip(),
        kind=JudgeKind.RULE if endpoint is None else JudgeKind.LLM,
        rubric_version=version,
        endpoint=endpoint,
        model=model,
        mode=settings.mode,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=DEFAULT_RULE_SEEDS.get(model) if settings.seed is None and endpoint is None else settings.seed,
        reasoning_effort=settings.reasoning_effort.strip(),
        logprobs=settings.logprobs,
        repairs=settings.repairs,
        extra_headers=check_extra_headers(settings.extra_headers),
        extra_body=check_extra_body(settings.extra_body),
        one_aspect_per_call=settings.one_aspect_per_call,
    )
    refuse_invalid_judge(judge)
    refuse_invalid_extras(judge)
    refuse_invalid_one_aspect_per_call(judge, version.spec())
    # With a single aspect the option changes nothing, and must not make a different judge.
    judge.one_aspect_per_call = settings.one_aspect_per_call and len(version.spec().aspects) > 1
    judge.fingerprint = judge_fingerprint(judge)
    return judge


def find_same_judge(judge: Judge) -> Judge | None:
    """The stored judge of the evaluation with the same settings, archived or not."""
    same = Judge.objects.filter(evaluation=judge.evaluation, fingerprint=judge.fingerprint)
    return same.select_related("rubric_version__rubric", "endpoint").first()


def refuse_invalid_judge(judge: Judge) -> None:
    if judge.kind == JudgeKind.LLM and not judge.model:
        raise InputRefused("Enter the ID of a model at this endpoint.", field="model")
    if not judge.name:
        raise InputRefused("Name the judge.", field="name")
    refuse_pasted_key(judge.name, "The name")
    refuse_pasted_key(judge.model, "The model")
    if judge.kind == JudgeKind.RULE:
        refuse_invalid_baseline(judge)
    version = judge.rubric_version
    if judge.kind == JudgeKind.LLM and version and version.rubric.origin == RubricOrigin.IMPORTED:
        raise InputRefused("This rubric came with an import and has no instructions. Choose another one.")
    if judge.mode not in set(OutputMode):
        raise InputRefused(f"Output format: use one of {', '.join(OutputMode)}.")
    if judge.temperature is not None and not 0 <= judge.temperature <= 2:
        raise InputRefused("Temperature: a number from 0 to 2.")
    if judge.max_tokens is not None and not 1 <= judge.max_tokens <= 1_000_000:
        raise InputRefused("Max tokens: a whole number from 1 to 1,000,000.")
    if judge.seed is not None and abs(judge.seed) > MAX_SEED:
        raise InputRefused(f"Seed: a whole number from -{MAX_SEED} to {MAX_SEED}.")
    if judge.reasoning_effort not in ("", *REASONING_EFFORTS):
        raise InputRefused(f"Reasoning effort: use one of {', '.join(REASONING_EFFORTS)}, or leave it empty.")


def refuse_invalid_extras(judge: Judge) -> None:
    """Refuse keys and pricing fields in a judge: only site administrators set these, on endpoints."""
    endpoint, extras = judge.endpoint, {"headers": judge.extra_headers, "body": judge.extra_body}
    if endpoint is None:
        if judge.extra_headers or judge.extra_body:
            raise InputRefused("Extra headers and body fields are for LLM judges. A rule makes no requests.")
        return
    if unsent := list_unsent_variables(extras, server_for_endpoint(endpoint)):
        raise InputRefused(
            f"“{endpoint}” is not sent {unsent[0]} yet. A site administrator can add it to the endpoint's extra "
            "headers; a judge then needs no variable of its own."
        )
    priced_apart = sorted(set(SEPARATELY_PRICED_FIELDS) & set(judge.extra_body))
    if priced_apart:
        raise InputRefused(
            f"Extra body fields: leave out “{priced_apart[0]}”, it changes what a token costs. A site administrator "
            "can add an endpoint with this field and with prices of its own."
        )


def refuse_invalid_one_aspect_per_call(judge: Judge, spec: RubricSpec) -> None:
    """Refuse rubrics and modes that cannot ask for one aspect alone."""
    if not judge.one_aspect_per_call:
        return
    if judge.kind == JudgeKind.RULE:
        raise InputRefused("One request per aspect is for LLM judges. A rule makes no requests.")
    if wants_two_steps(spec, judge.mode):
        raise InputRefused(
            "One aspect per call does not work in two steps: choose another mode and a rubric that is answered in "
            "one step."
        )
    if is_template(spec.placeholders) and len(spec.aspects) > 1:
        raise InputRefused(
            "One aspect per call does not work with a pasted prompt, which asks for all its aspects by itself: choose "
            "another rubric, or leave the option out."
        )


def refuse_invalid_baseline(judge: Judge) -> None:
    if judge.model not in BASELINE_RULES:
        raise InputRefused(
            f"“{judge.model}” needs an LLM endpoint. Without one, use a rule: {', '.join(BASELINE_RULES)}."
        )
    assert judge.rubric_version is not None
    spec = judge.rubric_version.spec()
    if spec.kind != RubricKind.PAIRWISE:
        raise InputRefused("Rules compare two responses. Choose a pairwise rubric.")
    without_tie = [aspect.name for aspect in spec.aspects if not aspect.offers_tie]
    if judge.model in TIE_RULES and without_tie:
        raise InputRefused(
            f"The rule {judge.model} needs ties, and this rubric has none for {', '.join(without_tie)}. Choose another "
            "rubric."
        )


def refuse_duplicate_judge(judge: Judge) -> None:
    others = Judge.objects.filter(evaluation=judge.evaluation)
    if others.filter(name=judge.name).exists():
        raise InputRefused(f"A judge “{judge.name}” already exists. Choose another name.")
    same = others.filter(fingerprint=judge.fingerprint).first()
    if same is not None:
        raise InputRefused(f"“{same.name}” has the same settings. Run that one.")


def choose_fence_key(evaluation: Evaluation) -> str:
    """One key for all judges of an evaluation, so that equal settings send equal prompts.

    Each judge keeps it. It is chosen under the evaluation's lock, so that two first judges get the same.
    """
    Evaluation.objects.select_for_update().get(pk=evaluation.pk)
    first = Judge.objects.filter(evaluation=evaluation).exclude(fence_key="").order_by("pk").first()
    return first.fence_key if first else secrets.token_hex(32)


@transaction.atomic
def archive_judge(judge: Judge, *, user: User | None) -> Judge:
    """Archive the judge: no report or new export includes it. Refused while active or shown to reviewers."""
    row = Judge.objects.select_for_update().get(pk=judge.pk)
    if row.archived_at:
        return row
    refuse_archiving_used_judge(row)
    row.archived_at, row.archived_by = timezone.now(), user
    row.save(update_fields=["archived_at", "archived_by"])
    record_event("archived", row, user=user, evaluation=row.evaluation, after={"name": row.name})
    return row


@transaction.atomic
def restore_judge(judge: Judge, *, user: User | None) -> Judge:
    """Bring the judge back, with all its verdicts."""
    row = Judge.objects.select_for_update().get(pk=judge.pk)
    if row.archived_at is None:
        return row
    row.archived_at, row.archived_by = None, None
    row.save(update_fields=["archived_at", "archived_by"])
    record_event("restored", row, user=user, evaluation=row.evaluation, after={"name": row.name})
    return row


@transaction.atomic
def delete_judge(judge: Judge, *, user: User | None) -> None:
    """Delete a judge that never ran. Refused where it has runs or verdicts: those are archived."""
    row = Judge.objects.select_for_update().get(pk=judge.pk)
    refuse_archiving_used_judge(row)
    raters = Rater.objects.filter(judge=row)
    before = {"name": row.name, "model": row.model}
    record_event("deleted", row, user=user, evaluation=row.evaluation, before=before)
    try:
        raters.delete()
        row.delete()
    except ProtectedError:
        raise InputRefused(f"“{judge.name}” has runs or verdicts. Delete its runs first, or archive it.") from None


def refuse_archiving_used_judge(judge: Judge) -> None:
    if Run.objects.filter(judge=judge, state__in=(*ACTIVE_RUN_STATES, RunState.PAUSED)).exists():
        raise InputRefused(f"“{judge.name}” has an open run. Wait for it to finish, or cancel it.")
    if Evaluation.objects.filter(pk=judge.evaluation_id, shown_judge=judge).exists():
        raise InputRefused(f"“{judge.name}” is shown to reviewers. Choose another judge or none in the settings first.")
