"""The page of a disagreement in a real browser: its keys, what is marked in the texts, and whom one can call."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.browser.axe import faults_found_by_axe
from tests.browser.conftest import NewPage, sign_in
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

PHONE = {"width": 390, "height": 844}
DIFFER = """
import json
from evaluations.domain.roles import Role
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_human, make_member
from tests.factories.verdicts import make_review
study = Evaluation.objects.get(slug="differing")
pat, quin = make_human(study, "pat"), make_human(study, "quin")
made = list(Comparison.objects.filter(evaluation=study).order_by("query__key"))
for place, comparison in enumerate(made):
    make_review(pat, comparison, {"clarity": "A", "depth": "A"})
    make_review(quin, comparison, {"clarity": "B", "depth": "B" if place == 1 else "A"})
review = Review.objects.get(comparison=made[0], rater=pat)
Span.objects.create(review=review, response=made[0].response_b, start=3, end=11, quote="reflects", comment="Does it?")
update_labels([one.pk for one in made])
for name in ("ada", "adam.k", "beate"):
    make_member(study, Role.ADJUDICATOR, name)
make_member(study, Role.REVIEWER, "adele")
print(json.dumps([one.pk for one in made]))
"""


@pytest.fixture(scope="module")
def numbers(product: Product, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Three comparisons on which two people differ about clarity; on the second about depth too."""
    file = tmp_path_factory.mktemp("differing") / "rows.jsonl"
    row = {"candidate_a": "alpha", "response_a": "Rayleigh scattering.", "candidate_b": "beta"}
    rows = [{**row, "response_b": "It reflects the sea.", "query_id": f"q{n}", "query": f"Why {n}?"} for n in range(3)]
    file.write_text("\n".join(map(json.dumps, rows)))
    run = product.manage
    run("create_evaluation", "differing", "--name", "Differing", "--rubric", "six-aspect", "--owner", "owner")
    run("import_comparisons", "differing", str(file))
    made: list[int] = json.loads(run("shell", "-c", DIFFER).stdout.splitlines()[-1])
    return made


def opened(page: Page, number: int, query: str = "") -> Page:
    page.goto(address(number, query))
    page.wait_for_load_state()  # what keys do comes with the scripts
    return page


def discussing(page: Page) -> Page:
    page.get_by_text("Discussion (").click()
    return page


def address(number: int, query: str = "") -> str:
    return f"/e/differing/review/disagreements/{number}{query}"


def here(page: Page) -> str:
    path: str = page.evaluate("location.pathname + location.search")
    return path


# ---- keys


def test_j_and_k_lead_to_the_next_and_the_previous(owner_page: Page, numbers: list[int]) -> None:
    page = opened(owner_page, numbers[0])
    page.keyboard.press("k")  # nothing stands before the first
    for key, number in (("j", numbers[1]), ("j", numbers[2]), ("k", numbers[1])):
        page.keyboard.press(key)
        page.wait_for_url(f"**{address(number)}")


def test_they_keep_to_what_was_filtered(owner_page: Page, numbers: list[int]) -> None:
    page = opened(owner_page, numbers[1], "?aspect=depth")
    expect(page.locator("#following")).to_have_count(0)
    page.keyboard.press("j")
    page.wait_for_timeout(300)
    assert here(page) == address(numbers[1], "?aspect=depth")
    opened(page, numbers[0], "?aspect=clarity").keyboard.press("j")
    page.wait_for_url(f"**{address(numbers[1], '?aspect=clarity')}")


def test_they_do_nothing_with_other_keys_or_while_somebody_writes(owner_page: Page, numbers: list[int]) -> None:
    page = opened(owner_page, numbers[0])
    field = discussing(page).get_by_label("Comment", exact=True)
    field.press_sequentially("just kidding")
    page.locator("[name=reason]").first.press_sequentially("jk")
    page.locator("[name=choice_clarity]").first.focus()
    page.keyboard.press("Control+j")
    page.keyboard.press("Alt+j")
    page.wait_for_timeout(300)
    assert here(page) == address(numbers[0])
    expect(field).to_have_value("just kidding")
    page.keyboard.press("j")  # a choice is no writing
    page.wait_for_url(f"**{address(numbers[1])}")


def test_without_single_keys_they_act_together_with_alt(
    new_page: NewPage, product: Product, numbers: list[int]
) -> None:
    product.manage("shell", "-c", USER.format(change="user.single_keys = False"))
    page = new_page()
    sign_in(page, product.manage("sign_in_link", "beate").stdout.split()[-1])
    opened(page, numbers[0]).keyboard.press("j")
    page.wait_for_timeout(300)
    assert here(page) == address(numbers[0])
    page.keyboard.press("Alt+j")
    page.wait_for_url(f"**{address(numbers[1])}")
    page.wait_for_load_state()
    page.keyboard.press("Alt+k")
    page.wait_for_url(f"**{address(numbers[0])}")


USER = """
user = User.objects.get(username="beate")
{change}
user.save()
"""


# ---- resolving by keys

SPLIT = """
import json
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_human
from tests.factories.verdicts import get_or_make_aspect, make_review
study = Evaluation.objects.get(slug="counted")
keys = list(study.review_rubric.rubric_aspects.order_by("position").values_list("aspect__key", flat=True))
made = list(Comparison.objects.filter(evaluation=study).order_by("pk"))
humans = [make_human(study, name) for name in ("pat", "quin", "rae")]
votes = [
    ({key: "A" for key in keys[:3]}, {key: "B" for key in keys[:3]}),
    ({key: "A" for key in keys}, {key: "A" for key in keys}, {key: "B" for key in keys}),
    ({key: "A" for key in keys}, {key: "tie" for key in keys}),
    ({keys[0]: "A", keys[1]: "A"}, {keys[0]: "B", keys[1]: "A"}, {keys[0]: "tie", keys[1]: "B"}),
]
for comparison, ballots in zip(made, votes):
    for human, ballot in zip(humans, ballots):
        make_review(human, comparison, ballot)
update_labels([one.pk for one in made])
print(json.dumps([one.pk for one in made]))
"""


@pytest.fixture(scope="module")
def counted(product: Product, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Four disagreements: three aspects split, six with a majority, six split, and one split beside a majority."""
    file = tmp_path_factory.mktemp("counted") / "rows.jsonl"
    row = {"candidate_a": "alpha", "response_a": "Yes.", "candidate_b": "beta", "response_b": "No."}
    file.write_text("\n".join(json.dumps({**row, "query_id": f"q{n}", "query": f"Is it {n}?"}) for n in range(4)))
    product.manage("create_evaluation", "counted", "--name", "Counted", "--rubric", "six-aspect", "--owner", "owner")
    product.manage("import_comparisons", "counted", str(file))
    made: list[int] = json.loads(product.manage("shell", "-c", SPLIT).stdout.splitlines()[-1])
    return made


def test_each_disagreement_costs_five_keys_and_the_last_leads_to_the_results(
    owner_page: Page, product: Product, counted: list[int]
) -> None:
    page, at = owner_page, "/e/counted/review/disagreements"
    page.goto(f"{at}/{counted[0]}")
    page.wait_for_load_state()
    expect(page.locator("[data-proposed]")).to_have_count(0)
    pressed = (["a", "t", "b", "Enter"], ["Enter"], ["Shift+T", "Enter"], ["b", "Enter"])
    for place, keys in enumerate(pressed):
        if place == 1:
            expect(page.locator("[data-proposed]")).to_have_count(6)
            expect(page.locator(".proposal").first).to_have_text("Proposed: majority, 2 of 3")
        assert len(keys) <= 5
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_url(f"**{at}/{counted[place + 1]}" if place < 3 else f"**{at}")
        page.wait_for_load_state()
    expect(page.get_by_role("heading", name="All resolved")).to_be_visible()
    expect(page.get_by_role("link", name="See results")).to_have_attribute("href", "/e/counted/results")
    stored = product.manage("shell", "-c", STORED).stdout.split()[-1]
    assert stored == "AtieB" + "A" * 6 + "tie" * 6 + "BA"
    page.get_by_role("button", name="Undo").click()  # of the last save, which had two aspects
    page.wait_for_url(f"**{at}/{counted[3]}")
    expect(page.locator("#progress")).to_contain_text("2 open aspects")


STORED = """
resolutions = Adjudication.objects.filter(comparison__evaluation__slug="counted").order_by("pk")
print("".join(resolutions.values_list("choice", flat=True)))
"""


def test_enter_stops_at_an_aspect_without_a_choice_and_leaves_it_open_if_pressed_again(
    owner_page: Page, numbers: list[int]
) -> None:
    page = opened(owner_page, numbers[1])  # clarity and depth are split
    page.keyboard.press("Enter")
    expect(page.locator("#progress")).to_have_text("Clarity has no choice.")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.locator("#progress")).to_contain_text("Depth has no choice. Press Enter again to leave it open.")
    assert here(page) == address(numbers[1])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address(numbers[2])}")
    page.keyboard.press("u")
    page.wait_for_url(f"**{address(numbers[1])}")
    expect(page.locator("#progress")).to_contain_text("2 open aspects")


# ---- what is read


def test_of_a_conversation_the_last_question_is_in_sight(owner_page: Page, product: Product, tmp_path: Path) -> None:
    said = [{"role": role, "content": f"{role} {n} " * 30} for n in range(3) for role in ("user", "assistant")]
    row = {"candidate_a": "alpha", "response_a": "Yes.", "candidate_b": "beta", "response_b": "No."}
    asked = {"role": "user", "content": "Is it so?"}
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({**row, "messages": [*said, asked], "query_id": "q"}))
    product.manage("create_evaluation", "talk", "--name", "Talk", "--owner", "owner")
    product.manage("import_comparisons", "talk", str(file))
    find = "print(Comparison.objects.get(evaluation__slug='talk').pk)"
    number = product.manage("shell", "-c", find).stdout.split()[-1]
    owner_page.goto(f"/e/talk/review/disagreements/{number}")
    expect(owner_page.get_by_text("Is it so?")).to_be_in_viewport(ratio=1)
    assert owner_page.evaluate("document.getElementById('query-text').scrollTop") > 0


# ---- what people marked


def test_a_marked_passage_is_seen_where_it_stands(owner_page: Page, numbers: list[int]) -> None:
    page = opened(owner_page, numbers[0])
    marked = page.evaluate("[...CSS.highlights.get('annotation')].map(range => range.toString())")
    assert marked == ["reflects"]
    expect(page.locator(".passages")).to_contain_text(re.compile("reflects.*Does it", re.DOTALL))


# ---- calling somebody


def test_names_of_readers_are_offered_while_one_writes_and_taken_by_keys(owner_page: Page, numbers: list[int]) -> None:
    page = discussing(opened(owner_page, numbers[0]))
    field, offered = page.get_by_label("Comment", exact=True), page.get_by_role("listbox").get_by_role("option")
    field.press_sequentially("See me@ad, @AD")
    assert offered.all_text_contents() == ["@ada", "@adam.k"]  # Adele has not reviewed it yet
    meant = page.locator("[aria-selected=true]")
    expect(meant).to_have_text("@ada")
    page.keyboard.press("ArrowUp")
    expect(meant).to_have_text("@adam.k")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", meant.get_attribute("id") or "")
    assert faults_found_by_axe(page) == []
    page.keyboard.press("Enter")
    expect(field).to_have_value("See me@ad, @adam.k ")
    expect(offered).to_have_count(0)
    field.press_sequentially("and @be")
    page.keyboard.press("Tab")
    expect(field).to_have_value("See me@ad, @adam.k and @beate ")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Comment").click()
    expect(page.locator(".thread li").last).to_contain_text("@adam.k and @beate")
    expect(page.locator("main > .notice")).to_have_count(0)  # nobody was named who cannot be called


def test_escape_and_a_finished_name_leave_the_field_to_itself(owner_page: Page, numbers: list[int]) -> None:
    page = discussing(opened(owner_page, numbers[0]))
    field, offered = page.get_by_label("Comment", exact=True), page.get_by_role("listbox").get_by_role("option")
    field.press_sequentially("@")
    expect(offered).to_have_count(3)
    page.keyboard.press("Escape")
    expect(offered).to_have_count(0)
    page.keyboard.press("Enter")
    field.press_sequentially("@adele @beate")
    expect(offered).to_have_count(0)
    page.keyboard.press("Enter")
    expect(field).to_have_value("@\n@adele @beate\n")
    field.press_sequentially("@ad")
    page.keyboard.press("Home")
    expect(offered).to_have_count(0)
    page.keyboard.press("End")
    field.press_sequentially("a")
    expect(offered).to_have_count(2)
    page.keyboard.press("Shift+Tab")
    expect(offered).to_have_count(0)


@pytest.mark.parametrize("phone", [False, True], ids=["mouse", "finger"])
def test_a_name_is_taken_by_mouse_and_by_finger(
    new_page: NewPage, owner_state: StorageState, numbers: list[int], phone: bool
) -> None:
    options: dict[str, Any] = {"viewport": PHONE, "is_mobile": True, "has_touch": True} if phone else {}
    page = discussing(opened(new_page(storage_state=owner_state, **options), numbers[0]))
    field = page.get_by_label("Comment", exact=True)
    field.press_sequentially("Well, @ad and more")
    for _ in " and more":
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("a")
    option = page.get_by_role("listbox").get_by_role("option", name="@adam.k")
    option.tap() if phone else option.click()
    expect(field).to_have_value("Well, @adam.k  and more")
    expect(field).to_be_focused()
    page.keyboard.type("!")
    expect(field).to_have_value("Well, @adam.k ! and more")
