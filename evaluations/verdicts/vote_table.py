"""The votes on one comparison as a table of raters by aspects."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from statistics import fmean

from evaluations.domain.choices import Choice, ConsolidatedChoice, ScoreRule, ShownOrder, Stage, consolidate_orders
from evaluations.domain.judges import FAILURE_STATES, CallState
from evaluations.domain.roles import RaterKind
from evaluations.domain.vote_rules import LABEL_VOTES, SHOWN_ON_PAGES, ReviewFacts, find_vote_holder
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.runs import Call
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.verdicts.labels import DecidedLabel, decide_labels
from evaluations.verdicts.score_choices import (
    ImportedPreference,
    get_tie_margins,
    load_imported_preferences,
    score_rules_by_rater,
)
from evaluations.verdicts.votes import get_review_facts


@dataclass(frozen=True)
class ScoredSides:
    """A rater's mean score of each side on one aspect, with the rule that makes a choice of them."""

    score_a: float | None
    score_b: float | None
    rule: ScoreRule
    weighted_a: float | None = None
    weighted_b: float | None = None
    rationale: str = ""  # of scores that came in files; a judge's call keeps its own

    @property
    def choice(self) -> Choice | None:
        return self.rule.choice(self.score_a, self.score_b)


def load_judge_scores(comparison: Comparison) -> Mapping[Rater, Mapping[Aspect, ScoredSides]]:
    """Judge's rater → aspect → its scores, in the same few queries however many there are."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    found = Score.objects.filter(response__in=sides, rater__kind=RaterKind.JUDGE)
    given: dict[Rater, dict[Aspect, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in found.select_related("rater__judge", "aspect").order_by("pk"):
        given[score.rater][score.aspect].append(score)
    rules = score_rules_by_rater(given)
    return {
        rater: {
            aspect: average_sides(scores, sides, rules.get((rater.pk, aspect.pk), ScoreRule()))
            for aspect, scores in by_aspect.items()
        }
        for rater, by_aspect in given.items()
    }


@dataclass(frozen=True)
class ReviewScores:
    """One review by scores: aspect → the two numbers, first and final, and what was written about them."""

    review: Review
    first: Mapping[Aspect, ScoredSides]
    final: Mapping[Aspect, ScoredSides]
    notes: Mapping[Aspect, str]


def load_review_scores(comparison: Comparison) -> list[ReviewScores]:
    """Every review by scores, in the same two queries however many there are."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    found = Score.objects.filter(review__comparison=comparison).select_related("review__rater", "aspect")
    given: dict[Review, list[Score]] = defaultdict(list)
    for score in found.order_by("pk"):
        if score.review:
            given[score.review].append(score)
    margins = get_tie_margins({review.rubric_version_id for review in given}) if given else {}
    told = []
    for review, scores in given.items():
        stages: dict[str, dict[Aspect, ScoredSides]] = {stage: {} for stage in Stage}
        for stage, aspect in dict.fromkeys((score.stage, score.aspect) for score in scores):
            those = [score for score in scores if (score.stage, score.aspect) == (stage, aspect)]
            rule = ScoreRule(margins.get((review.rubric_version_id, aspect.pk), 0.0))
            stages[stage][aspect] = average_sides(those, sides, rule)
        notes = {score.aspect: score.note for score in scores if score.note}
        told.append(ReviewScores(review, stages[Stage.FIRST], stages[Stage.FINAL], notes))
    return told


@dataclass(frozen=True)
class ImportedScores:
    """The imported scores of a person or gold in one sample: both numbers by aspect."""

    rater: Rater
    scores: Mapping[Aspect, ScoredSides]


def load_imported_scores(comparison: Comparison) -> list[ImportedScores]:
    """Load the imported scores of all raters except judges, with a fixed number of queries."""
    given = load_imported_preferences([comparison.pk], (RaterKind.HUMAN, RaterKind.GOLD))
    raters = Rater.objects.in_bulk({one.rater for one in given})
    aspects = Aspect.objects.in_bulk({one.aspect for one in given})
    passes: dict[tuple[int, int], list[ImportedPreference]] = defaultdict(list)
    for one in given:
        passes[one.rater, one.sample].append(one)
    return [
        ImportedScores(
            raters[rater],
            {
                aspects[one.aspect]: ScoredSides(one.score_a, one.score_b, one.rule, None, None, one.rationale)
                for one in those
            },
        )
        for (rater, _), those in passes.items()
    ]


def average_sides(scores: Sequence[Score], sides: tuple[int, int], rule: ScoreRule) -> ScoredSides:
    of_a, of_b = ([score for score in scores if score.response_id == side] for side in sides)
    return ScoredSides(
        score_a=mean_or_none([score.value for score in of_a]),
        score_b=mean_or_none([score.value for score in of_b]),
        rule=rule,
        weighted_a=mean_or_none([score.weighted for score in of_a if score.weighted is not None]),
        weighted_b=mean_or_none([score.weighted for score in of_b if score.weighted is not None]),
        rationale=" ".join(dict.fromkeys(score.rationale for score in (*of_a, *of_b) if score.rationale)),
    )


def mean_or_none(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


Held = Mapping[tuple[int, int], int]  # rater and aspect → the review that is shown

RATER_KIND_ORDER = (RaterKind.GOLD, RaterKind.HUMAN, RaterKind.JUDGE)


@dataclass(frozen=True)
class VoteCell:
    """One rater on one aspect. Several ``choices``: an imported rater who voted more than once.

    No choice but ``orders``: a judge that did not answer in every order it was asked in.
    ``weighted``: the mean of what the model's own probabilities say, A being 1 and B 0.
    """

    choices: tuple[Choice, ...]
    first: Choice | None = None  # a person's own, where the final one differs
    inconsistent: bool = False
    orders: tuple[tuple[ShownOrder, Choice], ...] = ()
    note: str = ""
    weighted: float | None = None
    scored: ScoredSides | None = None  # of a rater that scores: what its choice was derived from


@dataclass(frozen=True)
class JudgeAnswer:
    """One call of a judge, or one imported answer, that has a rationale or a failure."""

    shown: ShownOrder
    sample: int
    state: str = ""
    rationale: str = ""
    error: str = ""
    repaired: bool = False
    call_id: int | None = None
    side: str = ""  # A or B, where it was asked about one response
    is_confirmable: bool = False

    @property
    def failed(self) -> bool:
        return self.state in FAILURE_STATES


@dataclass(frozen=True)
class VoteRow:
    name: str
    kind: RaterKind
    judge: Judge | None
    cells: tuple[VoteCell | None, ...]
    askings: tuple[JudgeAnswer, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class VoteTable:
    """``cells`` and ``labels`` have the order of ``aspects``."""

    aspects: tuple[Aspect, ...]
    rows: tuple[VoteRow, ...]
    labels: tuple[DecidedLabel | None, ...]

    @property
    def rationales(self) -> list[str]:
        return [asking.rationale for row in self.rows for asking in row.askings if asking.rationale]


def build_vote_table(comparison: Comparison, *, with_judges: bool) -> VoteTable:
    """The votes of all raters on a comparison, with the labels."""
    said = Verdict.objects.filter(comparison=comparison).select_related("rater__judge", "aspect", "review", "call")
    verdicts = [one for one in said.order_by("pk") if with_judges or one.rater.kind != RaterKind.JUDGE]
    scores, scored = load_judge_scores(comparison) if with_judges else {}, load_review_scores(comparison)
    in_files = load_imported_scores(comparison)
    calls = load_calls_on(comparison) if with_judges else []
    about = {one.aspect for one in verdicts}.union(
        *scores.values(), *(one.first for one in scored), *(one.scores for one in in_files)
    )
    aspects = list_table_aspects(comparison, about)
    held = reviews_shown(verdicts, scored, in_files)
    rows = [
        *build_verdict_rows(verdicts, calls, aspects, held),
        *(build_judge_score_row(rater, given, calls, aspects, comparison) for rater, given in scores.items()),
        *(build_review_score_row(one, aspects, held) for one in scored if is_shown(one, held)),
        *(build_imported_score_row(one, aspects) for one in in_files),
    ]
    silent = {call.judge for call in calls} - {row.judge for row in rows}
    rows += [build_unanswered_row(judge, calls, aspects, comparison) for judge in silent]
    rows.sort(key=lambda row: (RATER_KIND_ORDER.index(row.kind), row.name))
    label = decide_labels(comparison.evaluation, [comparison.pk], judges=with_judges).get(comparison.pk, {})
    return VoteTable(aspects, tuple(rows), tuple(label.get(aspect.key) for aspect in aspects))


def reviews_shown(
    verdicts: Iterable[Verdict], scored: Iterable[ReviewScores], in_files: Iterable[ImportedScores]
) -> Held:
    """By rater and aspect the review whose choice the page shows: the one that holds the vote.

    Where a person has no vote, of a file either, it is the one that is not confirmed yet, or practice.
    """
    given: dict[tuple[int, int], dict[int, ReviewFacts]] = defaultdict(dict)
    imported = {(one.rater.pk, aspect.pk) for one in in_files for aspect in one.scores}
    for verdict in verdicts:
        if verdict.review:
            given[verdict.rater_id, verdict.aspect_id][verdict.review.pk] = get_review_facts(verdict.review)
        else:
            imported.add((verdict.rater_id, verdict.aspect_id))
    for one in scored:
        for aspect in one.first:
            given[one.review.rater_id, aspect.pk][one.review.pk] = get_review_facts(one.review)
    holders = {
        subject: find_vote_holder(reviews.values(), LABEL_VOTES if subject in imported else SHOWN_ON_PAGES)
        for subject, reviews in given.items()
    }
    return {subject: one.number for subject, one in holders.items() if one is not None}


def build_verdict_rows(
    verdicts: Iterable[Verdict], calls: Sequence[Call], aspects: Sequence[Aspect], held: Held
) -> list[VoteRow]:
    by_rater: dict[Rater, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.review_id is None or held.get((verdict.rater_id, verdict.aspect_id)) == verdict.review_id:
            by_rater[verdict.rater].append(verdict)
    return [
        build_choice_row(rater, given, filter_calls_to(rater.judge, calls), aspects)
        for rater, given in by_rater.items()
    ]


def filter_calls_to(judge: Judge | None, calls: Iterable[Call]) -> list[Call]:
    return [call for call in calls if call.judge == judge]


def load_calls_on(comparison: Comparison) -> list[Call]:
    """The calls about the comparison, and those about one of its responses."""
    # One query each: joined by OR they would be looked for among all calls.
    asked = Call.objects.select_related("judge").order_by("response", "shown", "sample", "pk")
    sides = (comparison.response_a_id, comparison.response_b_id)
    return [*asked.filter(comparison=comparison), *asked.filter(response__in=sides)]


def list_table_aspects(comparison: Comparison, spoken_of: AbstractSet[Aspect]) -> tuple[Aspect, ...]:
    """The aspects of the current rubric, in its order, then any others with choices."""
    asked = RubricAspect.objects.filter(version=comparison.evaluation.review_rubric_id).order_by("position")
    in_force = {one.aspect: None for one in asked.select_related("aspect")}
    others = spoken_of - set(in_force)
    return (*in_force, *sorted(others, key=lambda aspect: aspect.key))


def build_choice_row(
    rater: Rater, verdicts: Sequence[Verdict], calls: Sequence[Call], aspects: Iterable[Aspect]
) -> VoteRow:
    by_aspect: dict[Aspect, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_aspect[verdict.aspect].append(verdict)
    orders = {ShownOrder(call.shown) for call in calls}
    cell = (lambda given: build_judge_cell(given, orders)) if rater.judge else build_reviewer_cell
    return VoteRow(
        name=rater.name,
        kind=RaterKind(rater.kind),
        judge=rater.judge,
        cells=tuple(cell(by_aspect[aspect]) if aspect in by_aspect else None for aspect in aspects),
        askings=(*list_judge_answers(calls), *list_imported_answers(verdicts)),
        notes=tuple({verdict.review.note: None for verdict in verdicts if verdict.review and verdict.review.note}),
    )


def build_judge_score_row(
    rater: Rater, given: Mapping[Aspect, ScoredSides], calls: Sequence[Call], aspects: Iterable[Aspect], of: Comparison
) -> VoteRow:
    """A judge that scores: its choices are derived."""
    cells = tuple(build_score_cell(given[aspect]) if aspect in given else None for aspect in aspects)
    return VoteRow(
        rater.name, RaterKind.JUDGE, rater.judge, cells, list_judge_answers(filter_calls_to(rater.judge, calls), of)
    )


def is_shown(one: ReviewScores, held: Held) -> bool:
    return any(held.get((one.review.rater_id, aspect.pk)) == one.review.pk for aspect in one.first)


def build_review_score_row(one: ReviewScores, aspects: Iterable[Aspect], held: Held) -> VoteRow:
    """A review by scores: the final ones where there are, and the first choice where it was another."""
    shown = {aspect for aspect in one.first if held.get((one.review.rater_id, aspect.pk)) == one.review.pk}
    cells = tuple(build_review_score_cell(one, aspect) if aspect in shown else None for aspect in aspects)
    notes = (one.review.note,) if one.review.note else ()
    return VoteRow(one.review.rater.name, RaterKind.HUMAN, None, cells, notes=notes)


def build_imported_score_row(one: ImportedScores, aspects: Iterable[Aspect]) -> VoteRow:
    """One sample of scores that came with an import."""
    cells = tuple(build_score_cell(one.scores[aspect]) if aspect in one.scores else None for aspect in aspects)
    return VoteRow(one.rater.name, RaterKind(one.rater.kind), None, cells)


def build_review_score_cell(one: ReviewScores, aspect: Aspect) -> VoteCell:
    now, before = one.final.get(aspect, one.first[aspect]), one.first[aspect].choice
    cell = build_score_cell(now)
    return replace(cell, first=before if before != now.choice else None, note=one.notes.get(aspect, ""))


def build_score_cell(scored: ScoredSides) -> VoteCell:
    return VoteCell((scored.choice,) if scored.choice else (), note=scored.rationale, scored=scored)


def build_unanswered_row(judge: Judge, calls: Sequence[Call], aspects: Sequence[Aspect], of: Comparison) -> VoteRow:
    """A judge that was asked and has given no verdict."""
    return VoteRow(
        judge.name,
        RaterKind.JUDGE,
        judge,
        (None,) * len(aspects),
        list_judge_answers(filter_calls_to(judge, calls), of),
    )


def build_reviewer_cell(verdicts: Sequence[Verdict]) -> VoteCell:
    """The newest confirmed review of a person that has the aspect."""
    first = [Choice(verdict.choice) for verdict in verdicts if verdict.review_id and verdict.stage == Stage.FIRST]
    reviewed = [verdict for verdict in verdicts if verdict.review_id]
    final = [verdict for verdict in reviewed if verdict.stage == Stage.FINAL] or reviewed
    told = [*(verdict for verdict in verdicts if verdict.review_id is None), *final]
    choices = tuple(Choice(verdict.choice) for verdict in told)
    before = first[0] if first and [Choice(verdict.choice) for verdict in final] != first else None
    note = " ".join(text for verdict in told for text in (verdict.note, verdict.rationale) if text)
    return VoteCell(choices, first=before, note=note)


def build_judge_cell(verdicts: Sequence[Verdict], orders_asked: set[ShownOrder]) -> VoteCell:
    given: dict[ShownOrder, list[ConsolidatedChoice]] = defaultdict(list)
    for verdict in verdicts:
        given[ShownOrder(verdict.shown)].append(ConsolidatedChoice(Choice(verdict.choice), verdict.inconsistent))
    folded = consolidate_orders(given, orders_asked)
    weights = [verdict.weighted for verdict in verdicts if verdict.weighted is not None]
    return VoteCell(
        choices=(folded.choice,) if folded else (),
        inconsistent=folded.inconsistent if folded else False,
        orders=tuple((shown, one.choice) for shown in sorted(given) for one in given[shown]),
        weighted=sum(weights) / len(weights) if weights else None,
    )


def list_judge_answers(calls: Iterable[Call], of: Comparison | None = None) -> tuple[JudgeAnswer, ...]:
    """The judges' answers; those about a single response name it."""
    sides = {of.response_a_id: "A", of.response_b_id: "B"} if of else {}
    return tuple(
        JudgeAnswer(
            ShownOrder(call.shown),
            call.sample,
            call.state,
            call.rationale,
            call.error,
            call.repaired,
            call.pk,
            sides.get(call.response_id or 0, ""),
            call.is_confirmable,
        )
        for call in calls
        if call.rationale or call.repaired or call.state != CallState.ANSWERED
    )


def list_imported_answers(verdicts: Iterable[Verdict]) -> tuple[JudgeAnswer, ...]:
    """The rationales of imported judges; several aspects may share one."""
    written: Mapping[JudgeAnswer, None] = {
        JudgeAnswer(ShownOrder(verdict.shown), verdict.sample, rationale=verdict.rationale): None
        for verdict in verdicts
        if verdict.rater.kind == RaterKind.JUDGE and verdict.call_id is None and verdict.rationale
    }
    return tuple(written)
