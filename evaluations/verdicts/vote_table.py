"""The votes on one comparison as a table of raters by aspects."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from evaluations.domain.choices import (
    Choice,
    ConsolidatedChoice,
    ScoreRule,
    ShownOrder,
    SideScores,
    Stage,
    consolidate_orders,
)
from evaluations.domain.groups import group_values
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
    load_imported_preferences,
    load_review_scores,
    score_rules_by_rater,
)
from evaluations.verdicts.votes import get_review_facts


@dataclass(frozen=True)
class ScoredSides(SideScores):
    """A rater's mean scores on one aspect. A judge's call has the rationale, imported scores have their own."""

    weighted_a: float | None = None
    weighted_b: float | None = None
    rationale: str = ""


def load_judge_scores(comparison: Comparison) -> Mapping[Rater, Mapping[Aspect, ScoredSides]]:
    """Judge's rater → aspect → its scores, in the same few queries however many there are."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    rows = Score.objects.filter(response__in=sides, rater__kind=RaterKind.JUDGE)
    by_rater: dict[Rater, dict[Aspect, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in rows.select_related("rater__judge", "aspect").order_by("pk"):
        by_rater[score.rater][score.aspect].append(score)
    rules = score_rules_by_rater(by_rater)
    return {
        rater: {
            aspect: average_sides(scores, sides, rules.get((rater.pk, aspect.pk), ScoreRule()))
            for aspect, scores in by_aspect.items()
        }
        for rater, by_aspect in by_rater.items()
    }


@dataclass(frozen=True)
class ScoredReview:
    """A review by scores: aspect → the two numbers, first and final, and the notes."""

    review: Review
    first: Mapping[Aspect, ScoredSides]
    final: Mapping[Aspect, ScoredSides]
    notes: Mapping[Aspect, str]


def load_scored_reviews(comparison: Comparison) -> list[ScoredReview]:
    """Every review by scores, in the same few queries however many there are."""
    by_review = group_values((pair.review.number, pair) for pair in load_review_scores([comparison.pk]))
    reviews = Review.objects.select_related("rater").in_bulk(by_review)
    aspects = Aspect.objects.in_bulk({pair.aspect for pairs in by_review.values() for pair in pairs})
    scored = []
    for pk, pairs in by_review.items():
        stages: dict[Stage, dict[Aspect, ScoredSides]] = {Stage.FIRST: {}, Stage.FINAL: {}}
        for pair in pairs:
            stages[pair.stage][aspects[pair.aspect]] = ScoredSides(pair.score_a, pair.score_b, pair.rule)
        notes = {aspects[pair.aspect]: pair.note for pair in pairs if pair.note}
        scored.append(ScoredReview(reviews[pk], stages[Stage.FIRST], stages[Stage.FINAL], notes))
    return scored


@dataclass(frozen=True)
class ImportedScores:
    """The imported scores of a person or gold in one sample: both numbers by aspect."""

    rater: Rater
    scores: Mapping[Aspect, ScoredSides]


def load_imported_scores(comparison: Comparison) -> list[ImportedScores]:
    """Load the imported scores of all raters except judges, with a fixed number of queries."""
    preferences = load_imported_preferences([comparison.pk], (RaterKind.HUMAN, RaterKind.GOLD))
    raters = Rater.objects.in_bulk({pair.rater for pair in preferences})
    aspects = Aspect.objects.in_bulk({pair.aspect for pair in preferences})
    samples: dict[tuple[int, int], dict[Aspect, ScoredSides]] = defaultdict(dict)
    for pair in preferences:
        sides = ScoredSides(pair.score_a, pair.score_b, pair.rule, rationale=pair.rationale)
        samples[pair.rater, pair.sample][aspects[pair.aspect]] = sides
    return [ImportedScores(raters[rater], scores) for (rater, _), scores in samples.items()]


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


VoteHolders = Mapping[tuple[int, int], int]  # rater and aspect → the review that is shown

RATER_KIND_ORDER = (RaterKind.GOLD, RaterKind.HUMAN, RaterKind.JUDGE)


@dataclass(frozen=True)
class VoteCell:
    """One rater on one aspect. Several ``choices``: an imported rater who voted more than once.

    No choice but ``orders``: a judge that did not answer in every order it was asked in.
    ``weighted``: the mean of what the model's own probabilities say, A being 1 and B 0.
    """

    choices: tuple[Choice, ...]
    first: Choice | None = None  # the reviewer's first choice, if the final one differs
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
    answers: tuple[JudgeAnswer, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class VoteTable:
    """``cells`` and ``labels`` have the order of ``aspects``."""

    aspects: tuple[Aspect, ...]
    rows: tuple[VoteRow, ...]
    labels: tuple[DecidedLabel | None, ...]

    @property
    def rationales(self) -> list[str]:
        return [answer.rationale for row in self.rows for answer in row.answers if answer.rationale]


def build_vote_table(comparison: Comparison, *, with_judges: bool) -> VoteTable:
    """The votes of all raters on a comparison, with the labels."""
    related = Verdict.objects.filter(comparison=comparison).select_related("rater__judge", "aspect", "review", "call")
    verdicts = [row for row in related.order_by("pk") if with_judges or row.rater.kind != RaterKind.JUDGE]
    scores, scored = load_judge_scores(comparison) if with_judges else {}, load_scored_reviews(comparison)
    imported = load_imported_scores(comparison)
    calls = load_calls_on(comparison) if with_judges else []
    voted_aspects = {verdict.aspect for verdict in verdicts}.union(
        *scores.values(), *(review.first for review in scored), *(sample.scores for sample in imported)
    )
    aspects = list_table_aspects(comparison, voted_aspects)
    holders = find_shown_reviews(verdicts, scored, imported)
    rows = [
        *build_verdict_rows(verdicts, calls, aspects, holders),
        *(
            build_judge_row(rater.name, rater.judge, by_aspect, calls, aspects, comparison)
            for rater, by_aspect in scores.items()
        ),
        *build_review_score_rows(scored, aspects, holders),
        *(build_imported_score_row(sample, aspects) for sample in imported),
    ]
    silent = {call.judge for call in calls} - {row.judge for row in rows}
    rows += [build_judge_row(judge.name, judge, {}, calls, aspects, comparison) for judge in silent]
    rows.sort(key=lambda row: (RATER_KIND_ORDER.index(row.kind), row.name))
    label = decide_labels(comparison.evaluation, [comparison.pk], judges=with_judges).get(comparison.pk, {})
    return VoteTable(aspects, tuple(rows), tuple(label.get(aspect.key) for aspect in aspects))


def find_shown_reviews(
    verdicts: Iterable[Verdict], scored: Iterable[ScoredReview], imported: Iterable[ImportedScores]
) -> VoteHolders:
    """By rater and aspect the review whose choice the page shows: the one that holds the vote.

    Where a person has no vote, of a file either, it is the one that is not confirmed yet, or practice.
    """
    facts: dict[tuple[int, int], dict[int, ReviewFacts]] = defaultdict(dict)
    has_imported_vote = {(sample.rater.pk, aspect.pk) for sample in imported for aspect in sample.scores}
    for verdict in verdicts:
        if verdict.review:
            facts[verdict.rater_id, verdict.aspect_id][verdict.review.pk] = get_review_facts(verdict.review)
        else:
            has_imported_vote.add((verdict.rater_id, verdict.aspect_id))
    for row in scored:
        for aspect in row.first:
            facts[row.review.rater_id, aspect.pk][row.review.pk] = get_review_facts(row.review)
    holders = {
        subject: find_vote_holder(reviews.values(), LABEL_VOTES if subject in has_imported_vote else SHOWN_ON_PAGES)
        for subject, reviews in facts.items()
    }
    return {subject: holder.number for subject, holder in holders.items() if holder is not None}


def build_verdict_rows(
    verdicts: Iterable[Verdict], calls: Sequence[Call], aspects: Sequence[Aspect], holders: VoteHolders
) -> list[VoteRow]:
    by_rater = group_values(
        (verdict.rater, verdict)
        for verdict in verdicts
        if verdict.review_id is None or holders.get((verdict.rater_id, verdict.aspect_id)) == verdict.review_id
    )
    return [
        build_choice_row(rater, own_verdicts, [call for call in calls if call.judge == rater.judge], aspects)
        for rater, own_verdicts in by_rater.items()
    ]


def load_calls_on(comparison: Comparison) -> list[Call]:
    """The calls about the comparison, and those about one of its responses."""
    # One query each: joined by OR they would be looked for among all calls.
    calls = Call.objects.select_related("judge").order_by("response", "shown", "sample", "pk")
    sides = (comparison.response_a_id, comparison.response_b_id)
    return [*calls.filter(comparison=comparison), *calls.filter(response__in=sides)]


def list_table_aspects(comparison: Comparison, voted_aspects: set[Aspect]) -> tuple[Aspect, ...]:
    """The aspects of the current rubric, in its order, then any others with choices."""
    rows = RubricAspect.objects.filter(version=comparison.evaluation.review_rubric_id).order_by("position")
    in_rubric = [row.aspect for row in rows.select_related("aspect")]
    return (*in_rubric, *sorted(voted_aspects.difference(in_rubric), key=lambda aspect: aspect.key))


def build_choice_row(
    rater: Rater, verdicts: Sequence[Verdict], calls: Sequence[Call], aspects: Iterable[Aspect]
) -> VoteRow:
    by_aspect = group_values((verdict.aspect, verdict) for verdict in verdicts)
    orders = {ShownOrder(call.shown) for call in calls}
    cell = (lambda of_aspect: build_judge_cell(of_aspect, orders)) if rater.judge else build_reviewer_cell
    return VoteRow(
        name=rater.name,
        kind=RaterKind(rater.kind),
        judge=rater.judge,
        cells=tuple(cell(by_aspect[aspect]) if aspect in by_aspect else None for aspect in aspects),
        answers=(*list_judge_answers(calls), *list_imported_answers(verdicts)),
        notes=tuple({verdict.review.note: None for verdict in verdicts if verdict.review and verdict.review.note}),
    )


def build_judge_row(
    name: str,
    judge: Judge | None,
    scores: Mapping[Aspect, ScoredSides],
    calls: Sequence[Call],
    aspects: Iterable[Aspect],
    comparison: Comparison,
) -> VoteRow:
    """A judge that scores, whose choices are derived, or one that has given no verdict."""
    cells = tuple(build_score_cell(scores[aspect]) if aspect in scores else None for aspect in aspects)
    own_calls = [call for call in calls if call.judge == judge]
    return VoteRow(name, RaterKind.JUDGE, judge, cells, list_judge_answers(own_calls, comparison))


def build_review_score_rows(
    reviews: Iterable[ScoredReview], aspects: Iterable[Aspect], holders: VoteHolders
) -> Iterator[VoteRow]:
    """Rows of the reviews by scores that are shown: the final scores if any, and a first choice that differs."""
    for row in reviews:
        rater, notes = row.review.rater, (row.review.note,) if row.review.note else ()
        shown = {aspect for aspect in row.first if holders.get((rater.pk, aspect.pk)) == row.review.pk}
        cells = tuple(build_review_score_cell(row, aspect) if aspect in shown else None for aspect in aspects)
        if shown:
            yield VoteRow(rater.name, RaterKind.HUMAN, None, cells, notes=notes)


def build_imported_score_row(sample: ImportedScores, aspects: Iterable[Aspect]) -> VoteRow:
    scores, rater = sample.scores, sample.rater
    cells = tuple(build_score_cell(scores[aspect]) if aspect in scores else None for aspect in aspects)
    return VoteRow(rater.name, RaterKind(rater.kind), None, cells)


def build_review_score_cell(row: ScoredReview, aspect: Aspect) -> VoteCell:
    now, before = row.final.get(aspect, row.first[aspect]), row.first[aspect].choice
    cell = build_score_cell(now)
    return replace(cell, first=before if before != now.choice else None, note=row.notes.get(aspect, ""))


def build_score_cell(scored: ScoredSides) -> VoteCell:
    return VoteCell((scored.choice,) if scored.choice else (), note=scored.rationale, scored=scored)


def build_reviewer_cell(verdicts: Sequence[Verdict]) -> VoteCell:
    """The newest confirmed review of a person that has the aspect."""
    first = [Choice(verdict.choice) for verdict in verdicts if verdict.review_id and verdict.stage == Stage.FIRST]
    reviewed = [verdict for verdict in verdicts if verdict.review_id]
    final = [verdict for verdict in reviewed if verdict.stage == Stage.FINAL] or reviewed
    counted = [*(verdict for verdict in verdicts if verdict.review_id is None), *final]
    choices = tuple(Choice(verdict.choice) for verdict in counted)
    before = first[0] if first and [Choice(verdict.choice) for verdict in final] != first else None
    note = " ".join(text for verdict in counted for text in (verdict.note, verdict.rationale) if text)
    return VoteCell(choices, first=before, note=note)


def build_judge_cell(verdicts: Sequence[Verdict], orders_asked: set[ShownOrder]) -> VoteCell:
    answers = group_values(
        (ShownOrder(verdict.shown), ConsolidatedChoice(Choice(verdict.choice), verdict.inconsistent))
        for verdict in verdicts
    )
    consolidated = consolidate_orders(answers, orders_asked)
    weights = [verdict.weighted for verdict in verdicts if verdict.weighted is not None]
    return VoteCell(
        choices=(consolidated.choice,) if consolidated else (),
        inconsistent=consolidated.inconsistent if consolidated else False,
        orders=tuple((shown, answer.choice) for shown in sorted(answers) for answer in answers[shown]),
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
    answers = (
        JudgeAnswer(ShownOrder(verdict.shown), verdict.sample, rationale=verdict.rationale)
        for verdict in verdicts
        if verdict.rater.kind == RaterKind.JUDGE and verdict.call_id is None and verdict.rationale
    )
    return tuple(dict.fromkeys(answers))
