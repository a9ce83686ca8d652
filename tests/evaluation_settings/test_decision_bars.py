"""The bars of decisions: set before looking, and a later change is told as such."""

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from evaluations.domain.decisions import DecisionBars
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.selectors import describe_bar_change, get_bars_set_at
from evaluations.evaluation_settings.services import (
    BAR_LABELS,
    change_bars,
    change_evaluation,
    read_bars,
    record_first_look,
)
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from tests.factories.evaluations import make_member, make_user
from tests.helpers.api_client import ApiClient

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PERCENT = {
    "stand_in": "5",
    "aspect": "10",
    "unreliable": "10",
    "failures": "5",
    "inconsistency": "40",
    "bias": "10",
    "half_width": "5",
}
BARS = "/evaluations/study/decision-bars"


def again(evaluation: Evaluation) -> Evaluation:
    return Evaluation.objects.get(pk=evaluation.pk)


def post(client: Client, **sent: str) -> int:
    return client.post(reverse("evaluation_decisions", args=["study"]), sent).status_code


def look_earlier(evaluation: Evaluation) -> None:
    """A look a moment ago: a change in the same millisecond would not be later."""
    record_first_look(evaluation)
    Evaluation.objects.filter(pk=evaluation.pk).update(results_seen_at=F("results_seen_at") - timedelta(milliseconds=5))


def page(client: Client) -> str:
    return client.get(reverse("evaluation_decisions", args=["study"])).content.decode()


# ---- what is stored


def test_a_new_evaluation_has_the_defaults_since_it_was_made(evaluation: Evaluation) -> None:
    assert read_bars(again(evaluation)) == DecisionBars()
    assert evaluation.bars_changed_at is None
    assert get_bars_set_at(evaluation) == evaluation.created_at


def test_every_bar_has_a_label() -> None:
    assert set(BAR_LABELS) == set(asdict(DecisionBars())) == set(PERCENT)


def test_a_change_is_dated_and_recorded(evaluation: Evaluation, owner: User) -> None:
    change_bars(evaluation, replace(DecisionBars(), stand_in=0.03, bias=0.2), user=owner)
    stored = again(evaluation)
    assert read_bars(stored) == replace(DecisionBars(), stand_in=0.03, bias=0.2)
    assert stored.bars_changed_at is not None
    assert get_bars_set_at(stored) == stored.bars_changed_at == evaluation.bars_changed_at
    event = Event.objects.latest("pk")
    assert (event.verb, event.user) == ("changed", owner)
    assert event.before == {"bar_stand_in": 0.05, "bar_bias": 0.1}
    assert event.after == {"bar_stand_in": 0.03, "bar_bias": 0.2}


def test_the_same_bars_again_are_no_change(evaluation: Evaluation) -> None:
    events = Event.objects.count()
    change_bars(evaluation, DecisionBars(), user=None)
    assert Event.objects.count() == events
    assert again(evaluation).bars_changed_at is None


def test_another_setting_does_not_date_the_bars(evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"name": "Other"}, user=None)
    assert again(evaluation).bars_changed_at is None


@pytest.mark.parametrize(
    ("name", "share", "sentence"),
    [
        ("stand_in", 0.0, "Stand-in margin must be more than 0 and less than 100."),
        ("failures", 1.0, "Failed calls must be more than 0 and less than 100."),
        ("bias", float("nan"), "Bias effect must be more than 0 and less than 100."),
        ("half_width", 0.6, "Spot-check precision must be more than 0 and 50 points or less."),
        ("unreliable", 0.04, "“Not reliable below” must be at least the stand-in margin."),
    ],
)
def test_a_bar_that_cannot_be_is_refused(evaluation: Evaluation, name: str, share: float, sentence: str) -> None:
    with pytest.raises(InputRefused) as refusal:
        change_bars(evaluation, replace(DecisionBars(), **{name: share}), user=None)
    assert (str(refusal.value), refusal.value.field) == (sentence, name)
    assert read_bars(again(evaluation)) == DecisionBars()


# ---- looking first


def test_only_the_first_look_is_stored_and_no_event(evaluation: Evaluation) -> None:
    events = Event.objects.count()
    stale = again(evaluation)
    record_first_look(evaluation)
    first = again(evaluation).results_seen_at
    assert first is not None
    record_first_look(stale)
    record_first_look(again(evaluation))
    assert again(evaluation).results_seen_at == first
    assert Event.objects.count() == events


def test_bars_that_were_set_before_looking_need_no_remark(evaluation: Evaluation) -> None:
    assert describe_bar_change(evaluation) is None
    change_bars(evaluation, replace(DecisionBars(), bias=0.2), user=None)
    assert describe_bar_change(again(evaluation)) is None
    record_first_look(evaluation)
    assert describe_bar_change(again(evaluation)) is None


def test_bars_that_were_changed_after_looking_are_told(evaluation: Evaluation) -> None:
    look_earlier(evaluation)
    change_bars(again(evaluation), replace(DecisionBars(), bias=0.2), user=None)
    assert "The decision limits were changed on" in str(describe_bar_change(again(evaluation)))


@pytest.mark.parametrize(
    ("seen", "changed", "sentence"),
    [
        ((2026, 11, 25), (2026, 11, 27), "changed on Nov 27, 2026, after the results were first seen on Nov 25."),
        ((2025, 12, 30), (2026, 1, 2), "changed on Jan 2, 2026, after the results were first seen on Dec 30, 2025."),
        ((2026, 11, 27), (2026, 11, 27, 5), "changed on Nov 27, 2026, after the results were first seen that day."),
    ],
)
def test_the_sentence_names_both_days(seen: tuple[int, ...], changed: tuple[int, ...], sentence: str) -> None:
    dated = Evaluation(results_seen_at=datetime(*seen, tzinfo=UTC), bars_changed_at=datetime(*changed, tzinfo=UTC))  # type: ignore[misc,arg-type]
    assert describe_bar_change(dated) == f"The decision limits were {sentence}"


# ---- the page


@pytest.mark.usefixtures("owner_signed_in")
def test_the_form_shows_and_takes_percent(client: Client, evaluation: Evaluation) -> None:
    told = page(client)
    for shown in ("Stand-in margin (points)", "Failed calls (%)", "Spot-check precision (± points)", 'value="40"'):
        assert shown in told
    assert "Results were first seen" not in told
    assert post(client, **{**PERCENT, "failures": "7", "stand_in": "2.5"}) == 302
    assert read_bars(again(evaluation)) == replace(DecisionBars(), failures=0.07, stand_in=0.025)
    assert 'value="2.5"' in page(client)
    assert 'value="7"' in page(client)


@pytest.mark.usefixtures("owner_signed_in")
def test_saving_the_form_as_it_is_changes_nothing(client: Client, evaluation: Evaluation) -> None:
    bars = DecisionBars(0.029, 0.07, 0.14, 0.123456, 0.57, 0.003, 0.5)
    change_bars(evaluation, bars, user=None)
    changed = again(evaluation).bars_changed_at
    form = client.get(reverse("evaluation_decisions", args=["study"])).context["form"]
    assert post(client, **{name: form[name].value() for name in PERCENT}) == 302
    assert read_bars(again(evaluation)) == bars
    assert again(evaluation).bars_changed_at == changed


@pytest.mark.usefixtures("owner_signed_in")
def test_defaults_are_restored(client: Client, evaluation: Evaluation) -> None:
    assert "Restore defaults" not in page(client)
    post(client, **{**PERCENT, "bias": "20"})
    assert "Restore defaults" in page(client)
    assert post(client, step="restore") == 302
    assert read_bars(again(evaluation)) == DecisionBars()


@pytest.mark.usefixtures("owner_signed_in")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bias", "", "This field is required"),
        ("bias", "much", "Enter a number"),
        ("bias", "0", "must be more than 0 and less than 100"),
        ("bias", "1e-400", "must be more than 0 and less than 100"),
        ("bias", "NaN", "Enter a number"),
        ("bias", "101", "less than or equal to 100"),
        ("half_width", "51", "50 points or less"),
        ("unreliable", "4", "must be at least the stand-in margin"),
    ],
)
def test_what_cannot_be_comes_back_with_the_reason(
    client: Client, evaluation: Evaluation, name: str, value: str, words: str
) -> None:
    answer = client.post(reverse("evaluation_decisions", args=["study"]), {**PERCENT, name: value})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert read_bars(again(evaluation)) == DecisionBars()


@pytest.mark.usefixtures("owner_signed_in")
def test_the_page_says_that_results_were_seen(client: Client, evaluation: Evaluation) -> None:
    look_earlier(evaluation)
    assert "A change now is printed with every decision." in page(client)
    post(client, **{**PERCENT, "bias": "20"})
    assert "after the results were first seen" in page(client)


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.ADJUDICATOR, Role.VIEWER])
def test_only_owners_and_managers_set_them(client: Client, evaluation: Evaluation, role: Role) -> None:
    client.force_login(make_member(evaluation, role))
    assert post(client, **{**PERCENT, "bias": "20"}) == 403
    client.force_login(make_user())
    assert post(client, **PERCENT) == 404
    assert read_bars(again(evaluation)) == DecisionBars()


# ---- programs


def test_a_program_changes_some_and_the_rest_stay(asking: ApiClient, evaluation: Evaluation) -> None:
    before = asking.get(BARS).json()
    assert before["inconsistency"] == 0.4
    changed = asking.patch(BARS, {"stand_in": 0.03}).json()
    assert changed == {**before, "stand_in": 0.03, "set_at": changed["set_at"]}
    assert changed["set_at"] > before["set_at"]
    assert asking.get(BARS).json() == changed


@pytest.mark.parametrize(("name", "value"), [("bias", 0), ("bias", 1), ("half_width", 0.6), ("aspect", None)])
def test_a_program_is_told_what_cannot_be(asking: ApiClient, evaluation: Evaluation, name: str, value: object) -> None:
    answer = asking.patch(BARS, {name: value})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, f"body.{name}")
