import io
import json

import pytest
from django.core.management import CommandError, call_command

from evaluations.domain.roles import Role
from evaluations.examples.services import load_example
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Adjudication
from tests.factories.evaluations import make_evaluation, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_it_loads_the_example_for_its_owner_and_a_second_time_says_that_it_is_there() -> None:
    make_user("ada")
    assert said("load_example", "--owner", "ada") == "Loaded the example evaluation at example.\n"
    assert Membership.objects.get().role == Role.OWNER
    assert said("load_example") == "The example evaluation is already loaded.\n"
    assert Evaluation.objects.count() == 1


def test_its_report_tells_the_good_judge_from_the_one_that_prefers_length() -> None:
    call_command("load_example", verbosity=0)
    aspects = json.loads(said("report", "example", "--json"))["aspects"]
    assert len(aspects) == 6
    for aspect in aspects.values():
        pairs = aspect["human_human"]["pairs"]
        kappas = [pair["with_ties"]["cohen_kappa"]["value"] for pair in pairs]
        assert len(kappas) == 3
        assert all(0.35 <= kappa <= 0.85 for kappa in kappas)
    ceiling = aspects["helpfulness"]["human_human"]["pairs"]
    good, biased = (
        aspects["helpfulness"]["judges"][name]["judge_human"]["majority"]["with_ties"]["cohen_kappa"]["value"]
        for name in ("sample-judge", "sample-judge-long")
    )
    assert good > 0.9 * min(pair["with_ties"]["cohen_kappa"]["value"] for pair in ceiling)
    assert biased < 0.3


def test_without_an_owner_it_makes_no_account() -> None:
    assert load_example(owner=None) is not None
    assert not User.objects.exists()


def test_an_account_that_has_the_name_of_its_author_says_nothing_in_it() -> None:
    make_user("sample-lead")
    assert load_example(owner=make_user("ada")) is not None
    assert not Adjudication.objects.exists()


@pytest.mark.parametrize(("arguments", "reason"), [(["--owner", "nobody"], "No account “nobody”"), ([], "is taken")])
def test_what_it_cannot_do_is_one_clear_line_and_makes_nothing(arguments: list[str], reason: str) -> None:
    make_evaluation(slug="example")
    with pytest.raises(CommandError, match=reason) as refused:
        call_command("load_example", *arguments)
    assert "\n" not in str(refused.value)
    assert Evaluation.objects.count() == 1
