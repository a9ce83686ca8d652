from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.forms.boundfield import BoundField

from evaluations.models import Candidate, Judge


class FamiliesForm(forms.Form):
    """A field for each candidate and each judge."""

    def __init__(self, data: Any, *, candidates: Sequence[Candidate], judges: Sequence[Judge]) -> None:
        super().__init__(data)
        self.rows: dict[str, list[Candidate] | list[Judge]] = {"candidate": list(candidates), "judge": list(judges)}
        for kind, rows in self.rows.items():
            for row in rows:
                attributes = {"list": "families", "autocomplete": "off"}
                self.fields[f"{kind}_{row.pk}"] = forms.CharField(
                    label=row.name,
                    required=False,
                    max_length=80,
                    initial=row.family,
                    widget=forms.TextInput(attrs=attributes),
                )

    def of(self, kind: str) -> dict[int, str]:
        """What was entered, by id."""
        return {row.pk: self.cleaned_data[f"{kind}_{row.pk}"].strip() for row in self.rows[kind]}

    def fields_of(self, kind: str) -> list[BoundField]:
        return [self[f"{kind}_{row.pk}"] for row in self.rows[kind]]

    @property
    def candidates(self) -> Iterable[BoundField]:
        return self.fields_of("candidate")

    @property
    def judges(self) -> Iterable[BoundField]:
        return self.fields_of("judge")

    @property
    def known(self) -> list[str]:
        """The families that are set, each once."""
        return sorted({row.family for rows in self.rows.values() for row in rows if row.family})
