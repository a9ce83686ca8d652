"""``manage.py export SLUG --format NAME --out FILE …``"""

import os
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from evaluations.comparisons.selectors import get_saved_filter
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.splits import Split, SplitPart, make_split
from evaluations.exports.options import ExportRequest, get_export_formats
from evaluations.exports.selectors import build_manifest, encode_manifest, list_exclusion_reasons
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.management.key_values import CommandOptions, accept_negative_keys, parse_key_value
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation


class Command(BaseCommand):
    help = "Write an evaluation's comparisons with all their labels into a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        accept_negative_keys(parser)
        parser.add_argument("slug", help="the address of the evaluation")
        parser.add_argument(
            "--format", required=True, help=f"one of {', '.join(one.name for one in get_export_formats())}"
        )
        parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="replaced when the export is whole")
        parser.add_argument("--policy", choices=list(LabelPolicy), help="what a label may rest on, if not as set")
        one = parser.add_mutually_exclusive_group()
        one.add_argument("--aspect", default="", metavar="KEY", help="the aspect whose label is the choice")
        one.add_argument("--combine", default="", metavar="RULE", help="makes one choice of several aspects' labels")
        parser.add_argument(
            "--where",
            nargs="+",
            action="extend",
            default=[],
            metavar="KEY=VALUE",
            help="only comparisons of this category, candidate or metadata",
        )
        parser.add_argument("--slice", default="", metavar="NAME", help="only comparisons of this saved slice")
        parser.add_argument("--part", choices=list(SplitPart), type=SplitPart, help="only this part of the split")
        parser.add_argument(
            "--split",
            nargs="?",
            const="",
            metavar="train=80,dev=10,test=10",
            help="say of each row which part it is in, or write each part apart; per cent",
        )
        parser.add_argument("--seed", default="", help="of the split, if not the evaluation's own")
        parser.add_argument("--anonymise", action="store_true", help="reviewer-1 and so on instead of people's names")
        for name, values in list_format_settings().items():
            choices: CommandOptions = {"choices": sorted(values)} if values else {"metavar": "MODEL"}
            parser.add_argument(f"--{name}", dest=f"set_{name}", help="where the format has it", **choices)

    def handle(self, *args: object, slug: str, out: Path, **options: Any) -> None:
        evaluation = Evaluation.objects.filter(slug=slug).first()
        if evaluation is None:
            raise CommandError(f"There is no evaluation at “{slug}”.")
        try:
            wanted = parse_export_options(evaluation, options)
            with replace_when_complete(out) as file:
                export = start_export(evaluation, written_as=options["format"], user=None, wanted=wanted)
                for block in stream_export(export, Comparison.objects.filter(evaluation=evaluation)):
                    file.write(block)
            beside = out.with_name(f"{out.name}.manifest.json")
            with replace_when_complete(beside) as file:
                file.write(encode_manifest(build_manifest(export)))
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror or error}.") from error
        self.stdout.write(f"Wrote {out}: rows {export.rows:,}, SHA-256 {export.sha256}")
        for reason, count in list_exclusion_reasons(export.format, export.counts["excluded"]):
            self.stdout.write(f"left out: {count:,} – {reason}")


def list_format_settings() -> dict[str, set[str]]:
    """Every setting that a format has, with the values that any of them takes; none where it takes a candidate."""
    known: dict[str, set[str]] = {}
    for leaving in get_export_formats():
        for setting in leaving.settings:
            known.setdefault(setting.name, set()).update(() if setting.of_candidates else setting.values)
    return known


def parse_export_options(evaluation: Evaluation, options: CommandOptions) -> ExportRequest:
    settings = {name: options[f"set_{name}"] for name in list_format_settings() if options.get(f"set_{name}")}
    return ExportRequest(
        policy=LabelPolicy(options["policy"]) if options["policy"] else None,
        aspect=options["aspect"],
        combine=options["combine"],
        settings=settings,
        where=tuple(parse_key_value(pair) for pair in options["where"]),
        sliced=get_saved_filter(evaluation, options["slice"]).named if options["slice"] else None,
        part=options["part"],
        split=parse_split_options(evaluation, options),
        anonymised=options["anonymise"],
    )


def parse_split_options(evaluation: Evaluation, options: CommandOptions) -> Split | None:
    if options["split"] is None and not options["seed"]:
        return None
    seed = options["seed"] or evaluation.slug
    if not options["split"]:
        return Split(seed)
    pairs = [parse_key_value(pair, "--split") for pair in options["split"].split(",")]
    return make_split(seed, dict(pairs))


@contextmanager
def replace_when_complete(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file and rename it at the end, so that no reader finds half a file."""
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
