"""The draft of a rubric, with a preview of its prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import ReplyShape
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.judge_prompts.page_boilerplate import Boilerplate, find_boilerplate, remove_boilerplate
from evaluations.judge_prompts.pasted_prompts import (
    PastedPrompt,
    find_pasted_prompts,
    find_python_prompts,
    guess_rubric,
)
from evaluations.judge_prompts.placeholders import find_placeholders, find_unmapped_placeholders
from evaluations.judge_prompts.preview import SAMPLE_PAIR, PromptPreview, first_response_texts, preview_prompt
from evaluations.judge_prompts.rubric_checks import refuse_slow_pattern, refuse_unusable_rubric
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.replies.reply_format import wants_text, wants_two_steps
from evaluations.rubrics.selectors import missing_placeholder_warnings, use_known_aspect_names
from evaluations.verdicts.score_choices import list_imported_aspects


@dataclass(frozen=True)
class RubricPreview:
    """The prompt about ``comparison`` (None: a made-up one), or the ``problem`` that prevents it.

    ``warnings`` name what the evaluation's data has and the prompt leaves out.
    """

    preview: PromptPreview | None = None
    comparison: Comparison | None = None
    problem: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class PromptDraft:
    """A prompt of a pasted document, its guessed rubric, and all its placeholders."""

    prompt: PastedPrompt
    spec: RubricSpec
    placeholders: Sequence[str]

    @property
    def unknown(self) -> list[str]:
        """The placeholders whose meaning could not be guessed."""
        return find_unmapped_placeholders(self.spec.instructions, self.spec.placeholders)

    @property
    def form_was_added(self) -> bool:
        return self.spec.instructions != self.prompt.text


def find_prompt_drafts(document: str) -> list[PromptDraft]:
    prompts = find_pasted_prompts(document)
    return [PromptDraft(prompt, guess_rubric(prompt), find_placeholders(prompt.text)) for prompt in prompts]


def document_boilerplate(document: str) -> list[Boilerplate]:
    """The text around the prompt that seems to come from a web page; none if the document is Python code."""
    return [] if find_python_prompts(document) else find_boilerplate(document)


def clean_document(document: str) -> str:
    """The document without its boilerplate."""
    return document if find_python_prompts(document) else remove_boilerplate(document)


def apply_placeholder_fields(evaluation: Evaluation, draft: PromptDraft, fields: Mapping[str, str]) -> RubricSpec:
    """The rubric with the chosen placeholder fields, and with the evaluation's aspect names."""
    return use_known_aspect_names(evaluation, guess_rubric(draft.prompt, fields))


IMPORTED_ASPECTS_INSTRUCTIONS: Final = "Read the prompt and the response. Score the response on each aspect."
MAX_WHOLE_STEPS: Final = 10  # an imported scale between whole numbers with at most so many steps offers these


def draft_first_version(evaluation: Evaluation, kind: RubricKind) -> RubricSpec:
    """What the editor of a new rubric starts with; scores by the aspects of imported scores, if there are any."""
    if kind == RubricKind.PAIRWISE:
        return RubricSpec(kind, "", (AspectSpec("overall", "Overall", ""),), ("overall",))
    imported = [row for row in list_imported_aspects(evaluation) if not row.lower_is_better]
    aspects = tuple(
        add_scale(AspectSpec(row.aspect.key, row.aspect.name, ""), row.scale_min, row.scale_max) for row in imported
    ) or (add_scale(AspectSpec("overall", "Overall", ""), 1.0, 5.0),)
    instructions = IMPORTED_ASPECTS_INSTRUCTIONS if imported else ""
    return RubricSpec(kind, instructions, aspects, tuple(aspect.key for aspect in aspects))


def add_scale(aspect: AspectSpec, low: float | None, high: float | None) -> AspectSpec:
    """The aspect with this scale, in whole numbers where its ends are whole and near each other."""
    is_short = low is not None and high is not None and high - low <= MAX_WHOLE_STEPS
    is_whole = is_short and all(end is not None and end.is_integer() for end in (low, high))
    return replace(aspect, scale_min=low, scale_max=high, scale_step=1.0 if is_whole else None)


def preview_rubric(evaluation: Evaluation, spec: RubricSpec) -> RubricPreview:
    """The prompt that this rubric makes of the first comparison in review order."""
    try:
        refuse_unusable_rubric(spec)
        refuse_slow_pattern(spec)
    except InputRefused as refused:
        return RubricPreview(problem=str(refused))
    comparisons = Comparison.objects.filter(evaluation=evaluation).select_related("query", "response_a", "response_b")
    comparison = comparisons.order_by("random_order", "pk").first()
    pair = comparison.judged_texts() if comparison else SAMPLE_PAIR
    texts = pair if spec.kind == RubricKind.PAIRWISE else first_response_texts(pair)
    shape = ReplyShape.TEXT if wants_text(spec) else ReplyShape.JSON_SCHEMA
    requests = preview_prompt(
        spec, texts, ShownOrder.AS_STORED, fence_key_in_use(evaluation), shape, two_steps=wants_two_steps(spec)
    )
    return RubricPreview(requests, comparison, warnings=missing_placeholder_warnings(evaluation, spec))


def fence_key_in_use(evaluation: Evaluation) -> str:
    """The fence key of the evaluation's judges; a dummy before there are any."""
    judges = Judge.objects.filter(evaluation=evaluation).exclude(fence_key="")
    return judges.order_by("pk").values_list("fence_key", flat=True).first() or "draft"
