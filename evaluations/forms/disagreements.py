from typing import Any

from django import forms

from evaluations import access
from evaluations.access import Action
from evaluations.domain import REASONS_IN_WORDS, RaterKind, Reason
from evaluations.models import Aspect, Candidate, Evaluation, Rater, User
from evaluations.services.adjudicating.disagreeing import Kind, Wanted, shown_judge

KINDS = [("", "all"), (Kind.PEOPLE, "between people"), (Kind.JUDGE, "people and judge")]
STATES = [("", "open"), ("settled", "settled")]


class DisagreementsForm(forms.Form):
    """Which disagreements to list; everything may be left out."""

    state = forms.ChoiceField(choices=STATES, required=False)
    kind = forms.ChoiceField(choices=KINDS, required=False)
    aspect = forms.ModelChoiceField(Aspect.objects.none(), required=False, empty_label="all", to_field_name="key")
    reason = forms.ChoiceField(choices=[("", "any or none"), *REASONS_IN_WORDS.items()], required=False)
    candidate = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="all")
    other = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="any", label="Against")
    judge = forms.ModelChoiceField(Rater.objects.none(), required=False, empty_label="all", label="Judge who differs")
    mine = forms.BooleanField(required=False, label="Calls me")

    def __init__(self, data: Any, *, evaluation: Evaluation, user: User) -> None:
        super().__init__(data)
        self.evaluation, self.user = evaluation, user
        self.sees_all = access.may(user, Action.SEE_ALL, evaluation)
        self.offer("aspect", Aspect.objects.filter(evaluation=evaluation).order_by("name"))
        # Who has reviewed a part only is not told the names of all candidates.
        candidates = Candidate.objects.filter(evaluation=evaluation).order_by("name") if self.sees_all else None
        self.offer("candidate", candidates)
        self.offer("other", candidates)
        self.sees_judges = access.may_see_judges(user, evaluation)
        judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE, judge__isnull=False)
        judges = judges.select_related("judge__rubric_version__rubric").order_by("name")
        self.offer("judge", judges if self.sees_judges else None)
        if not (self.sees_judges and evaluation.settles_judge):
            del self.fields["kind"]

    def offer(self, name: str, rows: Any) -> None:
        """Fill a filter; one that may not be used is not shown."""
        if rows is None:
            del self.fields[name]
        else:
            self.fields[name].queryset = rows  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("judge") and given.get("kind") == Kind.PEOPLE:
            self.add_error("judge", "A judge is no part of what people differ on: choose another kind.")
        return given

    def wanted(self) -> Wanted:
        """What was asked for; a filter that cannot be is none."""
        given = self.cleaned_data if self.is_valid() else {}
        chosen = given.get("judge")
        usual = shown_judge(self.evaluation) if self.sees_judges else None
        return Wanted(
            evaluation=self.evaluation,
            among=None if self.sees_all else access.open_comparisons(self.user, self.evaluation),
            judge=chosen or usual,
            only_judge=chosen is not None,
            kind=Kind(given["kind"]) if given.get("kind") and chosen is None else None,
            settled=bool(given.get("state")),
            aspect=given.get("aspect"),
            reason=Reason(given["reason"]) if given.get("reason") else None,
            candidates=tuple(given[name] for name in ("candidate", "other") if given.get(name)),
            calling=self.user if given.get("mine") else None,
        )
