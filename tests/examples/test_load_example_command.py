import io
import json

import pytest
from django.core.management import CommandError, call_command

from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Membership
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
    assert said("load_example") == "It was loaded before.\n"
    assert Evaluation.objects.count() == 1


def test_its_report_has_numbers_between_people_and_between_people_and_the_judge() -> None:
    call_command("load_example", verbosity=0)
    aspects = json.loads(said("report", "example", "--json"))["aspects"]
    assert len(aspects) == 6
    for aspect in aspects.values():
        (pair,) = aspect["human_human"]["pairs"]
        judge = aspect["judges"]["longest"]["judge_human"]["majority"]["with_ties"]
        assert pair["with_ties"]["cohen_kappa"]["value"] is not None
        assert judge["cohen_kappa"]["value"] is not None
        assert judge["n"] == 12


@pytest.mark.parametrize(("arguments", "reason"), [(["--owner", "nobody"], "no account “nobody”"), ([], "already")])
def test_what_it_cannot_do_is_one_clear_line_and_makes_nothing(arguments: list[str], reason: str) -> None:
    make_evaluation(slug="example")
    with pytest.raises(CommandError, match=reason) as refused:
        call_command("load_example", *arguments)
    assert "\n" not in str(refused.value)
    assert Evaluation.objects.count() == 1
