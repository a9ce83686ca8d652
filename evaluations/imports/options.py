"""The options that a person chose for an import, read from its row."""

from dataclasses import dataclass

from evaluations.comparisons.pairing.selectors import Pairing, parse_pairing
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileFormat, NewResponse, ReadOptions
from evaluations.domain.roles import RaterKind
from evaluations.imports.source_files import file_limits
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import


@dataclass(frozen=True)
class PairOptions:
    """The way of pairing responses, and the tie margin for scored ones."""

    pair: str
    margin: float | None


def refuse_archived_evaluation(evaluation: Evaluation) -> None:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be imported until it is brought back.")


def tie_margin_option(importing: Import) -> float | None:
    """The largest difference of two scores that counts as a tie, if choices are derived from scores."""
    margin: float | None = importing.options.get("derive_pairs")
    return margin


def new_response_option(importing: Import) -> NewResponse:
    """The policy for a second, different response of a candidate to a query."""
    return NewResponse(importing.options.get("new_response") or NewResponse.REFUSE)


def is_pairing_scored_responses(importing: Import) -> bool:
    """Whether storing the import pairs the responses that it scores."""
    return bool(importing.summary.get("scales")) and tie_margin_option(importing) is not None


def pairing_option(importing: Import) -> Pairing | None:
    """The way of pairing that the import uses, or None if it makes no pairs."""
    if importing.summary.get("pairs", importing.format == FileFormat.RESPONSES):
        return parse_pairing(importing.options["pair"])
    return Pairing() if is_pairing_scored_responses(importing) else None


def reading_option(importing: Import) -> ReadOptions:
    kind = importing.options["rater_kind"]
    return ReadOptions(
        format=importing.format,
        id_prefix=importing.options["id_prefix"],
        mapping=importing.mapping,
        constants=importing.options.get("constants", {}),
        choices=importing.options.get("choices", {}),
        rater=importing.options["rater"],
        rater_kind=RaterKind(kind) if kind else None,
        lower_is_better=importing.options.get("lower_is_better", False),
        limits=file_limits(),
        candidate=importing.options.get("candidate", ""),
        new_response=new_response_option(importing),
    )
