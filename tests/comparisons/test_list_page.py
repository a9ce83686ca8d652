"""The list of comparisons: found quickly, filtered, and blind where it must be."""

import re
import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.choices import ShownOrder
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import NameReveal, Reveal
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison, Query, Response
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.runs import Call, Run
from evaluations.models.selection import SMALL_REPORT_COMPARISONS
from evaluations.reviews.selectors import get_order_shown
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    make_import,
    make_imported_votes,
    make_judge_rater,
    make_judge_verdicts,
    make_review,
)
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_owner(client: Client, evaluation: Evaluation) -> Client:
    client.force_login(evaluation.memberships.get().user)
    return client


EXCERPT = re.compile(r'<span class="excerpt" dir="auto"><span class="muted">([^<]*):</span>')


def page(client: Client, **query: object) -> str:
    answer = client.get(reverse("comparisons", args=["study"], query=query))
    assert answer.status_code == 200
    return html_of(answer)


def shown(text: str) -> list[int]:
    """The numbers of the comparisons that a page lists."""
    return [int(pk) for pk in re.findall(r'href="/e/study/data/comparisons/(\d+)"', text)]


def test_the_empty_list_says_how_to_fill_it(as_owner: Client) -> None:
    assert "No comparisons yet" in page(as_owner)


def test_it_is_filtered_by_text_category_and_candidate(as_owner: Client, evaluation: Evaluation) -> None:
    france = make_comparison(evaluation, query="What is the capital of France?", category="facts")
    poem = make_comparison(evaluation, query="Write a POEM", category="poems", candidates=("alpha", "gamma"))
    assert shown(page(as_owner)) == [france.pk, poem.pk]
    assert shown(page(as_owner, q="poem")) == [poem.pk]
    assert shown(page(as_owner, category="facts")) == [france.pk]
    assert shown(page(as_owner, candidate="gamma")) == [poem.pk]
    assert "No matching comparisons" in page(as_owner, q="poem", category="facts")


@pytest.mark.parametrize("text", ["100%", "a'b", '"before 100" -else', "a-b", "BEFORE"])
def test_signs_between_words_make_no_difference(as_owner: Client, evaluation: Evaluation, text: str) -> None:
    wanted = make_comparison(evaluation, query="before 100% a'b, a-b after")
    make_comparison(evaluation, query="something else")
    assert shown(page(as_owner, q=text)) == [wanted.pk]


@pytest.mark.parametrize("text", ["_", '"', "\\", "%", "-word"])
def test_a_search_without_a_word_is_refused_in_words(as_owner: Client, evaluation: Evaluation, text: str) -> None:
    make_comparison(evaluation)
    answer = as_owner.get(reverse("comparisons", args=["study"], query={"q": text}))
    assert answer.status_code == 422
    assert 'class="error"' in html_of(answer)


@pytest.mark.parametrize("query", [{"candidate": "x"}, {"candidate": 10**30}, {"category": "nowhere"}, {"q": "a\x00b"}])
def test_a_filter_that_cannot_be_says_so_on_the_form(
    as_owner: Client, evaluation: Evaluation, query: dict[str, object]
) -> None:
    make_comparison(evaluation, category="facts")
    answer = as_owner.get(reverse("comparisons", args=["study"], query=query))
    assert answer.status_code == 422
    assert 'class="error"' in html_of(answer)
    assert shown(html_of(answer)) == []


@pytest.mark.parametrize("name", ["saved_filter", "tag", "import", "category", "candidate", "against"])
def test_a_filter_by_what_is_gone_lists_nothing_in_its_place(
    as_owner: Client, evaluation: Evaluation, name: str
) -> None:
    """Where nothing of the kind is left to choose from, the address still says what was asked."""
    make_comparison(evaluation)
    answer = as_owner.get(reverse("comparisons", args=["study"], query={name: "gone"}))
    text = html_of(answer)
    assert answer.status_code == 422
    assert shown(text) == []
    listed = text[text.index('id="list"') :]
    assert "“gone” does not exist" in listed
    assert "Save this filter" not in listed


def test_pages_follow_each_other_without_a_gap_and_keep_the_filter(as_owner: Client, evaluation: Evaluation) -> None:
    pks = [make_comparison(evaluation, query=f"Question {number}").pk for number in range(60)]
    make_comparison(evaluation, query="another")
    first = page(as_owner, q="question")
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following
    assert "q=question" in following.group(1)
    address = reverse("comparisons", args=["study"]) + following.group(1).replace("&amp;", "&")
    second = html_of(as_owner.get(address))
    assert shown(first) + shown(second) == pks
    assert 'rel="next"' not in second
    assert ">First<" in second


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "9" * 19])
def test_an_address_that_no_page_gave_is_not_found(as_owner: Client, after: str) -> None:
    assert as_owner.get(reverse("comparisons", args=["study"], query={"after": after})).status_code == 404


def test_it_tells_how_far_people_and_judges_have_come(as_owner: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation), comparison, ALL_A)
    make_review(make_human(evaluation), comparison, ALL_B, confirmed=False)
    make_imported_votes(comparison, "expert", ALL_A, kind="gold")
    make_judge_verdicts(comparison, as_stored=ALL_A, swapped=CallState.REFUSED)
    make_judge_verdicts(comparison, judge="second", as_stored=CallState.PENDING)
    text = page(as_owner)
    assert '<td class="number" data-label="Reviews">2 <span class="badge">gold</span></td>' in text
    for told in ("1 answered", "1 waiting", "1 failed"):
        assert told in text


def test_it_tells_how_many_aspects_are_labelled_to_those_who_may_know(
    client: Client, as_owner: Client, evaluation: Evaluation
) -> None:
    """Five aspects on which two people agree, one on which they differ; a reviewer who saved nothing sees neither."""
    comparison = make_comparison(evaluation)
    for choices in (ALL_A, {**ALL_A, "clarity": "B"}):
        make_review(make_human(evaluation), comparison, choices)
    update_labels([comparison.pk])
    text = page(as_owner)
    assert "5 aspects" in text
    assert '<span class="badge warn">1 split</span>' in text
    client.force_login(make_member(evaluation, Role.REVIEWER))
    text = page(client)
    assert "5 aspects" not in text
    assert "1 split" not in text


def test_it_costs_the_same_however_many_there_are(as_owner: Client, evaluation: Evaluation) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(as_owner)
        return len(captured)

    make_review(make_human(evaluation), make_comparison(evaluation, category="first"), ALL_A)
    few = queries()
    for number in range(40):
        made = make_comparison(evaluation, candidates=("alpha", f"candidate-{number}"), category=f"category-{number}")
        make_review(make_human(evaluation), made, ALL_A)
        make_judge_verdicts(made, judge=f"judge-{number}", as_stored=ALL_A)
    assert queries() == few


# ---- the cells of the report


@pytest.fixture
def judged(evaluation: Evaluation) -> list[Comparison]:
    """Judge and people: A and A, B and A, A and B."""
    told = [make_comparison(evaluation, query=f"Question {number}") for number in range(3)]
    for comparison, judge, person in zip(told, (ALL_A, ALL_B, ALL_A), (ALL_A, ALL_A, ALL_B), strict=True):
        make_judge_verdicts(comparison, as_stored=judge, swapped=judge)
        make_review(make_human(evaluation), comparison, person)
    return told


def cell(judge_choice: str = "A", human_choice: str = "A", **more: object) -> dict[str, object]:
    judge = Rater.objects.get(kind="judge", evaluation__slug="study").pk
    return {"aspect": "clarity", "judge": judge, "judge_choice": judge_choice, "human_choice": human_choice, **more}


def test_a_cell_of_the_report_opens_the_comparisons_that_it_counts(as_owner: Client, judged: list[Comparison]) -> None:
    assert shown(page(as_owner, **cell("A", "A"))) == [judged[0].pk]
    assert shown(page(as_owner, **cell("B", "A"))) == [judged[1].pk]
    assert shown(page(as_owner, **cell("A", "B"))) == [judged[2].pk]
    assert "No matching comparisons" in page(as_owner, **cell("tie", "A"))


def test_a_cell_can_be_filtered_further(as_owner: Client, judged: list[Comparison]) -> None:
    assert shown(page(as_owner, **cell(q="question 0"))) == [judged[0].pk]
    assert shown(page(as_owner, **cell(q="question 1"))) == []


def test_a_long_cell_is_paged(as_owner: Client, evaluation: Evaluation) -> None:
    told = [make_comparison(evaluation) for _ in range(55)]
    for comparison in told:
        make_judge_verdicts(comparison, as_stored={"clarity": "A"})
        make_imported_votes(comparison, "ann", {"clarity": "A"})
    first = page(as_owner, **cell())
    assert shown(first) == [comparison.pk for comparison in told[:50]]
    assert shown(page(as_owner, **cell(after=told[49].pk))) == [comparison.pk for comparison in told[50:]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"aspect": "charm"},
        {"judge": 10**30},
        {"judge": 0},
        {"judge_choice": "C"},
        {"human_choice": ""},
        {"failed": "x"},
    ],
)
def test_a_cell_that_no_report_has_is_not_found(
    as_owner: Client, judged: list[Comparison], wrong: dict[str, object]
) -> None:
    address = reverse("comparisons", args=["study"], query={**cell(), **wrong})
    assert as_owner.get(address).status_code == 404


def test_a_judge_of_another_evaluation_opens_no_cell(as_owner: Client, judged: list[Comparison]) -> None:
    foreign = make_judge_rater(make_evaluation())
    assert as_owner.get(reverse("comparisons", args=["study"], query=cell(judge=foreign.pk))).status_code == 404


def seen() -> list[int | None]:
    return list(Event.objects.filter(verb=SAW_VERDICTS).order_by("pk").values_list("object_id", flat=True))


def test_whoever_opens_a_cell_of_few_has_seen_the_verdicts_on_all_that_it_was_counted_on(
    as_owner: Client, judged: list[Comparison]
) -> None:
    page(as_owner)
    assert seen() == []
    for _ in range(2):
        page(as_owner, **cell("B", "A"))
    assert seen() == [comparison.pk for comparison in judged]


def test_an_empty_cell_of_few_tells_what_was_chosen_elsewhere(as_owner: Client, judged: list[Comparison]) -> None:
    page(as_owner, **cell("B", "B", q="question 0"))
    assert seen() == [judged[0].pk]


def test_whoever_opens_a_cell_of_many_has_seen_the_verdicts_on_those_in_it(
    as_owner: Client, evaluation: Evaluation, judged: list[Comparison]
) -> None:
    for _ in range(SMALL_REPORT_COMPARISONS):
        make_imported_votes(make_comparison(evaluation), "ann", ALL_A)
    page(as_owner, **cell("B", "A"))
    assert seen() == [judged[1].pk]


# ---- blindness


@pytest.mark.parametrize(
    ("reveal", "after_one", "after_all"),
    [
        (NameReveal.AFTER_SAVE, (1, 2, "hidden until you review"), (3, 0, "")),
        (NameReveal.AFTER_LAST, (0, 3, "hidden until you finish reviewing"), (3, 0, "")),
        (NameReveal.NEVER, (0, 3, "hidden"), (0, 3, "hidden")),
    ],
)
def test_a_reviewer_sees_names_only_of_what_they_have_reviewed_and_when_the_evaluation_reveals_them(
    client: Client,
    evaluation: Evaluation,
    judged: list[Comparison],
    reveal: NameReveal,
    after_one: tuple[int, int, str],
    after_all: tuple[int, int, str],
) -> None:
    Evaluation.objects.update(name_reveal=reveal)
    reviewer = make_member(evaluation, Role.REVIEWER)
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=reviewer)
    client.force_login(reviewer)
    assert "alpha" not in page(client)
    for reviewed, expected in (([judged[0]], after_one), (judged[1:], after_all)):
        for comparison in reviewed:
            make_review(rater, comparison, ALL_A)
        names = [cell.strip() for cell in re.findall(r'<span class="muted">(hidden[^<]*)</span>', page(client))]
        assert (page(client).count("alpha"), len(names), "".join(set(names))) == expected


def test_no_filter_tells_a_reviewer_what_is_hidden(
    client: Client, evaluation: Evaluation, judged: list[Comparison]
) -> None:
    reviewer = make_member(evaluation, Role.REVIEWER)
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=reviewer)
    client.force_login(reviewer)
    assert shown(page(client, **cell())) == []
    assert shown(page(client, candidate=10**6)) == [comparison.pk for comparison in judged]  # no such filter
    make_review(rater, judged[0], ALL_A)
    assert shown(page(client, **cell())) == [judged[0].pk]


def test_what_a_search_finds_in_a_response_has_no_letter_before_the_review(
    client: Client, evaluation: Evaluation
) -> None:
    reviewer = make_member(evaluation, Role.REVIEWER)
    comparisons = [
        make_comparison(evaluation, response_a=f"Ferns {n} in a wood.", response_b=f"Moss {n} in a wood.")
        for n in "xyz"
    ]
    client.force_login(reviewer)
    for word in ("ferns", "moss", "wood"):
        assert EXCERPT.findall(page(client, q=word)) == ["response"] * 3
    for one in comparisons:
        left = "Moss" if get_order_shown(reviewer, one) == ShownOrder.SWAPPED else "Ferns"
        assert f"{left} {one.response_a.text.split()[1]} in a" in page(client, q="wood")
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=reviewer)
    make_review(rater, comparisons[1], ALL_A)
    assert EXCERPT.findall(page(client, q="moss")) == ["response", "response B", "response"]
    assert EXCERPT.findall(page(client, q="wood")) == ["response", "response A", "response"]


def test_flags_stand_in_one_order_whichever_response_they_are_of(as_owner: Client, evaluation: Evaluation) -> None:
    flags = ("addresses_judge", "forged_verdict")
    for of_a, of_b in (flags, flags[::-1]):
        comparison = make_comparison(evaluation)
        Response.objects.filter(pk=comparison.response_a_id).update(flags=of_a)
        Response.objects.filter(pk=comparison.response_b_id).update(flags=of_b)
    told = re.findall("addresses the judge|forges a verdict", page(as_owner))
    assert told == ["addresses the judge", "forges a verdict"] * 2


def test_where_judges_are_never_shown_a_reviewer_opens_no_cell(
    client: Client, evaluation: Evaluation, judged: list[Comparison]
) -> None:
    Evaluation.objects.update(reveal=Reveal.NEVER)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert client.get(reverse("comparisons", args=["study"], query=cell())).status_code == 403
    assert "Judges</th>" not in page(client)


def test_suspect_texts_can_be_listed_alone_and_say_why(as_owner: Client, evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    in_query, in_response = make_comparison(evaluation), make_comparison(evaluation)
    Query.objects.filter(pk=in_query.query_id).update(flags="addresses_judge")
    Response.objects.filter(pk=in_response.response_b_id).update(flags="forged_verdict,addresses_judge")
    text = page(as_owner, flagged="on")
    assert shown(text) == [in_query.pk, in_response.pk]
    assert text.count("addresses the judge") == 2
    assert text.count("forges a verdict") == 1


def test_what_a_judge_failed_on_can_be_listed_by_how_it_failed(as_owner: Client, evaluation: Evaluation) -> None:
    fine, refused, imported, scored = (make_comparison(evaluation) for _ in range(4))
    make_judge_verdicts(fine, as_stored=ALL_A)
    make_judge_verdicts(refused, as_stored=ALL_A, swapped=CallState.REFUSED)
    make_judge_verdicts(imported, judge="brought", as_stored=CallState.UNREADABLE)
    asked = Call.objects.exclude(judge__name="brought")
    judge = make_judge_rater(evaluation).judge
    assert judge is not None
    run = Run.objects.create(evaluation=evaluation, judge=judge, batch=uuid.uuid4())
    asked.update(run=run)
    Call.objects.filter(judge__name="brought").update(source_import=make_import(evaluation))
    Call.objects.create(judge=judge, response=scored.response_b, run=run, state=CallState.TOO_LONG)
    assert shown(page(as_owner, judge_failed="any")) == [refused.pk, imported.pk, scored.pk]
    assert shown(page(as_owner, judge_failed="refused")) == [refused.pk]
    assert shown(page(as_owner, judge_failed="too_long")) == [scored.pk]
    assert "No matching comparisons" in page(as_owner, judge_failed="truncated")


def test_where_judges_are_never_shown_a_reviewer_cannot_ask_where_they_failed(
    client: Client, evaluation: Evaluation
) -> None:
    Evaluation.objects.update(reveal=Reveal.NEVER)
    make_judge_verdicts(make_comparison(evaluation), as_stored=CallState.REFUSED)
    make_comparison(evaluation)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    text = page(client, judge_failed="refused")
    assert len(shown(text)) == 2
    assert "Judge failed" not in text
