"""Worked examples of a rubric, as a list of forms: what a judge was given, and what it was to answer."""

from collections.abc import Mapping
from math import isfinite, nan
from typing import Any, Final, cast

from django import forms

from evaluations.domain import RubricKind, RubricSpec
from evaluations.forms.lists import Rows
from evaluations.forms.pairs import PairsField
from evaluations.forms.prose import ProseField

MOST_EXAMPLES: Final = 20
PREFIX: Final = "example"


class ExampleForm(forms.Form):
    """``one`` and ``many`` are what an example calls its verdict: on a single aspect, and by the keys of several."""

    one: str
    many: str

    input = ProseField(label="Query", rows=2)
    context = ProseField(rows=2, required=False)
    expected_output = ProseField(label="Reference answer", rows=2, required=False)

    def given(self) -> dict[str, Any]:
        """What was filled in, as the version keeps it."""
        filled = {name: value for name, value in self.cleaned_data.items() if value and name != "verdict"}
        verdicts: dict[str, Any] = {key: self.value_of(said) for key, said in self.cleaned_data["verdict"].items()}
        return filled | ({self.one: verdicts[""]} if "" in verdicts else {self.many: verdicts})

    def clean_verdict(self) -> dict[str, str]:
        verdicts: dict[str, str] = self.cleaned_data["verdict"]
        for said in verdicts.values():
            self.value_of(said)
        return verdicts

    def value_of(self, said: str) -> Any:
        """The verdict as the version keeps it, from what was typed."""
        return said


class VerdictField(PairsField):
    """A verdict alone, under an empty key, or one for each aspect: “clarity = A”, a line each."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}), **options)

    def prepare_value(self, value: Any) -> Any:
        alone = isinstance(value, Mapping) and value.get("")
        return alone or super().prepare_value(value)

    def clean(self, value: Any) -> dict[str, str]:
        text = str(value or "").strip()
        return {"": text} if text and "=" not in text else super().clean(value)


class PairExampleForm(ExampleForm):
    one, many = "choice", "choices"

    output_a = ProseField(label="Response A", rows=3)
    output_b = ProseField(label="Response B", rows=3)
    reasoning = ProseField(label="The judge’s reasons", rows=2, required=False)
    verdict = VerdictField(
        label="The judge’s verdict",
        help_text="A, tie or B. Where several aspects are asked, one a line, such as “clarity = A”.",
    )


class ScoreExampleForm(ExampleForm):
    one, many = "score", "scores"

    output = ProseField(label="Response", rows=3)
    reasoning = ProseField(label="The judge’s reasons", rows=2, required=False)
    verdict = VerdictField(
        label="The judge’s score",
        help_text="A number. Where several aspects are asked, one a line, such as “clarity = 4”.",
    )

    def value_of(self, said: str) -> float:
        try:
            score = float(said)
        except ValueError:
            score = nan
        if not isfinite(score):
            raise forms.ValidationError(f"“{said}” is no number: write the score as one.")
        return score


class Examples(forms.BaseFormSet):  # type: ignore[type-arg]  # Django's own has no parameters when it runs
    forms: list[ExampleForm]

    def given(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(form.given() for form in self.forms)


FORM_OF: Final[Mapping[RubricKind, type[ExampleForm]]] = {
    RubricKind.PAIRWISE: PairExampleForm,
    RubricKind.POINTWISE: ScoreExampleForm,
}
LIST_OF: Final = {
    kind: cast(
        "type[Examples]",
        forms.formset_factory(form, formset=Examples, extra=0, max_num=MOST_EXAMPLES, validate_max=True),
    )
    for kind, form in FORM_OF.items()
}


def example_values(spec: RubricSpec) -> Rows:
    return [{**example, "verdict": verdict_shown(example, spec)} for example in spec.few_shot]


def verdict_shown(example: Mapping[str, Any], spec: RubricSpec) -> dict[str, Any]:
    """As it is typed: alone under an empty key, or by the aspects in the order in which they are asked."""
    form = FORM_OF[spec.kind]
    if form.many not in example:
        return {"": number_shown(example.get(form.one, ""))}
    given = example[form.many]
    keys = dict.fromkeys((*(aspect.key for aspect in spec.aspects if aspect.key in given), *given))
    return {key: number_shown(given[key]) for key in keys}


def number_shown(value: Any) -> Any:
    return f"{value:.10g}" if isinstance(value, int | float) else value


def examples_shown(spec: RubricSpec) -> list[list[tuple[str, str]]]:
    """What each example holds, under the names that its form has for it."""
    form = FORM_OF[spec.kind]()
    return [
        [
            (str(form[name].label), str(form.fields[name].prepare_value(row[name])))
            for name in form.fields
            if row.get(name)
        ]
        for row in example_values(spec)
    ]
