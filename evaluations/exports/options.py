"""The options of an export, as asked for or as stored with its record."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from django.conf import settings

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import NamedFilter, parse_filter
from evaluations.domain.preferences import CombiningRule, parse_preference_rule
from evaluations.domain.splits import Split, SplitPart
from evaluations.formats.export_format import ExportFormat, ExportOptions
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.free_space import require_room
from evaluations.models.rubrics import list_aspect_keys
from evaluations.models.selection import get_default_split


@dataclass(frozen=True)
class ExportRequest:
    """The options of an export.

    ``policy``: None for the policy of the evaluation. ``where``: key and value pairs that must all hold, as must
    ``saved_filter``. ``split``: the parts between which rows are divided; ``part``: the only part that is exported, by
    default of the evaluation's own split.
    """

    policy: LabelPolicy | None = None
    aspect: str = ""
    combine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()
    saved_filter: NamedFilter | None = None
    part: SplitPart | None = None
    split: Split | None = None
    anonymised: bool = False

    @property
    def options(self) -> ExportOptions:
        scratch = str(settings.SCRATCH_DIR)
        return ExportOptions(self.aspect, self.combine, self.settings, scratch=scratch, require_room=require_room)


DEFAULT_REQUEST: Final = ExportRequest()
OVERALL: Final = "overall"  # the key of the aspect that asks which response is better on the whole


def get_export_format(name: str) -> ExportFormat:
    if name not in EXPORT_FORMATS:
        raise InputRefused(f"Unknown export format “{name}”. Choose one of {', '.join(EXPORT_FORMATS)}.")
    return EXPORT_FORMATS[name]


def complete_request(evaluation: Evaluation, export_format: ExportFormat, request: ExportRequest) -> ExportRequest:
    """The request with a value for everything left open; refused if it cannot be fulfilled."""
    if export_format.is_backup and request != DEFAULT_REQUEST:
        raise InputRefused("A backup contains everything. Remove the filters and options.")
    if export_format.wants_choice:
        request = complete_choice(evaluation, export_format, request)
    elif request.aspect or request.combine:
        raise InputRefused(f"{export_format.title} contains every aspect. Remove the aspect or combining rule.")
    split = request.split or (get_default_split(evaluation) if request.part else None)
    if request.part and split and request.part not in split.parts:
        raise InputRefused(f"The split has no {request.part} part.")
    return replace(
        request,
        policy=request.policy or LabelPolicy(evaluation.label_policy),
        settings=complete_settings(evaluation, export_format, request.settings),
        split=split,
    )


def complete_choice(evaluation: Evaluation, export_format: ExportFormat, request: ExportRequest) -> ExportRequest:
    """The request with the aspect or the rule that decides the preference of a comparison."""
    if not (request.aspect or request.combine):
        aspect, combine = suggest_choice(evaluation)
        request = replace(request, aspect=aspect, combine="" if export_format.one_aspect else combine)
    if export_format.one_aspect and not request.aspect:
        raise InputRefused(f"{export_format.title} contains votes on one aspect. Choose the aspect.")
    aspects = list(list_aspect_keys(evaluation).values())
    parse_preference_rule(aspect=request.aspect, combine=request.combine, aspects=aspects)
    return request


def suggest_choice(evaluation: Evaluation) -> tuple[str, str]:
    """The aspect or else the rule by which a comparison is decided unless another is chosen.

    Overall where the rubric asks for it, the only aspect where there is one, otherwise the majority of aspects.
    """
    keys = list(list_aspect_keys(evaluation).values())
    version = evaluation.review_rubric
    asked = [aspect.key for aspect in version.spec().aspects] if version else keys
    if OVERALL in asked and OVERALL in keys:
        return OVERALL, ""
    return (keys[0], "") if len(keys) == 1 else ("", str(CombiningRule.MAJORITY))


def complete_settings(evaluation: Evaluation, export_format: ExportFormat, chosen: Mapping[str, str]) -> dict[str, str]:
    settings = {setting.name: setting for setting in export_format.settings}
    for name, value in chosen.items():
        if name not in settings:
            raise InputRefused(f"{export_format.title} has no setting “{name}”.")
        if value in settings[name].values:
            continue
        if not settings[name].of_candidates:
            raise InputRefused(f"Unknown {name} “{value}”. Choose one of {', '.join(settings[name].values)}.")
        if not evaluation.candidates.filter(name=value).exists():
            raise InputRefused(f"Unknown model “{value}”. Choose a model of this evaluation as the {name}.")
    return {name: chosen.get(name, setting.initial) for name, setting in settings.items()}


def serialize_filters(request: ExportRequest) -> dict[str, object]:
    """The conditions that selected the comparisons, as the export's record keeps them."""
    filters: dict[str, object] = {"where": [list(pair) for pair in request.where], "part": request.part}
    if request.saved_filter:
        saved = request.saved_filter
        filters |= {"saved_filter": saved.name, "filter": saved.comparison_filter.as_json()}
    return {name: value for name, value in filters.items() if value}


def serialize_options(request: ExportRequest) -> dict[str, object]:
    """The options of an export, as its record keeps them."""
    options = {
        "aspect": request.aspect,
        "combine": request.combine,
        "settings": dict(request.settings),
        "split": asdict(request.split) if request.split else None,
        "anonymised": request.anonymised,
    }
    return {name: value for name, value in options.items() if value}


def parse_export_request(export: Export) -> ExportRequest:
    """The request of an export, read from its record."""
    filters, options = export.filters, export.options
    name = filters.get("saved_filter") or filters.get("slice", "")  # its key in records of 0.1
    return ExportRequest(
        policy=LabelPolicy(export.label_policy),
        aspect=options.get("aspect", ""),
        combine=options.get("combine", ""),
        settings=options.get("settings", {}),
        where=tuple((key, value) for key, value in filters.get("where", [])),
        saved_filter=NamedFilter(name, parse_filter(filters["filter"])) if "filter" in filters else None,
        part=SplitPart(filters["part"]) if "part" in filters else None,
        split=Split(**options["split"]) if "split" in options else None,
        anonymised=options.get("anonymised", False),
    )
