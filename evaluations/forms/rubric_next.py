"""A rubric version as three forms: its words, its list of aspects and its list of worked examples."""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import QueryDict

from evaluations.domain import RubricKind, RubricSpec
from evaluations.forms import aspects as aspect_forms
from evaluations.forms import examples as example_forms
from evaluations.forms.aspects import CODE, MOST_ASPECTS, Aspects, aspect_values, new_aspect
from evaluations.forms.examples import MOST_EXAMPLES, Examples, example_values
from evaluations.forms.lists import Rows, rearranged, typed_rows
from evaluations.forms.pairs import PairsField
from evaluations.forms.prose import ProseField

ASPECTS: Final = "form"
LOOK: Final = "look"  # the step that changes nothing and shows the prompt
TEXT: Final = "text"
ANSWERS = [
    ("json", "A JSON object, its reasons before its verdict"),
    ("two_step", "Two steps: a free text first, and then, asked once more, the verdict alone"),
    (TEXT, "Plain text for a single aspect, the verdict where the pattern below finds it"),
]

ANSWER_FIELDS: Final = ("placeholders", "answer", "pattern", "rationale_key", "choices_key")


class VersionForm(forms.Form):
    instructions = ProseField(
        rows=12,
        strip=False,  # a pasted prompt is sent word for word
        help_text="What a judge is told before it sees what it judges. Aspects and the form of the answer are added "
        "by themselves, unless you name placeholders below.",
    )
    placeholders = PairsField(
        required=False,
        help_text="For a prompt of your own that is sent as it stands: one placeholder a line and what stands in for "
        "it, such as “{$candidate_A} = response_a” or “{{ input }} = query”. Known are query, context, "
        "reference, response_a, response_b, "
        "response (where one is scored), examples, verdict_key, rationale_key, and literal for a word in braces that "
        "is none.",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    answer = forms.ChoiceField(label="The judge answers with", choices=ANSWERS, widget=forms.RadioSelect)
    pattern = forms.CharField(
        label="Pattern of the verdict",
        max_length=300,
        required=False,
        help_text="A regular expression whose group is the label. Left empty, the last line is the label alone.",
        widget=forms.TextInput(attrs=CODE),
    )
    rationale_key = forms.CharField(
        label="Name of the reasons", max_length=60, widget=forms.TextInput(attrs=CODE), help_text="In a JSON answer."
    )
    choices_key = forms.CharField(
        label="Name of the object of verdicts",
        max_length=60,
        required=False,
        widget=forms.TextInput(attrs=CODE),
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
        return f"{answer}:{pattern}" if answer == TEXT and pattern else str(answer)


@dataclass
class Editor:
    """The three forms together."""

    kind: RubricKind
    version: VersionForm
    aspects: Aspects
    examples: Examples

    @property
    def is_pairwise(self) -> bool:
        return self.kind == RubricKind.PAIRWISE

    @property
    def opens_answer(self) -> bool:
        """Whether the form of the answer is out of the ordinary, or wrong: then it stands open."""
        form = self.version
        wrong = any(form[name].errors for name in ANSWER_FIELDS)
        return wrong or bool(form["placeholders"].value()) or form["answer"].value() != "json"

    @property
    def opens_examples(self) -> bool:
        return any(self.examples.errors) if self.examples.is_bound else bool(self.examples.forms)

    def is_valid(self) -> bool:
        return self.version.is_valid() & self.aspects.is_valid() & self.examples.is_valid()

    def spec(self) -> RubricSpec:
        given = self.version.cleaned_data
        return RubricSpec(
            kind=self.kind,
            instructions=given["instructions"],
            aspects=tuple(form.spec() for form in self.aspects.forms),
            output_order=self.aspects.output_order(),
            placeholders=given["placeholders"],
            answer_format=self.version.answer_format(),
            few_shot=self.examples.given(),
            rationale_key=given["rationale_key"],
            choices_key=given["choices_key"],
        )


def editor(kind: RubricKind, values: dict[str, Any], aspects: Rows, examples: Rows) -> Editor:
    """The forms with these values, not sent yet."""
    return Editor(
        kind,
        VersionForm(initial=values),
        aspect_forms.LIST_OF[kind](initial=aspects, prefix=ASPECTS),
        example_forms.LIST_OF[kind](initial=examples, prefix=example_forms.PREFIX),
    )


def editor_of(spec: RubricSpec) -> Editor:
    return editor(spec.kind, version_values(spec), aspect_values(spec), example_values(spec))


def editor_sent(kind: RubricKind, data: QueryDict) -> Editor:
    return Editor(
        kind,
        VersionForm(data),
        aspect_forms.LIST_OF[kind](data, prefix=ASPECTS),
        example_forms.LIST_OF[kind](data, prefix=example_forms.PREFIX),
    )


def editor_after(kind: RubricKind, data: QueryDict, step: str) -> Editor:
    """What was typed, unchecked, after a step such as ``add``, ``up 3`` or ``example remove 0``."""
    aspects = typed_rows(data, aspect_forms.FORM_OF[kind], ASPECTS, MOST_ASPECTS)
    examples = typed_rows(data, example_forms.FORM_OF[kind], example_forms.PREFIX, MOST_EXAMPLES)
    if step.startswith(f"{example_forms.PREFIX} "):
        step = step.removeprefix(f"{example_forms.PREFIX} ")
        examples = rearranged(examples, step, new={}, most=MOST_EXAMPLES)
    else:
        aspects = rearranged(aspects, step, new=new_aspect(len(aspects)), most=MOST_ASPECTS)
    values = {name: data.get(name, "") for name in VersionForm.base_fields}
    return editor(kind, values, aspects, examples)


def version_values(spec: RubricSpec) -> dict[str, Any]:
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
