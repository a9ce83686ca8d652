"""``manage.py export SLUG --format NAME --out FILE …``"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evaluations.comparisons.selectors import get_saved_filter
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.splits import Split, SplitPart, make_split
from evaluations.exports.options import ExportRequest
from evaluations.exports.selectors import build_manifest, list_exclusion_reasons
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.formats.export_format import encode_manifest
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.management.product_command import (
    CommandOptions,
    ProductCommand,
    accept_negative_keys,
    add_where_argument,
    find_evaluation,
    parse_key_value,
    replace_when_complete,
)
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation


class Command(ProductCommand):
    help = "Export an evaluation to a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        accept_negative_keys(parser)
        parser.add_argument("slug", help="URL name of the evaluation")
        parser.add_argument("--format", required=True, help=f"one of {', '.join(EXPORT_FORMATS)}")
        parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write")
        parser.add_argument("--policy", choices=list(LabelPolicy), help="label source (default: the evaluation's)")
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--aspect", default="", metavar="KEY", help="aspect that decides the preference")
        choice.add_argument("--combine", default="", metavar="RULE", help="rule that combines several aspects")
        add_where_argument(parser)
        parser.add_argument("--saved-filter", default="", metavar="NAME", help="only comparisons of this saved filter")
        parser.add_argument("--part", choices=list(SplitPart), type=SplitPart, help="only this part of the split")
        parser.add_argument(
            "--split",
            nargs="?",
            const="",
            metavar="train=80,dev=10,test=10",
            help="add the part of each row, or write each part to its own file (percent)",
        )
        parser.add_argument("--seed", default="", help="seed of the split (default: the evaluation's)")
        parser.add_argument("--anonymise", action="store_true", help="write reviewer-1, reviewer-2 … instead of names")
        for name, values in list_format_settings().items():
            choices: CommandOptions = {"choices": sorted(values)} if values else {"metavar": "MODEL"}
            parser.add_argument(f"--{name}", dest=f"set_{name}", help="for formats with this setting", **choices)

    def handle(self, *args: object, slug: str, out: Path, **options: Any) -> None:
        evaluation = find_evaluation(slug)
        request = parse_export_options(evaluation, options)
        with replace_when_complete(out) as file:
            export = start_export(evaluation, written_as=options["format"], user=None, request=request)
            for block in stream_export(export, Comparison.objects.filter(evaluation=evaluation)):
                file.write(block)
        with replace_when_complete(out.with_name(f"{out.name}.manifest.json")) as file:
            file.write(encode_manifest(build_manifest(export)))
        self.stdout.write(f"Wrote {out}: rows {export.rows:,}, SHA-256 {export.sha256}")
        for reason, count in list_exclusion_reasons(export.format, export.counts["excluded"]):
            self.stdout.write(f"excluded: {count:,} {reason}")


def list_format_settings() -> dict[str, set[str]]:
    """Every setting of a format, with the values that any format takes; no values if it takes a candidate."""
    settings: dict[str, set[str]] = {}
    for export_format in EXPORT_FORMATS.values():
        for setting in export_format.settings:
            settings.setdefault(setting.name, set()).update(() if setting.of_candidates else setting.values)
    return settings


def parse_export_options(evaluation: Evaluation, options: CommandOptions) -> ExportRequest:
    settings = {name: options[f"set_{name}"] for name in list_format_settings() if options.get(f"set_{name}")}
    return ExportRequest(
        policy=LabelPolicy(options["policy"]) if options["policy"] else None,
        aspect=options["aspect"],
        combine=options["combine"],
        settings=settings,
        where=tuple(parse_key_value(pair) for pair in options["where"]),
        saved_filter=get_saved_filter(evaluation, options["saved_filter"]).named if options["saved_filter"] else None,
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
