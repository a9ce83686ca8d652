"""Imports point down the house, never up, never sideways: read from the source, not from promises."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "evaluations"

# Which rooms of ours each room may import, itself left out.
MAY_IMPORT: dict[str, set[str]] = {
    "domain": set(),
    "stats": {"domain"},
    "judge": {"domain"},
    "formats": {"domain"},
    "rendering": {"domain"},
    "figures": {"domain", "stats"},
    "outside": {"domain"},
    "models": {"domain"},
    "verdicts": {"domain", "stats", "models"},
    "services": {"domain", "stats", "judge", "formats", "rendering", "figures", "outside", "models", "verdicts"},
    "tasks": {"domain", "services", "models"},
    "access": {"domain", "models"},
    "forms": {"domain", "models", "access", "services"},
    "templatetags": {"domain", "judge", "rendering", "models"},
    "web": {"domain", "access", "models", "verdicts", "forms", "services", "tasks"},
    "api": {"domain", "access", "models", "verdicts", "forms", "services", "tasks"},
    "management": {"domain", "access", "models", "forms", "services", "tasks"},
    "apps": set(),
}
# Whom a room may import from outside, where DESIGN says "only".
ONLY_IMPORTER = {
    "openai": {"outside"},
    "ninja": {"api"},
    "httpx": {"outside"},
    "httpx2": {"outside"},
    "celery": {"tasks"},
    "numpy": {"stats", "services", "verdicts"},
    "latex2mathml": {"rendering"},
    "markdown_it": {"rendering"},
    "mdit_py_plugins": {"rendering"},
    "nh3": {"rendering"},
    "pygments": {"rendering"},
    "pydantic": {"judge", "api"},
    "re2": {"judge"},
    "vl_convert": {"figures"},
    "django_htmx": {"web"},
}
WITHOUT_DJANGO = {"domain", "stats", "judge", "formats", "rendering", "figures", "outside"}
# The pipe: a service may import the services before it.
PIPE = [
    "announcing",
    "recording",
    "pacing",
    "repeating",
    "crashed_jobs",
    "preparing.preparing",
    "preparing.surveying",
    "preparing.inviting",
    "preparing.admitting",
    "preparing.relating",
    "preparing.slicing",
    "preparing.tagging",
    "importing.pairing",
    "importing.rating",
    "importing.counting",
    "importing.flagging",
    "importing.recounting",
    "importing.indexing",
    "importing.adding",
    "importing.bringing",
    "importing.scaling",
    "importing.sketching",
    "importing.foreseeing",
    "importing.knowing",
    "importing.naming",
    "importing.replacements",
    "importing.second_responses",
    "importing.scoring",
    "importing.resolving",
    "importing.writing",
    "importing.sweeping",
    "importing.sampling",
    "importing.fetching",
    "importing.mapping",
    "importing.guessing",
    "importing.likening",
    "importing.model_counts",
    "importing.previewing",
    "importing.fitting",
    "importing.importing",
    "importing.coupling",
    "judging.pricing",
    "judging.judging",
    "judging.archive",
    "judging.connecting",
    "judging.finding",
    "judging.budgeting",
    "judging.drafting",
    "judging.selecting",
    "judging.running",
    "judging.progressing",
    "judging.working",
    "judging.observing",
    "judging.estimating",
    "judging.trying",
    "judging.filing",
    "judging.recalling",
    "judging.aspect_answers",
    "judging.reusing",
    "judging.rereading",
    "judging.confirmation",
    "judging.sharing",
    "judging.claiming",
    "judging.cut_prompts",
    "judging.circuit_breaker",
    "judging.storing",
    "judging.lapsing",
    "judging.ruling",
    "judging.probing",
    "judging.conversing",
    "judging.handshake",
    "judging.batching",
    "judging.answering",
    "judging.attending",
    "reviewing.tallying",
    "reviewing.typesetting",
    "reviewing.drawing",
    "reviewing.guiding",
    "reviewing.filling",
    "reviewing.holding",
    "reviewing.releasing",
    "reviewing.picking",
    "reviewing.choosing",
    "reviewing.seating",
    "reviewing.assigning",
    "reviewing.extending",
    "reviewing.overseeing",
    "reviewing.posing",
    "reviewing.calibrating",
    "reviewing.taking",
    "reviewing.queueing",
    "reviewing.saying",
    "reviewing.revealing",
    "reviewing.presenting",
    "reviewing.keeping",
    "reviewing.marking",
    "reviewing.arranging",
    "reviewing.contrasting",
    "reviewing.stepping",
    "reviewing.reviewing",
    "adjudicating.disagreeing",
    "adjudicating.discussing",
    "adjudicating.adjudicating",
    "adjudicating.explaining",
    "adjudicating.retelling",
    "notifying.subscribing",
    "notifying.telling",
    "notifying.delivering",
    "reporting.browsing",
    "reporting.noticing",
    "reporting.scoring",
    "reporting.tabulating",
    "reporting.splitting",
    "reporting.narrowing",
    "reporting.items",
    "reporting.weighing",
    "reporting.grading",
    "reporting.trusting",
    "reporting.remembering",
    "reporting.asking",
    "reporting.assembling",
    "reporting.locating",
    "reporting.looks",
    "reporting.reporting",
    "reporting.plotting",
    "exporting.aliasing",
    "exporting.unfolding",
    "exporting.casting",
    "exporting.collecting",
    "exporting.judged",
    "exporting.reviewed",
    "exporting.labelled",
    "exporting.listing",
    "exporting.listing_scores",
    "exporting.agreeing",
    "exporting.composing",
    "exporting.wanting",
    "exporting.manifesting",
    "archiving.tables",
    "archiving.backing_up",
    "exporting.exporting",
    "exporting.lasting",
    "archiving.opening",
    "archiving.matching",
    "archiving.restoring",
    "import_undo",
    "exemplifying",
    "examining",
]


# The folders of the pipe, and the room itself: what is imported of them is a module in them.
STEPS = {""} | {name.partition(".")[0] for name in PIPE if "." in name}


def room_of(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    """Every imported module of a file, imports inside functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = [
    path for path in sorted(PACKAGE.rglob("*.py")) if "migrations" not in path.parts and path.name != "__init__.py"
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_the_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] == "evaluations" and len(parts) > 1 and parts[1] != room:
            assert parts[1] in MAY_IMPORT[room], f"{path.name} in {room}/ imports {module}"
        if parts[0] in ONLY_IMPORTER:
            assert room in ONLY_IMPORTER[parts[0]], f"{path.name} in {room}/ imports {module}"
        if parts[0] in ("django", "judgeweb"):
            assert room not in WITHOUT_DJANGO, f"{path.name} in {room}/ imports {module}"


SERVICES = [path for path in FILES if room_of(path) == "services"]


def place_in_pipe(parts: Sequence[str]) -> int:
    """Where a service stands: its step and module, or its module alone where the step has only one."""
    return PIPE.index(next(".".join(parts[:length]) for length in (1, 2) if ".".join(parts[:length]) in PIPE))


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_service_imports_only_earlier_steps_of_the_pipe(path: Path) -> None:
    place = place_in_pipe(path.relative_to(PACKAGE / "services").with_suffix("").parts)
    for module in imports_of(path):
        parts = module.split(".")
        if parts[:2] == ["evaluations", "services"] and ".".join(parts[2:]) not in STEPS:
            assert place_in_pipe(parts[2:]) < place, f"{path.stem} imports the later step {module}"


def test_the_document_names_every_service_in_the_order_of_the_pipe() -> None:
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    table = text[text.index("| step | modules") :]
    for step in dict.fromkeys(name.rpartition(".")[0] for name in PIPE if "." in name):
        (row,) = (line for line in table.splitlines() if line.strip().startswith(f"| `{step}/` |"))
        named = [row.find(f"`{name.removeprefix(f'{step}.')}`") for name in PIPE if name.startswith(f"{step}.")]
        assert -1 not in named, f"{step}: {named}"
        assert named == sorted(named), f"{step}: {named}"
