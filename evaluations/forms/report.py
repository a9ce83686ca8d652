from collections.abc import Sequence
from typing import Any

from django import forms

from evaluations.domain import Coding, FailedRule, Rules, SplitRule
from evaluations.models import Evaluation, Rater
from evaluations.services.reporting.browsing import categories

SPLITS = [
    (SplitRule.TIE, "count as ties"),
    (SplitRule.DROP, "are left out"),
    (SplitRule.FIRST, "go to the choice made first"),
]
FAILURES = [(FailedRule.EXCLUDE, "are left out"), (FailedRule.TIE, "count as ties")]
CODINGS = [(Coding.CANDIDATE, "candidates"), (Coding.SHOWN, "first and second shown")]


class ReportForm(forms.Form):
    """What to report on and by which rules; everything may be left out."""

    judge = forms.TypedChoiceField(coerce=int, required=False, empty_value=None)
    category = forms.ChoiceField(required=False)
    split_rule = forms.ChoiceField(choices=SPLITS, required=False, label="Split majorities")
    failed = forms.ChoiceField(choices=FAILURES, required=False, label="Failed verdicts")
    coding = forms.ChoiceField(choices=CODINGS, required=False, label="Sides are")

    def __init__(self, data: Any, *, evaluation: Evaluation, judges: Sequence[Rater]) -> None:
        super().__init__(data)
        named = [(judge.pk, judge.name) for judge in judges]
        self.offer("judge", [("", "all"), *named] if named else [])
        found = [(name, name) for name in categories(evaluation)]
        self.offer("category", [("", "all"), *found] if found else [])

    def offer(self, name: str, choices: list[tuple[Any, str]]) -> None:
        """Fill a filter; one that has nothing to choose from is not shown."""
        if choices:
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields[name]

    def rules(self) -> Rules:
        told = self.cleaned_data
        return Rules(
            where=(("category", told["category"]),) if told.get("category") else (),
            coding=Coding(told["coding"] or Coding.CANDIDATE),
            split_rule=SplitRule(told["split_rule"] or SplitRule.TIE),
            failed=FailedRule(told["failed"] or FailedRule.EXCLUDE),
        )
