"""Imports go down the layers and along the written arrows: read from the source of every file."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from evaluations.jobs.nudges import WorkerTask

PACKAGE: Final = Path(__file__).parent.parent / "evaluations"

# From the bottom up: a package imports only from layers below its own.
LAYERS: Final[tuple[set[str], ...]] = (
    {"domain"},
    {"stats", "formats", "rendering", "replies", "net"},
    {"charts", "judge_prompts", "llm"},
    {"models"},
    {"audit", "access", "jobs", "templatetags"},
    {"verdicts", "rendered_texts"},
    {"visibility"},
    {"web"},
    {"api"},
)
PURE: Final = set().union(*LAYERS[:3])  # know neither Django nor the database
FEATURES: Final = {
    "evaluation_settings",
    "members",
    "rubrics",
    "imports",
    "comparisons",
    "judges",
    "reviews",
    "disagreements",
    "reports",
    "exports",
    "backups",
    "webhooks",
}
# A feature may use the services and selectors of another one along these arrows only.
ARROWS: Final = {
    "rubrics": {"evaluation_settings"},
    "judges": {"evaluation_settings", "rubrics"},
    "reviews": {"rubrics"},
    "members": {"reviews"},
    "disagreements": {"reviews"},
    "reports": {"disagreements", "evaluation_settings"},
    "comparisons": {"reviews", "reports"},
    "imports": {"comparisons", "rubrics"},
    "backups": {"comparisons", "judges", "members"},
    "exports": {"backups", "comparisons", "reports"},
    "webhooks": {"disagreements", "judges", "reviews"},
}
PUBLIC_MODULES: Final = {"services", "selectors"}
# On top of the features: these may use any of them.
OVER_FEATURES: Final = {"overview", "examples", "operations", "management", "tasks"}
# What collects the pages and endpoints. Nothing else imports a page, a form or an endpoint of another package.
COLLECTORS: Final = {"urls", "api_site", "context_processors"}
DOORS: Final = {"views", "forms", "api", "urls"}
# What shows the choices of others, and the functions that record that a person saw them and give them out.
UNRECORDED_READS: Final = {
    "build_vote_table": "reveal_vote_table",
    "find_comparisons": "reveal_found_comparisons",
    "find_comparisons_in_cell": "reveal_comparisons_in_cell",
    "find_disagreements": "reveal_disagreements",
    "get_disagreements": "reveal_disagreements",
    "get_full_report": "reveal_report",
    "build_report": "reveal_report",
    "record_disclosure": "a reveal_… of evaluations.visibility",
}
# Third-party packages that only some of ours may import.
ONLY_IMPORTED_BY: Final = {
    "cryptography": {"judges"},
    "openai": {"llm"},
    "httpx2": {"llm", "net"},
    "ninja": {"api", "api_site", *FEATURES, "overview", "operations"},
    "celery": {"tasks", "jobs"},
    "latex2mathml": {"rendering"},
    "markdown_it": {"rendering"},
    "mdit_py_plugins": {"rendering"},
    "nh3": {"rendering"},
    "pygments": {"rendering"},
    "re2": {"replies"},
    "vl_convert": {"charts"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES: Final = [path for path in sorted(PACKAGE.rglob("*.py")) if "migrations" not in path.parts]
MODULES: Final = {module_name(path): path for path in FILES}


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def layer_of(package: str) -> int | None:
    return next((number for number, packages in enumerate(LAYERS) if package in packages), None)


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    """Every imported module of a file, imports inside functions included."""
    return tuple(read_imports(path))


def read_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides which package is meant"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in MODULES else node.module or ""


def fault_of(module: str, imported: str) -> str | None:
    """What is wrong with this import between two packages of ours, or None."""
    source, target = package_of(module), package_of(imported)
    if not target or source == target or source in COLLECTORS:
        return None
    if target in COLLECTORS:
        return "only the project's URLconf includes it"
    if (layer := layer_of(source)) is not None:
        below = layer_of(target)
        return None if below is not None and below < layer else "imports go down the layers"
    if layer_of(target) is not None or target in {"tasks", "apps"}:
        return None
    if target in OVER_FEATURES:
        return None if source in OVER_FEATURES else "it stands above the features"
    parts = set(imported.split(".")[2:])
    if parts & DOORS and not parts & PUBLIC_MODULES and source not in OVER_FEATURES:
        return "pages, forms and endpoints are imported by the URLconf only"
    if source in OVER_FEATURES:
        return None
    if not parts & PUBLIC_MODULES:
        return "only services and selectors of another feature may be used"
    return None if target in ARROWS.get(source, set()) else "there is no such arrow between features"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_package_may_use(module: str) -> None:
    package = package_of(module)
    for imported in imports_of(MODULES[module]):
        if imported.split(".")[0] == "evaluations":
            assert (fault := fault_of(module, imported)) is None, f"{module} imports {imported}: {fault}"
        elif (allowed := ONLY_IMPORTED_BY.get(imported.split(".")[0])) is not None:
            assert package in allowed, f"{module} imports {imported}"
        if imported.split(".")[0] in ("django", "judgeweb"):
            assert package not in PURE, f"{module} imports {imported}"


@pytest.mark.parametrize("module", [module for module in MODULES if DOORS & set(module.split(".")[2:])])
def test_a_page_or_endpoint_gets_the_choices_of_others_only_with_a_record(module: str) -> None:
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        name = node.name if isinstance(node, ast.alias) else getattr(node, "attr", "")
        assert name not in UNRECORDED_READS, f"{module}: {name} leaves no record, use {UNRECORDED_READS[name]}"


# How answers become one choice: only `verdicts` decides who chose what.
CHOICE_RULES: Final = {"consolidate_orders", "choice_from_scores"}


@pytest.mark.parametrize("module", [module for module in MODULES if package_of(module) != "verdicts"])
def test_only_verdicts_makes_one_choice_of_scores_or_orders(module: str) -> None:
    names = {node.name for node in ast.walk(ast.parse(MODULES[module].read_text())) if isinstance(node, ast.alias)}
    assert not names & CHOICE_RULES


def test_nobody_imports_the_tasks_but_the_worker() -> None:
    """Whoever nudges a worker names the task: its module sees nearly everything."""
    assert [module for module, path in MODULES.items() if "evaluations.tasks" in imports_of(path)] == []


def test_every_task_that_is_nudged_by_its_name_is_there() -> None:
    defined = {
        node.name
        for node in ast.parse(MODULES["evaluations.tasks"].read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert {task.rpartition(".")[2] for task in WorkerTask} <= defined


def test_the_arrows_between_features_have_no_cycle_and_each_is_used() -> None:
    waiting = {feature: set(ARROWS.get(feature, ())) for feature in FEATURES}
    while free := {feature for feature, targets in waiting.items() if not targets}:
        waiting = {feature: targets - free for feature, targets in waiting.items() if feature not in free}
    assert not waiting, f"a cycle between {sorted(waiting)}"
    used = {
        (package_of(module), package_of(imported))
        for module, path in MODULES.items()
        for imported in imports_of(path)
        if imported.startswith("evaluations.")
    }
    assert {(source, target) for source, targets in ARROWS.items() for target in targets} <= used


def test_every_package_has_its_place() -> None:
    placed = set().union(*LAYERS) | FEATURES | OVER_FEATURES | COLLECTORS | {"", "apps"}
    assert {package_of(module) for module in MODULES} == placed


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        module: {imported for imported in imports_of(path) if imported in MODULES and imported != module}
        for module, path in MODULES.items()
    }
    while free := {module for module, imported in graph.items() if not imported}:
        graph = {module: imported - free for module, imported in graph.items() if module not in free}
    assert not graph, f"a cycle among {sorted(graph)}"


# Where SQL may be written besides the tables and a slice's sql.py: each has a temporary SQLite file of its own.
OWN_DATABASES: Final = ("evaluations.formats.seen_index", "evaluations.imports.pair_forecast")
SQL_STATEMENT: Final = re.compile(
    r"\s*(SELECT\s.+\sFROM\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|WITH\s+\w+\s+AS\s*\(|"
    r"CREATE\s+(TABLE|INDEX|VIRTUAL)\s|PRAGMA\s|VACUUM|ANALYZE\b)",
    re.DOTALL,
)


def database_dependence(path: Path) -> Iterator[str]:
    """Each SQL text and each question for the kind of database in a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr == "vendor":
            yield f"line {node.lineno}: .vendor"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL_STATEMENT.match(node.value):
            yield f"line {node.lineno}: {node.value[:40]!r}"


@pytest.mark.parametrize(
    "module",
    [
        module
        for module in MODULES
        if package_of(module) not in ("models", "migrations")
        and not module.endswith(".sql")
        and module not in OWN_DATABASES
    ],
)
def test_sql_and_differences_between_databases_are_in_models_and_sql_modules(module: str) -> None:
    assert list(database_dependence(MODULES[module])) == []


# Metaphors for what has a standard term.
NO_NAMES: Final = {"told", "said", "meant", "bout", "kin", "ballot", "seat", "pool"}


def names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_no_name_is_a_metaphor() -> None:
    names = {(module_name(path), name) for path in FILES for name in names_in(ast.parse(path.read_text()))}
    assert {where for where in names if where[1].lower().strip("_") in NO_NAMES} == set()
