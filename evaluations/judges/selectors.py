"""Questions about judges: their settings, the prompts they send, warnings."""

import hashlib
import json
from dataclasses import replace
from typing import Final

from django.db.models import QuerySet

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import JudgeKind, ReplyShape, RequestShape
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.judge_prompts.preview import SAMPLE_PAIR, PromptPreview, first_response_texts, preview_prompt
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.replies.reply_format import aspects_in_reply_order, known_reply_shape, only_aspect, wants_two_steps
from evaluations.rubrics.selectors import missing_placeholder_warnings


def judge_settings(judge: Judge) -> dict[str, object]:
    """All settings that make a judge what it is; changing one makes another judge.

    Later settings are left out at their defaults, so that older fingerprints stay valid.
    """
    later_defaults = {"reasoning_effort": "", "logprobs": False, "repairs": True, "extra_headers": {}, "extra_body": {}}
    later_defaults |= {"one_aspect_per_call": False}
    return {
        "kind": str(judge.kind),
        "rubric": judge.rubric_version.sha256 if judge.rubric_version else None,
        "base_url": judge.endpoint.base_url if judge.endpoint else None,
        "model": judge.model,
        "mode": str(judge.mode),
        "temperature": judge.temperature,
        "max_tokens": judge.max_tokens,
        "seed": judge.seed,
    } | {name: getattr(judge, name) for name, default in later_defaults.items() if getattr(judge, name) != default}


def judge_fingerprint(judge: Judge) -> str:
    return hashlib.sha256(json.dumps(judge_settings(judge), sort_keys=True).encode()).hexdigest()


def preview_judge_prompt(judge: Judge, subject: Comparison | Response, shown: ShownOrder) -> PromptPreview | None:
    """The exact messages about this subject in this order; None for a judge that sends nothing."""
    return preview_prompt_about(judge, subject.judged_texts(), shown)


def preview_judge_sample_prompt(judge: Judge, shown: ShownOrder) -> PromptPreview | None:
    """The exact messages about a made-up comparison; None for a judge that sends nothing."""
    texts = first_response_texts(SAMPLE_PAIR) if judge.is_pointwise else SAMPLE_PAIR
    return preview_prompt_about(judge, texts, shown)


def preview_prompt_about(judge: Judge, texts: PairTexts | ResponseTexts, shown: ShownOrder) -> PromptPreview | None:
    if judge.kind != JudgeKind.LLM or judge.rubric_version is None:
        return None
    spec = judge.rubric_version.spec()
    shape = known_reply_shape(spec, judge.mode, judge.reply_shape) or ReplyShape.JSON_SCHEMA
    if judge.one_aspect_per_call:
        first_spec = only_aspect(spec, spec.output_order[0])
        first = preview_prompt(first_spec, texts, shown, judge.fence_key, shape, two_steps=False)
        return replace(first, aspects=[aspect.name for aspect in aspects_in_reply_order(spec)])
    return preview_prompt(spec, texts, shown, judge.fence_key, shape, two_steps=wants_two_steps(spec, judge.mode))


def judge_warnings(judge: Judge) -> list[str]:
    """Warnings about data of the evaluation that this judge will not see; none for a judge that sends nothing."""
    if judge.kind != JudgeKind.LLM or judge.rubric_version is None:
        return []
    return missing_placeholder_warnings(judge.evaluation, judge.rubric_version.spec())


def describe_request_adaptations(judge: Judge) -> list[str]:
    """How this judge's requests differ from the usual form, as sentences."""
    request_shape = RequestShape.from_json(judge.request_shape)
    words = [
        OMISSION_DESCRIPTIONS.get(name, f"Without {name}: the model refuses it.") for name in request_shape.left_out
    ]
    if request_shape.limit_name:
        words.append(f"The limit of tokens as {request_shape.limit_name}.")
    if request_shape.system_folded:
        words.append("System text in the first user message: the model has no system role.")
    return words


OMISSION_DESCRIPTIONS: Final = {
    "top_logprobs": "The 5 likeliest tokens instead of 20.",
    "native": "Through the OpenAI-compatible API: the server has no other.",
}


def list_judgeable_versions(evaluation: Evaluation) -> "QuerySet[RubricVersion]":
    """All versions; imported ones serve rules only, which read no instructions."""
    versions = RubricVersion.objects.filter(rubric__evaluation=evaluation)
    return versions.select_related("rubric").order_by("rubric__name", "-number")
