from django import forms

FORMATS = [
    ("jsonl", "JSONL – one object a line, everything in it, for scripts and for importing again"),
    ("csv", "CSV – one row a comparison, for spreadsheets"),
]


class ExportForm(forms.Form):
    written_as = forms.ChoiceField(label="Format", choices=FORMATS, initial="jsonl", widget=forms.RadioSelect)
