"""Studies dealt out at random: what everyone said as plain data, and the same in the database."""

import random
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import SelectionMethod
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Call
from evaluations.models.verdicts import Adjudication, Verdict
from evaluations.rubrics.services import create_next_version
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_user
from tests.factories.verdicts import (
    get_or_make_aspect,
    get_or_make_run,
    make_imported_votes,
    make_judge_rater,
    make_judge_score,
    make_review,
    make_scored_review,
    make_scoring_judge,
    repack_votes_of,
)

STYLE, FACTS = "clarity", "factuality"  # two aspects of the built-in rubric
ASPECTS: Final = (STYLE, FACTS)
ALONE: Final = "overall"  # what the judge of single responses is asked about
PEOPLE: Final = ("ann", "ben", "eve")
STRANGER: Final = "old"  # who came with a file
CHOICES: Final = tuple(Choice)
SCALE: Final = (1, 2, 3, 4, 5)
FAILURES: Final = (CallState.UNREADABLE, CallState.REFUSED, CallState.TOO_LONG)
ORDERS: Final = ("as_stored", "swapped")
SCORES: Final = 0  # the rubric that asks for scores; the others are versions of one rubric that asks for choices
# What each rubric asks about: the second version drops an aspect.
ASKED: Final = {SCORES: ASPECTS, 1: ASPECTS, 2: (STYLE,), 3: ASPECTS}
MARGIN: Final = 0.5

Pair = tuple[Choice, Choice]  # first and final
Numbers = tuple[float, float]  # of A and of B


@dataclass(frozen=True)
class Pass:
    """One review. ``choices`` or ``scores``: by aspect what was said first and finally."""

    person: str
    rubric: int
    choices: dict[str, Pair] = field(default_factory=dict)
    scores: dict[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    confirmed: bool = True
    blind: bool = True
    selection_method: SelectionMethod = SelectionMethod.RANDOM


@dataclass(frozen=True)
class Asked:
    """One call of the judge that is asked about both responses: its choices by aspect, or how it failed."""

    shown: str
    sample: int
    choices: dict[str, Choice] | CallState


@dataclass(frozen=True)
class Case:
    """Everything that was said of one comparison, reviews in the order of their making.

    ``brought``: the votes of a person that came with a file, a sample each; who that is may have reviewed it too.
    ``graded``: a judge's scores of A and of B, by sample. ``settled``: what an adjudicator decided, by aspect.
    """

    key: str
    passes: tuple[Pass, ...] = ()
    brought: tuple[dict[str, Choice], ...] = ()
    brought_by: str = STRANGER
    asked: tuple[Asked, ...] = ()
    graded: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    settled: dict[str, Choice] = field(default_factory=dict)


# ---- dealing ----------------------------------------------------------------------------------


def deal_case(rng: random.Random, key: str) -> Case:
    passes = [one for rubric in rng.sample(sorted(ASKED), len(ASKED)) for one in deal_passes(rng, rubric)]
    brought = tuple({aspect: rng.choice(CHOICES) for aspect in ASPECTS} for _ in range(rng.choice([0, 0, 1, 2])))
    graded = tuple(tuple(rng.choice(SCALE) for _ in range(rng.randint(0, 2))) for _ in "AB")
    return Case(
        key,
        tuple(passes),
        brought,
        rng.choice([STRANGER, *PEOPLE]),
        tuple(deal_calls(rng)),
        (graded[0], graded[1]),
        {aspect: rng.choice(CHOICES) for aspect in ASPECTS if rng.random() < 0.15},
    )


def deal_passes(rng: random.Random, rubric: int) -> list[Pass]:
    """Who reviewed by this rubric, in what order."""
    people = [person for person in PEOPLE if rng.random() < 0.4]
    rng.shuffle(people)
    return [deal_pass(rng, person, rubric) for person in people]


def deal_pass(rng: random.Random, person: str, rubric: int) -> Pass:
    one = Pass(
        person,
        rubric,
        confirmed=rubric == SCORES or rng.random() < 0.75,
        blind=rng.random() < 0.6,
        selection_method=rng.choice(
            [
                SelectionMethod.RANDOM,
                SelectionMethod.RANDOM,
                SelectionMethod.RANDOM,
                SelectionMethod.BY_HAND,
                SelectionMethod.CALIBRATION,
            ]
        ),
    )
    if rubric == SCORES:
        return replace(one, scores={aspect: (deal_numbers(rng), deal_numbers(rng)) for aspect in ASKED[rubric]})
    return replace(one, choices={aspect: (rng.choice(CHOICES), rng.choice(CHOICES)) for aspect in ASKED[rubric]})


def deal_numbers(rng: random.Random) -> Numbers:
    return rng.choice(SCALE), rng.choice(SCALE)


def deal_calls(rng: random.Random) -> list[Asked]:
    if rng.random() < 0.15:
        return []
    samples = rng.randint(1, 3)
    return [
        Asked(
            shown,
            sample,
            rng.choice(FAILURES) if rng.random() < 0.25 else {aspect: rng.choice(CHOICES) for aspect in ASPECTS},
        )
        for shown in ORDERS
        for sample in range(samples)
    ]


# ---- into the database ------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    evaluation: Evaluation
    comparisons: dict[str, Comparison]
    judge: Rater
    scorer: Rater


def make_study(cases: list[Case], slug: str = "study") -> Made:
    evaluation = make_evaluation(slug=slug)
    versions = make_versions(evaluation)
    people = {name: make_human(evaluation, name) for name in PEOPLE}
    judge, scorer = (
        make_judge_rater(evaluation, "gpt", kind="llm"),
        make_scoring_judge(evaluation, "grader", margin=MARGIN),
    )
    ada = make_user(f"ada-{slug}")
    made = Made(evaluation, {}, judge, scorer)
    for case in cases:
        made.comparisons[case.key] = comparison = make_comparison(evaluation, key=case.key)
        for one in case.passes:
            review_once(people[one.person], comparison, one, versions)
        for sample, choices in enumerate(case.brought):
            make_imported_votes(comparison, case.brought_by, choices, sample=sample)
        for call in case.asked:
            answer_once(judge, comparison, call)
        for response, values in zip((comparison.response_a, comparison.response_b), case.graded, strict=True):
            for sample, value in enumerate(values):
                make_judge_score(scorer, response, value, aspect=ALONE, sample=sample)
        for aspect, choice in case.settled.items():
            about = get_or_make_aspect(evaluation, aspect)
            Adjudication.objects.create(comparison=comparison, aspect=about, user=ada, choice=choice, reason="So.")
        repack_votes_of(comparison)
    update_labels(comparison.pk for comparison in made.comparisons.values())
    return made


def make_versions(evaluation: Evaluation) -> dict[int, RubricVersion]:
    """The versions that ask for choices, the newest in force."""
    first = evaluation.review_rubric
    assert first is not None
    asks_more = replace(first.spec(), instructions="Choose again.")
    aspects = tuple(one for one in asks_more.aspects if one.key != FACTS)
    order = tuple(key for key in asks_more.output_order if key != FACTS)
    second = create_next_version(first.rubric, replace(asks_more, aspects=aspects, output_order=order), user=None)
    third = create_next_version(first.rubric, replace(asks_more, instructions="Choose once more."), user=None)
    change_evaluation(evaluation, {"review_rubric": third}, user=None)
    return {1: first, 2: second, 3: third}


def review_once(rater: Rater, comparison: Comparison, one: Pass, versions: dict[int, RubricVersion]) -> None:
    how: dict[str, Any] = {"blind": one.blind, "selection_method": one.selection_method, "judge_first": not one.blind}
    if one.rubric == SCORES:
        first, final = ({aspect: pair[stage] for aspect, pair in one.scores.items()} for stage in (0, 1))
        make_scored_review(rater, comparison, first, final=final, **how)
        return
    first_choices, final_choices = ({aspect: pair[at] for aspect, pair in one.choices.items()} for at in (0, 1))
    version = versions[one.rubric]
    make_review(
        rater,
        comparison,
        first_choices,
        final=final_choices,
        confirmed=one.confirmed,
        rubric_version=version,
        **how,
    )


def answer_once(rater: Rater, comparison: Comparison, one: Asked) -> None:
    assert rater.judge is not None
    about = {"comparison": comparison, "shown": one.shown, "sample": one.sample}
    choices = {} if isinstance(one.choices, CallState) else one.choices
    state = one.choices if isinstance(one.choices, CallState) else CallState.ANSWERED
    call = Call.objects.create(judge=rater.judge, run=get_or_make_run(rater.judge), state=state, **about)
    for aspect, choice in choices.items():
        subject = get_or_make_aspect(comparison.evaluation, aspect)
        Verdict.objects.create(rater=rater, aspect=subject, choice=choice, call=call, **about)
