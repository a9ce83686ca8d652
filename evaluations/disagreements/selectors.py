"""Comparisons on which raters disagree, with their discussion."""

from collections import Counter, defaultdict
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

MAX_LISTED_VOTES: Final = 7


class DisagreementKind(StrEnum):
    REVIEWERS = "reviewers"
    JUDGE = "judge"


@dataclass(frozen=True)
class DisagreementFilter:
    """Which disagreements to list. ``among``: the comparisons that the user may see, None for all.

    ``judge``: the judge compared with reviewers; None if there is none. ``only_judge``: only aspects on which that
    judge differs from the label. ``resolved``: None for open and resolved ones. ``mentioning``: only comparisons
    whose discussion mentions this user.
    """

    evaluation: Evaluation
    among: QuerySet[Comparison] | None = None
    judge: Rater | None = None
    only_judge: bool = False
    kind: DisagreementKind | None = None
    resolved: bool | None = False
    aspect: Aspect | None = None
    reason: DifferenceReason | None = None
    candidates: tuple[Candidate, ...] = ()
    mentioning: User | None = None


@dataclass(frozen=True)
class DisagreementIds:
    """Comparison ids in order. ``continues_after``: the id after which to continue; None at the end."""

    ids: list[int]
    continues_after: int | None


@dataclass(frozen=True)
class Disagreement:
    """The difference on one aspect. ``judge`` is None if the judge did not answer or is not compared."""

    aspect: Aspect
    votes: Mapping[Choice, int]
    label: Label
    judge: Choice | None = None
    resolution: Adjudication | None = None

    @property
    def vote_list(self) -> list[Choice]:
        """Every vote, the most frequent choice first; empty if there are too many to list."""
        is_short = sum(self.votes.values()) <= MAX_LISTED_VOTES
        return [choice for choice, count in self.votes.items() for _ in range(count)] if is_short else []

    @property
    def majority(self) -> str:
        """How many votes the label's choice has, as “2 of 3”; empty where no choice leads."""
        if not self.label.choice or self.resolution:
            return ""
        return f"{self.votes.get(Choice(self.label.choice), 0)} of {sum(self.votes.values())}"

    @property
    def differs_from_judge(self) -> bool:
        return self.judge is not None and self.label.choice not in ("", self.judge)

    @property
    def kinds(self) -> list[DisagreementKind]:
        """The kinds of the disagreement. A resolution of a unanimous label was about the judge."""
        kinds = [] if self.label.unanimous else [DisagreementKind.REVIEWERS]
        is_judges = self.label.unanimous if self.resolution else self.differs_from_judge
        return [*kinds, DisagreementKind.JUDGE] if is_judges else kinds


def get_disagreement_judge(evaluation: Evaluation) -> Rater | None:
    """The judge whose differences count as disagreements; None unless the evaluation counts them."""
    if not evaluation.resolve_judge_disagreements or evaluation.shown_judge_id is None:
        return None
    return Rater.objects.select_related("judge__rubric_version__rubric").filter(judge=evaluation.shown_judge_id).first()


def find_disagreements(
    filters: DisagreementFilter, *, after: int = 0, size: int = 50, backwards: bool = False
) -> DisagreementIds:
    """The next comparisons with a disagreement, by their numbers; ``backwards`` those before ``after``."""
    if filters.only_judge:
        return merge_pages([find_by_judge(filters, after, size, backwards)], size, backwards)
    if filters.resolved:
        return find_by_labels(filter_resolved(filters), after, size, backwards)
    parts: list[DisagreementIds] = []
    if filters.kind != DisagreementKind.JUDGE:
        parts.append(find_by_labels(filter_reviewer_disagreements(filters), after, size, backwards))
    if filters.kind != DisagreementKind.REVIEWERS and filters.judge is not None:
        parts.append(find_by_judge(filters, after, size, backwards))
    return merge_pages(parts, size, backwards)


def merge_pages(parts: Sequence[DisagreementIds], size: int, backwards: bool) -> DisagreementIds:
    """Merge the parts, up to where every part was searched."""
    ends = [part.continues_after for part in parts if part.continues_after is not None]
    end = (max(ends) if backwards else min(ends)) if ends else None
    ids = sorted({pk for part in parts for pk in part.ids}, reverse=backwards)
    ids_in_range = [pk for pk in ids if end is None or (pk >= end if backwards else pk <= end)]
    if len(ids_in_range) > size:
        return DisagreementIds(ids_in_range[:size], ids_in_range[size - 1])
    return DisagreementIds(ids_in_range, end)


def filter_reviewer_disagreements(filters: DisagreementFilter) -> QuerySet[Label]:
    return filter_labels(filters).filter(unanimous=False).exclude(IS_RESOLVED)


def filter_resolved(filters: DisagreementFilter) -> QuerySet[Label]:
    """Resolved labels. A resolution of a unanimous label was about the judge."""
    rows = filter_labels(filters).filter(IS_RESOLVED, comparison__in=get_resolutions(filters).values("comparison"))
    return rows if filters.kind is None else rows.filter(unanimous=filters.kind == DisagreementKind.JUDGE)


def get_resolutions(filters: DisagreementFilter) -> QuerySet[Adjudication]:
    """The resolutions in scope. They are few, and no index finds them among the labels."""
    resolutions = Adjudication.objects.filter(comparison__evaluation=filters.evaluation)
    return resolutions if filters.among is None else resolutions.filter(comparison__in=filters.among)


def filter_labels(filters: DisagreementFilter) -> QuerySet[Label]:
    """The labels that match all filters other than those on who differs."""
    rows = Label.objects.filter(comparison__evaluation=filters.evaluation)
    if filters.among is not None:
        rows = rows.filter(comparison__in=filters.among)
    if filters.aspect is not None:
        rows = rows.filter(aspect=filters.aspect)
    for candidate in filters.candidates:
        rows = rows.filter(
            Q(comparison__response_a__candidate=candidate) | Q(comparison__response_b__candidate=candidate)
        )
    if filters.reason is not None:
        rows = rows.filter(has_reason(filters.reason))
    if filters.mentioning is not None:
        mentions = Mention.objects.filter(user=filters.mentioning, comment__withdrawn_at__isnull=True)
        rows = rows.filter(comparison__in=mentions.values("comment__comparison"))
    return rows


def has_reason(reason: DifferenceReason) -> Q:
    """A condition: somebody gave this reason for a final choice on the label's aspect."""
    columns = {"aspect": OuterRef("aspect"), "stage": Stage.FINAL, "reason": reason}
    verdicts = Verdict.objects.filter(comparison=OuterRef("comparison"), **columns)
    scores = Score.objects.filter(review__comparison=OuterRef("comparison"), **columns)
    return Q(Exists(verdicts)) | Q(Exists(scores))


def find_by_labels(rows: QuerySet[Label], after: int, size: int, backwards: bool) -> DisagreementIds:
    """The comparisons of these labels, reading one more to know whether there are others."""
    ids = list(list_comparisons_after(rows, after, backwards)[: size + 1])
    return DisagreementIds(ids[:size], ids[size - 1]) if len(ids) > size else DisagreementIds(ids, None)


def list_comparisons_after(rows: QuerySet[Label], after: int, backwards: bool) -> "QuerySet[Label, int]":
    if after:
        rows = rows.filter(**{"comparison__lt" if backwards else "comparison__gt": after})
    ordered = rows.order_by("-comparison_id" if backwards else "comparison_id")
    return ordered.values_list("comparison_id", flat=True).distinct()


def find_by_judge(filters: DisagreementFilter, after: int, size: int, backwards: bool) -> DisagreementIds:
    """Comparisons where the judge differs: SQL finds candidates, the judge's one verdict decides."""
    assert filters.judge is not None
    labels = filter_labels(filters).exclude(choice="")
    rows = filter_possible_differences(
        labels.filter(IS_RESOLVED) if filters.resolved else labels.exclude(IS_RESOLVED), filters.judge
    )
    differing: list[int] = []
    for _ in range(MAX_WINDOWS):
        end = get_window_end(filters.evaluation, after, backwards)
        window = rows if end is None else rows.filter(**{"comparison__gte" if backwards else "comparison__lte": end})
        ids = list(list_comparisons_after(window, after, backwards))
        for start in range(0, len(ids), size + 1):
            batch = ids[start : start + size + 1]
            differing += filter_differing_from_judge(rows, filters.judge, batch)
            if len(differing) > size:
                return DisagreementIds(differing, batch[-1])
        if end is None:
            return DisagreementIds(differing, None)
        after = end
    return DisagreementIds(differing, after)


def get_window_end(evaluation: Evaluation, after: int, backwards: bool) -> int | None:
    """The comparison that ends the next window of labels; None if fewer labels are left.

    It is ordered by comparison: SQLite reads all labels first if ordered by these. Both tables get the lower bound:
    PostgreSQL merges them, and would otherwise begin with the first label.
    """
    lookup = "lt" if backwards else "gt"
    bounds = {f"pk__{lookup}": after, f"labels__comparison__{lookup}": after} if after else {}
    comparisons = Comparison.all_rows.filter(evaluation=evaluation, labels__isnull=False, **bounds)
    ordered = comparisons.order_by("-pk" if backwards else "pk")
    return ordered.values_list("pk", flat=True)[LABELS_PER_WINDOW : LABELS_PER_WINDOW + 1].first()


def filter_differing_from_judge(rows: QuerySet[Label], judge: Rater, ids: Sequence[int]) -> list[int]:
    """The comparisons on which the judge's choice differs from a label of these rows."""
    judge_choices = load_judge_choices(judge, ids)
    labels = rows.filter(comparison__in=ids).values_list("comparison_id", "aspect__key", "choice")
    differ = {
        pk for pk, key, choice in labels if key in judge_choices.get(pk, {}) and judge_choices[pk][key].choice != choice
    }
    return [pk for pk in ids if pk in differ]


def count_disagreements(filters: DisagreementFilter) -> tuple[int, int]:
    """Numbers of comparisons with open disagreements among reviewers, and of resolved ones."""
    filter_all = DisagreementFilter(filters.evaluation, filters.among)
    number_open = filter_reviewer_disagreements(filter_all).values("comparison").distinct().count()
    return number_open, get_resolutions(filter_all).values("comparison").distinct().count()


def get_neighbouring_disagreements(
    filters: DisagreementFilter, comparison: Comparison
) -> tuple[int | None, int | None]:
    """The disagreements before and after this one."""
    before = find_disagreements(filters, after=comparison.pk, size=1, backwards=True).ids
    after = find_disagreements(filters, after=comparison.pk, size=1).ids
    return (before[0] if before else None), (after[0] if after else None)


def find_following_disagreement(filters: DisagreementFilter, comparison: Comparison) -> int | None:
    """The disagreement after this one, or else the first; None if there is no other."""
    after = find_disagreements(filters, after=comparison.pk, size=1).ids
    others = after or [pk for pk in find_disagreements(filters, size=2).ids if pk != comparison.pk]
    return others[0] if others else None


# ---- disagreements of a page

# Lists show no messages of queries or responses, so these are not read.
LISTED_COLUMNS: Final = ("evaluation", "query__text", "response_a__candidate__name", "response_b__candidate__name")


@dataclass(frozen=True)
class DisagreementRows:
    """Comparisons with what differs on each. ``continues_after``: the id after which to continue; None at the end."""

    rows: list[tuple[Comparison, list[Disagreement]]]
    continues_after: int | None


def reveal_disagreements(user: User, filters: DisagreementFilter, *, after: int, size: int) -> DisagreementRows:
    """The next disagreements, whose choices this person now counts as having seen."""
    page = find_disagreements(filters, after=after, size=size)
    related = Comparison.objects.select_related("query", "response_a__candidate", "response_b__candidate")
    comparisons = list(related.only(*LISTED_COLUMNS).filter(pk__in=page.ids).order_by("pk"))
    differences = get_disagreements(filters, [comparison.pk for comparison in comparisons])
    revealed = reveal_comparisons(user, filters.evaluation, comparisons)
    return DisagreementRows([(comparison, differences[comparison.pk]) for comparison in revealed], page.continues_after)


def get_disagreements(filters: DisagreementFilter, ids: Sequence[int]) -> Mapping[int, list[Disagreement]]:
    """The matching disagreements by comparison, in the rubric's order, in a fixed number of queries."""
    by_comparison: dict[int, list[Disagreement]] = {pk: [] for pk in ids}
    for disagreement in read_disagreements(filters, ids):
        if is_matching_disagreement(disagreement, filters):
            by_comparison[disagreement.label.comparison_id].append(disagreement)
    return by_comparison


def get_disagreements_on(comparison: Comparison, judge: Rater | None) -> Mapping[int, Disagreement]:
    """Every labelled aspect of one comparison by aspect id, unanimous ones included."""
    disagreements = read_disagreements(
        DisagreementFilter(comparison.evaluation, judge=judge, resolved=None), [comparison.pk]
    )
    return {disagreement.aspect.pk: disagreement for disagreement in disagreements}


def is_matching_disagreement(disagreement: Disagreement, filters: DisagreementFilter) -> bool:
    if filters.only_judge:
        return disagreement.differs_from_judge
    return bool(disagreement.kinds) if filters.kind is None else filters.kind in disagreement.kinds


def read_disagreements(filters: DisagreementFilter, ids: Sequence[int]) -> list[Disagreement]:
    rows = filter_labels(filters).filter(comparison__in=ids).select_related("aspect")
    if filters.resolved is not None:
        rows = rows.filter(IS_RESOLVED) if filters.resolved else rows.exclude(IS_RESOLVED)
    votes = count_votes(ids)
    judge_choices = load_judge_choices(filters.judge, ids) if filters.judge else {}
    resolutions = {}
    if filters.resolved is not False:
        for resolution in Adjudication.objects.filter(comparison__in=ids).select_related("user", "aspect"):
            resolutions[resolution.comparison_id, resolution.aspect_id] = resolution
    in_rubric = RubricAspect.objects.filter(version=filters.evaluation.review_rubric_id)
    positions = dict(in_rubric.values_list("aspect_id", "position"))
    return [
        Disagreement(
            label.aspect,
            dict(Counter(votes.get((label.comparison_id, label.aspect_id), {})).most_common()),
            label,
            choice.choice if (choice := judge_choices.get(label.comparison_id, {}).get(label.aspect.key)) else None,
            resolutions.get((label.comparison_id, label.aspect_id)),
        )
        for label in sorted(rows, key=lambda row: (positions.get(row.aspect_id, len(positions)), row.aspect.key))
    ]


def get_thread(comparison: Comparison) -> list[Comment]:
    """The comments, oldest first."""
    return list(comparison.comments.select_related("user", "aspect").order_by("pk"))


# ---- mentions


def get_mentions(user: User, readable: QuerySet[Comparison]) -> QuerySet[Mention]:
    """Mentions of this user in comments that are not withdrawn, on comparisons that they may see."""
    mentions = Mention.objects.filter(user=user, comment__withdrawn_at__isnull=True)
    return mentions.filter(comment__comparison__in=readable)


MENTION_RELATIONS: Final = (
    "comment__user",
    "comment__aspect",
    "comment__comparison__evaluation",
    "comment__comparison__query",
)


def reveal_mentions(user: User, mentions: Sequence[Mention]) -> Sequence[Mention]:
    """These mentions of one person, who now counts as having seen what others chose: a comment reveals it."""
    by_evaluation: dict[Evaluation, list[Comparison]] = defaultdict(list)
    for mention in mentions:
        by_evaluation[mention.comment.comparison.evaluation].append(mention.comment.comparison)
    for evaluation, comparisons in by_evaluation.items():
        reveal_comparisons(user, evaluation, comparisons)
    return mentions


def has_unseen_mention(user: User) -> bool:
    """Whether the user has an unseen mention, readable or not: a cheap check for every page."""
    return Mention.objects.filter(user=user, seen_at__isnull=True).exists()


def count_new_mentions(user: User, readable: QuerySet[Comparison]) -> int:
    return get_mentions(user, readable).filter(seen_at__isnull=True).count()
