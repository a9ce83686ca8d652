"""What a rubric asks about, as a list of forms: choices between two responses, or a scale for one."""

from collections.abc import Mapping
from typing import Any, Final, cast

from django import forms
from django.utils.text import slugify

from evaluations.domain import AspectSpec, Choice, RubricKind, RubricSpec
from evaluations.forms.lists import Rows
from evaluations.forms.pairs import PairsField
from evaluations.forms.prose import ProseField

MOST_ASPECTS: Final = 40
CODE: Final = {"class": "mono", "spellcheck": "false", "autocapitalize": "none", "autocomplete": "off"}


class AspectForm(forms.Form):
    name = forms.CharField(max_length=80)
    key = forms.SlugField(
        max_length=60,
        required=False,
        help_text="Its name in files and in the judge’s answer. Left empty, it is made from the name.",
        widget=forms.TextInput(attrs=CODE),
    )
    definition = ProseField(rows=2, required=False)
    reply_place = forms.IntegerField(
        label="Place in the judge’s answer", min_value=1, max_value=MOST_ASPECTS, required=False
    )
    reply_key = forms.CharField(
        label="Name in the judge’s answer",
        max_length=60,
        required=False,
        help_text="Only where it differs from the key.",
        widget=forms.TextInput(attrs=CODE),
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not given.get("key") and given.get("name"):
            given["key"] = slugify(given["name"])[:60].replace("-", "_")
            if not given["key"]:
                self.add_error("key", "No key can be made from this name: write one in plain letters.")
        return given

    def spec(self) -> AspectSpec:
        asked = {name: value for name, value in self.cleaned_data.items() if name != "reply_place"}
        return AspectSpec(**asked)


class PairAspectForm(AspectForm):
    offers_tie = forms.BooleanField(label="may be a tie", required=False, initial=True)
    offers_both_bad = forms.BooleanField(label="may be “both bad”", required=False)
    labels = PairsField(
        separator=";",
        label="Labels in the judge’s answer",
        max_length=300,
        required=False,
        help_text="Only where they differ, such as “tie = SAME”. Part them by semicolons.",
        widget=forms.TextInput(attrs=CODE),
    )

    def clean_labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.cleaned_data["labels"]
        unknown = sorted(set(labels) - set(Choice))
        if unknown:
            raise forms.ValidationError(f"“{unknown[0]}” is no choice: there are {', '.join(Choice)}.")
        return labels


class ScoreAspectForm(AspectForm):
    scale_min = forms.FloatField(label="Lowest score")
    scale_max = forms.FloatField(label="Highest score")
    scale_step = forms.FloatField(
        label="Step", required=False, help_text="1 for whole numbers only. Empty: every number between the ends."
    )
    tie_margin = forms.FloatField(
        label="Tie within",
        min_value=0,
        initial=0,
        help_text="Two responses whose scores differ by at most this much count as a tie.",
    )
    scale_labels = PairsField(
        label="What the scores mean",
        required=False,
        help_text="A score or a range a line, such as “5 = very good” or “0.1 - 0.3 = misses the point”.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class Aspects(forms.BaseFormSet):  # type: ignore[type-arg]  # Django's own has no parameters when it runs
    forms: list[AspectForm]

    def clean(self) -> None:
        keys = [form.cleaned_data["key"] for form in self.forms if form.cleaned_data.get("key")]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise forms.ValidationError(f"“{twice[0]}” stands here twice: an aspect is asked once.")
        if not self.forms:
            raise forms.ValidationError("A rubric asks about one aspect at least: add one.")

    def output_order(self) -> tuple[str, ...]:
        """Keys as the answer has them. Equal or missing places keep the order of the page."""
        in_reply = sorted(self.forms, key=lambda form: form.cleaned_data["reply_place"] or MOST_ASPECTS)
        return tuple(form.cleaned_data["key"] for form in in_reply)


FORM_OF: Final[Mapping[RubricKind, type[AspectForm]]] = {
    RubricKind.PAIRWISE: PairAspectForm,
    RubricKind.POINTWISE: ScoreAspectForm,
}
LIST_OF: Final = {
    kind: cast(
        "type[Aspects]",
        forms.formset_factory(form, formset=Aspects, extra=0, max_num=MOST_ASPECTS, validate_max=True),
    )
    for kind, form in FORM_OF.items()
}


def new_aspect(count: int) -> dict[str, Any]:
    return {"offers_tie": True, "scale_min": 1, "scale_max": 5, "scale_step": 1, "tie_margin": 0} | {
        "reply_place": count + 1
    }


def aspect_values(spec: RubricSpec) -> Rows:
    fields = FORM_OF[spec.kind].base_fields
    return [
        {name: value_shown(getattr(aspect, name)) for name in fields if name != "reply_place"}
        | {"reply_place": spec.output_order.index(aspect.key) + 1}
        for aspect in spec.aspects
    ]


def value_shown(value: Any) -> Any:
    """Whole numbers without “.0”."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
