"""The options of an export, as asked for or as stored with its record."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import NamedFilter, parse_filter
from evaluations.domain.preferences import parse_preference_rule
from evaluations.domain.splits import Split, SplitPart
from evaluations.formats.export_format import ExportFormat, ExportOptions
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.rubrics import list_aspect_keys
from evaluations.models.selection import get_default_split


@dataclass(frozen=True)
class ExportRequest:
    """``policy``: where it is to be another than the evaluation's. ``where``: key and value pairs that must all hold.

    ``sliced``: the filter that comparisons must pass besides.

    ``part``: only this one of the split; ``split``: all of it, each row saying in which part it is, or each part in a
    file of its own. With a part and no split the evaluation's own split counts.
    """

    policy: LabelPolicy | None = None
    aspect: str = ""
    combine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()
    sliced: NamedFilter | None = None
    part: SplitPart | None = None
    split: Split | None = None
    anonymised: bool = False

    @property
    def options(self) -> ExportOptions:
        return ExportOptions(self.aspect, self.combine, self.settings)


DEFAULT_REQUEST: Final = ExportRequest()


def get_export_formats() -> Sequence[ExportFormat]:
    return tuple(EXPORT_FORMATS.values())


def get_export_format(name: str) -> ExportFormat:
    if name not in EXPORT_FORMATS:
        raise InputRefused(f"There is no export as “{name}”: choose one of {', '.join(EXPORT_FORMATS)}.")
    return EXPORT_FORMATS[name]


def complete_request(evaluation: Evaluation, leaving: ExportFormat, wanted: ExportRequest) -> ExportRequest:
    """The request with a value for everything left open; refused if it cannot be fulfilled."""
    if leaving.is_backup and wanted != DEFAULT_REQUEST:
        raise InputRefused("A backup holds everything as it stands: it takes no filter and no option.")
    if leaving.wants_choice:
        if leaving.one_aspect and wanted.combine:
            raise InputRefused(f"{leaving.title} holds what each rater said of one aspect: name it (--aspect KEY).")
        parse_preference_rule(
            aspect=wanted.aspect, combine=wanted.combine, aspects=list(list_aspect_keys(evaluation).values())
        )
    elif wanted.aspect or wanted.combine:
        raise InputRefused(f"{leaving.title} holds every aspect: it takes no aspect and no combining rule.")
    split = wanted.split or (get_default_split(evaluation) if wanted.part else None)
    if wanted.part and split and wanted.part not in split.parts:
        raise InputRefused(f"The split leaves nothing for {wanted.part}.")
    return replace(
        wanted,
        policy=wanted.policy or LabelPolicy(evaluation.label_policy),
        settings=complete_settings(evaluation, leaving, wanted.settings),
        split=split,
    )


def complete_settings(evaluation: Evaluation, leaving: ExportFormat, chosen: Mapping[str, str]) -> dict[str, str]:
    known = {setting.name: setting for setting in leaving.settings}
    for name, value in chosen.items():
        if name not in known:
            raise InputRefused(f"{leaving.title} has no setting “{name}”.")
        if value in known[name].values:
            continue
        if not known[name].of_candidates:
            raise InputRefused(f"{name} is one of {', '.join(known[name].values)}, not “{value}”.")
        if not evaluation.candidates.filter(name=value).exists():
            raise InputRefused(f"This evaluation has no model “{value}”: name one of its own as the {name}.")
    return {name: chosen.get(name, setting.initial) for name, setting in known.items()}


def serialize_filters(wanted: ExportRequest) -> dict[str, object]:
    """The conditions that selected the comparisons, as the export's record keeps them."""
    filters: dict[str, object] = {"where": [list(pair) for pair in wanted.where], "part": wanted.part}
    if wanted.sliced:
        filters |= {"slice": wanted.sliced.name, "filter": wanted.sliced.wanted.as_json()}
    return {name: value for name, value in filters.items() if value}


def serialize_options(wanted: ExportRequest) -> dict[str, object]:
    """How the file is written, as the record has it."""
    options = {
        "aspect": wanted.aspect,
        "combine": wanted.combine,
        "settings": dict(wanted.settings),
        "split": asdict(wanted.split) if wanted.split else None,
        "anonymised": wanted.anonymised,
    }
    return {name: value for name, value in options.items() if value}


def parse_export_request(export: Export) -> ExportRequest:
    """The request of an export, read from its record."""
    filters, options = export.filters, export.options
    return ExportRequest(
        policy=LabelPolicy(export.label_policy),
        aspect=options.get("aspect", ""),
        combine=options.get("combine", ""),
        settings=options.get("settings", {}),
        where=tuple((key, value) for key, value in filters.get("where", [])),
        sliced=NamedFilter(filters.get("slice", ""), parse_filter(filters["filter"])) if "filter" in filters else None,
        part=SplitPart(filters["part"]) if "part" in filters else None,
        split=Split(**options["split"]) if "split" in options else None,
        anonymised=options.get("anonymised", False),
    )
