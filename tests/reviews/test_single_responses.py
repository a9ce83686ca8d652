"""Reviews of single responses: one response is shown and scored by itself."""

import json
import re
from collections.abc import Sequence

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from evaluations.audit.events import record_event
from evaluations.comparisons.selectors import find_comparison_ids
from evaluations.domain.choices import ShownOrder, Stage
from evaluations.domain.decisions import Outcome
from evaluations.domain.errors import InputRefused
from evaluations.domain.events import SAW_VERDICTS, WebhookKind
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.domain.reviews import NameReveal, Reveal, SelectionMethod, StratifyBy
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.domain.texts import ComparisonOrigin
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import request_export
from evaluations.imports.undo import start_undo
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import get_or_create_rater
from evaluations.models.queues import QueueItem
from evaluations.models.users import User
from evaluations.models.verdicts import Disclosure, Label, Review
from evaluations.models.webhooks import OutboxEntry
from evaluations.overview.selectors import NextStep, count_evaluation_progress, get_next_step
from evaluations.reports.large_differences import reveal_large_differences
from evaluations.reports.selectors import get_full_report, reveal_report
from evaluations.reviews.answers import ScorePair, SingleScore
from evaluations.reviews.queues.items import ensure_queue_is_filled
from evaluations.reviews.selectors import get_review_progress
from evaluations.reviews.services import save_final_choices, save_first_choices, undo_last_step
from evaluations.reviews.summary import build_review_summary
from evaluations.rubrics.drafts import draft_first_version
from evaluations.rubrics.services import add_rubric
from evaluations.verdicts.progress_counters import count_directly, read_progress_counts
from evaluations.verdicts.progress_recount import find_wrong_counters, recount_now
from evaluations.verdicts.votes import update_labels
from evaluations.visibility import has_seen_verdicts, reveal_judge_results
from evaluations.webhooks.services import create_webhook
from tests.factories.evaluations import make_comparison
from tests.factories.imports import continue_undo, import_rows, score_row
from tests.factories.queue_state import assert_counters_are_right, take_next_comparison
from tests.factories.queues import make_queue
from tests.factories.review_page import get_review_page, review_url
from tests.factories.verdicts import make_judge_score, make_scoring_judge
from tests.helpers.api_client import ApiClient
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def response_row(key: str, candidate: str = "alpha", **columns: object) -> dict[str, object]:
    return {"query_id": key, "query": f"Why {key}?", "candidate": candidate, "response": f"Because {key}.", **columns}


def ask_for_scores(evaluation: Evaluation, *keys: str, **scale: float) -> None:
    """The rubric in force asks for scores from 1 to 5 in whole steps."""
    steps = {"scale_min": 1.0, "scale_max": 5.0, "scale_step": 1.0, **scale}
    aspects = tuple(AspectSpec(key, key.title(), "", **steps) for key in keys or ("clarity",))  # type: ignore[arg-type]
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", aspects, tuple(aspect.key for aspect in aspects))
    version = add_rubric(evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)
    change_evaluation(evaluation, {"review_rubric": version}, user=None)


@pytest.fixture
def study(evaluation: Evaluation) -> Evaluation:
    """Three responses of one model, in no pair, that reviewers score for clarity."""
    import_rows(evaluation, *(response_row(key) for key in ("q1", "q2", "q3")), format="responses")
    ask_for_scores(evaluation)
    ensure_queue_is_filled(evaluation)
    return evaluation


def list_singles(evaluation: Evaluation) -> list[Comparison]:
    return list(Comparison.with_singles.filter(evaluation=evaluation, origin=ComparisonOrigin.SINGLE).order_by("pk"))


def save_score(user: User, single: Comparison, value: float) -> Review:
    return save_first_choices(user, single, choices={"clarity": SingleScore(value)}, version=0)


def review_all(user: User, evaluation: Evaluation, *values: float) -> None:
    """Score every single response, each drawn at random from the queue: these values in the order of the responses."""
    singles = {single.pk: (single, value) for single, value in zip(list_singles(evaluation), values, strict=True)}
    while (pk := take_next_comparison(user, evaluation)) is not None:
        save_score(user, *singles[pk])


# ---- which responses are reviewed by themselves ----------------------------------------------


def test_every_response_in_no_pair_is_met_once_by_a_reviewer(study: Evaluation, reviewer: User) -> None:
    met = []
    while (pk := take_next_comparison(reviewer, study)) is not None:
        single = Comparison.with_singles.get(pk=pk)
        assert single.response_a_id == single.response_b_id
        met.append(single.response_a_id)
        save_score(reviewer, single, 4)
    assert sorted(met) == sorted(Response.objects.values_list("pk", flat=True))
    progress = get_review_progress(study, get_or_create_rater(reviewer, study))
    assert (progress.done, progress.total) == (3, 3)
    assert_counters_are_right(study)


def test_a_rubric_that_compares_gets_no_single_responses(evaluation: Evaluation, reviewer: User) -> None:
    import_rows(evaluation, response_row("q1"), format="responses")
    assert take_next_comparison(reviewer, evaluation) is None
    assert not list_singles(evaluation)


def test_responses_in_a_pair_are_reviewed_in_their_pair_alone(evaluation: Evaluation) -> None:
    """q1 has responses of two models, which are paired; q2 of one."""
    rows = [response_row("q1"), response_row("q1", "beta", response="No."), response_row("q2")]
    import_rows(evaluation, *rows, format="responses")
    ask_for_scores(evaluation)
    ensure_queue_is_filled(evaluation)
    assert [single.query.key for single in list_singles(evaluation)] == ["q2"]
    assert QueueItem.objects.count() == 2


def test_a_single_comparison_makes_way_for_the_pair_unless_it_was_begun(study: Evaluation, reviewer: User) -> None:
    first, *_ = list_singles(study)
    save_score(reviewer, first, 4)
    import_rows(study, *(response_row(key, "beta", response="No.") for key in ("q1", "q2")), format="responses")
    ensure_queue_is_filled(study)
    assert [single.query.key for single in list_singles(study)] == ["q1", "q3"]
    assert Comparison.objects.filter(evaluation=study).count() == 2
    assert_counters_are_right(study)


def test_an_import_that_is_undone_takes_its_single_comparisons_with_it(study: Evaluation) -> None:
    start_undo(Import.objects.get(), user=None)
    while continue_undo(Import.objects.get()):
        pass
    assert not Comparison.all_rows.exists()
    assert not Response.all_rows.exists()


def test_an_import_whose_responses_were_scored_cannot_be_undone(study: Evaluation, reviewer: User) -> None:
    save_score(reviewer, list_singles(study)[0], 4)
    with pytest.raises(InputRefused, match="1 review or draft"):
        start_undo(Import.objects.get(), user=None)


@pytest.mark.parametrize("origin", ["single", "by_hand"])
def test_the_database_refuses_what_is_neither_one_response_nor_two(evaluation: Evaluation, origin: str) -> None:
    pair = make_comparison(evaluation)
    sides = {"single": pair.response_b_id, "by_hand": pair.response_a_id}
    with pytest.raises(IntegrityError), transaction.atomic():
        Comparison.all_rows.filter(pk=pair.pk).update(origin=origin, response_b=sides[origin])


# ---- what is stored --------------------------------------------------------------------------


def test_one_score_is_stored_first_and_final_and_no_label(study: Evaluation, reviewer: User) -> None:
    single, *_ = list_singles(study)
    review = save_score(reviewer, single, 4)
    assert review.shown == ShownOrder.AS_STORED
    stored = list(review.scores.order_by("pk").values_list("response", "stage", "value"))
    assert stored == [(single.response_a_id, Stage.FIRST, 4.0), (single.response_a_id, Stage.FINAL, 4.0)]
    update_labels([single.pk])
    assert not Label.objects.exists()
    undo_last_step(reviewer, review, version=review.version)
    assert review.draft["fields"] == {"score_clarity": "4"}
    assert not review.scores.exists()


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"clarity": ScorePair(4, 5)}, "Give Clarity one score"),
        ({}, "Clarity is still missing"),
        ({"clarity": SingleScore(6)}, "score for Clarity must be a number from 1 to 5"),
    ],
)
def test_another_answer_is_refused_in_words(study: Evaluation, reviewer: User, choices: dict, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputRefused, match=said):
        save_first_choices(reviewer, list_singles(study)[0], choices=choices, version=0)
    assert not Review.objects.exists()


def test_a_pair_takes_no_single_score(evaluation: Evaluation, reviewer: User) -> None:
    ask_for_scores(evaluation)
    with pytest.raises(InputRefused, match="Give Clarity two scores, one for each response"):
        save_first_choices(reviewer, make_comparison(evaluation), choices={"clarity": SingleScore(4)}, version=0)


# ---- the page --------------------------------------------------------------------------------


def test_the_whole_way_works_with_plain_forms(study: Evaluation, browser: Client, reviewer: User) -> None:
    """The judge gave 2, the reviewer 4 and then 3: they differ, and the first score stays."""
    scorer = make_scoring_judge(study, aspect="clarity")
    change_evaluation(study, {"shown_judge": scorer.judge, "name_reveal": NameReveal.AFTER_SAVE}, user=None)
    single, *_ = list_singles(study)
    make_judge_score(scorer, single.response_a, 2, aspect="clarity", rationale="Too short.")
    page = get_review_page(browser, single)
    assert page.count('<div class="scale ') == 1
    assert 'id="side-b"' not in page
    assert 'data-toggle="diff"' not in page
    assert "Too short." not in page
    revealed = html_of(
        browser.post(review_url("review_save", single), {"version": "0", "score_clarity": "4"}, follow=True)
    )
    assert "Judge <b>2</b>" in revealed
    assert "disagrees" in revealed
    assert "one order" not in revealed
    assert "Rationale for this response" in " ".join(revealed.split())
    assert "Too short." in revealed
    assert "alpha" in revealed
    assert re.search(r'name="score_clarity" value="4" data-side="single" required checked', revealed)
    final = {"version": "1", "score_clarity": "3", "reason_clarity": "my_mistake"}
    html_of(browser.post(review_url("review_confirm", single), final, follow=True))
    review = Review.objects.get()
    assert dict(review.scores.values_list("stage", "value")) == {"first": 4.0, "final": 3.0}
    done = get_review_page(browser, single)
    assert re.search(r"4\s*</span>\s*<span aria-hidden=\"true\">→", done)


def test_a_judge_within_the_tie_margin_agrees(evaluation: Evaluation, browser: Client) -> None:
    """Margin 1: a score of 3 agrees with the judge's 2."""
    import_rows(evaluation, response_row("q1"), format="responses")
    ask_for_scores(evaluation, tie_margin=1.0)
    ensure_queue_is_filled(evaluation)
    scorer = make_scoring_judge(evaluation, aspect="clarity")
    change_evaluation(evaluation, {"shown_judge": scorer.judge}, user=None)
    single, *_ = list_singles(evaluation)
    make_judge_score(scorer, single.response_a, 2, aspect="clarity")
    revealed = html_of(
        browser.post(review_url("review_save", single), {"version": "0", "score_clarity": "3"}, follow=True)
    )
    assert "agrees with you" in revealed


def test_a_judge_shown_first_is_shown_with_its_rationale(study: Evaluation, browser: Client) -> None:
    """A single response has no side that a rationale could give away."""
    scorer = make_scoring_judge(study, aspect="clarity")
    change_evaluation(study, {"shown_judge": scorer.judge, "reveal": Reveal.SHOWN}, user=None)
    single, *_ = list_singles(study)
    make_judge_score(scorer, single.response_a, 2, aspect="clarity", rationale="Too short.")
    assert "Too short." in get_review_page(browser, single)
    browser.post(review_url("review_save", single), {"version": "0", "score_clarity": "2"})
    assert not Review.objects.get().blind


def test_a_passage_of_the_response_can_be_highlighted(study: Evaluation, browser: Client) -> None:
    single, *_ = list_singles(study)
    page = html_of(browser.post(review_url("review_span", single), {"side": "a", "quote": "Because"}, follow=True))
    assert '<blockquote class="quote" dir="auto">Because</blockquote>' in page
    assert "Highlight in the response" in page


def test_there_is_no_page_once_the_rubric_compares(study: Evaluation, browser: Client) -> None:
    single, *_ = list_singles(study)
    rubric = study.rubrics.get(name="six-aspect")
    change_evaluation(study, {"review_rubric": rubric.versions.get()}, user=None)
    assert browser.get(review_url("review_comparison", single)).status_code == 404
    assert get_review_progress(study, None).total == 0


def test_the_page_says_what_to_do_where_responses_have_no_pair(evaluation: Evaluation, owner_signed_in: Client) -> None:
    import_rows(evaluation, response_row("q1"), format="responses")
    page = html_of(owner_signed_in.get(reverse("review", args=[evaluation.slug])))
    assert "No pairs yet" in page
    assert reverse("pairs", args=[evaluation.slug]) in page


def test_pages_of_comparisons_show_no_single_responses(study: Evaluation, owner_signed_in: Client) -> None:
    single, *_ = list_singles(study)
    assert find_comparison_ids(study, [], 10) == []
    assert owner_signed_in.get(reverse("comparison", args=[study.slug, single.pk])).status_code == 404
    overview = " ".join(html_of(owner_signed_in.get(reverse("evaluation", args=[study.slug]))).split())
    assert '<dt>Single responses</dt><dd class="number">3</dd>' in overview
    assert "Reviews per response" in overview


def test_the_api_shows_one_response_and_takes_one_score(study: Evaluation, asking: ApiClient) -> None:
    scorer = make_scoring_judge(study, aspect="clarity")
    change_evaluation(study, {"shown_judge": scorer.judge}, user=None)
    for single in list_singles(study):
        make_judge_score(scorer, single.response_a, 2, aspect="clarity")
    pk = asking.get("/evaluations/study/review/next").json()["comparison"]
    path = f"/evaluations/study/review/{pk}"
    review = asking.get(path).json()
    assert (review["b"], review["a"][0]["role"]) == (None, "assistant")
    draft = {"version": 0, "fields": {"score_clarity": "4"}}
    assert asking("PUT", f"{path}/draft", draft).json()["draft"]["fields"] == {"score_clarity": "4"}
    refused = asking.post(f"{path}/save", {"version": 0, "choices": {"clarity": {"a": 4, "b": 2}}})
    assert refused.status_code == 422
    saved = asking.post(f"{path}/save", {"version": 0, "choices": {"clarity": {"score": 4}}}).json()
    aspect, *_ = saved["aspects"]
    assert (aspect["first"], aspect["judge"]["scores"], aspect["judge"]["choice"]) == ({"score": 4}, {"score": 2}, None)
    assert saved["stage"] == "confirm"
    assert asking.get(f"{path}/diff").json() == {"a": [], "b": [], "refusal": "There is only one response here."}


def test_a_queue_of_single_responses_links_to_no_page_of_comparisons(
    study: Evaluation, owner_signed_in: Client
) -> None:
    queue = make_queue(study, strategy=SelectionMethod.RANDOM, size=2, user=None)
    page = html_of(owner_signed_in.get(reverse("queue", args=[study.slug, queue.pk])))
    assert "Why q" in page
    assert not any(reverse("comparison", args=[study.slug, single.pk]) in page for single in list_singles(study))
    page = html_of(owner_signed_in.get(reverse("queues", args=[study.slug])))
    assert "represent all responses" in page


def test_the_page_of_a_call_about_a_single_response_leaves_its_reader_not_blind(
    study: Evaluation, owner: User, owner_signed_in: Client
) -> None:
    single, *_ = list_singles(study)
    call = make_judge_score(make_scoring_judge(study, aspect="clarity"), single.response_a, 2, aspect="clarity")
    page = html_of(owner_signed_in.get(reverse("call", args=[study.slug, call.pk])))
    assert reverse("comparison", args=[study.slug, single.pk]) not in page
    assert has_seen_verdicts(owner, single)


def test_a_webhook_hears_of_no_disagreement_on_a_single_response(
    study: Evaluation, owner: User, reviewer: User
) -> None:
    kinds = [WebhookKind.DISAGREEMENT_OPENED, WebhookKind.QUEUE_REVIEWED]
    create_webhook(study, url="https://example.org/hook", kinds=kinds, user=owner)
    queue = make_queue(study, strategy=SelectionMethod.RANDOM, size=3, user=None)
    save_score(reviewer, list_singles(study)[0], 4)
    assert list(OutboxEntry.objects.values_list("kind", "subject")) == [(WebhookKind.QUEUE_REVIEWED, queue.pk)]


def test_activity_links_to_no_page_that_a_single_response_does_not_have(
    study: Evaluation, owner: User, owner_signed_in: Client
) -> None:
    single, *_ = list_singles(study)
    pair = make_comparison(study)
    for seen in (single, pair):
        record_event(SAW_VERDICTS, seen, user=owner, evaluation=study)
        record_event("changed", study, user=owner, evaluation=study)  # else both are one line
    page = html_of(owner_signed_in.get(reverse("activity", args=[study.slug])))
    assert reverse("comparison", args=[study.slug, pair.pk]) in page
    assert reverse("comparison", args=[study.slug, single.pk]) not in page


# ---- counters and access ---------------------------------------------------------------------


def test_progress_counts_single_responses_and_equals_a_recount(study: Evaluation, reviewer: User) -> None:
    recount_now(study)
    save_score(reviewer, list_singles(study)[0], 4)
    counts = read_progress_counts([study.pk])[study.pk]
    assert (counts.comparisons, counts.reviewed, counts.reviews) == (3, 1, 1)
    assert counts == count_directly([study.pk])[study.pk]
    assert not find_wrong_counters(Evaluation.objects.all())
    progress = count_evaluation_progress([study], reviewer)[study.pk]
    assert (progress.single_responses, progress.pairs, progress.subject) == (3, 0, "response")
    assert get_next_step(progress, Role.REVIEWER) == NextStep.REVIEW


def test_reviewers_see_what_judges_scored_once_they_have_reviewed_all(study: Evaluation, reviewer: User) -> None:
    scorer = make_scoring_judge(study, aspect="clarity")
    for single in list_singles(study):
        make_judge_score(scorer, single.response_a, 2, aspect="clarity")
    assert not reveal_judge_results(reviewer, study)
    parts = (ReportPart.SCORES,)
    assert reveal_report(reviewer, study, ReportRules(), parts, None).scores == {}
    review_all(reviewer, study, 4, 4, 4)
    assert reveal_judge_results(reviewer, study)
    scores = reveal_report(reviewer, study, ReportRules(), parts, None).scores["clarity"]
    assert scores.candidates["alpha"].judges["scorer"].value == 2


def test_a_list_of_differences_leaves_its_reader_not_blind(study: Evaluation, owner: User, reviewer: User) -> None:
    """The judge gave 1 where the reviewer gave 5; the owner reads it, and their own review of it is not blind."""
    scorer = make_scoring_judge(study, aspect="clarity")
    for single, value in zip(list_singles(study), (1, 4, 5), strict=True):
        make_judge_score(scorer, single.response_a, value, aspect="clarity")
    review_all(reviewer, study, 5, 5, 5)
    first, *_ = list_singles(study)
    assert not has_seen_verdicts(owner, first)
    found = reveal_large_differences(owner, study, ReportRules(), "clarity", "scorer")
    assert [one.response for one in found][:1] == [first.response_a]
    assert [one.comparison for one in found][:1] == [None]
    assert Disclosure.objects.filter(user=owner, comparison=first).exists()
    assert has_seen_verdicts(owner, first)


def test_a_reviewer_is_told_how_often_scores_are_the_same(study: Evaluation, reviewer: User, owner: User) -> None:
    """The judge gave 4, 4, 2 to the reviewer's 4, 3, 2; the owner 4 on the first alone."""
    scorer = make_scoring_judge(study, aspect="clarity")
    change_evaluation(study, {"shown_judge": scorer.judge}, user=None)
    for single, of_judge, of_reviewer in zip(list_singles(study), (4, 4, 2), (4, 3, 2), strict=True):
        make_judge_score(scorer, single.response_a, of_judge, aspect="clarity")
        review = save_score(reviewer, single, of_reviewer)
        save_final_choices(
            reviewer,
            single,
            choices={"clarity": SingleScore(of_reviewer)},
            notes={},
            reasons={},
            version=review.version,
        )
    save_score(owner, list_singles(study)[0], 4)
    summary = build_review_summary(reviewer, study, get_or_create_rater(reviewer, study))
    assert (summary.judge.agreed, summary.judge.compared) == (2, 3)
    assert (summary.others.agreed, summary.others.compared) == (1, 1)


# ---- results, exports, rubrics ---------------------------------------------------------------


def test_first_scores_enter_the_results_as_scores_of_their_responses(
    study: Evaluation, reviewer: User, second_reviewer: User
) -> None:
    """Means of 4 and 2, 5 and 3, 1 and 1 are 3, 4, 1: their mean is 8/3. The judge's 3, 4, 2 have the mean 3."""
    scorer = make_scoring_judge(study, aspect="clarity")
    for single, of_judge in zip(list_singles(study), (3, 4, 2), strict=True):
        make_judge_score(scorer, single.response_a, of_judge, aspect="clarity")
    change_evaluation(study, {"reviews_wanted": 2}, user=None)
    review_all(reviewer, study, 4, 5, 1)
    review_all(second_reviewer, study, 2, 3, 1)
    report = get_full_report(study, ReportRules(), parts=(ReportPart.SCORES,)).scores["clarity"]
    assert list(report.candidates) == ["alpha"]
    assert report.candidates["alpha"].people.value == pytest.approx(8 / 3)
    assert report.candidates["alpha"].judges["scorer"].value == pytest.approx(3)
    assert report.human_scores.blind == 6


def test_single_responses_of_a_stratified_queue_stand_for_their_category(
    evaluation: Evaluation, reviewer: User
) -> None:
    """Six of coding, two of maths, two of each reviewed, with 5 and 1: (6 · 5 + 2 · 1) ÷ 8."""
    rows = [response_row(f"q{n}", category="coding" if n < 6 else "maths") for n in range(8)]
    import_rows(evaluation, *rows, format="responses")
    ask_for_scores(evaluation)
    ensure_queue_is_filled(evaluation)
    make_queue(
        evaluation, strategy=SelectionMethod.STRATIFIED, strata=StratifyBy.CATEGORY, size=4, random_percent=0, user=None
    )
    for _ in range(4):
        pk = take_next_comparison(reviewer, evaluation)
        assert pk is not None
        single = Comparison.reviewable.get(pk=pk)
        save_score(reviewer, single, 5 if single.category == "coding" else 1)
    report = get_full_report(evaluation, ReportRules(), parts=(ReportPart.SCORES,)).scores["clarity"]
    found = report.candidates["alpha"]
    assert found.people.value == pytest.approx(4)
    assert (found.people.n, found.responses) == (4, 8)


def test_a_judge_that_failed_on_every_response_is_not_reliable(
    study: Evaluation, reviewer: User, second_reviewer: User, owner_signed_in: Client
) -> None:
    scorer = make_scoring_judge(study, aspect="clarity")
    for single in list_singles(study):
        make_judge_score(scorer, single.response_a, "refused", aspect="clarity")
    change_evaluation(study, {"reviews_wanted": 2}, user=None)
    review_all(reviewer, study, 4, 5, 1)
    review_all(second_reviewer, study, 2, 3, 1)
    report = get_full_report(study, ReportRules(), parts=tuple(ReportPart))
    decision = report.score_decisions["scorer"]
    assert decision.outcome == Outcome.NOT_RELIABLE
    assert decision.sentence.startswith("Calls failed on 100% of responses (limit 5%).")
    assert "Not reliable" in html_of(owner_signed_in.get(reverse("report_part", args=[study.slug, "scores"])))


def read_exported(evaluation: Evaluation, owner: User) -> list[dict[str, object]]:
    exported = request_export(evaluation, written_as="scores", user=owner, request=ExportRequest())
    assert exported.blocks is not None
    return [json.loads(line) for line in b"".join(exported.blocks).splitlines()]


def test_scores_of_single_responses_are_exported(study: Evaluation, reviewer: User, owner: User) -> None:
    single, *_ = list_singles(study)
    save_score(reviewer, single, 4)
    row, *others = read_exported(study, owner)
    assert not others
    assert (row["query_id"], row["candidate"], row["value"], row["final_value"]) == ("q1", "alpha", 4.0, 4.0)


def test_imported_scores_of_responses_in_no_comparison_are_exported(evaluation: Evaluation, owner: User) -> None:
    import_rows(evaluation, response_row("q1"), format="responses")
    import_rows(evaluation, score_row("q1", "alpha", 3), format="scores")
    assert [row["value"] for row in read_exported(evaluation, owner)] == [3.0]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((1, 5), (1.0, 5.0, 1.0)),
        ((0, 1), (0.0, 1.0, 1.0)),
        ((0.1, 0.9), (0.1, 0.9, None)),
        ((0, 100), (0.0, 100.0, None)),
    ],
)
def test_a_new_rubric_of_scores_starts_with_the_imported_aspects(
    evaluation: Evaluation, values: Sequence[float], scale: tuple[float, float, float | None]
) -> None:
    import_rows(evaluation, *(response_row(key) for key in ("q1", "q2")), format="responses")
    rows = [score_row(key, "alpha", value, aspect="tone") for key, value in zip(("q1", "q2"), values, strict=True)]
    import_rows(evaluation, *rows, format="scores")
    aspect, *others = draft_first_version(evaluation, RubricKind.POINTWISE).aspects
    assert not others
    assert (aspect.key, aspect.scale_min, aspect.scale_max, aspect.scale_step) == ("tone", *scale)
