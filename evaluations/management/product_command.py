"""The base of the product's commands, with the arguments that several of them take."""

import os
import re
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain.errors import InputRefused
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge

# The parsed arguments of a command, as argparse holds them.
CommandOptions: TypeAlias = dict[str, Any]

# A label such as -2, or a column or category of such a name, with its value: none of our options looks like this.
NEGATIVE_KEY: Final = re.compile(r"-\d+|-\d*\.\d+|-[^-].*=.*|-=.*", re.DOTALL)


class ProductCommand(BaseCommand):
    """A command that ends with one line of error where its input is refused."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused


def find_evaluation(slug: str) -> Evaluation:
    evaluation = Evaluation.objects.filter(slug=slug).first()
    if evaluation is None:
        raise InputRefused(f"There is no evaluation at “{slug}”.")
    return evaluation


def find_judges(slug: str, names: str | Sequence[str]) -> list[Judge]:
    """The judges of these names, or of this name, in this order."""
    evaluation, wanted_names = find_evaluation(slug), [names] if isinstance(names, str) else names
    judges = Judge.objects.filter(evaluation=evaluation, name__in=wanted_names)
    judges = judges.select_related("evaluation", "endpoint", "rubric_version__rubric")
    judges_by_name = {judge.name: judge for judge in judges}
    for name in wanted_names:
        if name not in judges_by_name:
            raise InputRefused(f"“{evaluation.name}” has no judge “{name}”.")
    return [judges_by_name[name] for name in wanted_names]


def accept_negative_keys(parser: ArgumentParser) -> None:
    """Let ``--choice -2=A`` be written as it is. argparse takes only numbers below 0 for values."""
    parser._negative_number_matcher = NEGATIVE_KEY


def add_where_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--where",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="only comparisons of this category, candidate or metadata",
    )


def parse_key_value(pair: str, option: str = "--where") -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if any("\ud800" <= character <= "\udfff" for character in pair):  # bytes that are no text
        raise InputRefused(f"{option} {pair!a}: write it in UTF-8")
    if not key or not equals:
        example = "category=math" if option == "--where" else "train=80,dev=10,test=10"
        raise InputRefused(f"{option} {pair}: write it as key=value, for example {option} {example}")
    return key, value


@contextmanager
def replace_when_complete(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file and rename it at the end, so that no reader finds half a file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        with part.open("xb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
