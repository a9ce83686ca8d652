"""The comparisons behind one cell of a judge's confusion matrix."""

from bisect import bisect_right
from dataclasses import dataclass

from django.db.models import QuerySet

from evaluations.domain.choices import PACKED_CHOICES, Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect
from evaluations.models.selection import list_if_small_report, select_report_comparisons
from evaluations.models.users import User
from evaluations.stats.judge_verdicts import consolidate_verdicts
from evaluations.stats.votes import effective_split_rule, majority_of_votes
from evaluations.verdicts.asked_aspects import get_offered_choices, read_asked_aspects
from evaluations.verdicts.comparison_arrays import get_comparison_table, index_report_comparisons
from evaluations.verdicts.verdict_arrays import list_counted_raters, read_verdict_arrays
from evaluations.verdicts.vote_arrays import KNOWLEDGE_COUNTED
from evaluations.visibility import reveal_comparisons


@dataclass(frozen=True)
class ReportCell:
    """One cell of the confusion matrix of a judge on one aspect."""

    aspect: str
    judge_rater_id: int
    judge_choice: str
    human_choice: str


def reveal_comparisons_in_cell(
    user: User,
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison],
    cell: ReportCell,
    rules: ReportRules,
    *,
    after: int,
    size: int,
) -> list[int]:
    """The next ids that a cell counts, one more than asked for where there are others.

    This person now counts as having seen what others chose on them. Among few comparisons, those that are not in the
    cell are told apart, too.
    """
    ids = find_comparisons_in_cell(
        evaluation, comparisons, cell.aspect, cell.judge_rater_id, cell.judge_choice, cell.human_choice, rules
    )
    start = bisect_right(ids, after)
    shown = comparisons.filter(pk__in=ids[start : start + size]).only("evaluation", "response_a", "response_b")
    reveal_comparisons(user, evaluation, list_if_small_report(comparisons, evaluation, rules) or list(shown))
    return ids[start : start + size + 1]


def find_comparisons_in_cell(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison],
    aspect: str,
    judge_rater_id: int,
    judge_choice: str,
    human_choice: str,
    rules: ReportRules | None = None,
) -> list[int]:
    """The ids of the comparisons that one cell of a judge's confusion matrix counts, in order."""
    rules = rules or ReportRules()
    row, column = encode_choice(judge_choice), encode_choice(human_choice)
    about = Aspect.objects.filter(evaluation=evaluation, key=aspect).first()
    if about is None:
        raise InputRefused(f"This evaluation has no aspect “{aspect}”.")
    everyone = list_counted_raters(evaluation, rules)
    raters = [rater for rater in everyone if rater.kind != RaterKind.JUDGE or rater.pk == judge_rater_id]
    selected = select_report_comparisons(comparisons, evaluation, rules)
    gathered = read_verdict_arrays(
        index_report_comparisons(get_comparison_table(evaluation), selected), selected, raters, rules
    )
    items = len(gathered.comparisons)
    people = gathered.votes(about).between(rules.since, rules.until).where(*KNOWLEDGE_COUNTED[rules.seen])
    asked_aspects = read_asked_aspects(evaluation, selected, everyone)
    offered = get_offered_choices(asked_aspects.about(about.pk), gathered.preferred.has_tie(about.pk))
    human = majority_of_votes(people.item, people.choice, items, effective_split_rule(rules.split_rule, offered)).choice
    judge = next((rater for rater in raters if rater.pk == judge_rater_id), None)
    if judge is None:
        return []
    own = consolidate_verdicts(*gathered.get_judge_verdicts(judge, about), items, rules.failed).choice
    return [int(pk) for pk in gathered.comparisons[(own == row) & (human == column)]]


def encode_choice(choice: str) -> int:
    try:
        return PACKED_CHOICES.index(Choice(choice))
    except ValueError:
        choices = ", ".join(PACKED_CHOICES)
        raise InputRefused(f"“{choice}” is not a choice. Choose one of {choices}.") from None
