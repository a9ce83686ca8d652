"""Which response an exported comparison prefers, or the reason why neither."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.preferences import NoPreference, PreferenceRule, decide_preference, list_deciding_aspects
from evaluations.domain.reviews import SelectionMethod
from evaluations.domain.vote_rules import CALIBRATION, LABEL_VOTES, ReviewFacts, find_vote_holder
from evaluations.formats.exported_rows import (
    ExportedLabel,
    ExportedPerson,
    ExportedPersonChoice,
    LabelledRow,
    ResponseText,
)


class ExclusionReason(StrEnum):
    """A reason why a comparison with a choice gives no row of a preference format."""

    TIE = "tie"
    BOTH_BAD = "both_bad"
    EQUAL_RESPONSES = "equal_responses"  # preferred to itself


CHOICES: Final[Mapping[str | None, Choice | None]] = {None: None, **{str(choice): choice for choice in Choice}}

EXCLUSION_REASONS: Final[Mapping[str, str]] = {
    NoPreference.NO_LABEL: "without a label",
    NoPreference.SPLIT: "split votes",
    NoPreference.ASPECTS_DISAGREE: "split aspects",
    ExclusionReason.TIE: "ties",
    ExclusionReason.BOTH_BAD: "both bad",
    ExclusionReason.EQUAL_RESPONSES: "identical responses",
}


@dataclass
class ExportCounts:
    """Counts of an export, complete after the last comparison.

    ``rows``: written. ``excluded``: comparisons, or single verdicts in them, that are not in the file, by reason.
    ``noted``: written rows with a peculiarity, by its kind.
    """

    rows: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class DecidedComparison:
    """A comparison with its one choice.

    ``labels``: those that it was made from; ``by``: the name of the rule. ``sources``: of the labels, joined by “+”.
    """

    row: LabelledRow
    choice: Choice
    labels: Sequence[ExportedLabel]
    by: str

    @property
    def sources(self) -> str:
        return "+".join(sorted({label["source"] for label in self.labels}))

    @property
    def agreement(self) -> float | None:
        """The share of the votes behind its labels that are for the choice; None if nobody voted."""
        votes = sum(label["n"] for label in self.labels)
        if not votes:
            return None
        return round(sum(label["votes"].get(self.choice, 0) for label in self.labels) / votes, 6)

    @property
    def votes(self) -> int:
        return sum(label["n"] for label in self.labels)


def decide_comparison(
    row: LabelledRow, rule: PreferenceRule, aspects: Sequence[str]
) -> DecidedComparison | NoPreference:
    """The one choice of a comparison, or why it has none."""
    labels_of_row, needed = row["labels"], rule.aspects or aspects
    labels = {key: CHOICES[labels_of_row[key]["choice"]] for key in needed if key in labels_of_row}
    choice = decide_preference(rule, labels, aspects)
    if isinstance(choice, NoPreference):
        return choice
    used = [labels_of_row[key] for key in list_deciding_aspects(rule, labels)]
    return DecidedComparison(row, choice, used, rule.name)


def decided_comparisons(
    rows: Iterable[LabelledRow], rule: PreferenceRule, aspects: Sequence[str], counts: ExportCounts
) -> Iterator[DecidedComparison]:
    """The comparisons that have a choice; the others are counted by reason."""
    for row in rows:
        decided = decide_comparison(row, rule, aspects)
        if isinstance(decided, NoPreference):
            counts.excluded[decided] += 1
        else:
            yield decided


@dataclass(frozen=True)
class PreferredResponse:
    """A response that is preferred to another one. ``a_is_chosen``: whether it is that of side A."""

    comparison: DecidedComparison
    chosen: ResponseText
    rejected: ResponseText
    a_is_chosen: bool

    @property
    def candidates(self) -> tuple[str, str]:
        row = self.comparison.row
        pair = row["candidate_a"], row["candidate_b"]
        return pair if self.a_is_chosen else (pair[1], pair[0])


def preferred_response(decided: DecidedComparison) -> PreferredResponse | ExclusionReason:
    """Ties and two bad responses prefer nothing; a text is never preferred to itself."""
    if decided.choice == Choice.TIE:
        return ExclusionReason.TIE
    if decided.choice == Choice.BOTH_BAD:
        return ExclusionReason.BOTH_BAD
    a, b = decided.row["response_a"], decided.row["response_b"]
    if a == b:
        return ExclusionReason.EQUAL_RESPONSES
    return (
        PreferredResponse(decided, a, b, True)
        if decided.choice == Choice.A
        else PreferredResponse(decided, b, a, False)
    )


def preferred_responses(
    rows: Iterable[LabelledRow], rule: PreferenceRule, aspects: Sequence[str], counts: ExportCounts
) -> Iterator[PreferredResponse]:
    """The preferences that there are; every other comparison is counted by reason."""
    for decided in decided_comparisons(rows, rule, aspects, counts):
        preference = preferred_response(decided)
        if isinstance(preference, ExclusionReason):
            counts.excluded[preference] += 1
        else:
            yield preference


def choice_columns(decided: DecidedComparison) -> dict[str, Any]:
    """Columns that accompany every row made from a choice; trainers ignore them."""
    row = decided.row
    return {
        "query_id": row["query_id"],
        "cluster": row["cluster"],
        "category": row["category"],
        "context": row["context"],
        "reference": row["reference"],
        "label_by": decided.by,
        "label_source": decided.sources,
        "votes": decided.votes,
        "agreement": decided.agreement,
        "split": row.get("split"),
    }


# Any method but calibration: the rule of labels asks for no more.
NOT_CALIBRATION: Final = SelectionMethod.RANDOM.value

WITHOUT_VOTE: Final = {
    "person_said_nothing": "reviews without this aspect",
    "not_confirmed": "unconfirmed first choices",
    "calibration": "calibration reviews",
    "replaced_by_newer_review": "reviews replaced by a newer one",
}


def find_counted_reviews(people: Sequence[ExportedPerson]) -> Mapping[str, Sequence[int]]:
    """By aspect, the indices of the reviews whose final choice is a vote.

    ``people`` has each person's reviews oldest first: of those that have the aspect the newest holds the vote.
    Imported passes have no order, so all of them do.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    reviews: dict[str, list[ReviewFacts]] = defaultdict(list)
    for place, person in enumerate(people):
        facts = ReviewFacts(place, person["state"], CALIBRATION if person["calibration"] else NOT_CALIBRATION)
        if not LABEL_VOTES.admits(facts):
            continue
        if person["rubric"] is None:
            for aspect in aspects_in(person):
                holders[aspect].append(place)
        else:
            reviews[person["rater"]].append(facts)
    for of_person in reviews.values():
        for aspect, number in holders_among(of_person, people):
            holders[aspect].append(number)
    return holders


def holders_among(reviews: Sequence[ReviewFacts], people: Sequence[ExportedPerson]) -> Iterator[tuple[str, int]]:
    """Each aspect with the review of one person that is the vote on it."""
    if len(reviews) == 1:
        (only,) = reviews
        yield from ((aspect, only.number) for aspect in aspects_in(people[only.number]))
        return
    having: dict[str, list[ReviewFacts]] = defaultdict(list)
    for review in reviews:
        for aspect in aspects_in(people[review.number]):
            having[aspect].append(review)
    for aspect, of_aspect in having.items():
        if holder := find_vote_holder(of_aspect, LABEL_VOTES):
            yield aspect, holder.number


def aspects_in(person: ExportedPerson) -> list[str]:
    return [aspect for aspect, choice in person["choices"].items() if choice["final"]]


def counted_votes(
    people: Sequence[ExportedPerson], aspect: str, counts: ExportCounts
) -> Iterator[tuple[ExportedPerson, ExportedPersonChoice]]:
    """Reviews with a vote on the aspect, and their choice; reasons for the others are counted."""
    holders = find_counted_reviews(people).get(aspect, ())
    for place, person in enumerate(people):
        choice = person["choices"].get(aspect)
        if person["calibration"]:
            counts.excluded["calibration"] += 1
        elif choice is None:
            counts.excluded["person_said_nothing"] += 1
        elif choice["final"] is None:
            counts.excluded["not_confirmed"] += 1
        elif place not in holders:
            counts.excluded["replaced_by_newer_review"] += 1
        else:
            yield person, choice
