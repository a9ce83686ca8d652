"""The lists of aspects and worked examples in the rubric editor."""

from collections.abc import Mapping
from math import isfinite, nan
from typing import Final, cast

from django import forms
from django.utils.text import slugify

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.web.forms import CleanedData, KeyValueField, MultilineField

ROW_MOVES: Final = {"up": -1, "down": 1}

FormRows = list[dict[str, object]]


def rearrange_rows(rows: FormRows, step: str, *, new: Mapping[str, object], most: int) -> FormRows:
    """The rows after ``add``, ``remove 3``, ``up 3`` or ``down 3``; other steps change nothing."""
    word, _, number = step.partition(" ")
    place = int(number) if number.isdecimal() else -1
    if word == "add" and len(rows) < most:
        return [*rows, dict(new)]
    if word == "remove" and 0 <= place < len(rows):
        return rows[:place] + rows[place + 1 :]
    other = place + ROW_MOVES.get(word, 0)
    if 0 <= place < len(rows) and 0 <= other < len(rows):
        rows[place], rows[other] = rows[other], rows[place]
    return rows


def read_typed_rows(data: Mapping[str, object], form: type[forms.Form], prefix: str, most: int) -> FormRows:
    """The typed values of a list, not yet validated."""
    total = str(data.get(f"{prefix}-TOTAL_FORMS"))
    count = min(int(total), most) if total.isdecimal() and len(total) < 9 else 0
    return [{name: data.get(f"{prefix}-{row}-{name}", "") for name in form.base_fields} for row in range(count)]


MAX_ASPECTS: Final = 40
CODE_ATTRS: Final = {"class": "mono", "spellcheck": "false", "autocapitalize": "none", "autocomplete": "off"}


class AspectForm(forms.Form):
    name = forms.CharField(max_length=80)
    key = forms.SlugField(
        max_length=60,
        required=False,
        help_text="Used in files and replies. Generated from the name if blank.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )
    definition = MultilineField(rows=2, required=False)
    reply_place = forms.IntegerField(label="Position in the reply", min_value=1, max_value=MAX_ASPECTS, required=False)
    reply_key = forms.CharField(
        label="Key in the reply",
        max_length=60,
        required=False,
        help_text="Only if different.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )

    def clean(self) -> CleanedData:
        cleaned = super().clean() or {}
        if not cleaned.get("key") and cleaned.get("name"):
            cleaned["key"] = slugify(cleaned["name"])[:60].replace("-", "_")
            if not cleaned["key"]:
                self.add_error("key", "No key can be generated from this name. Enter one.")
        return cleaned

    def spec(self) -> AspectSpec:
        return AspectSpec(**{name: value for name, value in self.cleaned_data.items() if name != "reply_place"})


class PairAspectForm(AspectForm):
    offers_tie = forms.BooleanField(label="allow ties", required=False, initial=True)
    offers_both_bad = forms.BooleanField(label="allow “both bad”", required=False)
    labels = KeyValueField(
        separator=";",
        label="Labels in the reply",
        max_length=300,
        required=False,
        help_text="Only if different, such as “tie = SAME”. Separate with semicolons.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )


class ScoreAspectForm(AspectForm):
    scale_min = forms.FloatField(label="Lowest score")
    scale_max = forms.FloatField(label="Highest score")
    scale_step = forms.FloatField(label="Step", required=False, help_text="1 for whole numbers. Blank for any number.")
    tie_margin = forms.FloatField(
        label="Tie within",
        min_value=0,
        initial=0,
        help_text="Scores this close count as a tie.",
    )
    scale_labels = KeyValueField(
        label="Score meanings",
        required=False,
        help_text="One score or range per line, such as “5 = very good” or “0.1 - 0.3 = misses the point”.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class AspectFormSet(forms.BaseFormSet):  # type: ignore[type-arg]  # Django's own has no parameters when it runs
    forms: list[AspectForm]

    def clean(self) -> None:
        if not self.forms:
            raise forms.ValidationError("Add at least one aspect.")

    def output_order(self) -> tuple[str, ...]:
        """The keys in the order of the answer. Equal or missing places keep the order of the page."""
        in_reply = sorted(self.forms, key=lambda form: form.cleaned_data["reply_place"] or MAX_ASPECTS)
        return tuple(form.cleaned_data["key"] for form in in_reply)


ASPECT_FORMS: Final[Mapping[RubricKind, type[AspectForm]]] = {
    RubricKind.PAIRWISE: PairAspectForm,
    RubricKind.POINTWISE: ScoreAspectForm,
}

ASPECT_FORMSETS: Final = {
    kind: cast(
        "type[AspectFormSet]",
        forms.formset_factory(form, formset=AspectFormSet, extra=0, max_num=MAX_ASPECTS, validate_max=True),
    )
    for kind, form in ASPECT_FORMS.items()
}


def new_aspect_values(count: int) -> dict[str, object]:
    scale = {"scale_min": 1, "scale_max": 5, "scale_step": 1, "tie_margin": 0}
    return {"offers_tie": True, **scale, "reply_place": count + 1}


def initial_aspect_values(spec: RubricSpec) -> FormRows:
    fields = ASPECT_FORMS[spec.kind].base_fields
    return [
        {name: trim_decimal(getattr(aspect, name)) for name in fields if name != "reply_place"}
        | {"reply_place": spec.output_order.index(aspect.key) + 1}
        for aspect in spec.aspects
    ]


def trim_decimal(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


MAX_EXAMPLES: Final = 20
EXAMPLE_PREFIX: Final = "example"


class ExampleForm(forms.Form):
    """A worked example. ``one`` and ``many`` are its keys for a single verdict and for verdicts by aspect."""

    one: str
    many: str

    input = MultilineField(label="Query", rows=2)
    context = MultilineField(rows=2, required=False)
    expected_output = MultilineField(label="Reference answer", rows=2, required=False)

    def example(self) -> dict[str, object]:
        filled = {name: value for name, value in self.cleaned_data.items() if value and name != "verdict"}
        verdicts = {key: self.value_of(typed) for key, typed in self.cleaned_data["verdict"].items()}
        return filled | ({self.one: verdicts[""]} if "" in verdicts else {self.many: verdicts})

    def clean_verdict(self) -> dict[str, str]:
        verdicts: dict[str, str] = self.cleaned_data["verdict"]
        for typed in verdicts.values():
            self.value_of(typed)
        return verdicts

    def value_of(self, typed: str) -> object:
        return typed


class VerdictField(KeyValueField):
    """One verdict, under an empty key, or one per aspect: “clarity = A”, a line each."""

    def __init__(self, *, label: str, help_text: str) -> None:
        widget = forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"})
        super().__init__(widget=widget, label=label, help_text=help_text)

    def prepare_value(self, value: object) -> object:
        alone = isinstance(value, Mapping) and value.get("")
        return alone or super().prepare_value(value)

    def clean(self, value: object) -> dict[str, str]:
        text = str(value or "").strip()
        return {"": text} if text and "=" not in text else super().clean(value)


class PairExampleForm(ExampleForm):
    one, many = "choice", "choices"

    output_a = MultilineField(label="Response A", rows=3)
    output_b = MultilineField(label="Response B", rows=3)
    reasoning = MultilineField(label="Rationale", rows=2, required=False)
    verdict = VerdictField(
        label="Verdict",
        help_text="A, tie or B. For several aspects, one per line, such as “clarity = A”.",
    )


class ScoreExampleForm(ExampleForm):
    one, many = "score", "scores"

    output = MultilineField(label="Response", rows=3)
    reasoning = MultilineField(label="Rationale", rows=2, required=False)
    verdict = VerdictField(
        label="Score",
        help_text="A number. For several aspects, one per line, such as “clarity = 4”.",
    )

    def value_of(self, typed: str) -> float:
        try:
            score = float(typed)
        except ValueError:
            score = nan
        if not isfinite(score):
            raise forms.ValidationError(f"“{typed}” is not a number.")
        return score


class ExampleFormSet(forms.BaseFormSet):  # type: ignore[type-arg]  # Django's own has no parameters when it runs
    forms: list[ExampleForm]


EXAMPLE_FORMS: Final[Mapping[RubricKind, type[ExampleForm]]] = {
    RubricKind.PAIRWISE: PairExampleForm,
    RubricKind.POINTWISE: ScoreExampleForm,
}

EXAMPLE_FORMSETS: Final = {
    kind: cast(
        "type[ExampleFormSet]",
        forms.formset_factory(form, formset=ExampleFormSet, extra=0, max_num=MAX_EXAMPLES, validate_max=True),
    )
    for kind, form in EXAMPLE_FORMS.items()
}


def initial_example_values(spec: RubricSpec) -> FormRows:
    return [{**example, "verdict": initial_example_verdicts(example, spec)} for example in spec.few_shot]


def initial_example_verdicts(example: JsonMapping, spec: RubricSpec) -> dict[str, object]:
    """The verdicts as typed: under an empty key, or by aspect in the rubric's order."""
    form = EXAMPLE_FORMS[spec.kind]
    if form.many not in example:
        return {"": format_example_number(example.get(form.one, ""))}
    verdicts = example[form.many]
    keys = dict.fromkeys((*(aspect.key for aspect in spec.aspects if aspect.key in verdicts), *verdicts))
    return {key: format_example_number(verdicts[key]) for key in keys}


def format_example_number(value: object) -> object:
    return f"{value:.10g}" if isinstance(value, int | float) else value


def describe_examples(spec: RubricSpec) -> list[list[tuple[str, str]]]:
    """The contents of each example with the labels of its form."""
    form = EXAMPLE_FORMS[spec.kind]()
    return [
        [
            (str(form[name].label), str(form.fields[name].prepare_value(row[name])))
            for name in form.fields
            if row.get(name)
        ]
        for row in initial_example_values(spec)
    ]
