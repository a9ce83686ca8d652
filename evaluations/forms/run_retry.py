from django import forms

from evaluations.forms.run_new import BudgetField
from evaluations.services.judging.selecting import RETRYABLE


class RetryForm(forms.Form):
    states = forms.MultipleChoiceField(
        choices=[(state, state.replace("_", " ")) for state in RETRYABLE],
        error_messages={"required": "Choose what is to be asked again."},
    )
    budget = BudgetField(help_text="Never exceeded. Empty: no budget.")
