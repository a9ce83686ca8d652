"""Links and paths in the documents lead somewhere."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "evaluations", "benchmarks", "tests")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])
CODE = [path for folder in ("evaluations", "judgeweb", "templates") for path in (ROOT / folder).rglob("*.*")]

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?\s*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.MULTILINE)
# A path of the repository between backticks; one with a placeholder or "…" names no file.
PATH = re.compile(r"`((?:benchmarks|bin|docs|evaluations|judgeweb|static|templates|tests|\.ci)/[\w./-]*)[^`…]*`")
# A document that code or a message refers to; a decision may be named by its number alone.
REFERENCE = re.compile(r"\bdocs/[\w/-]+(?:\.md)?")


def test_headings_get_the_anchors_that_github_gives_them() -> None:
    assert anchors_in("# Who wins, and why?\n## `run` twice\n## `run` twice\n") == {
        "who-wins-and-why",
        "run-twice",
        "run-twice-1",
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    for target in relative_links(document.read_text()):
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        assert path.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in anchors_in(path.read_text()), f"{target}: no such heading"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_a_document_exists(document: Path) -> None:
    for path in PATH.findall(FENCE.sub("", document.read_text())):
        assert (ROOT / path).exists(), path


def test_every_document_that_code_refers_to_exists() -> None:
    for file in CODE:
        if file.suffix in {".py", ".html"}:
            for name in REFERENCE.findall(re.sub(r"https?://\S+", "", file.read_text())):
                assert list(ROOT.glob(f"{name.removesuffix('.md')}*.md")), f"{file.relative_to(ROOT)}: {name}"


def test_the_picture_of_the_architecture_names_every_package() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    packages = {path.parent.name for path in (ROOT / "evaluations").glob("*/__init__.py")} - {"templatetags"}
    assert packages <= {*re.findall(r"\w+", picture)}


def test_decisions_are_numbered_without_gaps_and_short() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        assert len(path.read_text().split()) <= 300, f"{path.name} is longer than 300 words"


def test_the_sample_files_of_the_quick_start_answer_the_same_24_prompts() -> None:
    samples = sorted((ROOT / "docs" / "samples").glob("*.jsonl"))
    prompts = [[json.loads(line)["query_id"] for line in path.read_text().splitlines()] for path in samples]
    assert [len(of_one) for of_one in prompts] == [24, 24]
    assert prompts[0] == prompts[1]


def test_every_screenshot_is_small_and_shown() -> None:
    for path in (ROOT / "docs" / "screenshots").iterdir():
        assert path.stat().st_size <= 250_000
        assert f"docs/screenshots/{path.name}" in (ROOT / "README.md").read_text()


def relative_links(text: str) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text)):
        if not re.match(r"[a-z]+:|/", target):
            yield target


def anchors_in(text: str) -> set[str]:
    """The anchors of all headings, by GitHub's rule: lower case, hyphens for spaces, other marks dropped."""
    seen: Counter[str] = Counter()
    anchors: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors
