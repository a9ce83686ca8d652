"""The shape of what a person sends who marks a passage; what of it is allowed, the service says."""

from django import forms


class RemarkForm(forms.Form):
    comment = forms.CharField(required=False)
    aspect = forms.CharField(required=False, max_length=200)


class SpanForm(RemarkForm):
    """``side``: the response as the person sees it. Without a place the words are looked for."""

    side = forms.ChoiceField(choices=[("a", "A"), ("b", "B")])
    turn = forms.IntegerField(min_value=0, max_value=32_767, required=False)
    start = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    end = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    quote = forms.CharField(required=False, strip=False)
