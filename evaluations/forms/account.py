from typing import Any
from zoneinfo import available_timezones

from django import forms

from evaluations.models import User


def zones() -> list[tuple[str, str]]:
    """Zones by region and city; the old abbreviations (EST5EDT, Zulu, …) are left out."""
    cities = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [(name, name.replace("_", " ")) for name in ["UTC", *cities]]


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # cannot be subscripted when it runs
    timezone = forms.ChoiceField(label="Time zone", choices=zones, help_text="Times on all pages stand in this zone.")

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
    """The present password is asked for, because an open browser is not enough.

    It is not where there is none, or where it was forgotten and a link was the way in.
    """

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

    def __init__(self, *args: Any, user: User, by_link: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        if by_link or not user.has_usable_password():
            del self.fields["present"]

    def clean_present(self) -> str:
        present: str = self.cleaned_data["present"]
        if not self.user.check_password(present):
            raise forms.ValidationError("This is not your present password.")
        return present

    def clean_again(self) -> str:
        again: str = self.cleaned_data["again"]
        if again != self.cleaned_data.get("password"):
            raise forms.ValidationError("The two new passwords differ.")
        return again
