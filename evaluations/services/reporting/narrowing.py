"""Which comparisons and which raters a report speaks of."""

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from math import isfinite
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTransform

from evaluations.domain import Filter, InputRefused, RaterKind, Rules
from evaluations.models import Ballot, Comparison, Evaluation, Rater, Response, Score
from evaluations.models.filtering import narrowed_to
from evaluations.services.reporting.browsing import find
from evaluations.services.reporting.splitting import default_split, in_part

COLUMNS: Final = {
    "category": ("query__category",),
    "cluster": ("query__cluster",),
    "query_id": ("query__key",),
    "candidate": ("response_a__candidate__name", "response_b__candidate__name"),
    "candidate_a": ("response_a__candidate__name",),
    "candidate_b": ("response_b__candidate__name",),
}
# The same of single responses; of keys about a side of a comparison they have none.
OF_RESPONSES: Final = {
    "category": "query__category",
    "cluster": "query__cluster",
    "query_id": "query__key",
    "candidate": "candidate__name",
}
FEW: Final = 10  # a report on no more comparisons gives single choices away
LOOKING: Final = 1.0  # seconds


def comparisons_of(
    comparisons: QuerySet[Comparison], evaluation: Evaluation, rules: Rules, *, or_responses: bool = False
) -> QuerySet[Comparison]:
    """Those of the comparisons that a report by these rules is about: of the slice, and with every value asked for.

    ``or_responses``: there may be none where there are single responses.
    """
    found = narrowed(comparisons, evaluation, rules)
    if rules.sliced and not narrowed_to(comparisons, evaluation, rules.sliced.wanted).exists():
        raise InputRefused(f"The slice {rules.sliced.in_words()}, has no comparison.")
    if rules.where and not found.exists() and not (or_responses and single_responses(evaluation, rules).exists()):
        raise InputRefused(nothing_has(rules.where))
    return found


def narrowed(comparisons: QuerySet[Comparison], evaluation: Evaluation, rules: Rules) -> QuerySet[Comparison]:
    if rules.sliced:
        comparisons = narrowed_to(comparisons, evaluation, rules.sliced.wanted)
    if rules.part:
        comparisons = in_part(comparisons, evaluation, default_split(evaluation), rules.part)
    return having_all(comparisons, rules.where)


def comparisons_where(comparisons: QuerySet[Comparison], where: Sequence[tuple[str, str]]) -> QuerySet[Comparison]:
    """Those on which every key has the value. Keys that are no column are looked up in the metadata."""
    found = having_all(comparisons, where)
    if where and not found.exists():
        raise InputRefused(nothing_has(where))
    return found


def having_all(comparisons: QuerySet[Comparison], where: Sequence[tuple[str, str]]) -> QuerySet[Comparison]:
    for key, value in where:
        comparisons = having(comparisons, key, value)
    return comparisons


def single_responses(evaluation: Evaluation, rules: Rules) -> QuerySet[Response]:
    """The responses that a report by these rules counts scores of, whether or not a comparison holds them.

    A slice is of comparisons: it leaves none.
    """
    responses: QuerySet[Response] = Response.objects.filter(query__evaluation=evaluation)
    if rules.sliced:
        return responses.none()
    if rules.part:
        responses = in_part(responses, evaluation, default_split(evaluation), rules.part)
    for key, value in rules.where:
        if key in COLUMNS:
            column = OF_RESPONSES.get(key)
            responses = responses.filter(**{column: value}) if column else responses.none()
        else:
            known = responses.alias(own=KeyTransform(key, "metadata"), of_query=KeyTransform(key, "query__metadata"))
            responses = known.filter(Q(own__in=readings(value)) | Q(of_query__in=readings(value)))
    return responses


def nothing_has(where: Sequence[tuple[str, str]]) -> str:
    """All that was asked for: it may be that some comparisons have the one, and others the other."""
    asked = " and ".join(f"{key}={value}" for key, value in where)
    hint = f" Keys are {', '.join(COLUMNS)}, or a name in the metadata."
    return f"No comparison has {asked}." + ("" if all(key in COLUMNS for key, _ in where) else hint)


def few_of(comparisons: QuerySet[Comparison], evaluation: Evaluation, rules: Rules) -> list[Comparison]:
    """The comparisons of a report that gives single choices away, being on so few; none of one on more."""
    return few_among(narrowed(comparisons, evaluation, rules))


def few_among(comparisons: QuerySet[Comparison]) -> list[Comparison]:
    """All of them where they are few; none of many."""
    found = list(comparisons.only("evaluation", "response_a", "response_b")[: FEW + 1])
    return found if len(found) <= FEW else []


def few_told_apart(evaluation: Evaluation, wanted: Sequence[Filter]) -> list[Comparison]:
    """Of few comparisons, those that a filter by the choices of others leaves out are told apart, too.

    All that the filter means without those choices; none where these are many. Where they cannot all be found in
    time, the few that were.
    """
    found = find(evaluation, [one.without_choices() for one in wanted], size=FEW, seconds=LOOKING)
    if found.is_whole and found.goes_on is not None:
        return []
    few = Comparison.objects.filter(pk__in=found.ids)
    return list(few.only("evaluation", "response_a", "response_b"))


def having(comparisons: QuerySet[Comparison], key: str, value: str) -> QuerySet[Comparison]:
    if key in COLUMNS:
        condition = Q()
        for column in COLUMNS[key]:
            condition |= Q(**{column: value})
        return comparisons.filter(condition)
    return comparisons.alias(
        of_comparison=KeyTransform(key, "metadata"), of_query=KeyTransform(key, "query__metadata")
    ).filter(Q(of_comparison__in=readings(value)) | Q(of_query__in=readings(value)))


def readings(value: str) -> list[object]:
    """What the words of a filter may mean in metadata: the text itself, or a number, true or false."""
    try:
        meant = json.loads(value, parse_constant=str)
    except ValueError:
        return [value]
    return [value, meant] if isinstance(meant, (int, float)) and isfinite(meant) else [value]


def raters_of(evaluation: Evaluation, rules: Rules) -> list[Rater]:
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
    kept = named(kept, RaterKind.JUDGE, rules.judges)
    return named(kept, RaterKind.HUMAN, rules.reviewers)


def judges_of_family(evaluation: Evaluation) -> list[Rater]:
    """The judges with answers, over which the claims of a report are controlled together, whatever it leaves out."""
    judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE)
    chose = Ballot.objects.filter(rater=OuterRef("pk"))
    scored = Score.objects.filter(rater=OuterRef("pk"))
    answering = judges.filter(Exists(chose) | Exists(scored))
    return list(answering.select_related("judge__rubric_version__rubric").order_by("name", "pk"))


def named(raters: Sequence[Rater], kind: RaterKind, names: Sequence[str]) -> list[Rater]:
    """Of this kind only those of these names, where there are any; every other kind stays."""
    known = {rater.name for rater in raters if rater.kind == kind}
    for name in names:
        if name not in known:
            what = "judge" if kind == RaterKind.JUDGE else "reviewer"
            raise InputRefused(f"There is no {what} “{name}” here.")
    return [rater for rater in raters if rater.kind != kind or not names or rater.name in names]
