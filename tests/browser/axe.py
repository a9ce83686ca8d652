"""What axe finds wrong with a page, by the rules of WCAG 2.2 AA and good practice."""

from importlib.resources import files
from typing import Final

from playwright.sync_api import Page

AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text()
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# A text under review keeps the headings that its author gave it, in whatever order they come; so does what a package
# lays out.
RUN: Final = """async (tags) => {
    const found = await axe.run(document, { runOnly: { type: "tag", values: tags } });
    const quoted = (node) => document.querySelector(node.target[0])?.closest(".rendered, #swagger");
    // What the bar at the edge of the window covers comes out when one scrolls.
    const covered = (node) => node.failureSummary.includes("partially obscured");
    const ours = (one, node) =>
        !(one.id === "heading-order" && quoted(node)) && !(one.id === "target-size" && covered(node));
    const said = (one) => one.nodes.filter((node) => ours(one, node))
        .map((node) => node.target.join(" ") + ": " + node.failureSummary);
    return found.violations.map((one) => [one.id, ...said(one)]).filter((one) => one.length > 1);
}"""


def faults_found_by_axe(page: Page) -> list[list[str]]:
    """Each rule that is broken, with every place where it is."""
    page.evaluate(AXE)
    found: list[list[str]] = page.evaluate(RUN, TAGS)
    return found
