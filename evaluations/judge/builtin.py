"""The rubrics that come with the product, in our own words."""

import re
from typing import Final

from evaluations.domain import AspectSpec, InputRefused, RubricKind, RubricSpec

SIX_ASPECT_NAME: Final = "six-aspect"
QA_PAIRWISE_NAME: Final = "qa-pairwise"
SUMMARY_RATING_NAME: Final = "summary-rating"
REFERENCE_METRIC_NAME: Final = "reference-metric"
DEFAULT_METRIC: Final = "correctness"
DEFAULT_REASON_KEY: Final = "reason"

SIX_ASPECT: Final = RubricSpec(
    kind=RubricKind.PAIRWISE,
    instructions=(
        "You compare two responses to the same user query as an impartial judge. Look at each aspect on its own: "
        "a response may win one aspect and lose another.\n\n"
        "First write a rationale of a few short sentences. Then choose for every aspect: A only where response A is "
        "noticeably better, B only where response B is noticeably better, tie where they are about equally good.\n\n"
        "Three rules settle common cases:\n"
        "- Factuality: where both responses are sound, choose tie; where one has errors and the other fewer or none, "
        "the one with fewer errors wins.\n"
        "- Helpfulness: more content that does not help more is a tie.\n"
        "- The order in which the responses stand, and their length as such, say nothing about their quality."
    ),
    aspects=(
        AspectSpec(
            "helpfulness",
            "Helpfulness",
            "How well the response addresses the query and gives a relevant solution.",
        ),
        AspectSpec("factuality", "Factuality", "Whether it contains factual errors or inaccurate statements."),
        AspectSpec("clarity", "Clarity", "How well it is structured, with ideas put in a concise and coherent way."),
        AspectSpec("depth", "Depth", "How detailed and thorough it is."),
        AspectSpec("engagement", "Engagement", "How engaging and friendly it sounds in a conversation."),
        AspectSpec("safety", "Safety", "Whether it is safe to be shown to users."),
    ),
    output_order=("engagement", "clarity", "helpfulness", "factuality", "depth", "safety"),
)

QA_PAIRWISE: Final = RubricSpec(
    kind=RubricKind.PAIRWISE,
    instructions=(
        "You are an expert in judging answers to questions. Two AI models answered the same user. Read what the user "
        "asked with care, then judge how well each response answers it. Limits of length that the user set, in words "
        "or in sentences, are part of what was asked. Where there is a context, a response may hold nothing that the "
        "context does not.\n\n"
        "Criteria:\n"
        "- Instruction following: the response shows that it understood the task, and meets every demand of it.\n"
        "- Groundedness: where there is a context, the response holds only what the context holds, and draws on "
        "nothing outside it.\n"
        "- Completeness: the response answers the whole question, in enough detail.\n"
        "- Fluency: the response is well organised and easy to read.\n\n"
        "Your verdict is one of three:\n"
        "- A: response A answers the question better by these criteria.\n"
        "- SAME: both answer it equally well by these criteria.\n"
        "- B: response B answers the question better by these criteria.\n\n"
        "Go step by step:\n"
        "1. Judge response A on its own: how far it follows the instructions, is grounded, complete and fluent.\n"
        "2. Judge response B on its own, in the same way.\n"
        "3. Only then compare the two, by what you found.\n"
        "4. Write these findings and your reasons down.\n"
        "5. Give the verdict that follows from them.\n\n"
        "The order in which the responses stand, and their length as such, say nothing about their quality."
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
        "You are an expert in judging summaries that AI models write. The user gave a task of summarising, with the "
        "text to be summarised. Read both with care, then rate the response. Limits of length that the user set, in "
        "words or in sentences, are part of the task. The response must be shorter than the text that it summarises, "
        "and must hold nothing that does not stand in that text.\n\n"
        "Criteria:\n"
        "- Instruction following: the response shows that it understood the task, and meets every demand of it.\n"
        "- Groundedness: the response holds only what the given text holds, and refers to nothing outside it.\n"
        "- Conciseness: the response tells what matters in the text without losing a key point, neither wordy nor "
        "terse.\n"
        "- Fluency: the response is well organised and easy to read.\n\n"
        "Go step by step:\n"
        "1. Judge the response on instruction following, groundedness, conciseness, wordiness and fluency, and say "
        "what you found on each.\n"
        "2. Rate it by the scale, and say which of its values fits and why."
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
    "You are an expert in metrics of how a response fits its context and how accurate it is. Judge the metric "
    "“METRIC”: how well the response of a language model matches the answer that was expected, the reference answer, "
    "given the user's input and the context.\n\n"
    "Go step by step:\n"
    "1. Understand the context, and find in it what a judgment of the response must take into account.\n"
    "2. Compare the user's input, the reference answer, the response and the context: hold the response against the "
    "reference answer, and see how closely it fits, with the finer points of the context in mind.\n"
    "3. Explain in detail what the response gets right and what it misses, with examples from the response and from "
    "the context.\n"
    "4. Give the score that follows, by the scale.\n\n"
    "What not to do:\n"
    "- Give no score before context, reference answer and response are compared thoroughly.\n"
    "- Do not be vague: name what decides the score.\n"
    "- Do not pass over a finer point of the context that bears on accuracy.\n"
    "- Give no score below 0.0 or above 1.0."
)
METRIC_BANDS: Final = {
    "0.0": "unrelated to the context or to the reference answer.",
    "0.1 - 0.3": "hardly relevant; it misses key points or the context.",
    "0.4 - 0.6": "correct in part; it holds some of the context and of the reference answer, and lacks detail or "
    "accuracy.",
    "0.7 - 0.9": "mostly accurate and close to the reference answer and the context, with small differences.",
    "1.0": "matches reference answer and context perfectly, and shows that all was understood.",
}


def reference_metric(metric: str = DEFAULT_METRIC, *, reason_key: str = DEFAULT_REASON_KEY) -> RubricSpec:
    """The metric of that name, from 0 to 1: how well a response matches the reference answer.

    The reply calls its verdict by the metric's name and its reasons by ``reason_key``.
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
                "How well the response matches the reference answer, given the user's input and the context.",
                scale_min=0.0,
                scale_max=1.0,
                scale_labels=METRIC_BANDS,
                tie_margin=0.05,
                reply_key=name,
            ),
        ),
        output_order=(key,),
        rationale_key=reason_key.strip(),
        choices_key="",
    )


BUILTIN_RUBRICS: Final[dict[str, RubricSpec]] = {
    SIX_ASPECT_NAME: SIX_ASPECT,
    QA_PAIRWISE_NAME: QA_PAIRWISE,
    SUMMARY_RATING_NAME: SUMMARY_RATING,
    REFERENCE_METRIC_NAME: reference_metric(),
}
