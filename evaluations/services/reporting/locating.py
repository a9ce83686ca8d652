"""From a number of the report back to the comparisons behind it."""

from django.db.models import QuerySet

from evaluations.domain import Choice, InputRefused, RaterKind, Rules
from evaluations.models import Aspect, Comparison, Evaluation
from evaluations.services.reporting.asking import offered_by, what_was_asked
from evaluations.services.reporting.gathering import gather
from evaluations.services.reporting.items import known_comparisons, places_of
from evaluations.services.reporting.narrowing import comparisons_of, raters_of
from evaluations.services.reporting.voting import KNEW
from evaluations.stats.coding import CHOICES
from evaluations.stats.consolidation import consolidate
from evaluations.stats.majority import majority, split_rule_of


def comparisons_in_cell(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison],
    aspect: str,
    judge_rater_id: int,
    judge_choice: str,
    human_choice: str,
    rules: Rules | None = None,
) -> list[int]:
    """The ids of the comparisons that one cell of a judge's confusion matrix counts, in order."""
    rules = rules or Rules()
    row, column = choice_code(judge_choice), choice_code(human_choice)
    about = Aspect.objects.filter(evaluation=evaluation, key=aspect).first()
    if about is None:
        raise InputRefused(f"This evaluation has no aspect “{aspect}”.")
    everyone = raters_of(evaluation, rules)
    raters = [rater for rater in everyone if rater.kind != RaterKind.JUDGE or rater.pk == judge_rater_id]
    wanted = comparisons_of(comparisons, evaluation, rules)
    gathered = gather(places_of(known_comparisons(evaluation), wanted), wanted, raters, rules)
    items = len(gathered.comparisons)
    people = gathered.votes(about).between(rules.since, rules.until).where(*KNEW[rules.seen])
    asked = what_was_asked(evaluation, wanted, everyone)
    offered = offered_by(asked.about(about.pk), gathered.preferred.has_tie(about.pk))
    human = majority(people.item, people.choice, items, split_rule_of(rules.split_rule, offered)).choice
    judge = next((rater for rater in raters if rater.pk == judge_rater_id), None)
    if judge is None:
        return []
    own = consolidate(*gathered.said(judge, about), items, rules.failed).choice
    return [int(found) for found in gathered.comparisons[(own == row) & (human == column)]]


def choice_code(choice: str) -> int:
    try:
        return CHOICES.index(Choice(choice))
    except ValueError:
        known = ", ".join(CHOICES)
        raise InputRefused(f"“{choice}” is no choice: it is one of {known}.") from None
