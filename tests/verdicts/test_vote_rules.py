"""Which review holds a vote is one predicate: as Python, as SQL, as arrays and in exported rows the same."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypedDict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluations.domain.reviews import ReviewState, SelectionMethod
from evaluations.domain.vote_rules import (
    BLIND_VOTES,
    COUNTED_SOMEWHERE,
    CURRENT_VOTES,
    LABEL_VOTES,
    SHOWN_ON_PAGES,
    SHOWN_VOTES,
    ReviewFacts,
    VoteRule,
    find_counted_reviews,
    find_vote_holder,
)
from evaluations.formats import preferences
from evaluations.formats.exported_rows import ExportedPerson
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.queues import QueueItem
from evaluations.models.rubrics import RubricVersion
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.models.vote_holders import holding_votes
from evaluations.stats.votes import Votes
from evaluations.verdicts.vote_arrays import (
    BLIND,
    CALIBRATION,
    DRAWN_AT_RANDOM,
    DRAWN_IN_STRATA,
    NOT_DRAWN,
    SAW_JUDGE,
    VoteArrays,
)
from evaluations.verdicts.votes import find_counted_choices
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.verdicts import get_or_make_aspect, make_next_rubric_version

A = "A"
RULES = (LABEL_VOTES, CURRENT_VOTES, BLIND_VOTES, SHOWN_VOTES, SHOWN_ON_PAGES)
VERSIONS = 4
ASPECT, OTHER = "clarity", "factuality"
REVIEWS = st.fixed_dictionaries(
    {
        "person": st.integers(0, 1),
        "comparison": st.integers(0, 1),
        "has_aspect": st.booleans(),
        "in_scores": st.booleans(),
        "state": st.sampled_from(list(ReviewState)),
        "selection_method": st.sampled_from(list(SelectionMethod)),
        "blind": st.booleans(),
        "came_by_chance": st.booleans(),
    }
)
# One review each of a person, comparison and version, as the database has it.
STUDIES = st.lists(
    st.lists(REVIEWS, max_size=4, unique_by=lambda one: (one["person"], one["comparison"])), max_size=VERSIONS
)


class Dealt(TypedDict):
    person: int
    comparison: int
    has_aspect: bool
    in_scores: bool
    state: str
    selection_method: str
    blind: bool
    came_by_chance: bool


Study = list[list[Dealt]]
Facts = dict[tuple[int, int], list[ReviewFacts]]


class Rubrics:
    """An evaluation with as many versions of a rubric as a study needs, made once."""

    def __init__(self) -> None:
        self.evaluation = make_evaluation()
        self.aspects = [get_or_make_aspect(self.evaluation, key) for key in (OTHER, ASPECT)]
        self.versions = [RubricVersion.objects.get(rubric__evaluation=self.evaluation)]
        while len(self.versions) < VERSIONS:
            self.versions.append(make_next_rubric_version(self.evaluation))


@pytest.fixture
def rubrics(db: None) -> Rubrics:
    return Rubrics()


def make_reviews(rubrics: Rubrics, study: Study) -> Facts:
    """By rater and comparison the facts of all reviews that have the aspect, told by what was dealt."""
    people = [make_human(rubrics.evaluation) for _ in range(2)]
    comparisons = [make_comparison(rubrics.evaluation) for _ in range(2)]
    made: list[tuple[Review, Dealt]] = []
    chance: set[tuple[int, int]] = set()
    for version, reviews in zip(rubrics.versions, study, strict=False):
        for one in reviews:
            comparison = comparisons[one["comparison"]]
            made.append((make_review(people[one["person"]], comparison, version, one, rubrics), one))
            if one["came_by_chance"] and (version.pk, comparison.pk) not in chance:
                chance.add((version.pk, comparison.pk))
                QueueItem.objects.create(
                    rubric_version=version, comparison=comparison, position=1, wanted=1, drawn=True
                )
    facts: Facts = defaultdict(list)
    for review, one in made:
        if one["has_aspect"]:
            drawn = one["selection_method"] in ("random", "stratified")
            drawn = drawn or (review.rubric_version_id, review.comparison_id) in chance
            facts[review.rater_id, review.comparison_id].append(
                ReviewFacts(review.pk, one["state"], one["selection_method"], one["blind"], drawn)
            )
    return facts


def make_review(rater: Rater, comparison: Comparison, version: RubricVersion, one: Dealt, rubrics: Rubrics) -> Review:
    how = {name: one[name] for name in ("state", "selection_method", "blind")}
    review = Review.objects.create(rater=rater, comparison=comparison, rubric_version=version, shown="as_stored", **how)
    about = {"rater": rater, "aspect": rubrics.aspects[one["has_aspect"]], "review": review}
    if one["in_scores"]:
        for response in (comparison.response_a, comparison.response_b):
            Score.objects.create(response=response, value=3, **about)
    else:
        Verdict.objects.create(comparison=comparison, choice=A, shown="as_stored", **about)
    return review


def find_in_words(reviews: Iterable[ReviewFacts], rule: VoteRule) -> int | None:
    """In words of its own: the newest finished one, else the newest with first choices, else practice."""
    kinds = [("final", False), ("first", False), ("final", True), ("first", True)]
    may = [one for one in reviews if rule.blind in (None, one.blind) and (one.is_drawn or not rule.is_drawn)]
    for state, is_practice in kinds[: {LABEL_VOTES: 1, SHOWN_ON_PAGES: 4}.get(rule, 2)]:
        fitting = [
            one.number for one in may if (one.state, one.selection_method == "calibration") == (state, is_practice)
        ]
        if fitting:
            return max(fitting)
    return None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(study=STUDIES)
def test_python_and_sql_name_the_same_reviews(rubrics: Rubrics, study: Study) -> None:
    facts = make_reviews(rubrics, study)
    reviews = Review.objects.filter(comparison__in={comparison for _, comparison in facts})
    for rule in RULES:
        holders = (find_vote_holder(of_one, rule) for of_one in facts.values())
        by_python = {one.number for one in holders if one is not None}
        assert by_python == {pk for of_one in facts.values() if (pk := find_in_words(of_one, rule))}
        held = holding_votes(reviews, rubrics.aspects[True], rule)
        assert by_python == set(held.values_list("pk", flat=True)), rule
    assert_exports_count(facts, rubrics)


def assert_exports_count(facts: Facts, rubrics: Rubrics) -> None:
    """What is exported choice by choice: every review that holds a vote by one of the rules, once."""
    counted = find_counted_choices({comparison for _, comparison in facts})
    for of_one in facts.values():
        due = {pk for rule in COUNTED_SOMEWHERE if (pk := find_in_words(of_one, rule))}
        told = find_counted_reviews(of_one)
        assert (set(told), len(told)) == (due, len(due))
        for one in of_one:
            if one.selection_method != SelectionMethod.CALIBRATION and one.state in ("final", "first"):
                place = counted.get_place(one.number, rubrics.aspects[True].pk)
                assert place == (told.index(one.number) if one.number in due else None)


# ---- without a database -----------------------------------------------------------------------

FACTS = st.lists(
    st.builds(
        ReviewFacts,
        number=st.integers(1, 30),
        state=st.sampled_from(["final", "first"]),
        selection_method=st.sampled_from(list(SelectionMethod)),
        blind=st.booleans(),
        is_drawn=st.just(value=True),
    ),
    max_size=6,
    unique_by=lambda one: one.number,
)
PICKED = {
    SelectionMethod.RANDOM: DRAWN_AT_RANDOM,
    SelectionMethod.STRATIFIED: DRAWN_IN_STRATA,
    SelectionMethod.CALIBRATION: CALIBRATION,
}


@given(people=st.lists(FACTS, min_size=1, max_size=3))
def test_arrays_keep_the_same_reviews(people: list[list[ReviewFacts]]) -> None:
    """Review numbers are unique in the whole database."""
    rows = [
        (
            rater,
            one._replace(number=one.number + 100 * rater, is_drawn=one.selection_method in ("random", "stratified")),
        )
        for rater, of_one in enumerate(people)
        for one in of_one
    ]
    nothing = np.zeros(len(rows), dtype=np.int64)
    arrays = VoteArrays(
        Votes(nothing, np.array([rater for rater, _ in rows], dtype=np.int64), nothing, nothing.astype(np.int8)),
        knew=np.array([BLIND if one.blind else SAW_JUDGE for _, one in rows], dtype=np.int64),
        arm=nothing,
        picked=np.array(
            [PICKED.get(SelectionMethod(one.selection_method), NOT_DRAWN) for _, one in rows], dtype=np.int64
        ),
        final=np.array([one.state == "final" for _, one in rows], dtype=np.int64),
        review=np.array([one.number for _, one in rows], dtype=np.int64),
        judge=nothing,
        day=nothing,
        active=nothing,
    )
    for rule, knew in ((BLIND_VOTES, BLIND), (SHOWN_VOTES, SAW_JUDGE)):
        held = (find_vote_holder([one for of, one in rows if of == rater], rule) for rater in range(len(people)))
        assert set(arrays.review[arrays.counted(knew)].tolist()) == {one.number for one in held if one}


@given(people=st.lists(FACTS, min_size=1, max_size=3))
def test_exported_rows_tell_the_same_reviews(people: list[list[ReviewFacts]]) -> None:
    rows = sorted((one.number, rater, one) for rater, of_one in enumerate(people) for one in of_one)
    exported: list[ExportedPerson] = [
        {  # type: ignore[typeddict-item]
            "rater": f"person {rater}",
            "rubric": "six 1",
            "state": one.state,
            "calibration": one.selection_method == SelectionMethod.CALIBRATION,
            "choices": {ASPECT: {"first": A, "final": A if one.state == "final" else None, "note": "", "reason": None}},
        }
        for _, rater, one in rows
    ]
    told = {(rows[place][1], rows[place][0]) for place in preferences.find_counted_reviews(exported).get(ASPECT, ())}
    held = {
        (rater, one.number) for rater, of_one in enumerate(people) if (one := find_vote_holder(of_one, LABEL_VOTES))
    }
    assert told == held
