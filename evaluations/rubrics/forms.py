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
        "Six aspects, pairwise: helpfulness, factuality, clarity, depth, engagement and safety, each A, tie or B",
    ),
    (
        "qa-pairwise",
        "Question answering, pairwise: to the point, true to its context, complete, fluent; A, SAME or B",
    ),
    (
        "summary-rating",
        "Summaries, pointwise 1 to 5: written out as free text first, then the rating alone in a second request",
    ),
    (
        REFERENCE_METRIC,
        "A metric against a reference answer, pointwise 0 to 1: a score and its reason, under names of yours",
    ),
]


class BuiltinForm(forms.Form):
    builtin = forms.ChoiceField(
        label="Rubric", choices=BUILTIN_CHOICES, initial=BUILTIN_CHOICES[1][0], widget=forms.RadioSelect
    )
    name = forms.CharField(
        max_length=120, required=False, help_text="What it is called here. Empty: as it stands above, or as its metric."
    )
    metric = forms.CharField(
        label="Name of the metric",
        max_length=60,
        required=False,
        help_text="For the reference metric, such as “Correctness” or “Faithfulness”.",
    )
    reason_key = forms.CharField(
        label="Name of the reason",
        max_length=60,
        required=False,
        help_text="What its answer calls the explanation. Empty: reason.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )


class RubricNameForm(forms.Form):
    """The name of a new rubric, shown next to the editor of its first version."""

    kind = forms.ChoiceField(choices=[(kind.value, kind.value) for kind in RubricKind], widget=forms.HiddenInput)
    name = forms.CharField(
        label="Name of the rubric", max_length=120, help_text="What pages call it, such as “Support answers”."
    )


ASPECT_PREFIX: Final = "form"
PREVIEW_STEP: Final = "look"  # the step that changes nothing and shows the prompt
TEXT_ANSWER: Final = "text"
ANSWER_CHOICES = [
    ("json", "A JSON object, its reasons before its verdict"),
    ("two_step", "Two steps: a free text first, and then, asked once more, the verdict alone"),
    (TEXT_ANSWER, "Plain text for a single aspect, the verdict where the pattern below finds it"),
]

ANSWER_FIELDS: Final = ("placeholders", "answer", "pattern", "rationale_key", "choices_key")


class RubricVersionForm(forms.Form):
    instructions = MultilineField(
        rows=12,
        strip=False,  # a pasted prompt is sent word for word
        help_text="What a judge is told before it sees what it judges. Aspects and the form of the answer are added "
        "by themselves, unless you name placeholders below.",
    )
    placeholders = KeyValueField(
        required=False,
        help_text="For a prompt of your own that is sent as it stands: one placeholder a line and what stands in for "
        "it, such as “{$candidate_A} = response_a” or “{{ input }} = query”. Known are query, context, "
        "reference, response_a, response_b, "
        "response (where one is scored), examples, verdict_key, rationale_key, and literal for a word in braces that "
        "is none.",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    answer = forms.ChoiceField(label="The judge answers with", choices=ANSWER_CHOICES, widget=forms.RadioSelect)
    pattern = forms.CharField(
        label="Pattern of the verdict",
        max_length=300,
        required=False,
        help_text="A regular expression whose group is the label. Left empty, the last line is the label alone.",
        widget=forms.TextInput(attrs=CODE_ATTRS),
    )
    rationale_key = forms.CharField(
        label="Name of the reasons",
        max_length=60,
        widget=forms.TextInput(attrs=CODE_ATTRS),
        help_text="In a JSON answer.",
    )
    choices_key = forms.CharField(
        label="Name of the object of verdicts",
        max_length=60,
        required=False,
        widget=forms.TextInput(attrs=CODE_ATTRS),
        help_text="Left empty, the verdicts stand beside the reasons.",
    )
    for_reviews = forms.BooleanField(
        label="Ask people by this version from now on",
        required=False,
        initial=True,
        help_text="Judges keep the version they were made with: make a new judge for this one.",
    )

    def clean_instructions(self) -> str:
        instructions: str = self.cleaned_data["instructions"]
        if not instructions.strip():
            raise forms.ValidationError("Write what the judge is told.")
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
    ("query", "the query"),
    ("context", "the context"),
    ("reference", "the reference answer"),
    ("response_a", "response A: the one shown first"),
    ("response_b", "response B: the one shown second"),
    ("response", "the response, where one is scored by itself"),
    ("examples", "the worked examples"),
    ("verdict_key", "what the answer calls its verdict"),
    ("rationale_key", "what the answer calls its reasons"),
    ("literal", "nothing: it stays as it stands"),
]


class PasteForm(forms.Form):
    text = MultilineField(
        rows=12,
        label="The prompt, or a document with prompts in it",
        help_text="With its placeholders, such as {prompt}, {{ input }} or {$candidate_A}. Line numbers and "
        "Python code round it are left out by themselves.",
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
                choices=[("", "choose what it stands for"), *PLACEHOLDER_CHOICES],
                initial=guessed.get(placeholder, ""),
                error_messages={"required": f"Say what {placeholder} stands for."},
            )

    def mapping(self) -> dict[str, str]:
        return {placeholder: self.cleaned_data[name] for name, placeholder in self.placeholders.items()}
