"""What the page of one disagreement asks: each aspect with its choices, and the result to store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluations.disagreements.selectors import Disagreement, DisagreementFilter, get_disagreements_on
from evaluations.domain.choices import Choice
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.verdicts import Adjudication
from evaluations.verdicts.labels import DecidedLabel
from evaluations.verdicts.reviewer_choices import ReviewerChoice, get_reviewer_choices
from evaluations.verdicts.vote_table import VoteCell, VoteRow, VoteTable

CHOICE_TEXTS: Mapping[Choice, str] = {Choice.A: "A", Choice.TIE: "Tie", Choice.BOTH_BAD: "Both bad", Choice.B: "B"}


@dataclass(frozen=True)
class EnteredResolution:
    """Refused input: the choices by aspect, the reason and the note, with why it was refused."""

    refusal: str
    choices: Mapping[str, str]
    category: str = ""
    reason: str = ""


@dataclass(frozen=True)
class AspectQuestion:
    """One aspect: its votes, judges' choices, and the choices that may be stored, none if no rubric asks about it.

    ``chosen``: the choice that the form shows, which for an open aspect is the majority until something was entered.
    """

    aspect: Aspect
    reviewer_choices: Sequence[ReviewerChoice]
    other_choices: Sequence[tuple[VoteRow, VoteCell]]
    difference: Disagreement | None
    label: DecidedLabel | None
    offered: Sequence[tuple[Choice, str]]
    chosen: str = ""
    is_entered: bool = False

    @property
    def resolution(self) -> Adjudication | None:
        return self.difference.resolution if self.difference else None

    @property
    def version(self) -> int:
        return self.resolution.version if self.resolution else 0

    @property
    def is_open(self) -> bool:
        return self.difference is not None and not self.resolution and bool(self.difference.kinds)

    @property
    def is_proposed(self) -> bool:
        """Whether the form shows the majority, which nobody has chosen yet."""
        return self.is_open and bool(self.chosen) and not self.is_entered


def build_questions(
    comparison: Comparison, filters: DisagreementFilter, table: VoteTable, entered: EnteredResolution | None
) -> Iterator[AspectQuestion]:
    """Every aspect that has choices or that the rubric has, in the rubric's order."""
    reviewer_choices = get_reviewer_choices(comparison)
    differences = get_disagreements_on(comparison, filters.judge)
    offered = get_offered_choices(comparison.evaluation)
    for index, aspect in enumerate(table.aspects):
        other_choices = [
            (row, cell) for row in table.rows if row.kind != RaterKind.HUMAN and (cell := row.cells[index]) is not None
        ]
        difference, entered_choice = differences.get(aspect.pk), (entered.choices if entered else {}).get(aspect.key)
        yield AspectQuestion(
            aspect,
            reviewer_choices.get(aspect, []),
            other_choices,
            difference,
            table.labels[index],
            offered.get(aspect.pk, []),
            entered_choice or (difference.label.choice if difference else ""),
            is_entered=entered_choice is not None,
        )


def get_offered_choices(evaluation: Evaluation) -> Mapping[int, Sequence[tuple[Choice, str]]]:
    """The choices offered by aspect: by the current rubric version if it has the aspect, else the newest."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related("aspect")
    current_last = sorted(rows, key=lambda row: (row.version_id == evaluation.review_rubric_id, row.version_id))
    by_aspect = {row.aspect_id: row for row in current_last}
    return {
        aspect: [(choice, label_offered_choice(choice, row)) for choice in row.choices]
        for aspect, row in by_aspect.items()
    }


def label_offered_choice(choice: Choice, aspect: RubricAspect) -> str:
    """The label of the choice. If “both bad” is offered, a tie means “both good”."""
    return "Both good" if choice == Choice.TIE and aspect.offers_both_bad else CHOICE_TEXTS[choice]
