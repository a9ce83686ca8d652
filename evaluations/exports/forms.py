"""The form of a new export: format, comparisons, label source, split."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import NamedFilter
from evaluations.domain.preferences import DERIVED_PREFIX, CombiningRule
from evaluations.domain.splits import Split, SplitPart, make_split
from evaluations.exports.options import DEFAULT_REQUEST, ExportRequest, get_export_format, get_export_formats
from evaluations.models.comparisons import SavedFilter
from evaluations.models.evaluations import Evaluation
from evaluations.web.forms import CleanedData

POLICY_CHOICES: Final = [
    (LabelPolicy.PEOPLE_THEN_JUDGES, "people, and judges where no person voted"),
    (LabelPolicy.PEOPLE, "people alone"),
]
PART_CHOICES: Final = [("", "all parts"), *((part, f"{part} alone") for part in SplitPart)]
COMBINED_CHOICES: Final = [
    (f"{DERIVED_PREFIX}{CombiningRule.MAJORITY}", "most of the aspects"),
    (f"{DERIVED_PREFIX}{CombiningRule.UNANIMOUS}", "all of the aspects: none is against it"),
]
RULE_HELP: Final = (
    "In place of what is chosen above: weighted:helpfulness=2,safety=1 or lexicographic:safety,helpfulness."
)
NO_CHOICE: Final = "Say what makes the choice of a comparison: the label of one aspect, or a rule over several."
TWO_CHOICES: Final = "Choose what makes the choice, or write a rule: one of the two."
DEFAULT_SHARES: Final = "train=80,dev=10,test=10"


def list_format_choices(*, backs_up: bool) -> list[tuple[str, str]]:
    some = [one for one in get_export_formats() if backs_up or not one.is_backup]
    return [(one.name, f"{one.title} – {one.purpose}") for one in some]


class ExportForm(forms.Form):
    """The fields of a format that is not chosen are not asked; what is sent for them is passed over."""

    written_as = forms.ChoiceField(label="Format", initial="jsonl", widget=forms.RadioSelect)
    aspect = forms.ChoiceField(label="The choice is the label of", required=False)
    combine = forms.CharField(
        label="or a rule of your own",
        required=False,
        max_length=400,
        help_text=RULE_HELP,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    policy = forms.ChoiceField(label="A label may rest on", choices=POLICY_CHOICES, required=False)
    slice = forms.ChoiceField(label="Comparisons", required=False)
    part = forms.ChoiceField(label="Part", choices=PART_CHOICES, required=False)
    split = forms.BooleanField(
        label="Say of each row which part it is in",
        required=False,
        help_text="Split by query into train, dev and test; clusters, and queries with the same words, stay together.",
    )
    shares = forms.CharField(
        label="Shares of the split, per cent",
        required=False,
        max_length=60,
        initial=DEFAULT_SHARES,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    seed = forms.CharField(
        label="Seed of the split",
        required=False,
        max_length=60,
        help_text="Empty: the evaluation’s own, by which reports on a part go too.",
    )
    anonymised = forms.BooleanField(
        label="Call reviewers reviewer-1, reviewer-2 …",
        required=False,
        help_text="Everywhere but in free text: what people wrote in notes and reasons stays as it is.",
    )

    def __init__(
        self, data: Mapping[str, object] | None, *, evaluation: Evaluation, backs_up: bool = False, within: str = ""
    ) -> None:
        """``backs_up``: offers the whole of it, too. ``within``: the slice that is chosen already, if one is."""
        super().__init__(data)
        self.choose("written_as", list_format_choices(backs_up=backs_up))
        self.evaluation = evaluation
        saved_filters = SavedFilter.objects.filter(evaluation=evaluation).order_by("name")
        self.saved_filters: dict[str, NamedFilter] = {one.name: one.named for one in saved_filters}
        self.choose("slice", [("", "all"), *((name, f"of the slice “{name}”") for name in self.saved_filters)])
        self.fields["slice"].initial = within if within in self.saved_filters else ""
        self.offer_aspects(list(evaluation.aspects.order_by("name").values_list("key", "name")))
        self.fields["policy"].initial = evaluation.label_policy
        for setting in self.leaving.settings:
            names = evaluation.candidates.order_by("name").values_list("name", flat=True)
            candidates = [(name, name) for name in names] if setting.of_candidates else []
            self.fields[f"set_{setting.name}"] = forms.ChoiceField(
                label=setting.label,
                choices=[*setting.values.items(), *candidates],
                initial=setting.initial,
                required=False,
            )

    def offer_aspects(self, aspects: list[tuple[str, str]]) -> None:
        """A single one is chosen as it is; several can be combined where the format takes that."""
        self.only_aspect = aspects[0][0] if len(aspects) == 1 else ""
        combined = [] if self.only_aspect or self.leaving.one_aspect else [("All aspects together", COMBINED_CHOICES)]
        first = [] if self.only_aspect else [("", "choose …")]
        self.choose("aspect", [*first, *aspects, *combined])

    def choose(self, name: str, choices: list[Any]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def leaving(self) -> Any:
        """The format that is chosen so far."""
        try:
            return get_export_format(str(self.data.get("written_as") or "jsonl"))
        except InputRefused:
            return get_export_format("jsonl")

    def of_format(self) -> list[forms.BoundField]:
        combines = not (self.leaving.one_aspect or self.only_aspect)
        choice = ["aspect", *(["combine"] if combines else [])] if self.leaving.wants_choice else []
        return [self[name] for name in (*choice, *(f"set_{setting.name}" for setting in self.leaving.settings))]

    @property
    def is_whole(self) -> bool:
        """Everything is in it, so that nothing else is asked."""
        return bool(self.leaving.is_backup)

    def of_rows(self) -> list[forms.BoundField]:
        return [] if self.is_whole else [self[name] for name in ("slice", "policy", "anonymised")]

    def of_split(self) -> list[forms.BoundField]:
        return [] if self.is_whole else [self[name] for name in ("part", "split", "shares", "seed")]

    def is_split(self) -> bool:
        return bool(self.data.get("part") or self.data.get("split"))

    def clean(self) -> CleanedData:
        cleaned = super().clean() or self.cleaned_data
        try:
            cleaned["divided"] = self.divided(cleaned)
        except InputRefused as refused:
            self.add_error("shares", str(refused))
        return cleaned

    def divided(self, cleaned: dict[str, Any]) -> Split | None:
        shares = dict(pair.partition("=")[::2] for pair in (cleaned.get("shares") or DEFAULT_SHARES).split(","))
        split = make_split(cleaned.get("seed") or self.evaluation.slug, shares)
        return split if cleaned.get("split") or cleaned.get("part") else None

    def choice(self) -> tuple[str, str]:
        """The aspect, or the rule, that makes the one choice of a comparison where the format has one."""
        if not self.leaving.wants_choice:
            return "", ""
        rule = "" if self.leaving.one_aspect else self.cleaned_data["combine"].strip()
        chosen = self.cleaned_data["aspect"] or ("" if rule else self.only_aspect)
        if bool(chosen) == bool(rule):
            raise InputRefused(TWO_CHOICES if rule else NO_CHOICE)
        return ("", chosen.removeprefix(DERIVED_PREFIX)) if chosen.startswith(DERIVED_PREFIX) else (chosen, rule)

    def wanted(self) -> ExportRequest:
        if self.is_whole:
            return DEFAULT_REQUEST
        cleaned = self.cleaned_data
        aspect, combine = self.choice()
        return ExportRequest(
            policy=LabelPolicy(cleaned["policy"]) if cleaned["policy"] else None,
            aspect=aspect,
            combine=combine,
            settings={
                setting.name: cleaned[f"set_{setting.name}"]
                for setting in self.leaving.settings
                if cleaned.get(f"set_{setting.name}")
            },
            sliced=self.saved_filters[cleaned["slice"]] if cleaned["slice"] else None,
            part=SplitPart(cleaned["part"]) if cleaned["part"] else None,
            split=cleaned["divided"],
            anonymised=cleaned["anonymised"],
        )
