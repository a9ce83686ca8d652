"""Forms for a new rubric, a pasted prompt and a rubric version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import QueryDict

from evaluations.domain.rubrics import RubricKind, RubricSpec
from evaluations.rubrics.formsets import (
    ASPECT_FORMS,
    ASPECT_FORMSETS,
    CODE_ATTRS,
    EXAMPLE_FORMS,
    EXAMPLE_FORMSETS,
    EXAMPLE_PREFIX,
    MAX_ASPECTS,
    MAX_EXAMPLES,
    AspectFormSet,
    ExampleFormSet,
    FormRows,
    initial_aspect_values,
    initial_example_values,
    new_aspect_values,
    read_typed_rows,
    rearrange_rows,
)
from evaluations.web.forms import KeyValueField, MultilineField

REFERENCE_METRIC: Final = "reference-metric"
BUILTIN_CHOICES: Final = [
    (
        "six-aspect",
        ("Six aspects – pairwise: helpfulness, factuality, clarity, depth, engagement, safety (A, tie, B)"),
    ),
    (
        "qa-pairwise",
        ("Question answering – pairwise: relevant, faithful to the context, complete, fluent (A, SAME, B)"),
    ),
    ("overall", "Overall only, pairwise: one choice for each comparison; A, tie or B"),
    (
        "summary-rating",
        "Summary rating – pointwise, 1 to 5: free-text evaluation, then the rating",
    ),
    (
        REFERENCE_METRIC,
        "Reference metric – pointwise, 0 to 1: score against a reference answer",
    ),
]


class BuiltinForm(forms.Form):
    builtin = forms.ChoiceField(
        label="Rubric", choices=BUILTIN_CHOICES, initial=BUILTIN_CHOICES[1][0], widget=forms.RadioSelect
    )
    name = forms.CharField(max_length=120, required=False, help_text="Defaults to the template’s name.")
    metric = forms.CharField(
        label="Metric name",
        max_length=60,
        required=False,
        help_text="Example: Correctness or Faithfulness.",
    )
    reason_key = forms.CharField(
        label="Reason key",
        max_length=60,
        required=False,
        help_text="Defaults to “reason”.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )


class RubricNameForm(forms.Form):
    """The name of a new rubric, shown next to the editor of its first version."""

    kind = forms.ChoiceField(choices=[(kind.value, kind.value) for kind in RubricKind], widget=forms.HiddenInput)
    name = forms.CharField(label="Name", max_length=120, help_text="Example: Support answers.")


ASPECT_PREFIX: Final = "form"
PREVIEW_STEP: Final = "look"  # the step that changes nothing and shows the prompt
TEXT_ANSWER: Final = "text"
ANSWER_CHOICES = [
    ("json", "JSON: rationale, then verdict"),
    ("two_step", "Two steps: free text, then the verdict in a second request"),
    (TEXT_ANSWER, "Plain text (one aspect): verdict matched by the pattern below"),
]

ANSWER_FIELDS: Final = ("placeholders", "answer", "pattern", "rationale_key", "choices_key")


class RubricVersionForm(forms.Form):
    instructions = MultilineField(
        rows=12,
        strip=False,  # a pasted prompt is sent word for word
        help_text=(
            "The aspects, responses and output format are added automatically, unless you map placeholders below."
        ),
    )
    placeholders = KeyValueField(
        required=False,
        help_text=(
            "For a custom prompt that is sent verbatim. One per line, such as “{$candidate_A} = "
            "response_a” or “{{ input }} = query”. Fields: query, context, reference, response_a, "
            "response_b, response (pointwise), examples, verdict_key, rationale_key, literal (keep "
            "as is)."
        ),
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    answer = forms.ChoiceField(label="Output format", choices=ANSWER_CHOICES, widget=forms.RadioSelect)
    pattern = forms.CharField(
        label="Verdict pattern",
        max_length=300,
        required=False,
        help_text="Regular expression whose group is the label. Defaults to the last line.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )
    rationale_key = forms.CharField(
        label="Rationale key",
        max_length=60,
        widget=forms.TextInput(attrs=CODE_ATTRS),
        help_text="JSON only.",
    )
    choices_key = forms.CharField(
        label="Verdicts key",
        max_length=60,
        required=False,
        widget=forms.TextInput(attrs=CODE_ATTRS),
        help_text="Leave blank to put verdicts next to the rationale.",
    )
    for_reviews = forms.BooleanField(
        label="Use this version for reviews",
        required=False,
        initial=True,
        help_text="Existing judges keep their version. Create a new judge to use this one.",
    )

    def clean_instructions(self) -> str:
        instructions: str = self.cleaned_data["instructions"]
        if not instructions.strip():
            raise forms.ValidationError("Enter the instructions.")
        return instructions

    def answer_format(self) -> str:
        answer, pattern = self.cleaned_data["answer"], self.cleaned_data["pattern"].strip()
        return f"{answer}:{pattern}" if answer == TEXT_ANSWER and pattern else str(answer)


@dataclass
class RubricEditor:
    """The three forms of the editor."""

    kind: RubricKind
    version: RubricVersionForm
    aspects: AspectFormSet
    examples: ExampleFormSet

    @property
    def is_pairwise(self) -> bool:
        return self.kind == RubricKind.PAIRWISE

    @property
    def opens_answer(self) -> bool:
        """Whether the answer section is unfolded: it has unusual values, or errors."""
        form = self.version
        wrong = any(form[name].errors for name in ANSWER_FIELDS)
        return wrong or bool(form["placeholders"].value()) or form["answer"].value() != "json"

    @property
    def opens_examples(self) -> bool:
        return any(self.examples.errors) if self.examples.is_bound else bool(self.examples.forms)

    def is_valid(self) -> bool:
        return self.version.is_valid() & self.aspects.is_valid() & self.examples.is_valid()

    def spec(self) -> RubricSpec:
        cleaned = self.version.cleaned_data
        return RubricSpec(
            kind=self.kind,
            aspects=tuple(form.spec() for form in self.aspects.forms),
            output_order=self.aspects.output_order(),
            answer_format=self.version.answer_format(),
            few_shot=tuple(form.example() for form in self.examples.forms),
            **{name: cleaned[name] for name in ("instructions", "placeholders", "rationale_key", "choices_key")},
        )


def make_editor(kind: RubricKind, values: Mapping[str, object], aspects: FormRows, examples: FormRows) -> RubricEditor:
    """The unbound forms with these values."""
    return RubricEditor(
        kind,
        RubricVersionForm(initial=dict(values)),
        ASPECT_FORMSETS[kind](initial=aspects, prefix=ASPECT_PREFIX),
        EXAMPLE_FORMSETS[kind](initial=examples, prefix=EXAMPLE_PREFIX),
    )


def make_editor_for_spec(spec: RubricSpec) -> RubricEditor:
    return make_editor(
        spec.kind, initial_version_values(spec), initial_aspect_values(spec), initial_example_values(spec)
    )


def bind_editor(kind: RubricKind, data: QueryDict) -> RubricEditor:
    return RubricEditor(
        kind,
        RubricVersionForm(data),
        ASPECT_FORMSETS[kind](data, prefix=ASPECT_PREFIX),
        EXAMPLE_FORMSETS[kind](data, prefix=EXAMPLE_PREFIX),
    )


def rearrange_editor(kind: RubricKind, data: QueryDict, step: str) -> RubricEditor:
    """The typed values, unchecked, after a step such as ``add``, ``up 3`` or ``example remove 0``."""
    aspects = read_typed_rows(data, ASPECT_FORMS[kind], ASPECT_PREFIX, MAX_ASPECTS)
    examples = read_typed_rows(data, EXAMPLE_FORMS[kind], EXAMPLE_PREFIX, MAX_EXAMPLES)
    if step.startswith(f"{EXAMPLE_PREFIX} "):
        step = step.removeprefix(f"{EXAMPLE_PREFIX} ")
        examples = rearrange_rows(examples, step, new={}, most=MAX_EXAMPLES)
    else:
        aspects = rearrange_rows(aspects, step, new=new_aspect_values(len(aspects)), most=MAX_ASPECTS)
    values = {name: data.get(name, "") for name in RubricVersionForm.base_fields}
    return make_editor(kind, values, aspects, examples)


def initial_version_values(spec: RubricSpec) -> dict[str, object]:
    answer, _, pattern = spec.answer_format.partition(":")
    by_place = sorted(spec.placeholders, key=spec.instructions.find)
    return {
        "instructions": spec.instructions,
        "placeholders": {placeholder: spec.placeholders[placeholder] for placeholder in by_place},
        "answer": answer,
        "pattern": pattern,
        "rationale_key": spec.rationale_key,
        "choices_key": spec.choices_key,
        "for_reviews": True,
    }


PLACEHOLDER_CHOICES: Final = [
    ("query", "query"),
    ("context", "context"),
    ("reference", "reference answer"),
    ("response_a", "response A (shown first)"),
    ("response_b", "response B (shown second)"),
    ("response", "response (pointwise)"),
    ("examples", "few-shot examples"),
    ("verdict_key", "verdict key"),
    ("rationale_key", "rationale key"),
    ("literal", "literal (keep as is)"),
]


class PasteForm(forms.Form):
    text = MultilineField(
        rows=12,
        label="Prompt or document",
        help_text=(
            "Keep placeholders such as {prompt}, {{ input }} or {$candidate_A}. Line numbers and "
            "surrounding Python code are removed."
        ),
        strip=False,
    )


class PlaceholderForm(forms.Form):
    """A select per placeholder of a prompt, with the guesses filled in."""

    def __init__(self, data: QueryDict | None, placeholders: Sequence[str], guessed: Mapping[str, str]) -> None:
        super().__init__(data)
        self.placeholders = {f"placeholder_{place}": placeholder for place, placeholder in enumerate(placeholders)}
        for name, placeholder in self.placeholders.items():
            self.fields[name] = forms.ChoiceField(
                label=placeholder,
                choices=[("", "choose…"), *PLACEHOLDER_CHOICES],
                initial=guessed.get(placeholder, ""),
                error_messages={"required": f"Choose a meaning for {placeholder}."},
            )

    def mapping(self) -> dict[str, str]:
        return {placeholder: self.cleaned_data[name] for name, placeholder in self.placeholders.items()}
