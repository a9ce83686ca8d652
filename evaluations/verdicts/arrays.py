"""All that the selected raters said on the selected comparisons, as arrays."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from django.db.models import Exists, OuterRef

from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.verdicts import PackedVotes, Score


def list_counted_raters(evaluation: Evaluation, rules: ReportRules) -> list[Rater]:
    """Everyone whose verdicts count, by name. A pattern narrows people and judges each to those it matches.

    A kind in which it matches nobody stays whole: `expert_*` keeps the judges that experts are compared with.
    """
    known = Rater.objects.current().filter(evaluation=evaluation).select_related("judge__rubric_version__rubric")
    raters = list(known.order_by("name", "pk"))
    matching = {rater.pk for rater in raters if fnmatchcase(rater.name, rules.raters)}
    if raters and not matching:
        raise InputRefused(f"No rater's name matches “{rules.raters}”.")
    narrowed = {kind for kind in RaterKind if any(rater.kind == kind and rater.pk in matching for rater in raters)}
    kept = [rater for rater in raters if rater.pk in matching or rater.kind not in narrowed]
    kept = filter_raters_by_name(kept, RaterKind.JUDGE, rules.judges)
    return filter_raters_by_name(kept, RaterKind.HUMAN, rules.reviewers)


def list_judges_in_claim_family(evaluation: Evaluation) -> list[Rater]:
    """The judges with answers: claims of a report are controlled over all of them, whatever its filters leave out."""
    judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE)
    chose = PackedVotes.objects.filter(rater=OuterRef("pk"))
    scored = Score.objects.filter(rater=OuterRef("pk"))
    answering = judges.filter(Exists(chose) | Exists(scored))
    return list(answering.select_related("judge__rubric_version__rubric").order_by("name", "pk"))


def filter_raters_by_name(raters: Sequence[Rater], kind: RaterKind, names: Sequence[str]) -> list[Rater]:
    """Keep raters of one kind by name, if names are given; raters of other kinds are kept."""
    known = {rater.name for rater in raters if rater.kind == kind}
    for name in names:
        if name not in known:
            what = "judge" if kind == RaterKind.JUDGE else "reviewer"
            raise InputRefused(f"There is no {what} “{name}” here.")
    return [rater for rater in raters if rater.kind != kind or not names or rater.name in names]
