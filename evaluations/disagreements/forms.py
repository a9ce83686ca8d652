"""Forms of the disagreement pages."""

from collections.abc import Iterable, Mapping

from django import forms

from evaluations.access import Action, is_allowed
from evaluations.disagreements.selectors import DisagreementFilter, DisagreementKind, get_disagreement_judge
from evaluations.disagreements.services import MAX_COMMENT_LENGTH, MAX_REASON_LENGTH, AspectDecision
from evaluations.disagreements.workbench import EnteredResolution
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.visibility import can_see_judges, visible_comparisons
from evaluations.web.forms import CleanedData, MultilineField

KIND_OPTIONS = [
    ("", "any"),
    (DisagreementKind.REVIEWERS, "among reviewers"),
    (DisagreementKind.JUDGE, "reviewers vs. judge"),
]

STATE_OPTIONS = [("", "open"), ("resolved", "resolved")]


class DisagreementsForm(forms.Form):
    """The filters of the disagreement list, all optional."""

    state = forms.ChoiceField(choices=STATE_OPTIONS, required=False)
    kind = forms.ChoiceField(choices=KIND_OPTIONS, required=False, label="Type")
    aspect = forms.ModelChoiceField(Aspect.objects.none(), required=False, empty_label="any", to_field_name="key")
    reason = forms.ChoiceField(choices=[("", "any"), *DIFFERENCE_REASON_TEXTS.items()], required=False)
    candidate = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="any model", label="Model")
    other = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="any model", label="vs.")
    judge = forms.ModelChoiceField(Rater.objects.none(), required=False, empty_label="any", label="Judge")
    mine = forms.BooleanField(required=False, label="Mentions me")

    def __init__(self, data: Mapping[str, object] | None, *, evaluation: Evaluation, user: User) -> None:
        super().__init__(data)
        self.evaluation, self.user = evaluation, user
        self.sees_all = is_allowed(user, Action.SEE_ALL, evaluation)
        self.set_rows("aspect", Aspect.objects.filter(evaluation=evaluation).order_by("name"))
        # Reviewers of a part must not learn the names of all candidates.
        candidates = Candidate.objects.filter(evaluation=evaluation).order_by("name") if self.sees_all else None
        self.set_rows("candidate", candidates)
        self.set_rows("other", candidates)
        self.sees_judges = can_see_judges(user, evaluation)
        judges = Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE, judge__isnull=False)
        judges = judges.select_related("judge__rubric_version__rubric").order_by("name")
        self.set_rows("judge", judges if self.sees_judges else None)
        if not (self.sees_judges and evaluation.resolve_judge_disagreements):
            del self.fields["kind"]

    def set_rows(self, name: str, rows: object) -> None:
        """Set the options of a filter; one without rows is removed."""
        if rows is None:
            del self.fields[name]
        else:
            self.fields[name].queryset = rows  # type: ignore[attr-defined]

    def clean(self) -> CleanedData:
        cleaned = super().clean() or {}
        if cleaned.get("judge") and cleaned.get("kind") == DisagreementKind.REVIEWERS:
            self.add_error("judge", "“Among reviewers” has no judge. Choose another type, or any judge.")
        return cleaned

    def to_filter(self) -> DisagreementFilter:
        """The filter; an invalid form filters nothing."""
        cleaned = self.cleaned_data if self.is_valid() else {}
        chosen_judge = cleaned.get("judge")
        default_judge = get_disagreement_judge(self.evaluation) if self.sees_judges else None
        return DisagreementFilter(
            evaluation=self.evaluation,
            among=None if self.sees_all else visible_comparisons(self.user, self.evaluation),
            judge=chosen_judge or default_judge,
            only_judge=chosen_judge is not None,
            kind=DisagreementKind(cleaned["kind"]) if cleaned.get("kind") and chosen_judge is None else None,
            resolved=bool(cleaned.get("state")),
            aspect=cleaned.get("aspect"),
            reason=DifferenceReason(cleaned["reason"]) if cleaned.get("reason") else None,
            candidates=tuple(cleaned[name] for name in ("candidate", "other") if cleaned.get(name)),
            mentioning=self.user if cleaned.get("mine") else None,
        )


class ResolveForm(forms.Form):
    """The results of the aspects of one comparison, with one reason for all. Aspects without a choice stay open."""

    reason = forms.CharField(required=False, max_length=MAX_REASON_LENGTH)

    def __init__(self, data: Mapping[str, object], *, aspects: Iterable[Aspect]) -> None:
        super().__init__(data)
        self.aspects = [aspect for aspect in aspects if data.get(f"choice_{aspect.key}")]
        for aspect in self.aspects:
            choice = forms.ChoiceField(choices=[(choice.value, choice.value) for choice in Choice], label=aspect.name)
            self.fields[f"choice_{aspect.key}"] = choice
            version = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1, label=aspect.name)
            self.fields[f"version_{aspect.key}"] = version

    def get_decisions(self) -> list[AspectDecision]:
        cleaned = self.cleaned_data
        return [
            AspectDecision(aspect, cleaned[f"choice_{aspect.key}"], cleaned[f"version_{aspect.key}"] or 0)
            for aspect in self.aspects
        ]

    def get_entered(self, refusal: str) -> EnteredResolution:
        choices = {aspect.key: str(self.data[f"choice_{aspect.key}"]) for aspect in self.aspects}
        return EnteredResolution(refusal, choices, str(self.data.get("category", "")), str(self.data.get("reason", "")))


class UndoForm(forms.Form):
    """``comparison``: the one whose page made the resolutions, None if the list did."""

    batch = forms.UUIDField()
    comparison = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)


class WithdrawForm(forms.Form):
    version = forms.IntegerField(min_value=0, max_value=2**31 - 1)


class ExplainForm(forms.Form):
    """The reason for a choice that differs, on one aspect."""

    review = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    aspect = forms.SlugField(max_length=60)
    reason = forms.ChoiceField(choices=[("", "no reason"), *DIFFERENCE_REASON_TEXTS.items()], required=False)
    note = forms.CharField(max_length=MAX_COMMENT_LENGTH, required=False)


class CommentForm(forms.Form):
    text = MultilineField(
        rows=3,
        max_length=MAX_COMMENT_LENGTH,
        label="Comment",
        error_messages={"required": "Write a comment first."},
        help_text="Supports Markdown. Use @name to mention someone.",
    )
    about = forms.ChoiceField(required=False)

    def __init__(self, data: Mapping[str, object] | None = None, *, aspects: Iterable[Aspect]) -> None:
        super().__init__(data, auto_id="comment_%s")
        choices = [("", "the comparison"), *((aspect.key, aspect.name) for aspect in aspects)]
        self.fields["about"].choices = choices  # type: ignore[attr-defined]


def clean_or_refuse(form: forms.Form) -> CleanedData:
    """The cleaned fields; InputRefused with the first error in one sentence."""
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        raise InputRefused(f"Not saved. {form.fields[name].label or name.capitalize()}: {errors[0]}")
    return form.cleaned_data
