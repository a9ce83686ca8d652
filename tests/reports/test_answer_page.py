"""The first page of the results: a card for each judge, and who wins."""

import csv
import json
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluations.charts.decision_charts import build_decision_chart
from evaluations.charts.themes import PAGE_THEME
from evaluations.domain.decisions import DEFAULT_BARS
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.domain.reviews import Reveal
from evaluations.evaluation_settings.services import change_bars, change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.reports.answer import MOST_ROWS, AspectRow, Card
from evaluations.reports.selectors import build_report
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.imports import comparison_row, import_rows, score_row, verdict_row
from tests.factories.verdicts import make_judge_rater, make_judge_verdicts, make_review
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

ASPECTS = ("clarity", "depth")
CHOICES = ("A", "B", "tie")
MODELS = ("alpha", "beta")


def import_study(
    evaluation: Evaluation, items: int, raters: dict[str, float], *, judges: dict[str, float], seed: int = 3
) -> None:
    """Raters and judges who know the true choice of an aspect with these probabilities, else guess."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [comparison_row(f"q{number:03}") for number in range(items)]
    for aspect in ASPECTS:
        truth = rng.choice(3, size=items, p=(0.42, 0.42, 0.16))
        for kind, people in (("human", raters), ("judge", judges)):
            for name, knows in people.items():
                chosen = np.where(rng.random(items) < knows, truth, rng.choice(3, size=items))
                rows += [
                    verdict_row(f"q{number:03}", rater=name, rater_kind=kind, aspect=aspect, choice=CHOICES[choice])
                    for number, choice in enumerate(chosen)
                ]
    import_rows(evaluation, *[row for row in rows if "choice" not in row])
    import_rows(evaluation, *[row for row in rows if "choice" in row])


def page(client: Client) -> str:
    answer = client.get(reverse("report", args=["study"]))
    assert answer.status_code == 200
    return html_of(answer)


@pytest.fixture
def studied(evaluation: Evaluation) -> Evaluation:
    import_study(evaluation, 90, {"ann": 0.85, "ben": 0.85}, judges={"good": 0.85, "poor": 0.2})
    return evaluation


def test_each_judge_has_a_decision_the_most_usable_first(studied: Evaluation, owner_signed_in: Client) -> None:
    shown = page(owner_signed_in)
    good, poor = shown.index("Can stand in for a reviewer"), shown.index("Not reliable")
    assert good < poor
    assert shown.index(">good<") < shown.index(">poor<")
    assert "Reviewers agree with it" in shown
    assert '<svg class="interval"' in shown
    for gauge in ("Failed calls", "Flips with order", "Prefers first", "Longer response", "Own family"):
        assert f"<dt>{gauge}</dt>" in shown


def test_the_same_decisions_are_in_the_command_and_the_api(studied: Evaluation, owner: User) -> None:
    text, whole = StringIO(), StringIO()
    call_command("report", "study", stdout=text)
    assert "good: Can stand in for a reviewer" in text.getvalue()
    assert text.getvalue().index("good: Can stand") < text.getvalue().index("In brackets")
    call_command("report", "study", "--json", stdout=whole)
    printed = json.loads(whole.getvalue())
    asked = ApiClient(token_for(owner)).get("/evaluations/study/report?only=decisions").json()
    assert printed["decisions"] == asked["decisions"]
    decision = printed["decisions"]["good"]
    assert decision["outcome"] == "can stand in for a reviewer"
    assert decision["n"] == 90
    assert set(decision["aspects"]) == set(ASPECTS)
    assert decision["levels"]["difference"]["ci95"]
    assert decision["bars"]["stand_in"] == 0.05
    assert printed["coverage"]["good"]["judged"] == 90
    assert printed["leaders"]["clarity"]["good"]["models"] == 2


def test_the_answer_has_no_filters_and_old_addresses_with_filters_lead_to_agreement(
    studied: Evaluation, owner_signed_in: Client
) -> None:
    assert "More filters" not in page(owner_signed_in)
    moved = owner_signed_in.get("/e/study/results?judge=good&ties=without")
    assert moved["Location"] == "/e/study/results/agreement?judge=good&ties=without"


def test_a_filter_leaves_the_number_of_judges_that_decisions_are_controlled_over(studied: Evaluation) -> None:
    out = StringIO()
    call_command("report", "study", "--json", "--judge", "good", stdout=out)
    printed = json.loads(out.getvalue())
    assert list(printed["decisions"]) == ["good"]
    assert printed["decisions"]["good"]["level"] == pytest.approx(0.025)


def test_without_data_it_says_what_to_do(evaluation: Evaluation, owner_signed_in: Client) -> None:
    assert "Import the responses first." in page(owner_signed_in)
    make_comparison(evaluation)
    assert "Run a judge" in page(owner_signed_in)


def test_one_reviewer_decides_nothing(evaluation: Evaluation, owner_signed_in: Client) -> None:
    import_study(evaluation, 12, {"ann": 0.9}, judges={"gpt": 0.9})
    shown = page(owner_signed_in)
    assert "Not enough data (needs about 100 more comparisons with two reviews)" in shown
    assert "No comparison has the judge’s verdict and two reviews yet." in shown
    assert "Agreement with a reviewer" not in shown  # a column without a number
    flips = shown.partition("<dt>Flips with order</dt>")[2].partition("</dd>")[0]
    assert "n/a" in flips
    assert "limit" not in flips


def test_without_a_judge_reviewers_alone_say_who_wins(evaluation: Evaluation, owner_signed_in: Client) -> None:
    import_study(evaluation, 12, {"ann": 0.9, "ben": 0.9}, judges={})
    shown = page(owner_signed_in)
    assert "No judge yet" in shown
    assert '<a href="/e/study/judges">Run a judge</a> to compare it with your reviewers.' in shown
    assert "wins" in shown
    assert "<dt>Failed calls</dt>" not in shown


def test_judges_without_calls_are_one_line(studied: Evaluation, owner_signed_in: Client) -> None:
    make_judge_rater(studied, "fresh")
    assert "Not run yet: fresh." in page(owner_signed_in)


def test_a_judge_whose_calls_wait_or_that_scored_is_not_called_idle(
    studied: Evaluation, owner_signed_in: Client
) -> None:
    make_judge_verdicts(studied.comparisons.all()[0], judge="busy", kind="llm", as_stored="pending")
    import_rows(studied, *[score_row("q001", candidate=name, rater="scorer", rater_kind="judge") for name in MODELS])
    assert "Not run yet" not in page(owner_signed_in)


def test_a_judge_that_failed_on_half_is_not_reliable(evaluation: Evaluation, owner_signed_in: Client) -> None:
    people = [make_human(evaluation, name) for name in ("ann", "ben")]
    for number in range(12):
        made, choice = make_comparison(evaluation), "AB"[number % 2]
        for person in people:
            make_review(person, made, {"clarity": choice})
        make_judge_verdicts(made, judge="gpt", kind="llm", as_stored={"clarity": choice} if number < 6 else "refused")
    shown = page(owner_signed_in)
    assert "Not reliable" in shown
    assert "Calls failed on 50% of comparisons (limit 5%)." in shown


def test_who_may_not_see_judges_reads_of_reviewers(studied: Evaluation, reviewer: User, client: Client) -> None:
    change_evaluation(studied, {"reveal": Reveal.NEVER.value}, user=None)
    client.force_login(reviewer)
    moved = client.get(reverse("report", args=["study"]))
    assert moved["Location"] == "/e/study/results/agreement"
    assert client.get(reverse("report_part", args=["study", "decisions"])).status_code == 404


def test_a_stranger_is_told_nothing(studied: Evaluation, stranger: User, client: Client) -> None:
    client.force_login(stranger)
    assert client.get(reverse("report", args=["study"])).status_code == 404


def test_the_decisions_are_a_table_to_download(studied: Evaluation, owner_signed_in: Client) -> None:
    shown = page(owner_signed_in)
    address = "/e/study/results/plots/decisions-judges/file?as=csv"
    assert address in shown
    rows = list(csv.DictReader(StringIO(owner_signed_in.get(address).content.decode("utf-8-sig"))))
    found = {(row["judge_name"], row["aspect"]): row["outcome"] for row in rows}
    assert found["good", "all aspects"] == "can stand in for a reviewer"
    assert set(found) == {
        (judge, aspect) for judge in ("good", "poor") for aspect in ("all aspects", "Clarity", "Depth")
    }
    whole = next(row for row in rows if row["aspect"] == "all aspects")
    assert float(whole["judge_low"]) < float(whole["judge"]) < float(whole["judge_high"])


def test_no_two_columns_of_the_table_of_decisions_have_one_name(studied: Evaluation) -> None:
    report = build_report(studied, None, ReportRules(), parts=(ReportPart.DECISIONS,))
    table = build_decision_chart(report.decisions, PAGE_THEME).table
    assert len(set(table.columns)) == len(table.columns)
    assert len(set(table.headings)) == len(table.headings) == len(table.formatted_rows[0])
    first = dict(zip(table.headings, table.formatted_rows[0], strict=True))
    assert (first["Judge"], first["Aspect"]) == ("good", "all aspects")
    levels = report.decisions["good"].levels
    assert first["Judge agreement"] == f"{levels.judge.value:.0%}"
    points = round(100 * (levels.difference.value or 0))
    assert first["Difference, points"] == (f"{points:+d}".replace("-", "−") if points else "0")


def test_of_many_aspects_the_first_twelve_are_in_sight() -> None:
    row = AspectRow("clarity", "Clarity", None, None)
    card = Card(None, (row,) * 15)
    assert (len(card.first_rows), len(card.more_rows)) == (MOST_ROWS, 3)


def test_the_bars_and_a_late_change_of_them_are_printed(
    studied: Evaluation, owner: User, owner_signed_in: Client
) -> None:
    page(owner_signed_in)  # the first look
    studied.refresh_from_db()
    change_bars(studied, replace(DEFAULT_BARS, stand_in=0.08), user=owner)
    out = StringIO()
    call_command("report", "study", stdout=out)
    for shown in (out.getvalue(), page(owner_signed_in)):
        assert "after the results were first seen that day." in shown
    assert "Stand-in margin 8, Margin on one aspect 10" in out.getvalue()
