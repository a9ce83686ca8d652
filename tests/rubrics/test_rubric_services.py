"""Setting up a study: what the services refuse, and what they leave in the record."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import CURRENT_LAYOUT, FIRST_LAYOUT, AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive, take_from_archive
from evaluations.judge_prompts.builtin_rubrics import BUILTIN_RUBRICS, QA_PAIRWISE, SIX_ASPECT, SUMMARY_RATING
from evaluations.members.services import remove_member, set_role
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.rubrics import Aspect, Rubric
from evaluations.overview.services import create_evaluation
from evaluations.rubrics.services import create_builtin_rubric, create_next_version, create_rubric, hash_rubric
from tests.factories.evaluations import make_evaluation, make_user
from tests.helpers.rubric_specs import FIRST_SIX_ASPECT, guess_document_rubrics

pytestmark = pytest.mark.django_db

TONE = AspectSpec("tone", "Tone", "Whether it is friendly.")


def six_aspect(evaluation: Evaluation) -> Rubric:
    return Rubric.objects.get(evaluation=evaluation, name="six-aspect")


def newest_event(evaluation: Evaluation) -> Event:
    return Event.objects.filter(evaluation=evaluation).latest("pk")


def test_a_new_evaluation_begins_with_the_six_aspects_and_its_owner() -> None:
    owner = make_user("ada")
    evaluation = create_evaluation(slug="first", name="First", owner=owner, by=None)
    assert evaluation.review_rubric is not None
    assert [aspect.name for aspect in evaluation.review_rubric.spec().aspects] == [
        "Helpfulness",
        "Factuality",
        "Clarity",
        "Depth",
        "Engagement",
        "Safety",
    ]
    assert evaluation.memberships.get().role == Role.OWNER


@pytest.mark.parametrize("slug", ["", "Two Words", "späth", "a" * 81])
def test_an_address_that_is_none_is_refused(slug: str) -> None:
    with pytest.raises(InputRefused):
        create_evaluation(slug=slug, name="Name", owner=None, by=None)
    assert not Evaluation.objects.exists()


def test_an_address_is_given_once() -> None:
    make_evaluation(slug="taken")
    with pytest.raises(InputRefused, match="“taken” is taken"):
        create_evaluation(slug="taken", name="Other", owner=None, by=None)


def test_an_edit_makes_the_next_version_and_leaves_the_one_before_as_it_was() -> None:
    rubric = six_aspect(make_evaluation())
    second = create_next_version(rubric, replace(SIX_ASPECT, instructions="Be brief."), user=None)
    assert second.number == 2
    first = rubric.versions.get(number=1)
    assert first.spec() == SIX_ASPECT
    assert second.spec() == replace(SIX_ASPECT, instructions="Be brief.")


def test_a_version_without_a_change_is_refused() -> None:
    rubric = six_aspect(make_evaluation())
    with pytest.raises(InputRefused, match="Nothing changed"):
        create_next_version(rubric, SIX_ASPECT, user=None)


def test_a_version_shares_the_aspects_that_are_known_and_adds_the_others() -> None:
    evaluation = make_evaluation()
    spec = replace(SIX_ASPECT, aspects=(SIX_ASPECT.aspects[0], TONE), output_order=("tone", "helpfulness"))
    version = create_next_version(six_aspect(evaluation), spec, user=None)
    assert version.spec().output_order == ("tone", "helpfulness")
    assert Aspect.objects.filter(evaluation=evaluation).count() == 7


def test_a_version_cannot_rename_an_aspect() -> None:
    renamed = (replace(SIX_ASPECT.aspects[0], name="Usefulness"), *SIX_ASPECT.aspects[1:])
    with pytest.raises(InputRefused, match="“helpfulness” is already named “Helpfulness”"):
        create_next_version(six_aspect(make_evaluation()), replace(SIX_ASPECT, aspects=renamed), user=None)


def test_a_version_that_no_judge_could_be_asked_by_is_refused() -> None:
    pasted = replace(SIX_ASPECT, instructions="Compare {one} and {two}.", placeholders={"{one}": "response_a"})
    with pytest.raises(InputRefused, match=r"\{two\}"):
        create_next_version(six_aspect(make_evaluation()), pasted, user=None)


def test_people_are_asked_by_the_new_version_only_where_that_was_wanted() -> None:
    evaluation = make_evaluation()
    rubric = six_aspect(evaluation)
    create_next_version(rubric, replace(SIX_ASPECT, instructions="Two."), user=None)
    evaluation.refresh_from_db()
    assert evaluation.review_rubric is not None
    assert evaluation.review_rubric.number == 1
    create_next_version(rubric, replace(SIX_ASPECT, instructions="Three."), user=None, for_reviews=True)
    evaluation.refresh_from_db()
    assert evaluation.review_rubric.number == 3


def test_a_change_is_recorded_with_what_was_before() -> None:
    user = make_user()
    evaluation = make_evaluation(user)
    change_evaluation(evaluation, {"name": "New", "reveal": Reveal.NEVER.value, "description": ""}, user=user)
    event = newest_event(evaluation)
    assert event.user == user
    assert event.before == {"name": f"Study {evaluation.slug}", "reveal": "blind"}
    assert event.after == {"name": "New", "reveal": "never"}


def test_what_stays_the_same_leaves_no_trace() -> None:
    evaluation = make_evaluation()
    before = newest_event(evaluation)
    change_evaluation(evaluation, {"name": evaluation.name, "review_rubric": evaluation.review_rubric}, user=None)
    assert newest_event(evaluation) == before


def test_a_row_is_recorded_by_name_and_number() -> None:
    evaluation = make_evaluation()
    old = evaluation.review_rubric
    assert old is not None
    version = create_next_version(
        six_aspect(evaluation), replace(SIX_ASPECT, instructions="Two."), user=None, for_reviews=True
    )
    event = newest_event(evaluation)
    assert event.before == {"review_rubric": f"six-aspect 1 ({old.pk})"}
    assert event.after == {"review_rubric": f"six-aspect 2 ({version.pk})"}


def test_archiving_twice_keeps_the_first_time_and_bringing_back_undoes_it() -> None:
    evaluation = make_evaluation()
    first = move_to_archive(evaluation, user=None).archived_at
    assert first is not None
    assert move_to_archive(evaluation, user=None).archived_at == first
    assert Evaluation.objects.archived().get() == evaluation
    take_from_archive(evaluation, user=None)
    assert Evaluation.objects.current().get() == evaluation


def test_the_last_owner_stays_one() -> None:
    owner = make_user()
    evaluation = make_evaluation(owner)
    with pytest.raises(InputRefused, match="needs an owner"):
        set_role(evaluation, owner, Role.VIEWER, by=owner)
    with pytest.raises(InputRefused, match="needs an owner"):
        remove_member(evaluation.memberships.get(), by=owner)


def test_a_role_is_recorded_with_the_name_of_the_person() -> None:
    evaluation = make_evaluation()
    membership = set_role(evaluation, make_user("grace"), Role.REVIEWER, by=None)
    assert newest_event(evaluation).after == {"person": "grace", "role": "reviewer"}
    remove_member(membership, by=None)
    assert newest_event(evaluation).before == {"person": "grace", "role": "reviewer"}


# ---- built-in rubrics ----------------------------------------------------------------------


def test_the_sums_of_versions_that_exist_stay_what_they_were() -> None:
    # All computed before rubrics had a layout, the last two before they had scales with meanings and keys of replies.
    labels = {"A": "Output (a)", "B": "Output (b)"}
    overall = AspectSpec("overall", "Overall", "Which is better?", offers_tie=False, labels=labels)
    places = {"{q}": "query", "{x}": "response_a", "{y}": "response_b"}
    pasted = RubricSpec(
        RubricKind.PAIRWISE, "Q: {q} {x} {y}", (overall,), ("overall",), places, answer_format="text:^(.*)$"
    )
    assert hash_rubric(FIRST_SIX_ASPECT) == "67fd5aba2145bb14ae36e62b15002ff6e2d8f96d0040a836374f47952c5bcde7"
    assert hash_rubric(pasted) == "6f85440617dea1769ea2ba8fffcccdb93b21ce3800c2a9070c603a973a83ff7e"


def test_whatever_a_rubric_says_anew_gives_another_sum() -> None:
    (overall,) = SUMMARY_RATING.aspects
    others = [
        replace(SUMMARY_RATING, rationale_key="why"),
        replace(SUMMARY_RATING, choices_key="choices"),
        replace(SUMMARY_RATING, aspects=(replace(overall, tie_margin=0.5),)),
        replace(SUMMARY_RATING, aspects=(replace(overall, reply_key=""),)),
        replace(SUMMARY_RATING, aspects=(replace(overall, scale_labels={}),)),
    ]
    others.append(replace(SUMMARY_RATING, layout=FIRST_LAYOUT))
    assert len({hash_rubric(spec) for spec in (SUMMARY_RATING, *others)}) == 7


def test_the_same_words_in_the_current_layout_are_another_version_and_a_pasted_prompt_has_no_layout() -> None:
    rubric = make_evaluation().review_rubric.rubric  # type: ignore[union-attr]
    first = create_next_version(rubric, FIRST_SIX_ASPECT, user=None)
    assert first.spec().layout == FIRST_LAYOUT
    assert create_next_version(rubric, replace(FIRST_SIX_ASPECT, layout=CURRENT_LAYOUT), user=None).number == 3
    places = {"{x}": "response_a", "{y}": "response_b"}
    pasted = replace(FIRST_SIX_ASPECT, instructions="{x} {y}", placeholders=places)
    create_next_version(rubric, pasted, user=None)
    with pytest.raises(InputRefused, match="Nothing changed"):
        create_next_version(rubric, replace(pasted, layout=CURRENT_LAYOUT), user=None)


def test_the_reference_metric_has_two_worked_examples_that_others_can_take_the_place_of() -> None:
    evaluation = make_evaluation()
    own = [{"output": "Four.", "reasoning": "Right.", "score": 1.0}]
    assert len(create_builtin_rubric(evaluation, builtin="reference-metric", user=None).few_shot) == 2
    metric: dict[str, Any] = {"metric": "Tone", "few_shot": own}
    assert create_builtin_rubric(evaluation, builtin="reference-metric", user=None, **metric).few_shot == own


@pytest.mark.parametrize("name", BUILTIN_RUBRICS)
def test_a_built_in_rubric_comes_back_from_the_database_as_it_is(name: str) -> None:
    evaluation = make_evaluation()
    version = create_builtin_rubric(evaluation, builtin=name, name="added", user=None)
    assert version.spec() == BUILTIN_RUBRICS[name]
    with pytest.raises(InputRefused, match="Nothing changed"):
        create_next_version(version.rubric, version.spec(), user=None)


def test_a_metric_is_called_by_its_name_and_an_evaluation_may_have_several() -> None:
    evaluation = make_evaluation()
    examples = [{"output": "Four.", "reasoning": "Right.", "score": 1.0}]
    metric: dict[str, Any] = {"metric": "Faithfulness", "reason_key": "why", "few_shot": examples}
    first = create_builtin_rubric(evaluation, builtin="reference-metric", user=None, **metric)
    second = create_builtin_rubric(evaluation, builtin="reference-metric", user=None)
    assert [version.rubric.name for version in (first, second)] == ["Faithfulness", "reference-metric"]
    spec = first.spec()
    assert (spec.aspects[0].key, spec.aspects[0].reply_key, spec.rationale_key) == (
        "faithfulness",
        "Faithfulness",
        "why",
    )
    assert list(spec.few_shot) == examples


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("none", {}, "no template"),
        ("qa-pairwise", {"metric": "tone"}, "Only the reference metric"),
        ("reference-metric", {"metric": "why", "reason_key": "Why"}, "used for two parts"),
        ("six-aspect", {}, "already"),
        ("qa-pairwise", {"name": "x" * 121}, "up to 120"),
        ("summary-rating", {"few_shot": [{"output": "x", "score": 7}]}, "Example 1 needs a verdict"),
    ],
)
def test_a_built_in_rubric_that_cannot_begin_is_refused(name: str, options: dict[str, Any], problem: str) -> None:
    evaluation = make_evaluation()
    with pytest.raises(InputRefused, match=problem):
        create_builtin_rubric(evaluation, builtin=name, user=None, **options)
    assert Rubric.objects.filter(evaluation=evaluation).count() == 1


def test_an_aspect_of_a_built_in_rubric_keeps_the_name_that_it_has_in_the_evaluation() -> None:
    evaluation = make_evaluation()
    Aspect.objects.create(evaluation=evaluation, key="overall", name="All in all")
    assert create_builtin_rubric(evaluation, builtin="qa-pairwise", user=None).spec().aspects[0].name == "All in all"
    with pytest.raises(InputRefused, match="“overall” is already named “All in all”"):
        create_rubric(evaluation, name="mine", spec=QA_PAIRWISE, origin=RubricOrigin.OWN, user=None)


@pytest.mark.data
def test_the_documents_that_people_brought_are_stored_as_rubrics_and_come_back_as_they_are(
    acceptance_data: Path,
) -> None:
    evaluation = make_evaluation()
    documents = sorted((acceptance_data.parent / "seeds").glob("*.txt"))
    for place, document in enumerate(documents):
        for name, spec in guess_document_rubrics(document.read_text()):
            own = RubricOrigin.OWN
            version = create_rubric(evaluation, name=f"{name} {place}", spec=spec, origin=own, user=None)
            assert version.spec() == spec
    assert Rubric.objects.filter(evaluation=evaluation, origin=RubricOrigin.OWN).count() == 4


def test_an_evaluation_begins_with_a_built_in_rubric_that_compares_or_one_that_scores() -> None:
    for name in ("qa-pairwise", "summary-rating", "reference-metric"):
        begun = create_evaluation(slug=name, name="QA", owner=None, by=None, rubric=name).review_rubric
        assert begun is not None
        assert begun.rubric.name == name


def test_people_can_be_asked_by_a_rubric_that_scores_single_responses() -> None:
    evaluation = make_evaluation()
    rating = create_builtin_rubric(evaluation, builtin="summary-rating", user=None)
    change_evaluation(evaluation, {"review_rubric": rating}, user=None)
    edited = replace(SUMMARY_RATING, instructions="Rate.")
    version = create_next_version(rating.rubric, edited, user=None, for_reviews=True)
    evaluation.refresh_from_db()
    assert evaluation.review_rubric == version


def test_a_rubric_stays_of_its_kind() -> None:
    with pytest.raises(InputRefused, match=r"is a pairwise rubric. Create a new rubric"):
        create_next_version(six_aspect(make_evaluation()), SUMMARY_RATING, user=None)


@pytest.mark.django_db(transaction=True)
def test_rubrics_that_are_written_at_once_give_each_new_aspect_a_place_of_its_own() -> None:
    evaluation = make_evaluation()
    together = threading.Barrier(6)

    def write(number: int) -> None:
        asked = (TONE, AspectSpec(f"only-{number}", f"Only {number}", "Whether it is."))
        spec = RubricSpec(RubricKind.PAIRWISE, "Compare.", asked, tuple(one.key for one in asked))
        try:
            together.wait()
            create_rubric(evaluation, name=f"rubric {number}", spec=spec, origin=RubricOrigin.OWN, user=None)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))
    places = Aspect.objects.filter(evaluation=evaluation).values_list("slot", flat=True)
    assert sorted(places) == list(range(6 + 1 + 6))
