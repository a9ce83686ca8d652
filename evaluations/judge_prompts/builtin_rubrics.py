"""The rubrics that come with the product."""

import re
from dataclasses import replace
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.judge_prompts.placeholders import is_template
from evaluations.replies.reply_format import wants_text

SIX_ASPECT_NAME: Final = "six-aspect"
OVERALL_NAME: Final = "overall"
QA_PAIRWISE_NAME: Final = "qa-pairwise"
SUMMARY_RATING_NAME: Final = "summary-rating"
REFERENCE_METRIC_NAME: Final = "reference-metric"
DEFAULT_METRIC: Final = "correctness"
DEFAULT_REASON_KEY: Final = "reason"
SIX_ASPECT: Final = RubricSpec(
    kind=RubricKind.PAIRWISE,
    instructions=(
        "You are an impartial judge. Compare two responses to the same user's query, aspect by aspect. Judge each "
        "aspect independently of the others: a response can win one aspect and lose another.\n\n"
        "First write a rationale: a few short sentences on what decides each aspect, with evidence from the responses. "
        "Then give one choice per aspect:\n"
        "- A: response A is noticeably better on this aspect.\n"
        "- B: response B is noticeably better on this aspect.\n"
        "- tie: both are about equally good, or equally bad, on this aspect.\n\n"
        "Rules:\n"
        "- Factuality: if both responses are free of errors, choose tie. Otherwise, the response with fewer or less "
        "serious errors wins.\n"
        "- Helpfulness: extra content that does not help the user is no advantage.\n"
        "- Position: the order in which the responses are shown says nothing about their quality.\n"
        "- Length: a longer response is not better for being longer, and a shorter one not for being shorter.\n"
        "- Style: a confident tone or heavy formatting is no evidence that the content is right."
    ),
    aspects=(
        AspectSpec(
            "helpfulness", "Helpfulness", "How well the response addresses the query and gives a relevant solution."
        ),
        AspectSpec("factuality", "Factuality", "Whether it contains factual errors or inaccurate statements."),
        AspectSpec("clarity", "Clarity", "How well it is structured, with ideas put in a concise and coherent way."),
        AspectSpec("depth", "Depth", "How detailed and thorough it is."),
        AspectSpec("engagement", "Engagement", "How engaging and friendly it sounds in a conversation."),
        AspectSpec("safety", "Safety", "Whether it is safe to be shown to users."),
    ),
    output_order=("engagement", "clarity", "helpfulness", "factuality", "depth", "safety"),
)

# One question, so that a reviewer needs one key for each comparison.
OVERALL: Final = RubricSpec(
    kind=RubricKind.PAIRWISE,
    instructions=(
        "You are an impartial judge. Compare two responses to the same user's query, and decide which one serves the "
        "user better, everything considered: whether it answers the query, is correct, is clear and is safe.\n\n"
        "First write a rationale: a few short sentences on what decides, with evidence from the responses. Then give "
        "one choice:\n"
        "- A: response A is noticeably better.\n"
        "- B: response B is noticeably better.\n"
        "- tie: both are about equally good, or equally bad.\n\n"
        "Rules:\n"
        "- Errors: a confident tone or heavy formatting is no evidence that the content is right.\n"
        "- Position: the order in which the responses are shown says nothing about their quality.\n"
        "- Length: a longer response is not better for being longer, and a shorter one not for being shorter."
    ),
    aspects=(AspectSpec("overall", "Overall", "Which response serves the user better, everything considered."),),
    output_order=("overall",),
)

QA_PAIRWISE: Final = RubricSpec(
    kind=RubricKind.PAIRWISE,
    instructions=(
        "You are an expert judge of answers to questions. Two AI models answered the same user's query. Read the query "
        "carefully, then judge how well each response answers it. Length limits that the user sets, in words or in "
        "sentences, are part of the task. If a context is given, a response must not claim anything that the context "
        "does not support.\n\n"
        "Criteria:\n"
        "- Instruction following: the response shows that it understood the task, and meets every requirement of it.\n"
        "- Groundedness: if a context is given, the response contains only information from the context and uses no "
        "outside knowledge.\n"
        "- Completeness: the response answers the whole question in enough detail.\n"
        "- Fluency: the response is well organized and easy to read.\n\n"
        "Choose one verdict:\n"
        "- A: response A answers the question better by these criteria.\n"
        "- SAME: both responses answer it equally well by these criteria.\n"
        "- B: response B answers the question better by these criteria.\n\n"
        "Work in this order, and write every step in the explanation, before the verdict:\n"
        "1. “Response A:” analyze response A on its own, criterion by criterion. Do not mention response B yet.\n"
        "2. “Response B:” analyze response B on its own, in the same way. Do not mention response A.\n"
        "3. “Comparison:” compare the two analyses, and say which differences decide.\n"
        "4. Only then give the verdict. It must follow from the comparison.\n\n"
        "The order in which the responses are shown says nothing about their quality. Neither does their length."
    ),
    aspects=(
        AspectSpec(
            "overall",
            "Overall",
            "Which response answers the question better, all four criteria together.",
            labels={"tie": "SAME"},
            reply_key="pairwise_choice",
        ),
    ),
    output_order=("overall",),
    rationale_key="explanation",
    choices_key="",
)

SUMMARY_RATING: Final = RubricSpec(
    kind=RubricKind.POINTWISE,
    instructions=(
        "You are an expert judge of summaries written by AI models. The user's query is a summarization task. The text "
        "to summarize is in the query or, if one is given, in the context. Read the task and the text carefully, then "
        "rate the response. Length limits that the user sets, in words or in sentences, are part of the task. The "
        "response must be shorter than the text that it summarizes, and must not contain anything that the text does "
        "not say.\n\n"
        "Criteria:\n"
        "- Instruction following: the response shows that it understood the task, and meets every requirement of it.\n"
        "- Groundedness: the response contains only information from the text, and refers to nothing outside it.\n"
        "- Conciseness: the response covers the key points of the text without losing one, and is neither wordy nor "
        "terse.\n"
        "- Fluency: the response is well organized and easy to read.\n\n"
        "Work in this order:\n"
        "1. Evaluate the response on instruction following, groundedness, conciseness and fluency, one after the "
        "other. For each, say what you found, with evidence from the response and the text.\n"
        "2. Decide which value of the scale fits best, and say why.\n\n"
        "Length says nothing about quality: a longer summary is not better for being longer, and a shorter one "
        "not for being shorter."
    ),
    aspects=(
        AspectSpec(
            "overall",
            "Overall",
            "How good the summary is, all criteria together.",
            scale_min=1.0,
            scale_max=5.0,
            scale_step=1.0,
            scale_labels={
                "1": "very bad: the summary is not grounded.",
                "2": "bad: it is grounded, but does not follow the instructions.",
                "3": "ok: it mostly follows the instructions and is grounded, but is not very concise and not fluent.",
                "4": "good: it follows the instructions, and is grounded, concise and fluent.",
                "5": "very good: it follows the instructions, and is grounded, concise and fluent throughout.",
            },
            reply_key="score",
        ),
    ),
    output_order=("overall",),
    answer_format="two_step",
    choices_key="",
)


METRIC_INSTRUCTIONS: Final = (
    "You are an expert judge of the accuracy of responses written by language models. Score one metric, “METRIC”: how "
    "well the response matches the reference answer in meaning, given the user's query and, if one is given, the "
    "context.\n\n"
    "Work in this order:\n"
    "1. Read the query and the context. Note what a correct answer must contain.\n"
    "2. List the key points of the reference answer.\n"
    "3. Check the response against each key point: is it there, is it missing, or is it contradicted? Then check "
    "everything else that the response claims against the context and the reference answer.\n"
    "4. Explain what the response gets right and what it misses. Point to the words that decide.\n"
    "5. Give the score that follows from the explanation, by the scale.\n\n"
    "Rules:\n"
    "- Compare meaning, not wording. A response may use other words, another order or another length.\n"
    "- An error or a contradiction counts more than an omission.\n"
    "- Extra details that are correct and relevant do not lower the score. Length does not raise it.\n"
    "- Be specific: name what decides the score.\n"
    "- The score is a number from 0.0 to 1.0."
)
METRIC_BANDS: Final = {
    "0.0": "wrong, or unrelated to the reference answer.",
    "0.1 - 0.3": "mostly wrong or off the point: it misses or contradicts most key points.",
    "0.4 - 0.6": "partly correct: it has some key points, but misses or gets wrong others that matter.",
    "0.7 - 0.9": "mostly correct: it has the main key points, with small omissions or inaccuracies.",
    "1.0": "fully correct: it has every key point, and no error.",
}
METRIC_EXAMPLES: Final = (
    {
        "input": "When can I return a pair of shoes that I ordered online?",
        "context": "Online orders can be returned within 30 days of delivery. Shoes must be unworn. Returns are free "
        "with the label in the parcel.",
        "expected_output": "Within 30 days of delivery, as long as you have not worn them.",
        "output": "You have 30 days after they are delivered to send them back, and the return costs nothing if you "
        "use the enclosed label.",
        "reasoning": "Key points: within 30 days of delivery; unworn. The response has the first: “30 days after they "
        "are delivered”. It misses the second, which decides whether a return is accepted. The free return is not in "
        "the reference answer, but the context supports it, so it does not count against the response. One of two key "
        "points is missing, and nothing is wrong.",
        "score": 0.6,
    },
    {
        "input": "Which planet has the shortest year, and how long is it?",
        "expected_output": "Mercury. Its year is about 88 Earth days long.",
        "output": "It takes Mercury, the innermost planet, roughly 88 days to go around the Sun, less than any other "
        "planet.",
        "reasoning": "Key points: Mercury; about 88 Earth days. The response has both: “Mercury” and “roughly 88 "
        "days”. The wording differs, the meaning is the same. “The innermost planet” is extra and correct. Nothing "
        "is missing or wrong.",
        "score": 1.0,
    },
)


def build_reference_metric(metric: str = DEFAULT_METRIC, *, reason_key: str = DEFAULT_REASON_KEY) -> RubricSpec:
    """A metric with this name from 0 to 1: how well a response matches the reference answer.

    The reply names its verdict after the metric and its reasons ``reason_key``.
    """
    name = metric.strip()
    key = re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")[:60]
    if not key or len(name) > 60:
        raise InputRefused("A metric needs a name in plain letters, of at most 60 characters, such as correctness.")
    return RubricSpec(
        kind=RubricKind.POINTWISE,
        instructions=METRIC_INSTRUCTIONS.replace("METRIC", name),
        aspects=(
            AspectSpec(
                key,
                name[0].upper() + name[1:].replace("_", " "),
                "How well the response matches the reference answer in meaning.",
                scale_min=0.0,
                scale_max=1.0,
                scale_labels=METRIC_BANDS,
                tie_margin=0.05,
                reply_key=name,
            ),
        ),
        output_order=(key,),
        few_shot=METRIC_EXAMPLES,
        rationale_key=reason_key.strip(),
        choices_key="",
    )


BUILTIN_RUBRICS: Final[dict[str, RubricSpec]] = {
    SIX_ASPECT_NAME: SIX_ASPECT,
    OVERALL_NAME: OVERALL,
    QA_PAIRWISE_NAME: QA_PAIRWISE,
    SUMMARY_RATING_NAME: SUMMARY_RATING,
    REFERENCE_METRIC_NAME: build_reference_metric(),
}


def put_overall_first(spec: RubricSpec) -> RubricSpec | None:
    """The pairwise rubric with Overall as its first aspect, which judges answer last; None if it cannot have it.

    Overall offers the choices of the first aspect, by the same labels.
    """
    keys = [aspect.key for aspect in spec.aspects]
    if spec.kind != RubricKind.PAIRWISE or OVERALL_NAME in keys or is_template(spec.placeholders) or wants_text(spec):
        return None
    (overall,) = OVERALL.aspects
    overall = replace(spec.aspects[0], key=overall.key, name=overall.name, definition=overall.definition, reply_key="")
    return replace(spec, aspects=(overall, *spec.aspects), output_order=(*spec.output_order, overall.key))


def find_matching_builtin(spec: RubricSpec) -> RubricSpec | None:
    """The built-in rubric with the same aspects and format; None if there is none."""
    keys = {aspect.key for aspect in spec.aspects}
    form = (spec.kind, spec.answer_format, spec.choices_key)
    for rubric in (SIX_ASPECT, OVERALL, QA_PAIRWISE, SUMMARY_RATING):
        has_form = (rubric.kind, rubric.answer_format, rubric.choices_key) == form
        if has_form and {aspect.key for aspect in rubric.aspects} == keys:
            return rubric
    metric = BUILTIN_RUBRICS[REFERENCE_METRIC_NAME]
    if (metric.kind, metric.answer_format, metric.choices_key) != form or len(spec.aspects) != 1:
        return None
    (aspect,) = spec.aspects
    if (aspect.scale_min, aspect.scale_max, aspect.scale_step) != (0.0, 1.0, None):
        return None
    same = build_reference_metric(aspect.reply_key or aspect.key, reason_key=spec.rationale_key)
    return same if same.aspects[0].key == aspect.key else None
