"""``python -m benchmarks.house``: figures of the source code, each with its target.

It parses the source and runs none of it. ``--root`` measures another checkout; ``--packages`` adds a line for each
package. The exit status is 1 if a target is missed.
"""

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

PRODUCT: Final = ("evaluations", "judgeweb")
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Names that Django, HTTP or a command line prescribe, so that several modules have to use them.
STANDARD_NAMES: Final = {"get", "post", "put", "patch", "delete", "handle", "add_arguments", "main", "clean", "save"}
LINES_BEFORE_SLICES: Final = 84_658  # of product Python without migrations, before the code was laid out by feature
MOST_LINES: Final = 0.93 * LINES_BEFORE_SLICES


@dataclass
class Module:
    name: str
    text: str
    is_package: bool
    imports: set[str] = field(default_factory=set)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        return ".".join(self.name.split(".")[:2])

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))


def read_modules(root: Path) -> dict[str, Module]:
    modules = {}
    for top in PRODUCT:
        for path in sorted((root / top).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            modules[name] = Module(name, path.read_text(), is_package)
    for module in modules.values():
        module.imports = set(imports_of(module, modules))
    return modules


def imports_of(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """The product modules that a module imports, also inside functions and for type checking."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in modules:
                    yield submodule
                elif node.module in modules:
                    yield node.module


def count_transitive_imports(modules: dict[str, Module]) -> dict[str, int]:
    """For each module, how many others it imports directly or through others; empty ``__init__`` files are left out."""
    counts = {}
    for name, module in modules.items():
        if module.is_package and not module.text.strip():
            continue
        reached, waiting = set(), [name]
        while waiting:
            new = modules[waiting.pop()].imports - reached
            reached |= new
            waiting += new
        counts[name] = len(reached - {name})
    return counts


def count_shared_names(modules: dict[str, Module]) -> tuple[int, int]:
    """How many names top-level functions have, and how many of these names occur in several modules."""
    homes = defaultdict(set)
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, Function) and node.name not in STANDARD_NAMES:
                homes[node.name].add(module.name)
    return len(homes), sum(len(modules_of_name) > 1 for modules_of_name in homes.values())


def count_comments(modules: dict[str, Module]) -> int:
    return sum(
        token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type:"))
        for module in modules.values()
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
    )


def count_any(modules: dict[str, Module]) -> int:
    """How often annotations say Any, outside formats, where rows of foreign files come in."""
    return sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for module in modules.values()
        if module.package != "evaluations.formats"
        for node in ast.walk(module.tree)
    )


def count_words(folder: Path) -> int:
    return sum(len(path.read_text().split()) for path in folder.rglob("*.md"))


@dataclass(frozen=True)
class Figure:
    """A measured value with the largest value that meets its target, if it has one."""

    name: str
    value: float
    most: float | None = None
    note: str = ""

    @property
    def is_missed(self) -> bool:
        return self.most is not None and self.value > self.most

    def __str__(self) -> str:
        target = "" if self.most is None else f"  (target: at most {self.most:g})"
        missed = "  MISSED" if self.is_missed else ""
        return f"{self.name:58}{self.value:>10,.10g}{target}{missed}{self.note and '  ' + self.note}"


def figure_of_longest(name: str, lengths: Iterable[tuple[int, str]], most: float) -> Figure:
    length, where = max(lengths)
    return Figure(name, length, most, where)


def figures_of(root: Path) -> Iterator[Figure]:
    modules = read_modules(root)
    functions = [(module.name, node) for module in modules.values() for node in module.functions]
    lines = sum(module.lines for module in modules.values())
    yield Figure("Product Python, lines without migrations", lines, MOST_LINES)
    transitive = sorted(count_transitive_imports(modules).values())
    yield Figure("Modules", len(transitive))
    yield Figure("Transitive imports, median", statistics.median(transitive), 25)
    yield Figure("Transitive imports, 90th percentile", transitive[int(0.9 * len(transitive))], 70)
    names, shared = count_shared_names(modules)
    yield Figure("Function names in several modules, %", round(100 * shared / names, 1), 10, f"{shared} of {names}")
    yield figure_of_longest("Longest module, lines", ((m.lines, m.name) for m in modules.values()), 450)
    yield figure_of_longest(
        "Longest function, lines",
        ((node.end_lineno - node.lineno + 1, f"{name}:{node.name}") for name, node in functions if node.end_lineno),
        60,
    )
    documented = sum(ast.get_docstring(node) is not None for _, node in functions)
    yield Figure("Functions with a docstring, %", round(100 * documented / len(functions), 1))
    yield Figure("Comments in 1,000 lines", round(1000 * count_comments(modules) / lines, 1))
    yield Figure("Uses of Any outside formats", count_any(modules), 200)
    yield figure_of_longest(
        "Longest line of a template, characters",
        (
            (len(line), str(path.relative_to(root)))
            for path in (root / "templates").rglob("*.html")
            for line in path.read_text().splitlines()
        ),
        160,
    )
    yield Figure("Words of docs", count_words(root / "docs"))
    yield Figure("Migrations", len(list((root / "evaluations" / "migrations").glob("0*.py"))), 2)


def packages_of(root: Path) -> Iterator[str]:
    modules = read_modules(root)
    transitive = count_transitive_imports(modules)
    lines, counts = Counter[str](), defaultdict(list)
    for name, count in transitive.items():
        lines[modules[name].package] += modules[name].lines
        counts[modules[name].package].append(count)
    yield f"{'package':36}{'modules':>9}{'lines':>9}{'median of transitive imports':>31}"
    for package, package_counts in sorted(counts.items(), key=lambda item: -lines[item[0]]):
        yield f"{package:36}{len(package_counts):>9}{lines[package]:>9,}{statistics.median(package_counts):>31g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, help="the checkout to read")
    parser.add_argument("--packages", action="store_true", help="add a line for each package")
    options = parser.parse_args()
    figures = list(figures_of(options.root))
    print(*figures, sep="\n")
    if options.packages:
        print("", *packages_of(options.root), sep="\n")
    sys.exit(any(figure.is_missed for figure in figures))


if __name__ == "__main__":
    main()
