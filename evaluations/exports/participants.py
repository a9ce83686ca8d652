"""Who may appear in an exported file, under which name."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.judges import BASELINE_REMARK
from evaluations.domain.roles import RaterKind
from evaluations.formats.exported_rows import ExportedJudgeName, ExportedLabel, ExportedRaters
from evaluations.models.comparisons import Candidate, Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import ReviewerPseudonym
from evaluations.models.judges import Judge, Rater
from evaluations.models.queues import Queue
from evaluations.models.rubrics import RubricVersion, list_aspect_keys
from evaluations.models.runs import Call
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Review, Score, Span, Verdict
from evaluations.verdicts.judge_choices import AspectGroup, group_aspects
from evaluations.verdicts.label_updates import are_votes_left
from evaluations.verdicts.labels import LabelJudges, get_label_judges

MENTION_PATTERN: Final = re.compile(r"(?<![\w.@+-])@([\w.@+-]+)")


@dataclass(frozen=True)
class Pseudonyms:
    by_rater: Mapping[int, str]
    by_username: Mapping[str, str]

    def replace_mentions(self, text: str) -> str:
        """The text with a pseudonym for each @name. Names without the sign are kept."""
        names = {name.casefold(): pseudonym for name, pseudonym in self.by_username.items()}

        def rename(mention: re.Match[str]) -> str:
            name = mention[1]
            for end in range(len(name), 0, -1):
                if name[:end].casefold() in names and not name[end:].strip(".-+@"):
                    return f"@{names[name[:end].casefold()]}{name[end:]}"
            return mention[0]

        return MENTION_PATTERN.sub(rename, text)


@transaction.atomic
def assign_pseudonyms(evaluation: Evaluation) -> Pseudonyms:
    """A pseudonym for everyone who may be named; those without one get a random number now."""
    Evaluation.objects.select_for_update().get(pk=evaluation.pk)  # so that no number is given twice
    raters = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN)
    imported = list(raters.filter(user__isnull=True).values_list("pk", flat=True))
    users = dict(
        User.objects.filter(
            Q(memberships__evaluation=evaluation)
            | Q(raters__evaluation=evaluation)
            | Q(comments__comparison__evaluation=evaluation)
            | Q(adjudications__comparison__evaluation=evaluation)
        ).values_list("pk", "username")
    )
    existing = ReviewerPseudonym.objects.filter(evaluation=evaluation)
    named = {(pseudonym.user_id, pseudonym.rater_id) for pseudonym in existing}
    new = [(pk, None) for pk in users if (pk, None) not in named] + [
        (None, pk) for pk in imported if (None, pk) not in named
    ]
    secrets.SystemRandom().shuffle(new)
    first = 1 + (existing.aggregate(last=Max("number"))["last"] or 0)
    ReviewerPseudonym.objects.bulk_create(
        ReviewerPseudonym(evaluation=evaluation, user_id=user, rater_id=rater, number=number)
        for number, (user, rater) in enumerate(new, first)
    )
    pseudonyms = list(ReviewerPseudonym.objects.filter(evaluation=evaluation))
    of_user = {pseudonym.user_id: pseudonym.name for pseudonym in pseudonyms if pseudonym.user_id}
    of_rater = {pseudonym.rater_id: pseudonym.name for pseudonym in pseudonyms if pseudonym.rater_id}
    mine = raters.filter(user__isnull=False).values_list("pk", "user_id")
    return Pseudonyms(
        by_rater=of_rater | {pk: of_user[user] for pk, user in mine if user in of_user},
        by_username={name: of_user[pk] for pk, name in users.items()},
    )


LATE_REVIEWER_NAME: Final = "reviewer"  # of people who joined while an anonymized file was written

Record = TypeVar("Record")


@dataclass(frozen=True)
class AvailableData:
    """The kinds of records in the evaluation, so that empty tables are not queried for every chunk."""

    reviews: bool
    spans: bool
    comments: bool
    adjudications: bool
    words_in_files: bool  # verdicts of imports, which may have a rationale or a note
    untallied: bool  # imports whose votes are not all counted yet


@dataclass(frozen=True)
class Participants:
    """The raters that may appear in the rows, by id in the order of their names, and the aspects in page order.

    ``raters`` have the names that the file shows. ``pseudonyms`` are also those of people who commented or resolved.
    """

    evaluation: Evaluation
    aspects: Mapping[int, str]
    places: Mapping[int, str]
    raters: Mapping[int, Rater]
    candidates: Mapping[int, str]
    bench: LabelJudges
    scored: frozenset[int]
    present: AvailableData
    pseudonyms: Pseudonyms | None = None
    # A cache of the labels that judges' answers make.
    patterns: dict[object, dict[str, ExportedLabel]] = field(default_factory=dict)

    def list_names(self) -> ExportedRaters:
        names = {kind: [rater.name for rater in self.raters.values() if rater.kind == kind] for kind in RaterKind}
        return ExportedRaters(
            aspects=list(self.aspects.values()),
            people=names[RaterKind.HUMAN],
            judges=names[RaterKind.JUDGE],
            gold=names[RaterKind.GOLD],
            scored={self.raters[pk].name for pk in self.scored},
        )

    def select_raters(self, kind: RaterKind, records: Mapping[int, Record]) -> Iterator[tuple[Rater, Record]]:
        """The raters of one kind who said something, in the order of their names."""
        present = (self.raters[pk] for pk in sorted(records.keys() & self.raters.keys(), key=self.order.__getitem__))
        return ((rater, records[rater.pk]) for rater in present if rater.kind == kind)

    def get_username(self, name: str) -> str:
        return self.pseudonyms.by_username.get(name, LATE_REVIEWER_NAME) if self.pseudonyms else name

    def rename_mentions(self, text: str) -> str:
        """A comment, with mentions replaced by the names in the file."""
        return self.pseudonyms.replace_mentions(text) if self.pseudonyms else text

    @cached_property
    def archived(self) -> list[int]:
        """The raters that are archived judges, whose verdicts are not exported."""
        archived = Rater.objects.filter(evaluation=self.evaluation, judge__archived_at__isnull=False)
        return list(archived.values_list("pk", flat=True))

    @cached_property
    def judges(self) -> dict[int, Judge]:
        return {pk: rater.judge for pk, rater in self.raters.items() if rater.judge}

    @cached_property
    def groups(self) -> tuple[AspectGroup, ...]:
        return group_aspects(self.places)

    @cached_property
    def rater_of(self) -> dict[int, int]:
        """Judge id → rater id."""
        return {judge.pk: pk for pk, judge in self.judges.items()}

    @cached_property
    def introduced(self) -> dict[int, ExportedJudgeName]:
        return {pk: describe_judge(judge) for pk, judge in self.judges.items()}

    @cached_property
    def others(self) -> list[int]:
        return [pk for pk, rater in self.raters.items() if rater.kind != RaterKind.JUDGE]

    @cached_property
    def scorers(self) -> list[Rater]:
        """The judges that score single responses, or whose scores came in files."""
        return [self.raters[pk] for pk, judge in self.judges.items() if judge.is_pointwise or pk in self.scored]

    @cached_property
    def order(self) -> dict[int, int]:
        return {pk: place for place, pk in enumerate(self.raters)}

    @cached_property
    def rubrics(self) -> Mapping[int, str]:
        versions = RubricVersion.objects.filter(rubric__evaluation=self.evaluation).select_related("rubric")
        return NamesById(lambda: ((version.pk, format_rubric_name(version)) for version in versions.all()))

    @cached_property
    def people(self) -> Mapping[int, str]:
        """The names of all reviewers, including those who only skipped."""
        raters = Rater.objects.filter(evaluation=self.evaluation, kind=RaterKind.HUMAN)
        return NamesById(lambda: ((rater.pk, self.get_rater_name(rater)) for rater in raters.all()))

    def get_rater_name(self, rater: Rater) -> str:
        return self.pseudonyms.by_rater.get(rater.pk, LATE_REVIEWER_NAME) if self.pseudonyms else rater.name

    @cached_property
    def judge_names(self) -> Mapping[int, str]:
        """The names of all judges, with and without verdicts."""
        names = Judge.objects.filter(evaluation=self.evaluation).values_list("pk", "name")
        return NamesById(lambda: names.all())

    @cached_property
    def queues(self) -> Mapping[int, str]:
        names = Queue.objects.filter(evaluation=self.evaluation).values_list("pk", "name")
        return NamesById(lambda: names.all())


class NamesById(dict[int, str]):
    """Names by id, read on first use, and again for an id that was added meanwhile."""

    def __init__(self, read: Callable[[], Iterable[tuple[int, str]]]) -> None:
        super().__init__()
        self.read = read

    def __missing__(self, pk: int) -> str:
        self.update(self.read())
        return self.setdefault(pk, "")


def format_rubric_name(version: RubricVersion) -> str:
    return f"{version.rubric.name} {version.number}"


def describe_judge(judge: Judge) -> ExportedJudgeName:
    name: ExportedJudgeName = {
        "judge": judge.name,
        "kind": judge.kind,
        "model": judge.model,
        "rubric": format_rubric_name(judge.rubric_version) if judge.rubric_version else None,
    }
    if judge.is_baseline:
        name["remark"] = BASELINE_REMARK
    return name


def load_participants(
    evaluation: Evaluation, policy: LabelPolicy | None = None, pseudonyms: Pseudonyms | None = None
) -> Participants:
    """Everyone who gave a verdict or was asked for one."""
    verdicts = Verdict.objects.filter(rater=OuterRef("pk"))
    calls = Call.objects.filter(judge=OuterRef("judge"))
    scored = Score.objects.filter(rater=OuterRef("pk"), call__isnull=True)  # in reviews, or in files
    current: QuerySet[Rater] = Rater.objects.current().filter(evaluation=evaluation)
    active = current.annotate(has_scored=Exists(scored)).filter(Exists(verdicts) | Exists(calls) | Exists(scored))
    raters = list(active.select_related("judge__rubric_version__rubric"))
    for rater in raters:
        if pseudonyms and rater.kind == RaterKind.HUMAN:
            rater.name = pseudonyms.by_rater.get(rater.pk, LATE_REVIEWER_NAME)
    # Not sorted by the database, because databases sort names differently.
    by_id = {rater.pk: rater for rater in sorted(raters, key=lambda rater: (rater.name, rater.pk))}
    aspects = list_aspect_keys(evaluation)
    return Participants(
        evaluation=evaluation,
        aspects=aspects,
        places={place: aspects[pk] for place, pk in evaluation.aspects.values_list("slot", "pk") if pk in aspects},
        raters=by_id,
        candidates=NamesById(lambda: Candidate.objects.filter(evaluation=evaluation).values_list("pk", "name")),
        bench=get_label_judges(evaluation, policy),
        scored=frozenset(pk for pk, rater in by_id.items() if rater.has_scored),
        present=read_available_data(evaluation),
        pseudonyms=pseudonyms,
    )


def read_available_data(evaluation: Evaluation) -> AvailableData:
    """One query for each kind, without a join: with it, SQLite read all comparisons."""
    in_evaluation = Exists(Comparison.all_rows.filter(pk=OuterRef("comparison"), evaluation=evaluation))
    return AvailableData(
        reviews=Review.objects.filter(rater__evaluation=evaluation).exists(),
        spans=Span.objects.filter(review__rater__evaluation=evaluation).exists(),
        comments=Comment.objects.filter(in_evaluation).exists(),
        adjudications=Adjudication.objects.filter(in_evaluation).exists(),
        words_in_files=Verdict.objects.filter(source_import__evaluation=evaluation).exists(),
        untallied=are_votes_left(evaluation),
    )
