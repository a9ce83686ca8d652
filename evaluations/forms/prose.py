from typing import Any

from django import forms


class ProseField(forms.CharField):
    """A text of several lines. Browsers send their line ends as CRLF: kept so, an unchanged text would look changed."""

    def __init__(self, *, rows: int, classes: str = "", **options: Any) -> None:
        attrs = {"rows": rows, **({"class": classes, "spellcheck": "false"} if classes else {})}
        super().__init__(widget=forms.Textarea(attrs=attrs), **options)

    def to_python(self, value: Any) -> Any:
        return (super().to_python(value) or "").replace("\r\n", "\n").replace("\r", "\n")
