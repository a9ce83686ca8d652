"""Forms of the disagreement pages."""

from collections.abc import Iterable, Mapping

from django import forms

from evaluations.access import Action, is_allowed
from evaluations.disagreements.selectors import DisagreementFilter, DisagreementKind, get_disagreement_judge
from evaluations.disagreements.services import MAX_COMMENT_LENGTH, MAX_REASON_LENGTH
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication
from evaluations.visibility import can_see_judges, visible_comparisons
from evaluations.web.forms import CleanedData, MultilineField

KIND_OPTIONS = [("", "all"), (DisagreementKind.PEOPLE, "between people"), (DisagreementKind.JUDGE, "people and judge")]

STATE_OPTIONS = [("", "open"), ("settled", "settled")]


class DisagreementsForm(forms.Form):
    """The filters of the disagreement list, all optional."""

    state = forms.ChoiceField(choices=STATE_OPTIONS, required=False)
    kind = forms.ChoiceField(choices=KIND_OPTIONS, required=False)
    aspect = forms.ModelChoiceField(Aspect.objects.none(), required=False, empty_label="all", to_field_name="key")
    reason = forms.ChoiceField(choices=[("", "any or none"), *DIFFERENCE_REASON_TEXTS.items()], required=False)
    candidate = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="all")
    other = forms.ModelChoiceField(Candidate.objects.none(), required=False, empty_label="any", label="Against")
    judge = forms.ModelChoiceField(Rater.objects.none(), required=False, empty_label="all", label="Judge who differs")
    mine = forms.BooleanField(required=False, label="Calls me")

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
        if cleaned.get("judge") and cleaned.get("kind") == DisagreementKind.PEOPLE:
            self.add_error("judge", "A judge is no part of what people differ on: choose another kind.")
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
    """The resolution of one aspect. The reason is a single line, so that Enter submits it."""

    aspect = forms.SlugField(widget=forms.HiddenInput, max_length=60)
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**31 - 1)
    choice = forms.ChoiceField(choices=[(choice.value, choice.value) for choice in Choice], required=False)
    reason = forms.CharField(required=False, max_length=MAX_REASON_LENGTH)

    @classmethod
    def for_aspect(
        cls, aspect: Aspect, resolution: Adjudication | None, data: Mapping[str, object] | None = None
    ) -> "ResolveForm":
        """``data``: refused input; the version stays that of the current resolution."""
        initial = {
            "aspect": aspect.key,
            "version": resolution.version if resolution else 0,
            "choice": resolution.choice if resolution else "",
            "reason": resolution.reason if resolution else "",
        }
        entered = {name: data.get(name, "") for name in ("choice", "reason")} if data else {}
        return cls(initial={**initial, **entered}, auto_id=f"settle_{aspect.key}_%s")


class WithdrawForm(forms.Form):
    version = forms.IntegerField(min_value=0, max_value=2**31 - 1)


class ExplainForm(forms.Form):
    """The reason for a choice that differs, on one aspect."""

    review = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    aspect = forms.SlugField(max_length=60)
    reason = forms.ChoiceField(choices=[("", "no reason given"), *DIFFERENCE_REASON_TEXTS.items()], required=False)
    note = forms.CharField(max_length=MAX_COMMENT_LENGTH, required=False)


class CommentForm(forms.Form):
    text = MultilineField(
        rows=3,
        max_length=MAX_COMMENT_LENGTH,
        label="Comment",
        error_messages={"required": "Write something first: an empty comment was not stored."},
        help_text="Markdown is understood. Write @ and a username to call somebody.",
    )
    about = forms.ChoiceField(required=False)

    def __init__(self, data: Mapping[str, object] | None = None, *, aspects: Iterable[Aspect]) -> None:
        super().__init__(data, auto_id="comment_%s")
        choices = [("", "the whole comparison"), *((aspect.key, aspect.name) for aspect in aspects)]
        self.fields["about"].choices = choices  # type: ignore[attr-defined]


def clean_or_refuse(form: forms.Form) -> CleanedData:
    """The cleaned fields; InputRefused with the first error in one sentence."""
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        raise InputRefused(f"Nothing was stored: {name.replace('_', ' ')}: {errors[0]}")
    return form.cleaned_data
