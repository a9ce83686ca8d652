"""A rubric while it is being written: what a judge with it would be sent, before anything is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain import InputRefused, PairTexts, ReplyShape, ResponseTexts, RubricKind, RubricSpec, Shown
from evaluations.judge.boilerplate import Boilerplate, boilerplate_in, without_boilerplate
from evaluations.judge.checking import refuse_slow_pattern, refuse_unusable
from evaluations.judge.pasting import Prompt, prompts_in, python_prompts_in, rubric_of
from evaluations.judge.replying import wants_text, wants_two_steps
from evaluations.judge.templating import placeholders_in, unknown_placeholders
from evaluations.models import Comparison, Evaluation, Judge
from evaluations.services.judging.judging import Preview, left_out_warnings, pair_texts, previewed, previewed_for
from evaluations.services.preparing.preparing import with_known_names

# Where nothing was imported yet, and for whoever may not know which response of a comparison is A.
MADE_UP: Final = PairTexts(
    messages=[{"role": "user", "content": "When does the office open on Monday?"}],
    response_a=[{"role": "assistant", "content": "At nine."}],
    response_b=[
        {"role": "assistant", "content": "The office opens at nine in the morning, on Monday as on other days."}
    ],
    context="Opening hours: Monday to Friday, 9:00 to 17:00.",
    reference="At 9:00.",
)


@dataclass(frozen=True)
class Look:
    """What would be sent about ``comparison``, None for a made-up one; or why nothing can be.

    ``warnings`` name what the evaluation's data has and the prompt leaves out.
    """

    preview: Preview | None = None
    comparison: Comparison | None = None
    problem: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Draft:
    """A prompt of a pasted document, the rubric that it seems to be, and every placeholder that stands in it."""

    prompt: Prompt
    spec: RubricSpec
    placeholders: Sequence[str]

    @property
    def unknown(self) -> list[str]:
        """The placeholders whose name does not say what they stand for."""
        return unknown_placeholders(self.spec.instructions, self.spec.placeholders)

    @property
    def form_was_added(self) -> bool:
        return self.spec.instructions != self.prompt.text


def drafts_in(document: str) -> list[Draft]:
    prompts = prompts_in(document)
    return [Draft(prompt, rubric_of(prompt), placeholders_in(prompt.text)) for prompt in prompts]


def boilerplate_of(document: str) -> list[Boilerplate]:
    """What seems to come from the page round a prompt; nothing where prompts are taken out of Python code anyway."""
    return [] if python_prompts_in(document) else boilerplate_in(document)


def cleaned(document: str) -> str:
    """The document without what ``boilerplate_of`` finds in it."""
    return document if python_prompts_in(document) else without_boilerplate(document)


def with_fields(evaluation: Evaluation, draft: Draft, fields: Mapping[str, str]) -> RubricSpec:
    """The rubric with what a person says its placeholders stand for, its aspects called as they are here."""
    return with_known_names(evaluation, rubric_of(draft.prompt, fields))


def look(evaluation: Evaluation, spec: RubricSpec) -> Look:
    """The prompt that this wording makes of the comparison that people meet first."""
    try:
        refuse_unusable(spec)
        refuse_slow_pattern(spec)
    except InputRefused as refused:
        return Look(problem=str(refused))
    comparisons = Comparison.objects.filter(evaluation=evaluation).select_related("query", "response_a", "response_b")
    comparison = comparisons.order_by("shuffle", "pk").first()
    pair = pair_texts(comparison) if comparison else MADE_UP
    texts = pair if spec.kind == RubricKind.PAIRWISE else first_of(pair)
    shape = ReplyShape.TEXT if wants_text(spec) else ReplyShape.JSON_SCHEMA
    requests = previewed(spec, texts, Shown.AS_STORED, key_in_use(evaluation), shape, two_steps=wants_two_steps(spec))
    return Look(requests, comparison, warnings=left_out_warnings(evaluation, spec))


def preview_of_made_up(judge: Judge, shown: Shown) -> Preview | None:
    """What this judge would be sent about a made-up comparison; None for a judge that is sent nothing."""
    return previewed_for(judge, first_of(MADE_UP) if judge.is_pointwise else MADE_UP, shown)


def key_in_use(evaluation: Evaluation) -> str:
    """The fence key of the evaluation's judges; before there is one its delimiters are only like theirs."""
    judges = Judge.objects.filter(evaluation=evaluation).exclude(fence_key="")
    return judges.order_by("pk").values_list("fence_key", flat=True).first() or "draft"


def first_of(pair: PairTexts) -> ResponseTexts:
    return ResponseTexts(pair.messages, pair.response_a, pair.context, pair.reference)
