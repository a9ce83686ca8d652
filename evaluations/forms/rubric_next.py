"""A rubric version as a form: its words, and a list of aspects that grows and shrinks without scripts."""

from collections.abc import Mapping
from typing import Any, Final, cast

from django import forms
from django.http import QueryDict
from django.utils.text import slugify

from evaluations.domain import AspectSpec, Choice, RubricKind, RubricSpec
from evaluations.forms.prose import ProseField

MOST_ASPECTS: Final = 40
ANSWERS = [
    ("json", "A JSON object: a rationale, then one choice for each aspect"),
    ("text", "Plain text for a single aspect, the verdict where the pattern below finds it"),
]


class VersionForm(forms.Form):
    instructions = ProseField(
        rows=12,
        help_text="What a judge is told before it sees the two responses. Aspects and the form of the answer are added "
        "by themselves, unless you name placeholders below.",
    )
    for_reviews = forms.BooleanField(
        label="Ask people by this version from now on",
        required=False,
        initial=True,
        help_text="Judges keep the version they were made with: make a new judge for this one.",
    )
    placeholders = ProseField(
        rows=3,
        classes="mono",
        required=False,
        help_text="For a prompt of your own that is sent as it stands: one placeholder a line and what stands in for "
        "it, such as “{$candidate_A} = response_a”. Known are query, context, reference, response_a, response_b, and "
        "literal for a word in braces that is none.",
    )
    answer = forms.ChoiceField(label="The judge answers with", choices=ANSWERS, widget=forms.RadioSelect)
    pattern = forms.CharField(
        label="Pattern of the verdict",
        max_length=300,
        required=False,
        help_text="A regular expression whose group is the label. Left empty, the last line is the label alone.",
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false"}),
    )

    def clean_placeholders(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["placeholders"].splitlines() if line.strip()]
        return dict(two_sides(line) for line in lines)

    def answer_format(self) -> str:
        answer, pattern = self.cleaned_data["answer"], self.cleaned_data["pattern"].strip()
        return f"{answer}:{pattern}" if answer == "text" and pattern else str(answer)


class AspectForm(forms.Form):
    name = forms.CharField(max_length=80)
    key = forms.SlugField(
        max_length=60,
        required=False,
        help_text="Its name in files and in the judge’s answer. Left empty, it is made from the name.",
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false"}),
    )
    definition = ProseField(rows=2, required=False)
    offers_tie = forms.BooleanField(label="may be a tie", required=False, initial=True)
    offers_both_bad = forms.BooleanField(label="may be “both bad”", required=False)
    reply_place = forms.IntegerField(
        label="Place in the judge’s answer", min_value=1, max_value=MOST_ASPECTS, required=False
    )
    labels = forms.CharField(
        label="Labels in the judge’s answer",
        max_length=300,
        required=False,
        help_text="Only where they differ, such as “tie = SAME”. Part them by semicolons.",
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false"}),
    )

    def clean_labels(self) -> dict[str, str]:
        parts = [part for part in self.cleaned_data["labels"].split(";") if part.strip()]
        labels = dict(two_sides(part) for part in parts)
        unknown = sorted(set(labels) - set(Choice))
        if unknown:
            raise forms.ValidationError(f"“{unknown[0]}” is no choice: there are {', '.join(Choice)}.")
        return labels

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not given.get("key") and given.get("name"):
            given["key"] = slugify(given["name"])[:60].replace("-", "_")
            if not given["key"]:
                self.add_error("key", "No key can be made from this name: write one in plain letters.")
        return given

    def spec(self) -> AspectSpec:
        given = self.cleaned_data
        return AspectSpec(
            key=given["key"],
            name=given["name"],
            definition=given["definition"],
            offers_tie=given["offers_tie"],
            offers_both_bad=given["offers_both_bad"],
            labels=given["labels"],
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


AspectFormSet = cast(
    "type[Aspects]",
    forms.formset_factory(AspectForm, formset=Aspects, extra=0, max_num=MOST_ASPECTS, validate_max=True),
)


def two_sides(text: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise forms.ValidationError(f"“{text.strip()}” is not of the form “one = other”.")
    return left.strip(), right.strip()


# ---- between a version and the two forms ---------------------------------------------------


def version_values(spec: RubricSpec) -> dict[str, Any]:
    answer, _, pattern = spec.answer_format.partition(":")
    placeholders = "\n".join(f"{one} = {field}" for one, field in spec.placeholders.items())
    return {
        "instructions": spec.instructions,
        "placeholders": placeholders,
        "answer": answer,
        "pattern": pattern,
        "for_reviews": True,
    }


def aspect_values(spec: RubricSpec) -> list[dict[str, Any]]:
    return [
        {
            "name": aspect.name,
            "key": aspect.key,
            "definition": aspect.definition,
            "offers_tie": aspect.offers_tie,
            "offers_both_bad": aspect.offers_both_bad,
            "reply_place": spec.output_order.index(aspect.key) + 1,
            "labels": "; ".join(f"{choice} = {label}" for choice, label in aspect.labels.items()),
        }
        for aspect in spec.aspects
    ]


def spec_of(version: VersionForm, aspects: Aspects, few_shot: tuple[Any, ...]) -> RubricSpec:
    """The rubric that was written. Equal or missing places in the answer keep the order of the page."""
    forms_in_reply = sorted(aspects.forms, key=lambda form: form.cleaned_data["reply_place"] or MOST_ASPECTS)
    return RubricSpec(
        kind=RubricKind.PAIRWISE,
        instructions=version.cleaned_data["instructions"],
        aspects=tuple(form.spec() for form in aspects.forms),
        output_order=tuple(form.cleaned_data["key"] for form in forms_in_reply),
        placeholders=version.cleaned_data["placeholders"],
        answer_format=version.answer_format(),
        few_shot=few_shot,
    )


# ---- the list of aspects, one step at a time -----------------------------------------------


def rearranged(data: QueryDict, step: str) -> list[dict[str, Any]]:
    """The aspects as typed, after ``add``, ``remove 3``, ``up 3`` or ``down 3``; an odd step changes nothing."""
    rows = typed_rows(data)
    word, _, given = step.partition(" ")
    place = int(given) if given.isdecimal() else -1
    if word == "add" and len(rows) < MOST_ASPECTS:
        return [*rows, {"offers_tie": True, "reply_place": len(rows) + 1}]
    if word == "remove" and 0 <= place < len(rows):
        return rows[:place] + rows[place + 1 :]
    other = place + {"up": -1, "down": 1}.get(word, 0)
    if 0 <= place < len(rows) and 0 <= other < len(rows):
        rows[place], rows[other] = rows[other], rows[place]
    return rows


def typed_rows(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What stands in the form, not yet checked."""
    prefix = AspectFormSet.get_default_prefix()
    total = str(data.get(f"{prefix}-TOTAL_FORMS"))
    count = min(int(total), MOST_ASPECTS) if total.isdecimal() else 0
    return [{name: data.get(f"{prefix}-{row}-{name}", "") for name in AspectForm.base_fields} for row in range(count)]
