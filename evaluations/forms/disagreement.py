from collections.abc import Iterable
from typing import Any

from django import forms

from evaluations.domain import REASONS_IN_WORDS, Choice, InputRefused
from evaluations.forms.prose import ProseField
from evaluations.models import Adjudication, Aspect
from evaluations.services.adjudicating.adjudicating import LONGEST_REASON
from evaluations.services.adjudicating.discussing import LONGEST


class SettleForm(forms.Form):
    """The decision on one aspect. One line of reason, so that Enter sends it."""

    aspect = forms.SlugField(widget=forms.HiddenInput, max_length=60)
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**31 - 1)
    choice = forms.ChoiceField(choices=[(one.value, one.value) for one in Choice], required=False)
    reason = forms.CharField(required=False, max_length=LONGEST_REASON)

    @classmethod
    def for_aspect(cls, aspect: Aspect, settled: Adjudication | None, data: Any = None) -> "SettleForm":
        """``data``: what was sent and refused; the version stays that of the decision which stands now."""
        known = {
            "aspect": aspect.key,
            "version": settled.version if settled else 0,
            "choice": settled.choice if settled else "",
            "reason": settled.reason if settled else "",
        }
        entered = {name: data.get(name, "") for name in ("choice", "reason")} if data else {}
        return cls(initial={**known, **entered}, auto_id=f"settle_{aspect.key}_%s")


class WithdrawForm(forms.Form):
    version = forms.IntegerField(min_value=0, max_value=2**31 - 1)


class WhyForm(forms.Form):
    """Why one chose otherwise than the others, on one aspect."""

    review = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    aspect = forms.SlugField(max_length=60)
    reason = forms.ChoiceField(choices=[("", "no reason given"), *REASONS_IN_WORDS.items()], required=False)
    note = forms.CharField(max_length=LONGEST, required=False)


class CommentForm(forms.Form):
    text = ProseField(
        rows=3,
        max_length=LONGEST,
        label="Comment",
        error_messages={"required": "Write something first: an empty comment was not stored."},
        help_text="Markdown is understood. Write @ and a username to call somebody.",
    )
    about = forms.ChoiceField(required=False)

    def __init__(self, data: Any = None, *, aspects: Iterable[Aspect]) -> None:
        super().__init__(data, auto_id="comment_%s")
        choices = [("", "the whole comparison"), *((aspect.key, aspect.name) for aspect in aspects)]
        self.fields["about"].choices = choices  # type: ignore[attr-defined]


def checked(form: forms.Form) -> dict[str, Any]:
    """What was entered, or in one sentence what is wrong with it first."""
    if not form.is_valid():
        name, faults = next(iter(form.errors.items()))
        raise InputRefused(f"Nothing was stored: {name.replace('_', ' ')}: {faults[0]}")
    return form.cleaned_data
