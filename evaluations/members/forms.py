"""Forms of accounts, members, tokens and signing in."""

from collections.abc import Mapping
from typing import Any

from django import forms

from evaluations.access import RIGHT_COLUMNS, Right
from evaluations.domain.roles import SCOPE_TEXTS, Role, Scope
from evaluations.members.selectors import list_time_zones
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import MAX_USERNAME_CHARACTERS, SitePolicy, User


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # cannot be subscripted when it runs
    timezone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name.replace("_", " ")) for name in list_time_zones()],
        help_text="Pages show times in this zone.",
    )

    class Meta:
        model = User
        fields = ["display_name", "timezone", "theme", "single_keys"]
        labels = {"display_name": "Name", "theme": "Appearance", "single_keys": "Single keys act on the review page"}
        help_texts = {
            "display_name": "As others see you. Without one they see your username.",
            "single_keys": "Without it letters, digits and ? act only together with Alt: for speech input, and "
            "wherever keys are pressed by accident. Arrow keys and Enter act either way.",
        }


class PasswordForm(forms.Form):
    """Asks for the present password, unless there is none or the person signed in by a link."""

    present = forms.CharField(
        label="Present password",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    password = forms.CharField(
        label="New password",
        strip=False,
        max_length=4096,
        help_text="At least 10 characters. A sentence is easier to remember than symbols.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="New password again",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    keep_tokens = forms.BooleanField(
        label="Keep my API tokens",
        required=False,
        help_text="Leave it off if somebody else may have your password or a token.",
    )

    def __init__(self, *args: Any, user: User, by_link: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if by_link or not user.has_usable_password():
            del self.fields["present"]
        if not user.has_usable_password():
            del self.fields["keep_tokens"]  # a first password ends everything from before it

    def clean_again(self) -> str:
        again: str = self.cleaned_data["again"]
        if again != self.cleaned_data.get("password"):
            raise forms.ValidationError("The two new passwords differ.")
        return again


ROLE_CHOICES = [
    (Role.OWNER, "owner – decides who takes part, and all below"),
    (Role.MANAGER, "manager – imports, judges, settings"),
    (Role.REVIEWER, "reviewer – reviews, sees others’ choices after saving"),
    (Role.ADJUDICATOR, "adjudicator – reviews, sees all choices, settles disagreements, exports"),
    (Role.VIEWER, "viewer – reads everything, changes nothing"),
]


class MemberForm(forms.Form):
    username = forms.CharField(
        max_length=MAX_USERNAME_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(choices=ROLE_CHOICES, initial=Role.REVIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=ROLE_CHOICES)


class SignInForm(forms.Form):
    username = forms.CharField(
        max_length=MAX_USERNAME_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}),
    )
    password = forms.CharField(
        max_length=4096, strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )


TOKEN_DAYS_CHOICES = [(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year")]


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        help_text="What it is for, so that you know which one to revoke.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        choices=[(scope.value, f"{scope} – {words}") for scope, words in SCOPE_TEXTS.items()],
        initial=[Scope.READ],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one thing that the token may be used for."},
    )
    days = forms.TypedChoiceField(label="Valid for", choices=TOKEN_DAYS_CHOICES, initial=90, coerce=int)
    evaluation = forms.ModelChoiceField(
        Evaluation.objects.none(),
        required=False,
        empty_label="all that you take part in",
        help_text="A token that is tied to one opens no other, and no account or endpoint.",
    )

    present = forms.CharField(
        label="Your password",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, data: Mapping[str, object] | None = None, *, user: User) -> None:
        super().__init__(data)
        if not user.has_usable_password():
            del self.fields["present"]
        evaluations: forms.ModelChoiceField[Evaluation] = self.fields["evaluation"]  # type: ignore[assignment]
        evaluations.queryset = Evaluation.objects.of(user).order_by("name")


class AccountRightsForm(forms.ModelForm):  # type: ignore[type-arg]  # cannot be subscripted when it runs
    class Meta:
        model = User
        fields = [columns.account for columns in RIGHT_COLUMNS.values()]
        labels = {columns.account: str(right).capitalize() for right, columns in RIGHT_COLUMNS.items()}


RIGHT_HINTS: Mapping[Right, str] = {
    Right.CREATE_EVALUATIONS: "Who creates an evaluation owns it.",
    Right.CREATE_ACCOUNTS: "This shows whether a username exists, and adds people to evaluations without asking them.",
    Right.MAKE_LINKS: "Only for accounts that were created for their own evaluations and have no password yet.",
}


class SitePolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # cannot be subscripted when it runs
    class Meta:
        model = SitePolicy
        fields = [columns.policy for columns in RIGHT_COLUMNS.values()]
        labels = {columns.policy: f"Every account may {right}" for right, columns in RIGHT_COLUMNS.items()}
        help_texts = {columns.policy: RIGHT_HINTS[right] for right, columns in RIGHT_COLUMNS.items()}
