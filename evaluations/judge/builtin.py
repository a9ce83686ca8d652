"""The rubrics that come with the product, in our own words."""

from typing import Final

from evaluations.domain import AspectSpec, RubricKind, RubricSpec

SIX_ASPECT_NAME: Final = "six-aspect"

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

BUILTIN_RUBRICS: Final[dict[str, RubricSpec]] = {SIX_ASPECT_NAME: SIX_ASPECT}
