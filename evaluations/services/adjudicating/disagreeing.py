"""Where raters differ: people among themselves, and people and a judge. Asked of the data, never stored.

People differ where the label is not unanimous. A person and a judge differ where the label of the
people is not what the judge says; that makes a disagreement only where the evaluation asks for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluations.domain import Choice, LabelSource, Reason, Stage
from evaluations.models import (
    Adjudication,
    Aspect,
    Candidate,
    Comparison,
    Evaluation,
    Label,
    Mention,
    Rater,
    RubricAspect,
    Score,
    User,
    Verdict,
)
from evaluations.services.adjudicating.prefiltering import may_differ
from evaluations.services.judging.consolidating import judge_choices
from evaluations.services.reviewing.tallying import votes_on

SETTLED: Final = Q(source=LabelSource.ADJUDICATED)
# So many labels are held against a judge at once, and so often for one page: a judge who seldom differs
# would have all of them looked through.
WINDOW: Final = 1_500
WINDOWS: Final = 8


class Kind(StrEnum):
    PEOPLE = "people"
    JUDGE = "judge"


@dataclass(frozen=True)
class Wanted:
    """Which disagreements. ``among``: the comparisons that the person may see, None for all.

    ``judge``: the one whose choices are held against those of people; None where none is.
    ``only_judge``: nothing but where that judge differs, from people or from what was settled.
    ``settled``: None for what is open and what was settled alike.
    ``calling``: only comparisons whose discussion calls this person.
    """

    evaluation: Evaluation
    among: QuerySet[Comparison] | None = None
    judge: Rater | None = None
    only_judge: bool = False
    kind: Kind | None = None
    settled: bool | None = False
    aspect: Aspect | None = None
    reason: Reason | None = None
    candidates: tuple[Candidate, ...] = ()
    calling: User | None = None


@dataclass(frozen=True)
class Found:
    """Comparisons in order. ``goes_on``: after which number more may stand; None at the end."""

    ids: list[int]
    goes_on: int | None


@dataclass(frozen=True)
class Difference:
    """What differs on one aspect of one comparison. ``judge`` is None where it did not answer or is not asked."""

    aspect: Aspect
    votes: Mapping[Choice, int]
    label: Label
    judge: Choice | None = None
    settled: Adjudication | None = None

    @property
    def differs_from_judge(self) -> bool:
        return self.judge is not None and self.label.choice not in ("", self.judge)

    @property
    def kinds(self) -> list[Kind]:
        """What was settled though people were of one mind was about the judge."""
        kinds = [] if self.label.unanimous else [Kind.PEOPLE]
        is_judges = self.label.unanimous if self.settled else self.differs_from_judge
        return [*kinds, Kind.JUDGE] if is_judges else kinds


def shown_judge(evaluation: Evaluation) -> Rater | None:
    """The judge who makes disagreements here; None where the evaluation does not ask for them."""
    if not evaluation.settles_judge or evaluation.shown_judge_id is None:
        return None
    return Rater.objects.select_related("judge__rubric_version__rubric").filter(judge=evaluation.shown_judge_id).first()


def find(wanted: Wanted, *, after: int = 0, size: int = 50, backwards: bool = False) -> Found:
    """The next comparisons with a disagreement, by their numbers; ``backwards`` those before ``after``."""
    if wanted.only_judge:
        return merged([by_judge(wanted, after, size, backwards)], size, backwards)
    if wanted.settled:
        return by_rows(settled_rows(wanted), after, size, backwards)
    parts: list[Found] = []
    if wanted.kind != Kind.JUDGE:
        parts.append(by_rows(among_people(wanted), after, size, backwards))
    if wanted.kind != Kind.PEOPLE and wanted.judge is not None:
        parts.append(by_judge(wanted, after, size, backwards))
    return merged(parts, size, backwards)


def merged(parts: Sequence[Found], size: int, backwards: bool) -> Found:
    """As far as every part was looked through."""
    ends = [part.goes_on for part in parts if part.goes_on is not None]
    end = (max(ends) if backwards else min(ends)) if ends else None
    every = sorted({pk for part in parts for pk in part.ids}, reverse=backwards)
    within = [pk for pk in every if end is None or (pk >= end if backwards else pk <= end)]
    if len(within) > size:
        return Found(within[:size], within[size - 1])
    return Found(within, end)


def among_people(wanted: Wanted) -> QuerySet[Label]:
    return labels_in(wanted).filter(unanimous=False).exclude(SETTLED)


def settled_rows(wanted: Wanted) -> QuerySet[Label]:
    """What was settled though people were of one mind was about the judge."""
    rows = labels_in(wanted).filter(SETTLED, comparison__in=settled_in(wanted).values("comparison"))
    return rows if wanted.kind is None else rows.filter(unanimous=wanted.kind == Kind.JUDGE)


def settled_in(wanted: Wanted) -> QuerySet[Adjudication]:
    """Far fewer than labels, among which nothing leads to those that were settled."""
    settled = Adjudication.objects.filter(comparison__evaluation=wanted.evaluation)
    return settled if wanted.among is None else settled.filter(comparison__in=wanted.among)


def labels_in(wanted: Wanted) -> QuerySet[Label]:
    """The labels that every filter lets through which does not ask who differs."""
    rows = Label.objects.filter(comparison__evaluation=wanted.evaluation)
    if wanted.among is not None:
        rows = rows.filter(comparison__in=wanted.among)
    if wanted.aspect is not None:
        rows = rows.filter(aspect=wanted.aspect)
    for candidate in wanted.candidates:
        rows = rows.filter(
            Q(comparison__response_a__candidate=candidate) | Q(comparison__response_b__candidate=candidate)
        )
    if wanted.reason is not None:
        rows = rows.filter(gave_reason(wanted.reason))
    if wanted.calling is not None:
        called = Mention.objects.filter(user=wanted.calling, comment__withdrawn_at__isnull=True)
        rows = rows.filter(comparison__in=called.values("comment__comparison"))
    return rows


def gave_reason(reason: Reason) -> Q:
    """That someone gave this reason for their final choice on the label's aspect."""
    final = {"aspect": OuterRef("aspect"), "stage": Stage.FINAL, "reason": reason}
    chose = Verdict.objects.filter(comparison=OuterRef("comparison"), **final)
    scored = Score.objects.filter(review__comparison=OuterRef("comparison"), **final)
    return Q(Exists(chose)) | Q(Exists(scored))


def by_rows(rows: QuerySet[Label], after: int, size: int, backwards: bool) -> Found:
    """The comparisons of these labels, one more than asked for to know whether there are others."""
    ids = list(following(rows, after, backwards)[: size + 1])
    return Found(ids[:size], ids[size - 1]) if len(ids) > size else Found(ids, None)


def following(rows: QuerySet[Label], after: int, backwards: bool) -> "QuerySet[Label, int]":
    if after:
        rows = rows.filter(**{"comparison__lt" if backwards else "comparison__gt": after})
    ordered = rows.order_by("-comparison_id" if backwards else "comparison_id")
    return ordered.values_list("comparison_id", flat=True).distinct()


def by_judge(wanted: Wanted, after: int, size: int, backwards: bool) -> Found:
    """SQL finds where the judge may differ, its one verdict says whether it does: window by window of the labels."""
    assert wanted.judge is not None
    labelled = labels_in(wanted).exclude(choice="")
    rows = may_differ(labelled.filter(SETTLED) if wanted.settled else labelled.exclude(SETTLED), wanted.judge)
    found: list[int] = []
    for _ in range(WINDOWS):
        end = end_of_window(wanted.evaluation, after, backwards)
        within = rows if end is None else rows.filter(**{"comparison__gte" if backwards else "comparison__lte": end})
        ids = list(following(within, after, backwards))
        for start in range(0, len(ids), size + 1):
            some = ids[start : start + size + 1]
            found += differing(rows, wanted.judge, some)
            if len(found) > size:
                return Found(found, some[-1])
        if end is None:
            return Found(found, None)
        after = end
    return Found(found, after)


def end_of_window(evaluation: Evaluation, after: int, backwards: bool) -> int | None:
    """The comparison with which the next so many labels end; None where there are fewer.

    Ordered by the comparisons: by the labels SQLite reads all of them first. Where to begin is said
    of both: PostgreSQL merges them, and would begin with the first label.
    """
    beyond = "lt" if backwards else "gt"
    begin = {f"pk__{beyond}": after, f"labels__comparison__{beyond}": after} if after else {}
    labelled = Comparison.all_rows.filter(evaluation=evaluation, labels__isnull=False, **begin)
    ordered = labelled.order_by("-pk" if backwards else "pk")
    return ordered.values_list("pk", flat=True)[WINDOW : WINDOW + 1].first()


def differing(rows: QuerySet[Label], judge: Rater, ids: Sequence[int]) -> list[int]:
    """Those of the comparisons on which the judge's one verdict is another than a label of these rows."""
    told = judge_choices(judge, ids)
    labels = rows.filter(comparison__in=ids).values_list("comparison_id", "aspect__key", "choice")
    differ = {pk for pk, key, choice in labels if key in told.get(pk, {}) and told[pk][key].choice != choice}
    return [pk for pk in ids if pk in differ]


def counts(wanted: Wanted) -> tuple[int, int]:
    """How many comparisons people differ on, and how many were settled."""
    here = Wanted(wanted.evaluation, wanted.among)
    still_open = among_people(here).values("comparison").distinct().count()
    return still_open, settled_in(here).values("comparison").distinct().count()


def neighbours(wanted: Wanted, comparison: Comparison) -> tuple[int | None, int | None]:
    """The disagreements before and after this one."""
    before = find(wanted, after=comparison.pk, size=1, backwards=True).ids
    after = find(wanted, after=comparison.pk, size=1).ids
    return (before[0] if before else None), (after[0] if after else None)


# ---- what differs, for the page -------------------------------------------------------------


def differences(wanted: Wanted, ids: Sequence[int]) -> Mapping[int, list[Difference]]:
    """By comparison what differs on it and is wanted, in the order of the rubric; the same few queries for all."""
    told: dict[int, list[Difference]] = {pk: [] for pk in ids}
    for one in every_difference(wanted, ids):
        if is_wanted(one, wanted):
            told[one.label.comparison_id].append(one)
    return told


def on_comparison(comparison: Comparison, judge: Rater | None) -> Mapping[int, Difference]:
    """By aspect id how things stand on one comparison, unanimous ones included."""
    every = every_difference(Wanted(comparison.evaluation, judge=judge, settled=None), [comparison.pk])
    return {one.aspect.pk: one for one in every}


def is_wanted(one: Difference, wanted: Wanted) -> bool:
    if wanted.only_judge:
        return one.differs_from_judge
    return bool(one.kinds) if wanted.kind is None else wanted.kind in one.kinds


def every_difference(wanted: Wanted, ids: Sequence[int]) -> list[Difference]:
    rows = labels_in(wanted).filter(comparison__in=ids).select_related("aspect")
    if wanted.settled is not None:
        rows = rows.filter(SETTLED) if wanted.settled else rows.exclude(SETTLED)
    votes = votes_on(ids)
    judged = judge_choices(wanted.judge, ids) if wanted.judge else {}
    settled = {(one.comparison_id, one.aspect_id): one for one in decisions(ids)} if wanted.settled is not False else {}
    place = places(wanted.evaluation)
    return [
        Difference(
            label.aspect,
            most_first(votes.get((label.comparison_id, label.aspect_id), {})),
            label,
            said.choice if (said := judged.get(label.comparison_id, {}).get(label.aspect.key)) else None,
            settled.get((label.comparison_id, label.aspect_id)),
        )
        for label in sorted(rows, key=lambda row: (place.get(row.aspect_id, len(place)), row.aspect.key))
    ]


def most_first(votes: Mapping[Choice, int]) -> Mapping[Choice, int]:
    return dict(sorted(votes.items(), key=lambda one: -one[1]))


def decisions(ids: Sequence[int]) -> QuerySet[Adjudication]:
    return Adjudication.objects.filter(comparison__in=ids).select_related("user", "aspect")


def places(evaluation: Evaluation) -> Mapping[int, int]:
    """The order in which the rubric in force asks about aspects."""
    asked = RubricAspect.objects.filter(version=evaluation.review_rubric_id).values_list("aspect_id", "position")
    return dict(asked)
