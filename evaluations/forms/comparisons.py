from typing import Any

from django import forms
from django.db.models import Q

from evaluations.domain import FAILURE_STATES, Choice, FailedRule, Rules, Seen, SplitRule
from evaluations.forms.candidates import candidates_where
from evaluations.models import Candidate, Evaluation, Rater
from evaluations.models.material import FLAGGED
from evaluations.models.row import one_of
from evaluations.services.reporting.browsing import categories, has_failed_call

ANY = "any"
FAILED = [
    ("", "–"),
    (ANY, "in any way"),
    *((state.value, state.value.replace("_", " ")) for state in FAILURE_STATES),
]


class FilterForm(forms.Form):
    q = forms.CharField(label="Query text", required=False, max_length=200, widget=forms.SearchInput)
    category = forms.ChoiceField(required=False)
    candidate = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="all")
    judge_failed = forms.ChoiceField(choices=FAILED, required=False, label="Judge failed")
    flagged = forms.BooleanField(required=False, label="Speaks to the judge")

    def __init__(self, data: Any, *, evaluation: Evaluation, names_shown: bool, judges_shown: bool) -> None:
        super().__init__(data)
        self.evaluation = evaluation
        found = categories(evaluation)
        self.fields["category"].choices = [("", "all"), *((name, name) for name in found)]  # type: ignore[attr-defined]
        if not found:
            del self.fields["category"]
        if names_shown:
            candidates = Candidate.objects.filter(evaluation=evaluation).order_by("name")
            self.fields["candidate"].queryset = candidates  # type: ignore[attr-defined]
        else:
            del self.fields["candidate"]
        if not judges_shown:
            del self.fields["judge_failed"]

    def wanted(self) -> dict[str, Any]:
        """What was asked for, by the names that `matching` has for it; a filter that cannot be is none."""
        if not self.is_valid():
            return {}
        given = {
            "text": self.cleaned_data["q"],
            "category": self.cleaned_data.get("category"),
            "candidate": self.cleaned_data.get("candidate"),
            "where": self.where(),
        }
        return {name: value for name, value in given.items() if value}

    def where(self) -> Q:
        failed = self.cleaned_data.get("judge_failed", "")
        found = FLAGGED if self.cleaned_data["flagged"] else Q()
        if failed:
            found &= has_failed_call(self.evaluation, FAILURE_STATES if failed == ANY else (failed,))
        return found


class CellForm(forms.Form):
    """One cell of a confusion matrix and the rules by which it was counted, as the report links to it."""

    judge_rater: Rater

    aspect = forms.CharField(max_length=60)
    judge = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    judge_choice = forms.ChoiceField(choices=one_of(Choice))
    human_choice = forms.ChoiceField(choices=one_of(Choice))
    split_rule = forms.ChoiceField(choices=one_of(SplitRule), required=False)
    failed = forms.ChoiceField(choices=one_of(FailedRule), required=False)
    seen = forms.ChoiceField(choices=one_of(Seen), required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    candidate_1 = forms.CharField(max_length=200, required=False)
    candidate_2 = forms.CharField(max_length=200, required=False)
    reviewer = forms.Field(required=False, widget=forms.MultipleHiddenInput)

    def rules(self) -> Rules:
        told = self.cleaned_data
        return Rules(
            reviewers=tuple(told["reviewer"]),
            seen=Seen(told["seen"] or Seen.NOTHING),
            since=told["since"],
            until=told["until"],
            where=candidates_where(told["candidate_1"], told["candidate_2"]),
            split_rule=SplitRule(told["split_rule"] or SplitRule.TIE),
            failed=FailedRule(told["failed"] or FailedRule.EXCLUDE),
        )
