"""The line of disagreements: in words, filtered by its address, and only for who may see them."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.disagreements.services import add_comment, resolve_aspect
from evaluations.domain.choices import Choice
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.reviews import DifferenceReason, Reveal
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.comparisons import Candidate, Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Verdict
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.verdicts import get_or_make_aspect, make_judge_rater, make_judge_verdicts, make_review

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture
def as_owner(client: Client, evaluation: Evaluation) -> Client:
    client.force_login(User.objects.get(username="olive"))
    return client


def voted(evaluation: Evaluation, *choices: Choice, aspect: str = "clarity", **columns: object) -> Comparison:
    comparison = make_comparison(evaluation, **columns)  # type: ignore[arg-type]
    for choice in choices:
        make_review(make_human(evaluation), comparison, {aspect: choice})
    update_labels([comparison.pk])
    return comparison


def page(client: Client, status: int = 200, **query: object) -> str:
    answer = client.get(reverse("disagreements", args=["study"], query=query))
    assert answer.status_code == status
    return answer.content.decode()


def listed(text: str) -> list[int]:
    rows = text[text.index('id="list"') :]
    return [int(pk) for pk in re.findall(r'href="/e/study/review/disagreements/(\d+)[?"]', rows)]


def words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_the_empty_line_says_when_people_differ(as_owner: Client) -> None:
    text = page(as_owner)
    assert "No open disagreements" in text
    assert reverse("evaluation_settings", args=["study"]) in text
    assert "Nothing resolved yet" in page(as_owner, state="resolved")
    assert "No matching disagreements" in page(as_owner, mine="on")


def test_a_row_says_in_words_what_differs(as_owner: Client, evaluation: Evaluation) -> None:
    comparison = voted(evaluation, A, A, TIE)
    change_evaluation(
        evaluation, {"shown_judge": make_judge_rater(evaluation).judge, "resolve_judge_disagreements": True}, user=None
    )
    make_judge_verdicts(comparison, as_stored={"clarity": B}, swapped={"clarity": B})
    text = page(as_owner)
    assert listed(text) == [comparison.pk]
    assert "Clarity: A A tie judge B" in words(text)
    assert "A alpha B beta" in words(text)


def test_every_filter_stands_in_the_address_and_goes_along(as_owner: Client, evaluation: Evaluation) -> None:
    clear = voted(evaluation, A, B)
    deep = voted(evaluation, A, B, aspect="depth", candidates=("alpha", "gamma"))
    judged = voted(evaluation, A)
    change_evaluation(
        evaluation, {"shown_judge": make_judge_rater(evaluation).judge, "resolve_judge_disagreements": True}, user=None
    )
    make_judge_verdicts(judged, as_stored={"clarity": B})
    Verdict.objects.filter(comparison=deep, stage="final", choice=A).update(reason=DifferenceReason.POSITION)
    add_comment(deep, "@olive", aspect=None, user=make_user(), readers=[User.objects.get(username="olive")])
    alpha, gamma = (Candidate.objects.get(name=name).pk for name in ("alpha", "gamma"))
    assert listed(page(as_owner)) == [clear.pk, deep.pk, judged.pk]
    for query, due in (
        ({"aspect": "clarity"}, [clear.pk, judged.pk]),
        ({"kind": "reviewers"}, [clear.pk, deep.pk]),
        ({"kind": "judge"}, [judged.pk]),
        ({"judge": make_judge_rater(evaluation).pk}, [judged.pk]),
        ({"reason": "position"}, [deep.pk]),
        ({"candidate": gamma, "other": alpha}, [deep.pk]),
        ({"mine": "on"}, [deep.pk]),
    ):
        text = page(as_owner, **query)
        assert listed(text) == due, query
        name, value = next(iter(query.items()))
        assert f"{name}={value}" in re.findall(r'href="/e/study/review/disagreements/\d+\?([^"]+)"', text)[0]


def test_what_was_resolved_stands_under_a_heading_of_its_own(as_owner: Client, evaluation: Evaluation) -> None:
    comparison = voted(evaluation, A, B)
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")
    resolve_aspect(comparison, get_or_make_aspect(evaluation, "clarity"), choice=B, reason="So.", version=0, user=ada)
    assert listed(page(as_owner)) == []
    assert "resolved as B by ada" in words(page(as_owner, state="resolved"))


@pytest.mark.parametrize("query", [{"aspect": "x"}, {"judge": 10**30}, {"reason": "x"}, {"kind": "x"}])
def test_a_filter_that_cannot_be_says_so(as_owner: Client, evaluation: Evaluation, query: dict[str, object]) -> None:
    change_evaluation(evaluation, {"resolve_judge_disagreements": True}, user=None)
    assert 'class="error"' in page(as_owner, 422, **query)


def test_a_judge_is_no_part_of_what_people_differ_on(as_owner: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"resolve_judge_disagreements": True}, user=None)
    assert "Choose another type" in page(as_owner, 422, kind="reviewers", judge=make_judge_rater(evaluation).pk)


def test_a_reviewer_sees_what_they_have_reviewed_and_no_names_of_others(client: Client, evaluation: Evaluation) -> None:
    rita = make_member(evaluation, Role.REVIEWER, "rita")
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="rita", user=rita)
    mine = voted(evaluation, A, query="What I have read")
    voted(evaluation, A, B, query="What I have not", candidates=("gamma", "delta"))
    make_review(rater, mine, {"clarity": B})
    update_labels([mine.pk])
    client.force_login(rita)
    text = page(client)
    assert listed(text) == [mine.pk]
    assert "What I have not" not in text
    assert "gamma" not in text
    assert Event.objects.get(verb=SAW_VERDICTS).object_id == mine.pk


def test_where_judges_are_never_shown_a_reviewer_finds_none_here(client: Client, evaluation: Evaluation) -> None:
    rita = make_member(evaluation, Role.REVIEWER, "rita")
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="rita", user=rita)
    judge = make_judge_rater(evaluation)
    change_evaluation(
        evaluation, {"shown_judge": judge.judge, "resolve_judge_disagreements": True, "reveal": Reveal.NEVER}, user=None
    )
    comparison = make_comparison(evaluation)
    make_review(rater, comparison, {"clarity": A})
    update_labels([comparison.pk])
    make_judge_verdicts(comparison, as_stored={"clarity": B})
    client.force_login(rita)
    assert listed(page(client)) == []
    assert listed(page(client, judge=judge.pk)) == []
    client.force_login(User.objects.get(username="olive"))
    assert listed(page(client)) == [comparison.pk]


def test_who_reads_the_line_and_may_review_is_no_longer_blind(client: Client, evaluation: Evaluation) -> None:
    comparison = voted(evaluation, A, B)
    viewer, ada = make_member(evaluation, Role.VIEWER), make_member(evaluation, Role.ADJUDICATOR)
    for user in (viewer, ada):
        client.force_login(user)
        page(client)
    seen = Event.objects.get(verb=SAW_VERDICTS)
    assert (seen.user, seen.object_id) == (ada, comparison.pk)


def test_pages_follow_each_other_without_a_gap_and_keep_the_filter(as_owner: Client, evaluation: Evaluation) -> None:
    due = [voted(evaluation, A, B).pk for _ in range(53)]
    first = page(as_owner, aspect="clarity")
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following
    assert "aspect=clarity" in following.group(1)
    address = reverse("disagreements", args=["study"]) + following.group(1).replace("&amp;", "&")
    second = as_owner.get(address).content.decode()
    assert listed(first) + listed(second) == due
    assert 'rel="next"' not in second


def test_it_costs_the_same_however_many_differ(as_owner: Client, evaluation: Evaluation) -> None:
    judge = make_judge_rater(evaluation)
    change_evaluation(evaluation, {"shown_judge": judge.judge, "resolve_judge_disagreements": True}, user=None)

    def queries() -> int:
        page(as_owner)  # the first look is put on record
        with CaptureQueriesContext(connection) as captured:
            page(as_owner)
        return len(captured)

    make_judge_verdicts(voted(evaluation, A, B), as_stored={"clarity": B})
    make_judge_verdicts(voted(evaluation, A), as_stored={"clarity": B})
    few = queries()
    for number in range(30):
        one = voted(evaluation, A, B if number % 2 else A, candidates=("alpha", f"candidate-{number}"))
        make_judge_verdicts(one, as_stored={"clarity": B})
    assert queries() == few
