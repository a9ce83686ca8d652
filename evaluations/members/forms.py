"""Forms of accounts, members, tokens and signing in."""

from collections.abc import Mapping
from typing import Any

from django import forms

from evaluations.access import RIGHT_COLUMNS, Right
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import JOINABLE_ROLES, SCOPE_TEXTS, Role, Scope
from evaluations.members.join_links.services import MAX_USES
from evaluations.members.pasted_names import MAX_CHARACTERS, PastedName, parse_pasted_names
from evaluations.members.selectors import list_time_zones
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import MAX_USERNAME_CHARACTERS, SitePolicy, User
from evaluations.web.forms import MultilineField


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # cannot be subscripted when it runs
    timezone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name.replace("_", " ")) for name in list_time_zones()],
    )

    class Meta:
        model = User
        fields = ["display_name", "timezone", "theme", "single_keys"]
        labels = {"display_name": "Name", "theme": "Appearance", "single_keys": "Single-key shortcuts"}
        help_texts = {
            "display_name": "Shown to others instead of your username.",
            "single_keys": "On the review page. When off, letters, digits and ? need Alt. Helps with speech input and "
            "accidental key presses. Arrow keys and Enter always work.",
        }


class PasswordForm(forms.Form):
    """Asks for the present password, unless there is none or the person signed in by a link."""

    present = forms.CharField(
        label="Current password",
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
        label="Repeat new password",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    keep_tokens = forms.BooleanField(
        label="Keep my API tokens",
        required=False,
        help_text="Leave off if someone else may know your password or have a token.",
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
            raise forms.ValidationError("The two passwords don’t match.")
        return again


ROLE_CHOICES = [
    (Role.OWNER, "Owner: manages members, and everything below"),
    (Role.MANAGER, "Manager: imports, judges, settings"),
    (Role.REVIEWER, "Reviewer: reviews, sees others’ choices after saving"),
    (Role.ADJUDICATOR, "Adjudicator: reviews, sees all choices, resolves, exports"),
    (Role.VIEWER, "Viewer: reads everything, changes nothing"),
]


class MembersForm(forms.Form):
    names = MultilineField(
        rows=4,
        label="Names or e-mail addresses",
        max_length=MAX_CHARACTERS,
        help_text="Paste as many as you like, separated by spaces, commas or lines.",
    )
    role = forms.ChoiceField(choices=ROLE_CHOICES, initial=Role.REVIEWER)

    def clean_names(self) -> list[PastedName]:
        try:
            return parse_pasted_names(self.cleaned_data["names"])
        except InputRefused as refused:
            raise forms.ValidationError(str(refused)) from refused


JOIN_DAYS_CHOICES = [(1, "1 day"), (7, "7 days"), (30, "30 days")]


class JoinLinkForm(forms.Form):
    role = forms.ChoiceField(choices=[(role, role.capitalize()) for role in JOINABLE_ROLES])
    days = forms.TypedChoiceField(label="Expires after", choices=JOIN_DAYS_CHOICES, initial=7, coerce=int)
    max_uses = forms.IntegerField(label="Max uses", initial=20, min_value=1, max_value=MAX_USES)


class JoinForm(forms.Form):
    name = forms.CharField(
        label="Your name", max_length=120, widget=forms.TextInput(attrs={"autocomplete": "name", "autofocus": True})
    )


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


TOKEN_DAYS_CHOICES = [(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "1 year")]


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        help_text="What you use it for.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=[(scope.value, f"{scope}: {words}") for scope, words in SCOPE_TEXTS.items()],
        initial=[Scope.READ],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one scope."},
    )
    days = forms.TypedChoiceField(label="Expires after", choices=TOKEN_DAYS_CHOICES, initial=90, coerce=int)
    evaluation = forms.ModelChoiceField(
        Evaluation.objects.none(),
        required=False,
        empty_label="all your evaluations",
        help_text="A token limited to one evaluation can’t access others, accounts or endpoints.",
    )

    present = forms.CharField(
        label="Current password",
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
    Right.CREATE_EVALUATIONS: "The creator becomes the owner.",
    Right.CREATE_ACCOUNTS: "Reveals whether a username exists, and adds members without asking them.",
    Right.MAKE_LINKS: "Only for accounts created for their own evaluations that have no password yet.",
}


class SitePolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # cannot be subscripted when it runs
    class Meta:
        model = SitePolicy
        fields = [columns.policy for columns in RIGHT_COLUMNS.values()]
        labels = {columns.policy: f"Everyone may {right}" for right, columns in RIGHT_COLUMNS.items()}
        help_texts = {columns.policy: RIGHT_HINTS[right] for right, columns in RIGHT_COLUMNS.items()}
