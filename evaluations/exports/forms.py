"""The form of a new export: format, comparisons, label source, split."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import NamedFilter
from evaluations.domain.preferences import DERIVED_PREFIX, CombiningRule
from evaluations.domain.splits import Split, SplitPart, make_split
from evaluations.exports.options import DEFAULT_REQUEST, ExportRequest, get_export_format, suggest_choice
from evaluations.formats.export_format import ExportFormat
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.comparisons import SavedFilter
from evaluations.models.evaluations import Evaluation
from evaluations.web.forms import CleanedData

POLICY_CHOICES: Final = [
    (LabelPolicy.PEOPLE_THEN_JUDGES, "reviewers, otherwise judges"),
    (LabelPolicy.PEOPLE, "reviewers only"),
]
PART_CHOICES: Final = [("", "all parts"), *((part, f"{part} only") for part in SplitPart)]
COMBINED_CHOICES: Final = [
    (f"{DERIVED_PREFIX}{CombiningRule.MAJORITY}", "majority of aspects"),
    (f"{DERIVED_PREFIX}{CombiningRule.UNANIMOUS}", "unanimous aspects"),
]
RULE_HELP: Final = (
    "Overrides the choice above. For example weighted:helpfulness=2,safety=1 or lexicographic:safety,helpfulness."
)
DEFAULT_SHARES: Final = "train=80,dev=10,test=10"


class ExportForm(forms.Form):
    """The options of an export. Values sent for fields that the chosen format does not have are ignored."""

    written_as = forms.ChoiceField(label="Format", initial="jsonl", widget=forms.RadioSelect)
    aspect = forms.ChoiceField(label="Preference from", required=False)
    combine = forms.CharField(
        label="Custom rule",
        required=False,
        max_length=400,
        help_text=RULE_HELP,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    policy = forms.ChoiceField(label="Label source", choices=POLICY_CHOICES, required=False)
    saved_filter = forms.ChoiceField(label="Comparisons", required=False)
    part = forms.ChoiceField(label="Part", choices=PART_CHOICES, required=False)
    split = forms.BooleanField(
        label="Add the split part to each row",
        required=False,
        help_text="Splits prompts into train, dev and test. Clusters and identical prompts stay together.",
    )
    shares = forms.CharField(
        label="Split sizes (%)",
        required=False,
        max_length=60,
        initial=DEFAULT_SHARES,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    seed = forms.CharField(
        label="Split seed",
        required=False,
        max_length=60,
        help_text="Leave blank for the evaluation’s own split, which reports use too.",
    )
    anonymised = forms.BooleanField(
        label="Anonymize reviewers",
        required=False,
        help_text="Writes reviewer-1, reviewer-2 … Names inside notes and reasons are kept.",
    )

    def __init__(
        self,
        data: Mapping[str, object] | None,
        *,
        evaluation: Evaluation,
        backs_up: bool = False,
        within: str = "",
        format_name: str = "jsonl",
    ) -> None:
        """``backs_up``: whether to offer a backup. ``within``, ``format_name``: the filter and the format at first."""
        super().__init__(data)
        self.format_name = format_name
        self.fields["written_as"].initial = format_name
        offered = [
            export_format for export_format in EXPORT_FORMATS.values() if backs_up or not export_format.is_backup
        ]
        self.set_choices("written_as", [(offer.name, f"{offer.title}: {offer.purpose}") for offer in offered])
        self.evaluation = evaluation
        saved_filters = SavedFilter.objects.filter(evaluation=evaluation).order_by("name")
        self.saved_filters: dict[str, NamedFilter] = {saved.name: saved.named for saved in saved_filters}
        self.set_choices(
            "saved_filter", [("", "all"), *((name, f"saved filter “{name}”") for name in self.saved_filters)]
        )
        self.fields["saved_filter"].initial = within if within in self.saved_filters else ""
        self.offer_aspects(list(evaluation.aspects.order_by("name").values_list("key", "name")))
        self.fields["policy"].initial = evaluation.label_policy
        for setting in self.export_format.settings:
            names = evaluation.candidates.order_by("name").values_list("name", flat=True)
            candidates = [(name, name) for name in names] if setting.of_candidates else []
            self.fields[f"set_{setting.name}"] = forms.ChoiceField(
                label=setting.label,
                choices=[*setting.values.items(), *candidates],
                initial=setting.initial,
                required=False,
            )

    def offer_aspects(self, aspects: list[tuple[str, str]]) -> None:
        """Select the only aspect; offer to combine several if the format allows it."""
        self.only_aspect = aspects[0][0] if len(aspects) == 1 else ""
        combined = [] if self.only_aspect or self.export_format.one_aspect else [("Combined aspects", COMBINED_CHOICES)]
        self.set_choices("aspect", [*combined, *aspects])
        aspect, rule = suggest_choice(self.evaluation)
        self.fields["aspect"].initial = aspect or f"{DERIVED_PREFIX}{rule}"

    def set_choices(self, name: str, choices: list[Any]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def export_format(self) -> ExportFormat:
        """The format that is chosen so far."""
        try:
            return get_export_format(str(self.data.get("written_as") or self.format_name))
        except InputRefused:
            return get_export_format("jsonl")

    def list_format_fields(self) -> list[forms.BoundField]:
        combines = not (self.export_format.one_aspect or self.only_aspect)
        choice = ["aspect", *(["combine"] if combines else [])] if self.export_format.wants_choice else []
        return [self[name] for name in (*choice, *(f"set_{setting.name}" for setting in self.export_format.settings))]

    @property
    def is_whole(self) -> bool:
        """Whether the format holds the whole evaluation, so that it has no options."""
        return self.export_format.is_backup

    def list_row_fields(self) -> list[forms.BoundField]:
        return [] if self.is_whole else [self[name] for name in ("saved_filter", "policy", "anonymised")]

    def list_split_fields(self) -> list[forms.BoundField]:
        return [] if self.is_whole else [self[name] for name in ("part", "split", "shares", "seed")]

    def is_split(self) -> bool:
        return bool(self.data.get("part") or self.data.get("split"))

    def clean(self) -> CleanedData:
        cleaned = super().clean() or self.cleaned_data
        try:
            cleaned["parsed_split"] = self.build_split(cleaned)
        except InputRefused as refused:
            self.add_error("shares", str(refused))
        return cleaned

    def build_split(self, cleaned: dict[str, Any]) -> Split | None:
        shares = dict(pair.partition("=")[::2] for pair in (cleaned.get("shares") or DEFAULT_SHARES).split(","))
        split = make_split(cleaned.get("seed") or self.evaluation.slug, shares)
        return split if cleaned.get("split") or cleaned.get("part") else None

    def get_choice(self) -> tuple[str, str]:
        """The aspect and the rule that decide the preference, of which at most one is set. A written rule wins."""
        if not self.export_format.wants_choice:
            return "", ""
        rule = "" if self.export_format.one_aspect else self.cleaned_data["combine"].strip()
        chosen = "" if rule else self.cleaned_data["aspect"]
        return ("", chosen.removeprefix(DERIVED_PREFIX)) if chosen.startswith(DERIVED_PREFIX) else (chosen, rule)

    def export_request(self) -> ExportRequest:
        if self.is_whole:
            return DEFAULT_REQUEST
        cleaned = self.cleaned_data
        aspect, combine = self.get_choice()
        return ExportRequest(
            policy=LabelPolicy(cleaned["policy"]) if cleaned["policy"] else None,
            aspect=aspect,
            combine=combine,
            settings={
                setting.name: cleaned[f"set_{setting.name}"]
                for setting in self.export_format.settings
                if cleaned.get(f"set_{setting.name}")
            },
            saved_filter=self.saved_filters[cleaned["saved_filter"]] if cleaned["saved_filter"] else None,
            part=SplitPart(cleaned["part"]) if cleaned["part"] else None,
            split=cleaned["parsed_split"],
            anonymised=cleaned["anonymised"],
        )
