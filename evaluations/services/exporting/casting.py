"""Who may appear in an exported file and under which name, and what there is to be read of an evaluation."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import BASELINE_REMARK, LabelPolicy, RaterKind
from evaluations.formats import exported
from evaluations.models import (
    Adjudication,
    Call,
    Candidate,
    Comment,
    Comparison,
    Evaluation,
    Judge,
    Rater,
    Review,
    Round,
    RubricAspect,
    RubricVersion,
    Score,
    Span,
    Verdict,
)
from evaluations.services.exporting.aliasing import Aliases
from evaluations.services.exporting.unfolding import Group, groups_of
from evaluations.services.labelling import Bench, bench_of
from evaluations.services.reviewing.tallying import imports_left_off

NEWCOMER: Final = "reviewer"  # who joined while a file without names was written
MARGIN: Final = ("version_id", "aspect_id", "tie_margin")
Told = TypeVar("Told")


@dataclass(frozen=True)
class Present:
    """What there is to be read at all: a question that nobody answered is not asked for every chunk again."""

    reviews: bool
    spans: bool
    comments: bool
    adjudications: bool
    words_in_files: bool  # verdicts of imports, which may have a rationale or a note
    untallied: bool  # imports whose votes are not all counted yet


@dataclass(frozen=True)
class Cast:
    """Who may appear in the rows, by id in the order of their names, and the aspects in page order.

    ``raters`` bear the names that the file has: those of people may be others than their own, and ``aliases``
    says so of whoever commented or settled something.
    """

    evaluation: Evaluation
    aspects: Mapping[int, str]
    places: Mapping[int, str]
    raters: Mapping[int, Rater]
    candidates: Mapping[int, str]
    bench: Bench
    scored: frozenset[int]
    # By rubric version and aspect: within which two scores of a person make a tie.
    margins: Mapping[tuple[int, int], float]
    present: Present
    aliases: Aliases | None = None
    # The labels that judges' answers make, by the answers met so far.
    patterns: dict[object, dict[str, exported.Label]] = field(default_factory=dict)

    def names(self) -> exported.Raters:
        names = {kind: [one.name for one in self.raters.values() if one.kind == kind] for kind in RaterKind}
        return exported.Raters(
            aspects=list(self.aspects.values()),
            people=names[RaterKind.HUMAN],
            judges=names[RaterKind.JUDGE],
            gold=names[RaterKind.GOLD],
            scored={self.raters[pk].name for pk in self.scored},
        )

    def those(self, kind: RaterKind, said: Mapping[int, Told]) -> Iterator[tuple[Rater, Told]]:
        """The raters of one kind who said something, in the order of their names."""
        present = (self.raters[pk] for pk in sorted(said.keys() & self.raters.keys(), key=self.order.__getitem__))
        return ((rater, said[rater.pk]) for rater in present if rater.kind == kind)

    def username(self, name: str) -> str:
        """What whoever has this account is called in the file."""
        return self.aliases.by_username.get(name, NEWCOMER) if self.aliases else name

    def words(self, text: str) -> str:
        """A comment, with those it calls by the names that they have in the file."""
        return self.aliases.in_text(text) if self.aliases else text

    @cached_property
    def archived(self) -> list[int]:
        """The raters that are archived judges: no export has what they said."""
        archived = Rater.objects.filter(evaluation=self.evaluation, judge__archived_at__isnull=False)
        return list(archived.values_list("pk", flat=True))

    @cached_property
    def judges(self) -> dict[int, Judge]:
        return {pk: rater.judge for pk, rater in self.raters.items() if rater.judge}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        return groups_of(self.places)

    @cached_property
    def rater_of(self) -> dict[int, int]:
        """Judge id → rater id."""
        return {judge.pk: pk for pk, judge in self.judges.items()}

    @cached_property
    def introduced(self) -> dict[int, exported.JudgesName]:
        return {pk: introduced(judge) for pk, judge in self.judges.items()}

    @cached_property
    def others(self) -> list[int]:
        """The raters who are no judges."""
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
        return Named(lambda: ((one.pk, rubric_name(one)) for one in versions.all()))

    @cached_property
    def people(self) -> Mapping[int, str]:
        """Of everyone, also of those who only ever skipped."""
        known = Rater.objects.filter(evaluation=self.evaluation, kind=RaterKind.HUMAN)
        return Named(lambda: ((one.pk, self.called(one)) for one in known.all()))

    def called(self, rater: Rater) -> str:
        return self.aliases.by_rater.get(rater.pk, NEWCOMER) if self.aliases else rater.name

    @cached_property
    def judge_names(self) -> Mapping[int, str]:
        """Of every judge, asked or not: one that is to be shown may have said nothing yet."""
        known = Judge.objects.filter(evaluation=self.evaluation).values_list("pk", "name")
        return Named(lambda: known.all())

    @cached_property
    def rounds(self) -> Mapping[int, str]:
        known = Round.objects.filter(evaluation=self.evaluation).values_list("pk", "name")
        return Named(lambda: known.all())


class Named(dict[int, str]):
    """Names by id, read when one is first asked for, and again for one that came while the file is written."""

    def __init__(self, read: Callable[[], Iterable[tuple[int, str]]]) -> None:
        super().__init__()
        self.read = read

    def __missing__(self, pk: int) -> str:
        self.update(self.read())
        return self.setdefault(pk, "")


def rubric_name(version: RubricVersion) -> str:
    return f"{version.rubric.name} {version.number}"


def introduced(judge: Judge) -> exported.JudgesName:
    name: exported.JudgesName = {
        "judge": judge.name,
        "kind": judge.kind,
        "model": judge.model,
        "rubric": rubric_name(judge.rubric_version) if judge.rubric_version else None,
    }
    if judge.is_baseline:
        name["remark"] = BASELINE_REMARK
    return name


def cast_of(evaluation: Evaluation, policy: LabelPolicy | None = None, aliases: Aliases | None = None) -> Cast:
    """Everyone who gave a verdict or was asked for one. Whoever comes later waits for the next export."""
    said = Verdict.objects.filter(rater=OuterRef("pk"))
    asked = Call.objects.filter(judge=OuterRef("judge"))
    scored = Score.objects.filter(rater=OuterRef("pk"), call__isnull=True)  # in reviews, or in files
    known: QuerySet[Rater] = Rater.objects.current().filter(evaluation=evaluation)
    told = known.annotate(has_scored=Exists(scored)).filter(Exists(said) | Exists(asked) | Exists(scored))
    raters = list(told.select_related("judge__rubric_version__rubric"))
    for rater in raters:
        if aliases and rater.kind == RaterKind.HUMAN:
            rater.name = aliases.by_rater.get(rater.pk, NEWCOMER)
    # Sorted here and not by the database, whose order of letters is its own.
    those = {rater.pk: rater for rater in sorted(raters, key=lambda rater: (rater.name, rater.pk))}
    aspects = aspects_of(evaluation)
    return Cast(
        evaluation=evaluation,
        aspects=aspects,
        places={place: aspects[pk] for place, pk in evaluation.aspects.values_list("place", "pk") if pk in aspects},
        raters=those,
        candidates=Named(lambda: Candidate.objects.filter(evaluation=evaluation).values_list("pk", "name")),
        bench=bench_of(evaluation, policy),
        scored=frozenset(pk for pk, rater in those.items() if rater.has_scored),
        margins=margins_of(evaluation),
        present=what_is_there(evaluation),
        aliases=aliases,
    )


def what_is_there(evaluation: Evaluation) -> Present:
    """One question each, answered by the first row that is found.

    What was said is looked through, not the comparisons: joined, SQLite read all of these where nothing was said.
    """
    of_here = Exists(Comparison.all_rows.filter(pk=OuterRef("comparison"), evaluation=evaluation))
    return Present(
        reviews=Review.objects.filter(rater__evaluation=evaluation).exists(),
        spans=Span.objects.filter(review__rater__evaluation=evaluation).exists(),
        comments=Comment.objects.filter(of_here).exists(),
        adjudications=Adjudication.objects.filter(of_here).exists(),
        words_in_files=Verdict.objects.filter(source_import__evaluation=evaluation).exists(),
        untallied=bool(imports_left_off(evaluation)),
    )


def margins_of(evaluation: Evaluation) -> dict[tuple[int, int], float]:
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).order_by()
    return {(version, aspect): margin for version, aspect, margin in rows.values_list(*MARGIN)}


def aspects_of(evaluation: Evaluation) -> dict[int, str]:
    """The aspects of the rubric that people review by, in page order, then the others by key."""
    asked = RubricAspect.objects.filter(version=evaluation.review_rubric_id).order_by("position")
    others = sorted(evaluation.aspects.values_list("key", "pk"))
    return {**dict(asked.values_list("aspect_id", "aspect__key")), **{pk: key for key, pk in others}}
