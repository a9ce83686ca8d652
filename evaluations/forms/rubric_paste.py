from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.http import QueryDict

from evaluations.forms.prose import ProseField

FIELDS: Final = [
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
    text = ProseField(
        rows=12,
        label="The prompt, or a document with prompts in it",
        help_text="With its placeholders, such as {prompt}, {{ input }} or {$candidate_A}. Line numbers and "
        "Python code round it are left out by themselves.",
        strip=False,
    )


class MappingForm(forms.Form):
    """A select for every placeholder of a prompt; those that were guessed are filled in."""

    def __init__(self, data: QueryDict | None, placeholders: Sequence[str], guessed: Mapping[str, str]) -> None:
        super().__init__(data)
        self.placeholders = {f"placeholder_{place}": one for place, one in enumerate(placeholders)}
        for name, placeholder in self.placeholders.items():
            self.fields[name] = forms.ChoiceField(
                label=placeholder,
                choices=[("", "choose what it stands for"), *FIELDS],
                initial=guessed.get(placeholder, ""),
                error_messages={"required": f"Say what {placeholder} stands for."},
            )

    def mapping(self) -> dict[str, Any]:
        return {placeholder: self.cleaned_data[name] for name, placeholder in self.placeholders.items()}
