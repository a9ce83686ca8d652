from django import forms

from evaluations.domain import Role

ROLES = [
    (Role.OWNER, "owner – decides who takes part, and all below"),
    (Role.MANAGER, "manager – imports, judges, settings"),
    (Role.REVIEWER, "reviewer – reviews, sees others’ choices after saving"),
    (Role.ADJUDICATOR, "adjudicator – reviews, sees all choices, settles disagreements, exports"),
    (Role.VIEWER, "viewer – reads everything, changes nothing"),
]


class PersonForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        help_text="An account is made where there is none of that name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(choices=ROLES, initial=Role.REVIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=ROLES)
