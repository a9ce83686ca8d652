"""What a person wants of an export, and the same as it stands on its record."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from evaluations.domain import InputRefused, LabelPolicy, NamedFilter, Split, SplitPart, deciding, filter_from
from evaluations.formats.leaving import Leaving, Options
from evaluations.formats.writing import LEAVING
from evaluations.models import Candidate, Evaluation, Export
from evaluations.services.exporting.casting import aspects_of
from evaluations.services.reporting.splitting import default_split


@dataclass(frozen=True)
class Wanted:
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
    def options(self) -> Options:
        """What the format is told."""
        return Options(self.aspect, self.combine, self.settings)


ANYTHING: Final = Wanted()


def offered() -> Sequence[Leaving]:
    """The formats that there are, in their order."""
    return tuple(LEAVING.values())


def format_of(name: str) -> Leaving:
    if name not in LEAVING:
        raise InputRefused(f"There is no export as “{name}”: choose one of {', '.join(LEAVING)}.")
    return LEAVING[name]


def settled(evaluation: Evaluation, leaving: Leaving, wanted: Wanted) -> Wanted:
    """The same with everything decided that was left open; refused where it cannot be had."""
    if leaving.is_whole and wanted != ANYTHING:
        raise InputRefused("A backup holds everything as it stands: it takes no filter and no option.")
    if leaving.wants_choice:
        if leaving.one_aspect and wanted.combine:
            raise InputRefused(f"{leaving.title} holds what each rater said of one aspect: name it (--aspect KEY).")
        deciding(aspect=wanted.aspect, combine=wanted.combine, aspects=list(aspects_of(evaluation).values()))
    elif wanted.aspect or wanted.combine:
        raise InputRefused(f"{leaving.title} holds every aspect: it takes no aspect and no combining rule.")
    split = wanted.split or (default_split(evaluation) if wanted.part else None)
    if wanted.part and split and wanted.part not in split.parts:
        raise InputRefused(f"The split leaves nothing for {wanted.part}.")
    return replace(
        wanted,
        policy=wanted.policy or LabelPolicy(evaluation.label_policy),
        settings=settings_of(evaluation, leaving, wanted.settings),
        split=split,
    )


def settings_of(evaluation: Evaluation, leaving: Leaving, given: Mapping[str, str]) -> dict[str, str]:
    """A value for every setting of the format."""
    known = {setting.name: setting for setting in leaving.settings}
    for name, value in given.items():
        if name not in known:
            raise InputRefused(f"{leaving.title} has no setting “{name}”.")
        if value in known[name].values or (known[name].of_candidates and is_candidate(evaluation, value)):
            continue
        if known[name].of_candidates:
            raise InputRefused(f"This evaluation has no model “{value}”: name one of its own as the {name}.")
        raise InputRefused(f"{name} is one of {', '.join(known[name].values)}, not “{value}”.")
    return {name: given.get(name, setting.initial) for name, setting in known.items()}


def is_candidate(evaluation: Evaluation, name: str) -> bool:
    return Candidate.objects.filter(evaluation=evaluation, name=name).exists()


def filters_of(wanted: Wanted) -> dict[str, Any]:
    """What chose the comparisons, as the record has it: nothing that was not asked for."""
    told: dict[str, Any] = {"where": [list(pair) for pair in wanted.where], "part": wanted.part}
    if wanted.sliced:
        told |= {"slice": wanted.sliced.name, "filter": wanted.sliced.wanted.as_json()}
    return {name: value for name, value in told.items() if value}


def options_of(wanted: Wanted) -> dict[str, Any]:
    """How the file is written, as the record has it."""
    told = {
        "aspect": wanted.aspect,
        "combine": wanted.combine,
        "settings": dict(wanted.settings),
        "split": asdict(wanted.split) if wanted.split else None,
        "anonymised": wanted.anonymised,
    }
    return {name: value for name, value in told.items() if value}


def wanted_of(export: Export) -> Wanted:
    """What was asked of this export, read from its record."""
    filters, options = export.filters, export.options
    return Wanted(
        policy=LabelPolicy(export.policy),
        aspect=options.get("aspect", ""),
        combine=options.get("combine", ""),
        settings=options.get("settings", {}),
        where=tuple((key, value) for key, value in filters.get("where", [])),
        sliced=NamedFilter(filters.get("slice", ""), filter_from(filters["filter"])) if "filter" in filters else None,
        part=SplitPart(filters["part"]) if "part" in filters else None,
        split=Split(**options["split"]) if "split" in options else None,
        anonymised=options.get("anonymised", False),
    )
