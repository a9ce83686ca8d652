"""A pasted prompt on its way to a rubric, in a real browser: the prompt is shown as it is being written."""

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

PASTED = "Query: {question}\nOne: {answer_a}\nTwo: {answer_b}\nMind the {style}. Say [[A]] or [[B]]."


def test_a_pasted_prompt_is_mapped_changed_and_written(owner_page: Page) -> None:
    page = owner_page
    page.goto("/e/example/judges/rubrics/new")
    page.get_by_label("Prompt or document").fill(PASTED)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("{answer_a}")).to_have_value("response_a")
    expect(page.locator("main")).to_contain_text("Choose a meaning for {style}")
    page.get_by_label("{style}").select_option("literal")
    page.get_by_role("button", name="Continue").click()

    page.locator("#id_name").fill("in brackets")
    look = page.locator("#look")
    expect(look).to_contain_text("Mind the {style}.")
    page.get_by_label("Instructions").fill(PASTED.replace("Mind", "Forget"))
    page.locator("#id_name").focus()
    expect(look).to_contain_text("Forget the {style}.")
    page.get_by_role("button", name="Create rubric").click()
    expect(page.get_by_role("heading", name="in brackets, version 1")).to_be_visible()
    expect(page.locator(".prompt-text")).to_contain_text("Forget the {style}.")


def test_what_does_not_belong_to_a_choice_is_out_of_the_way(owner_page: Page) -> None:
    page = owner_page
    page.goto("/e/example/judges/rubrics/new")
    expect(page.get_by_label("Metric name")).to_be_hidden()
    page.get_by_label("Reference metric").check()
    expect(page.get_by_label("Metric name")).to_be_visible()
    page.goto("/e/example/judges/new")
    expect(page.get_by_label("Rule")).to_be_visible()
    expect(page.get_by_label("Model ID")).to_be_hidden()


def test_lines_of_the_page_are_removed_and_a_missing_placeholder_is_told_as_the_rubric_is_chosen(
    owner_page: Page, product: Product
) -> None:
    product.manage("shell", "-c", "Query.objects.update(reference='Nine.')")
    page = owner_page
    page.goto("/e/example/judges/rubrics/new")
    page.get_by_label("Prompt or document").fill(f"Skip to content\n{PASTED.replace('{style}', 'style')}\nCopy")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Remove lines").click()
    expect(page.locator(".prompt-text")).not_to_contain_text("Skip to content")
    page.get_by_role("button", name="Continue").click()
    page.locator("#id_name").fill("without reference")
    page.get_by_role("button", name="Create rubric").click()
    expect(page.locator("main")).to_contain_text("no placeholder for the reference answer")

    product.manage("create_judge", "example", "--name", "one", "--model", "m", "--base-url", "http://localhost:9/v1")
    page.goto("/e/example/judges/new")
    with page.expect_response("**/judges/new?endpoint=*"):
        page.locator("#id_endpoint").select_option(label="localhost:9")
    page.locator("#id_version").select_option(label="without reference, version 1")
    expect(page.locator("#left-out")).to_contain_text("no placeholder for the reference answer")
    expect(page.locator("#price")).to_be_visible()
