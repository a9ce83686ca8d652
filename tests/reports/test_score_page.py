"""The scores page of studies of responses and scores alone: models, aspects, scales, reviewers, judges."""

import json
import re
from collections.abc import Sequence
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.reports import ReportRules
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from evaluations.reports.selectors import build_report, get_full_report
from evaluations.stats.score_report import ScoreReport
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.imports import import_rows, score_row
from tests.factories.verdicts import make_judge_score, make_scored_review, make_scoring_judge
from tests.helpers.api_client import ApiClient
from tests.helpers.browser_client import sign_in_client

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PEOPLE = ("ann", "ben", "cem")


def score_study(
    evaluation: Evaluation,
    models: Sequence[str] = ("alpha",),
    people: Sequence[str] = PEOPLE,
    judges: Sequence[str] = ("gpt",),
    *,
    reviewed: int = 40,
    judged: int = 60,
    aspects: Sequence[str] = ("quality",),
) -> None:
    """60 responses of each model. Person k scores (response + k) mod 5 + 1, a judge one more up to 5."""
    numbers = range(60)
    import_rows(
        evaluation,
        *(
            {"query_id": f"q{n}", "query": f"Why {n}?", "candidate": model, "response": f"Because {n}, {model}."}
            for n in numbers
            for model in models
        ),
    )
    raters = [(name, "human", place, reviewed) for place, name in enumerate(people)]
    raters += [(name, "judge", 0, judged) for name in judges]
    rows = [
        score_row(
            f"q{n}", model, value_of(aspect, (n + shift) % 5 + 1, kind), rater=name, rater_kind=kind, aspect=aspect
        )
        for name, kind, shift, most in raters
        for n in numbers[:most]
        for model in models
        for aspect in aspects
    ]
    import_rows(evaluation, *rows)


def value_of(aspect: str, score: int, kind: str) -> int:
    given = min(score + (kind == "judge"), 5)
    return int(given > 3) if aspect == "pass" else given


def scores_of(evaluation: Evaluation, aspect: str = "quality", **rules: float) -> ScoreReport:
    return get_full_report(evaluation, ReportRules(**rules)).scores[aspect]  # type: ignore[arg-type]


def page(user: User, **filters: str) -> str:
    answer = sign_in_client(user).get(reverse("report_part", args=["study", "scores"]), filters)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", answer.content.decode())


HEADINGS = {
    "pass rates": 'id="pass-rates"',
    "means": 'id="mean-scores"',
    "differences": 'id="differences"',
    "match": 'id="judges-people"',
    "ceiling": "Human ceiling",
    "alt-test": "Alt-test",
    "calibration": 'id="plot-scores-calibration"',
    "large": 'id="large-differences"',
    "reviewers": "All reviewers",
}


@pytest.mark.parametrize(
    ("study", "expected"),
    [
        ({}, {"means", "match", "ceiling", "alt-test", "calibration", "large", "reviewers"}),
        (
            {"models": ("alpha", "beta"), "judges": ("gpt", "other")},
            {"means", "differences", "match", "ceiling", "alt-test", "calibration", "large", "reviewers"},
        ),
        ({"people": ()}, {"means"}),
        ({"people": ("ann",)}, {"means", "match", "calibration", "large"}),
        ({"judges": ()}, {"means", "reviewers"}),
        (
            {"aspects": ("pass",)},
            {"pass rates", "match", "ceiling", "alt-test", "calibration", "large", "reviewers"},
        ),
    ],
    ids=["one model", "two models and judges", "no reviewers", "one reviewer", "no judge", "binary"],
)
def test_the_page_has_what_the_study_has(
    evaluation: Evaluation, owner: User, study: dict[str, Sequence[str]], expected: set[str]
) -> None:
    score_study(evaluation, **study)  # type: ignore[arg-type]
    shown = page(owner)
    assert {name for name, text in HEADINGS.items() if text in shown} == expected
    assert "{%" not in shown
    assert "None" not in re.sub(r"<script.*?</script>", "", shown)


def test_several_aspects_have_a_page_each(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation, aspects=("quality", "pass"))
    assert 'id="pass-rates"' not in page(owner, aspect="quality")
    assert 'id="pass-rates"' in page(owner, aspect="pass")


def test_the_corrected_mean_is_beside_those_of_reviewers_and_the_judge(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation)
    found = scores_of(evaluation).candidates["alpha"]
    # 40 responses, each with three of the five scores in a row: 3; the judge's are 2, 3, 4, 5, 5.
    assert (found.people.value, found.people.n) == pytest.approx((3, 40))
    assert (found.judges["gpt"].value, found.judges["gpt"].n) == pytest.approx((3.8, 60))
    assert found.corrected["gpt"].corrected.value == pytest.approx(3)
    assert (found.responses, found.corrected["gpt"].scored) == (60, 60)
    assert "60 of 60" in page(owner)


def test_responses_that_a_judge_did_not_score_count_against_its_coverage(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation, judged=50, reviewed=30)
    found = scores_of(evaluation).candidates["alpha"]
    assert (found.responses, found.corrected["gpt"].coverage) == pytest.approx((60, 50 / 60))
    assert (
        found.corrected["gpt"].corrected.why == "The judge scored 50 of 60 responses. A correction needs 95% of them."
    )
    assert found.judges["gpt"].n == 50
    shown = page(owner)
    assert "50 of 60" in shown
    assert "A correction needs 95% of them." in shown
    assert "Scores of 50 single responses in 50 clusters" in get_full_report(evaluation, ReportRules()).methods


def test_a_scale_of_two_has_pass_rates_by_itself_and_others_from_a_threshold_on(
    evaluation: Evaluation, owner: User
) -> None:
    score_study(evaluation, aspects=("quality", "pass"))
    assert scores_of(evaluation, "quality").pass_rates is None
    binary = scores_of(evaluation, "pass").pass_rates
    assert binary is not None
    assert (binary.pass_from, binary.is_stated, binary.split) == (1, False, 0)
    stated = scores_of(evaluation, "quality", pass_from=4.0).pass_rates
    assert stated is not None
    assert (stated.pass_from, stated.is_stated) == (4, True)
    assert stated.candidates["alpha"].people.value == binary.candidates["alpha"].people.value
    shown = page(owner, aspect="quality", pass_from="4")
    assert 'id="pass-rates"' in shown
    assert 'id="mean-scores"' in shown
    assert "pass from 4" in shown
    assert "Pass from: 4" in shown
    assert "A single response passes from a score of 4" in shown


def test_the_decision_on_scores_shows_failed_calls_and_that_the_threshold_does_not_count(
    evaluation: Evaluation, owner: User
) -> None:
    score_study(evaluation)
    shown = page(owner)
    assert "Failed calls" in shown
    assert "Prefers first" not in shown
    assert "Decided on the scores" not in shown
    assert "Decided on the scores, not on the pass threshold of 4." in page(owner, pass_from="4")


def test_a_threshold_of_zero_is_one(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation)
    assert "Pass from: 0" in page(owner, pass_from="0")


def test_a_threshold_that_is_no_number_is_refused(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation)
    address = reverse("report_part", args=["study", "scores"])
    answer = sign_in_client(owner).get(address, {"pass_from": "good"})
    assert answer.status_code == 422
    assert "“Pass from” is not a number. Use a score, such as 4." in answer.content.decode()


def test_where_lower_is_better_the_lower_of_two_scores_passes(evaluation: Evaluation) -> None:
    rows = [{"query_id": f"q{n}", "query": f"Why {n}?", "candidate": "alpha", "response": f"{n}"} for n in range(4)]
    import_rows(evaluation, *rows)
    values = [score_row(f"q{n}", value=1 + (n == 0), aspect="rank") for n in range(4)]
    import_rows(evaluation, *values, lower_is_better=True)
    found = scores_of(evaluation, "rank").pass_rates
    assert found is not None
    assert (found.pass_from, found.lower_is_better) == (1, True)
    assert found.candidates["alpha"].people.value == 0.75
    methods = get_full_report(evaluation, ReportRules()).methods
    assert "On rank, a response passes up to a score of 1." in methods


def test_a_scale_of_five_on_which_two_scores_occur_is_none_of_two(evaluation: Evaluation) -> None:
    judge = make_scoring_judge(evaluation)
    for number in range(4):
        make_judge_score(judge, make_comparison(evaluation).response_a, 4 + number % 2)
    assert scores_of(evaluation, "overall").pass_rates is None


def test_the_methods_paragraph_says_how_scores_were_corrected(evaluation: Evaluation) -> None:
    score_study(evaluation, aspects=("quality", "pass"))
    methods = get_full_report(evaluation, ReportRules()).methods
    assert "On pass, a response passes from a score of 1." in methods
    assert "prediction-powered (PPI++, Angelopoulos, Duchi and Zrnic 2023)" in methods
    assert "Rogan and Gladen 1978" in methods
    assert "S = −|difference| and −RMSE" in methods


def test_the_command_has_a_line_for_each_model_and_rule(evaluation: Evaluation) -> None:
    score_study(evaluation, models=("alpha", "beta"))
    out = StringIO()
    call_command("report", "study", "--pass-from", "4", stdout=out)
    text = out.getvalue()
    assert "alpha, mean score: reviewers 3.000" in text
    assert re.search(r"gpt 3\.800 \[[\d., ]+\] \(n 60\), corrected 3\.000 \[[\d., ]+\] \(λ [\d.]+\)", text)
    assert re.search(r"beta, pass rate: reviewers 0\.\d+", text)
    assert "Rogan–Gladen" in text
    assert "gpt, reviewers: TPR" in text
    assert "alpha − beta, mean score: reviewers 0.000" in text
    assert "gpt, ceiling, mean absolute difference: judge" in text
    assert "gpt, alt-test by −|difference|" in text
    assert "gpt, alt-test by −RMSE" in text
    assert "A single response passes from a score of 4" in text


def test_the_api_takes_the_threshold(asking: ApiClient, evaluation: Evaluation) -> None:
    score_study(evaluation)
    answer = asking.get("/evaluations/study/report?only=scores&pass_from=4")
    assert answer.status_code == 200
    assert answer.json()["scores"]["quality"]["pass_rates"]["pass_from"] == 4
    call_command("report", "study", "--json", "--pass-from", "4", stdout=(out := StringIO()))
    assert json.loads(out.getvalue())["scores"] == answer.json()["scores"]


def test_charts_can_be_downloaded(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation, models=("alpha", "beta"), aspects=("pass",))
    client = sign_in_client(owner)
    for name in ("scores-passes", "scores-passes-differences", "scores-means", "scores-calibration"):
        answer = client.get(reverse("report_plot", args=["study", name]), {"as": "csv"})
        assert answer.status_code == 200
    assert answer.content.decode().startswith("bin,judge_score,series,value")


# ---- large differences ------------------------------------------------------------------------


def differences_page(user: User, status: int = 200, **filters: str) -> str:
    answer = sign_in_client(user).get(reverse("large_differences", args=["study"]), filters)
    assert answer.status_code == status
    return re.sub(r"\s+", " ", answer.content.decode())


def test_the_largest_differences_are_listed_with_their_texts(evaluation: Evaluation, owner: User) -> None:
    score_study(evaluation)
    address = f"{reverse('large_differences', args=['study'])}?judge=gpt&amp;aspect=quality"
    assert f'href="{address}">See the largest</a>' in page(owner)
    shown = differences_page(owner, judge="gpt", aspect="quality")
    # Scores 4, 5, 1: mean 10/3, the judge's 5; 5, 1, 2: mean 8/3, 5. Those by 2.33 come first.
    assert shown.count("+2.33") == 8
    assert shown.count("+1.67") == 8
    assert shown.index("+2.33") < shown.index("+1.67")
    assert "Because 4, alpha." in shown
    assert len(re.findall("<summary>Read</summary>", shown)) == 16


def test_a_response_in_a_comparison_is_linked_and_counts_as_seen(evaluation: Evaluation, owner: User) -> None:
    ann, judge = make_human(evaluation, "ann"), make_scoring_judge(evaluation)
    comparisons = [make_comparison(evaluation) for _ in range(12)]
    for number, one in enumerate(comparisons):
        make_scored_review(ann, one, {"overall": (1, 5)})
        make_judge_score(judge, one.response_a, 5 if number == 3 else 1)
    shown = differences_page(owner, judge="scorer", aspect="overall")
    far = comparisons[3]
    assert re.findall(r'href="([^"]*)">Open comparison', shown) == [reverse("comparison", args=["study", far.pk])]
    seen = Event.objects.filter(verb=SAW_VERDICTS, user=owner).values_list("object_id", flat=True)
    assert list(seen) == [far.pk]


def test_only_those_who_see_everything_have_the_list(
    evaluation: Evaluation, reviewer: User, stranger: User, owner: User
) -> None:
    score_study(evaluation)
    differences_page(reviewer, 403, judge="gpt", aspect="quality")
    differences_page(stranger, 404, judge="gpt", aspect="quality")
    differences_page(owner, 302, aspect="quality")  # to the scores
    differences_page(owner, 404, judge="nobody", aspect="quality")
    assert "No large differences" in differences_page(owner, judge="gpt", aspect="")


def test_the_api_lists_twenty(asking: ApiClient, evaluation: Evaluation) -> None:
    score_study(evaluation, models=("alpha", "beta"))
    items = asking.get("/evaluations/study/report/differences?judge=gpt&aspect=quality").json()["items"]
    assert len(items) == 20
    first = items[0]
    assert (first["query_id"], first["candidate"], first["judge"], first["n_reviewers"]) == ("q4", "alpha", 5, 3)
    assert Comparison.objects.filter(pk=first["comparison"], query__key="q4").exists()
    assert first["reviewers"] == pytest.approx(8 / 3)


def test_a_reviewer_has_the_scores_of_their_own_comparisons_alone(evaluation: Evaluation) -> None:
    score_study(evaluation)
    nothing = Comparison.objects.filter(evaluation=evaluation)
    assert build_report(evaluation, nothing, ReportRules()).scores == {}
