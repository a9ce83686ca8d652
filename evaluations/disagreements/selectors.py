"""Comparisons on which raters disagree, with their discussion."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluations.domain.choices import Choice, LabelSource, Stage
from evaluations.domain.reviews import DifferenceReason
from evaluations.models.comparisons import Candidate, Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Label, Mention, Score, Verdict
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.judge_differences import filter_possible_differences
from evaluations.verdicts.votes import count_votes
from evaluations.visibility import reveal_comparisons

IS_RESOLVED: Final = Q(source=LabelSource.ADJUDICATED)

# How many labels are compared with a judge at once, and how often for one page: a judge that rarely differs
# would have all of them looked through.
LABELS_PER_WINDOW: Final = 1_500

MAX_WINDOWS: Final = 8


class DisagreementKind(StrEnum):
    PEOPLE = "people"
    JUDGE = "judge"


@dataclass(frozen=True)
class DisagreementFilter:
    """Which disagreements to list. ``among``: the comparisons that the user may see, None for all.

    ``judge``: the one whose choices are held against those of people; None where none is.
    ``only_judge``: nothing but where that judge differs, from people or from what was settled.
    ``settled``: None for what is open and what was settled alike.
    ``calling``: only comparisons whose discussion calls this person.
    """

    evaluation: Evaluation
    among: QuerySet[Comparison] | None = None
    judge: Rater | None = None
    only_judge: bool = False
    kind: DisagreementKind | None = None
    settled: bool | None = False
    aspect: Aspect | None = None
    reason: DifferenceReason | None = None
    candidates: tuple[Candidate, ...] = ()
    calling: User | None = None


@dataclass(frozen=True)
class FoundDisagreements:
    """Comparison ids in order. ``goes_on``: the id after which to continue; None at the end."""

    ids: list[int]
    goes_on: int | None


@dataclass(frozen=True)
class Disagreement:
    """The difference on one aspect. ``judge`` is None if the judge did not answer or is not compared."""

    aspect: Aspect
    votes: Mapping[Choice, int]
    label: Label
    judge: Choice | None = None
    settled: Adjudication | None = None

    @property
    def differs_from_judge(self) -> bool:
        return self.judge is not None and self.label.choice not in ("", self.judge)

    @property
    def kinds(self) -> list[DisagreementKind]:
        """What was settled though people were of one mind was about the judge."""
        kinds = [] if self.label.unanimous else [DisagreementKind.PEOPLE]
        is_judges = self.label.unanimous if self.settled else self.differs_from_judge
        return [*kinds, DisagreementKind.JUDGE] if is_judges else kinds


def get_disagreement_judge(evaluation: Evaluation) -> Rater | None:
    """The judge whose differences count as disagreements; None unless the evaluation says so."""
    if not evaluation.resolve_judge_disagreements or evaluation.shown_judge_id is None:
        return None
    return Rater.objects.select_related("judge__rubric_version__rubric").filter(judge=evaluation.shown_judge_id).first()


def find_disagreements(
    wanted: DisagreementFilter, *, after: int = 0, size: int = 50, backwards: bool = False
) -> FoundDisagreements:
    """The next comparisons with a disagreement, by their numbers; ``backwards`` those before ``after``."""
    if wanted.only_judge:
        return merge_found([find_by_judge(wanted, after, size, backwards)], size, backwards)
    if wanted.settled:
        return find_by_labels(filter_resolved(wanted), after, size, backwards)
    parts: list[FoundDisagreements] = []
    if wanted.kind != DisagreementKind.JUDGE:
        parts.append(find_by_labels(filter_reviewer_disagreements(wanted), after, size, backwards))
    if wanted.kind != DisagreementKind.PEOPLE and wanted.judge is not None:
        parts.append(find_by_judge(wanted, after, size, backwards))
    return merge_found(parts, size, backwards)


def merge_found(parts: Sequence[FoundDisagreements], size: int, backwards: bool) -> FoundDisagreements:
    """As far as every part was looked through."""
    ends = [part.goes_on for part in parts if part.goes_on is not None]
    end = (max(ends) if backwards else min(ends)) if ends else None
    every = sorted({pk for part in parts for pk in part.ids}, reverse=backwards)
    within = [pk for pk in every if end is None or (pk >= end if backwards else pk <= end)]
    if len(within) > size:
        return FoundDisagreements(within[:size], within[size - 1])
    return FoundDisagreements(within, end)


def filter_reviewer_disagreements(wanted: DisagreementFilter) -> QuerySet[Label]:
    return filter_labels(wanted).filter(unanimous=False).exclude(IS_RESOLVED)


def filter_resolved(wanted: DisagreementFilter) -> QuerySet[Label]:
    """Resolved labels. A resolution of a unanimous label was about the judge."""
    rows = filter_labels(wanted).filter(IS_RESOLVED, comparison__in=get_resolutions(wanted).values("comparison"))
    return rows if wanted.kind is None else rows.filter(unanimous=wanted.kind == DisagreementKind.JUDGE)


def get_resolutions(wanted: DisagreementFilter) -> QuerySet[Adjudication]:
    """The resolutions in scope. They are few, and no index finds them among the labels."""
    settled = Adjudication.objects.filter(comparison__evaluation=wanted.evaluation)
    return settled if wanted.among is None else settled.filter(comparison__in=wanted.among)


def filter_labels(wanted: DisagreementFilter) -> QuerySet[Label]:
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
        rows = rows.filter(has_reason(wanted.reason))
    if wanted.calling is not None:
        called = Mention.objects.filter(user=wanted.calling, comment__withdrawn_at__isnull=True)
        rows = rows.filter(comparison__in=called.values("comment__comparison"))
    return rows


def has_reason(reason: DifferenceReason) -> Q:
    """A condition: somebody gave this reason for a final choice on the label's aspect."""
    final = {"aspect": OuterRef("aspect"), "stage": Stage.FINAL, "reason": reason}
    chose = Verdict.objects.filter(comparison=OuterRef("comparison"), **final)
    scored = Score.objects.filter(review__comparison=OuterRef("comparison"), **final)
    return Q(Exists(chose)) | Q(Exists(scored))


def find_by_labels(rows: QuerySet[Label], after: int, size: int, backwards: bool) -> FoundDisagreements:
    """The comparisons of these labels, one more than asked for to know whether there are others."""
    ids = list(list_comparisons_after(rows, after, backwards)[: size + 1])
    return FoundDisagreements(ids[:size], ids[size - 1]) if len(ids) > size else FoundDisagreements(ids, None)


def list_comparisons_after(rows: QuerySet[Label], after: int, backwards: bool) -> "QuerySet[Label, int]":
    if after:
        rows = rows.filter(**{"comparison__lt" if backwards else "comparison__gt": after})
    ordered = rows.order_by("-comparison_id" if backwards else "comparison_id")
    return ordered.values_list("comparison_id", flat=True).distinct()


def find_by_judge(wanted: DisagreementFilter, after: int, size: int, backwards: bool) -> FoundDisagreements:
    """Comparisons where the judge differs: SQL finds candidates, the judge's one verdict decides."""
    assert wanted.judge is not None
    labelled = filter_labels(wanted).exclude(choice="")
    rows = filter_possible_differences(
        labelled.filter(IS_RESOLVED) if wanted.settled else labelled.exclude(IS_RESOLVED), wanted.judge
    )
    found: list[int] = []
    for _ in range(MAX_WINDOWS):
        end = get_window_end(wanted.evaluation, after, backwards)
        within = rows if end is None else rows.filter(**{"comparison__gte" if backwards else "comparison__lte": end})
        ids = list(list_comparisons_after(within, after, backwards))
        for start in range(0, len(ids), size + 1):
            some = ids[start : start + size + 1]
            found += filter_differing_from_judge(rows, wanted.judge, some)
            if len(found) > size:
                return FoundDisagreements(found, some[-1])
        if end is None:
            return FoundDisagreements(found, None)
        after = end
    return FoundDisagreements(found, after)


def get_window_end(evaluation: Evaluation, after: int, backwards: bool) -> int | None:
    """The comparison with which the next so many labels end; None where there are fewer.

    Ordered by the comparisons: by the labels SQLite reads all of them first. Where to begin is said
    of both: PostgreSQL merges them, and would begin with the first label.
    """
    beyond = "lt" if backwards else "gt"
    begin = {f"pk__{beyond}": after, f"labels__comparison__{beyond}": after} if after else {}
    labelled = Comparison.all_rows.filter(evaluation=evaluation, labels__isnull=False, **begin)
    ordered = labelled.order_by("-pk" if backwards else "pk")
    return ordered.values_list("pk", flat=True)[LABELS_PER_WINDOW : LABELS_PER_WINDOW + 1].first()


def filter_differing_from_judge(rows: QuerySet[Label], judge: Rater, ids: Sequence[int]) -> list[int]:
    """Those of the comparisons on which the judge's one verdict is another than a label of these rows."""
    told = load_judge_choices(judge, ids)
    labels = rows.filter(comparison__in=ids).values_list("comparison_id", "aspect__key", "choice")
    differ = {pk for pk, key, choice in labels if key in told.get(pk, {}) and told[pk][key].choice != choice}
    return [pk for pk in ids if pk in differ]


def count_disagreements(wanted: DisagreementFilter) -> tuple[int, int]:
    """Numbers of comparisons with open disagreements among reviewers, and of resolved ones."""
    here = DisagreementFilter(wanted.evaluation, wanted.among)
    still_open = filter_reviewer_disagreements(here).values("comparison").distinct().count()
    return still_open, get_resolutions(here).values("comparison").distinct().count()


def get_neighbouring_disagreements(wanted: DisagreementFilter, comparison: Comparison) -> tuple[int | None, int | None]:
    """The disagreements before and after this one."""
    before = find_disagreements(wanted, after=comparison.pk, size=1, backwards=True).ids
    after = find_disagreements(wanted, after=comparison.pk, size=1).ids
    return (before[0] if before else None), (after[0] if after else None)


# ---- what differs, for the page -------------------------------------------------------------

# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED_COLUMNS: Final = ("evaluation", "query__text", "response_a__candidate__name", "response_b__candidate__name")


@dataclass(frozen=True)
class DisagreementRows:
    """Comparisons with what differs on each. ``goes_on``: the id after which to continue; None at the end."""

    rows: list[tuple[Comparison, list[Disagreement]]]
    goes_on: int | None


def reveal_disagreements(user: User, wanted: DisagreementFilter, *, after: int, size: int) -> DisagreementRows:
    """The next disagreements, whose choices this person now counts as having seen."""
    found = find_disagreements(wanted, after=after, size=size)
    related = Comparison.objects.select_related("query", "response_a__candidate", "response_b__candidate")
    comparisons = list(related.only(*LISTED_COLUMNS).filter(pk__in=found.ids).order_by("pk"))
    differences = get_disagreements(wanted, [one.pk for one in comparisons])
    shown = reveal_comparisons(user, wanted.evaluation, comparisons)
    return DisagreementRows([(one, differences[one.pk]) for one in shown], found.goes_on)


def get_disagreements(wanted: DisagreementFilter, ids: Sequence[int]) -> Mapping[int, list[Disagreement]]:
    """The matching disagreements by comparison, in the rubric's order, in a fixed number of queries."""
    told: dict[int, list[Disagreement]] = {pk: [] for pk in ids}
    for one in read_disagreements(wanted, ids):
        if is_matching_disagreement(one, wanted):
            told[one.label.comparison_id].append(one)
    return told


def get_disagreements_on(comparison: Comparison, judge: Rater | None) -> Mapping[int, Disagreement]:
    """Every labelled aspect of one comparison by aspect id, unanimous ones included."""
    every = read_disagreements(DisagreementFilter(comparison.evaluation, judge=judge, settled=None), [comparison.pk])
    return {one.aspect.pk: one for one in every}


def is_matching_disagreement(one: Disagreement, wanted: DisagreementFilter) -> bool:
    if wanted.only_judge:
        return one.differs_from_judge
    return bool(one.kinds) if wanted.kind is None else wanted.kind in one.kinds


def read_disagreements(wanted: DisagreementFilter, ids: Sequence[int]) -> list[Disagreement]:
    rows = filter_labels(wanted).filter(comparison__in=ids).select_related("aspect")
    if wanted.settled is not None:
        rows = rows.filter(IS_RESOLVED) if wanted.settled else rows.exclude(IS_RESOLVED)
    votes = count_votes(ids)
    judged = load_judge_choices(wanted.judge, ids) if wanted.judge else {}
    settled = (
        {(one.comparison_id, one.aspect_id): one for one in get_adjudications(ids)}
        if wanted.settled is not False
        else {}
    )
    place = get_rubric_order(wanted.evaluation)
    return [
        Disagreement(
            label.aspect,
            sort_votes(votes.get((label.comparison_id, label.aspect_id), {})),
            label,
            said.choice if (said := judged.get(label.comparison_id, {}).get(label.aspect.key)) else None,
            settled.get((label.comparison_id, label.aspect_id)),
        )
        for label in sorted(rows, key=lambda row: (place.get(row.aspect_id, len(place)), row.aspect.key))
    ]


def sort_votes(votes: Mapping[Choice, int]) -> Mapping[Choice, int]:
    return dict(sorted(votes.items(), key=lambda one: -one[1]))


def get_adjudications(ids: Sequence[int]) -> QuerySet[Adjudication]:
    return Adjudication.objects.filter(comparison__in=ids).select_related("user", "aspect")


def get_rubric_order(evaluation: Evaluation) -> Mapping[int, int]:
    """The order in which the rubric in force asks about aspects."""
    asked = RubricAspect.objects.filter(version=evaluation.review_rubric_id).values_list("aspect_id", "position")
    return dict(asked)


def get_thread(comparison: Comparison) -> list[Comment]:
    """Oldest first."""
    return list(comparison.comments.select_related("user", "aspect").order_by("pk"))


# ---- being called ---------------------------------------------------------------------------


def get_mentions(user: User, readable: QuerySet[Comparison]) -> QuerySet[Mention]:
    """Mentions of this user in comments that are not withdrawn, on comparisons that they may see."""
    standing = Mention.objects.filter(user=user, comment__withdrawn_at__isnull=True)
    return standing.filter(comment__comparison__in=readable)


MENTION_RELATIONS: Final = (
    "comment__user",
    "comment__aspect",
    "comment__comparison__evaluation",
    "comment__comparison__query",
)


def reveal_mentions(user: User, mentions: Sequence[Mention]) -> Sequence[Mention]:
    """These mentions of one person, who now counts as having seen what others chose: a comment reveals it."""
    called_on: dict[Evaluation, list[Comparison]] = defaultdict(list)
    for mention in mentions:
        called_on[mention.comment.comparison.evaluation].append(mention.comment.comparison)
    for evaluation, comparisons in called_on.items():
        reveal_comparisons(user, evaluation, comparisons)
    return mentions


def has_unseen_mention(user: User) -> bool:
    """Whether the user has an unseen mention, readable or not: a cheap check for every page."""
    return Mention.objects.filter(user=user, seen_at__isnull=True).exists()


def count_new_mentions(user: User, readable: QuerySet[Comparison]) -> int:
    return get_mentions(user, readable).filter(seen_at__isnull=True).count()
