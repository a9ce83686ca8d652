import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import rename_candidates
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Candidate, SavedFilter
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, verdict_row
from tests.factories.verdicts import make_judge_rater

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def comparison_and_judge(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    make_judge_rater(evaluation)


def entered(evaluation: Evaluation, family: str) -> dict[str, str]:
    rows = [("candidate", row) for row in Candidate.objects.filter(evaluation=evaluation)]
    names = {f"name_{row.pk}": row.name for _, row in rows}
    return {**names, **{f"{kind}_{row.pk}": family for kind, row in [*rows, ("judge", evaluation.judges.get())]}}


def test_families_are_kept_and_the_record_says_who_changed_them(evaluation: Evaluation, client: Client) -> None:
    client.force_login(evaluation.memberships.get().user)
    address = reverse("model_families", args=["study"])
    assert "Responses" in client.get(address).content.decode()
    answer = client.post(address, entered(evaluation, " acme "), follow=True)
    assert "Saved." in answer.content.decode()
    assert set(Candidate.objects.values_list("family", flat=True)) == {"acme"}
    assert Judge.objects.get().family == "acme"
    event = Event.objects.filter(verb="changed families").get()
    assert set(event.after.values()) == {"acme"}
    client.post(address, entered(evaluation, "acme"))
    assert Event.objects.filter(verb="changed families").count() == 1


def test_a_candidate_and_a_judge_of_one_name_are_two(evaluation: Evaluation, client: Client) -> None:
    Candidate.objects.filter(evaluation=evaluation, name="alpha").update(name="same")
    Judge.objects.update(name="same")
    Candidate.objects.filter(evaluation=evaluation).exclude(name="same").update(family="acme")
    client.force_login(evaluation.memberships.get().user)
    answer = client.post(reverse("model_families", args=["study"]), entered(evaluation, "acme"), follow=True)
    assert "Saved." in answer.content.decode()
    event = Event.objects.filter(verb="changed families").get()
    assert event.before == {"candidate same": "", "judge same": ""}
    assert event.after == {"candidate same": "acme", "judge same": "acme"}


def test_a_name_that_is_too_long_changes_nothing(evaluation: Evaluation, client: Client) -> None:
    client.force_login(evaluation.memberships.get().user)
    answer = client.post(reverse("model_families", args=["study"]), entered(evaluation, "x" * 81))
    assert answer.status_code == 422
    assert not Candidate.objects.exclude(family="").exists()


def test_reviewers_may_not_say_who_is_kin(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert client.get(reverse("model_families", args=["study"])).status_code == 403


def rename(client: Client, evaluation: Evaluation, before: str, after: str) -> str:
    candidate = Candidate.objects.get(evaluation=evaluation, name=before)
    sent = entered(evaluation, "") | {f"name_{candidate.pk}": after}
    return client.post(reverse("model_families", args=[evaluation.slug]), sent, follow=True).content.decode()


def test_a_model_is_renamed_and_the_activity_says_so(evaluation: Evaluation, client: Client) -> None:
    client.force_login(evaluation.memberships.get().user)
    SavedFilter.objects.create(evaluation=evaluation, name="alpha only", filter={"candidate": "alpha"})
    assert "Saved." in rename(client, evaluation, "alpha", "zeta")
    event = Event.objects.get(verb="renamed")
    assert (event.before, event.after) == ({"name": "alpha"}, {"name": "zeta"})
    assert SavedFilter.objects.get().filter == {"candidate": "zeta"}


def test_a_name_that_another_model_has_is_refused(evaluation: Evaluation, client: Client) -> None:
    client.force_login(evaluation.memberships.get().user)
    assert "There is already a model “beta”." in rename(client, evaluation, "alpha", "beta")
    assert set(Candidate.objects.values_list("name", flat=True)) == {"alpha", "beta"}


def test_a_renamed_model_keeps_its_side_for_later_files(evaluation: Evaluation) -> None:
    """alpha is A. As zeta it sorts after beta, and is A all the same."""
    import_rows(evaluation, comparison_row("q7"))
    alpha = Candidate.objects.get(evaluation=evaluation, name="alpha")
    rename_candidates(evaluation, {alpha.pk: "zeta"}, user=None)
    again = import_rows(evaluation, comparison_row("q7", candidate_a="zeta"), comparison_row("q8", candidate_a="zeta"))
    assert (again.rows_unchanged, again.rows_stored) == (1, 1)
    rows = [verdict_row(key, candidate_a="beta", candidate_b="zeta", choice="A") for key in ("q7", "q8")]
    import_rows(evaluation, *rows)
    verdicts = Verdict.objects.filter(comparison__query__key__in=["q7", "q8"])
    assert list(verdicts.values_list("comparison__response_a__candidate__name", "choice")) == [("zeta", "B")] * 2


def test_no_model_is_renamed_during_an_import(evaluation: Evaluation) -> None:
    alpha = Candidate.objects.get(evaluation=evaluation, name="alpha")
    start_storing(preview_rows(evaluation, encode_jsonl([comparison_row("q7")])), skip_bad=False, user=None)
    with pytest.raises(InputRefused, match="An import is in progress"):
        rename_candidates(evaluation, {alpha.pk: "zeta"}, user=None)
