"""The numbers of a report with their intervals, and marks of the reasons that are given below its tables."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evaluations.stats.decisions.breakdowns import AgreementBreakdown, AgreementBreakdowns
from evaluations.templatetags.intervals import HasInterval
from evaluations.templatetags.numbers import decimal
from evaluations.templatetags.remarks import Remarks

register = template.Library()


class Figure(HasInterval, Protocol):
    @property
    def n(self) -> int: ...
    @property
    def why(self) -> str | None: ...
    @property
    def ci95_why(self) -> str | None: ...
    @property
    def ci95_rule(self) -> str | None: ...


@register.filter
def whole_percent(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0%}"


@register.filter
def hundredths(value: float) -> str:
    return f"{100 * value:.0f}"


def signed(value: float, places: int) -> str:
    """With its sign, and none where nothing is left of it."""
    text = f"{value:+.{places}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


@register.filter
def signed_decimal(value: float) -> str:
    return signed(value, 2)


@register.filter
def in_points(value: float) -> str:
    """A difference of shares in percentage points, with enough decimals to differ from 0."""
    places = next((places for places in (0, 1, 2) if round(abs(100 * value), places)), 0)
    return signed(100 * value, places)


# How a value of each kind is said alone, and at the ends of its interval.
KINDS: Final[Mapping[str, tuple[Callable[[float], str], Callable[[float], str]]]] = {
    "percent": (whole_percent, hundredths),
    "decimal": (decimal, decimal),
    "difference": (lambda value: signed(100 * value, 0), lambda value: signed(100 * value, 0)),
    "points": (lambda value: f"{signed(100 * value, 0)} points", lambda value: signed(100 * value, 0)),
    "signed": (lambda value: signed(value, 2), lambda value: signed(value, 2)),
}

# The numbers of a block with ties and without: name, head, kind.
COLUMNS: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "with": (
        ("agreement", "Agreement", "percent"),
        ("cohen_kappa", "Cohen’s kappa", "decimal"),
        ("gwet_ac1", "AC1", "decimal"),
        ("scott_pi", "Scott’s pi", "decimal"),
        ("weighted_kappa", "Weighted kappa", "decimal"),
        ("gwet_ac2", "AC2", "decimal"),
    ),
    "without": (
        ("agreement", "Agreement", "percent"),
        ("cohen_kappa", "Cohen’s kappa", "decimal"),
        ("gwet_ac1", "AC1", "decimal"),
        ("scott_pi", "Scott’s pi", "decimal"),
        ("prevalence_index", "Prevalence", "decimal"),
        ("bias_index", "Bias index", "decimal"),
    ),
}


@register.simple_tag
def notes() -> Remarks:
    """``{% notes as reasons %}``: for the cells of one table; `report/_notes.html` tells them."""
    return Remarks()


@register.simple_block_tag(takes_context=True)
def table_notes(context: Context, content: SafeString) -> SafeString:
    """``{% table_notes %}A tie counts as half a win.{% endtable_notes %}``: a rule of the table, then its notes."""
    return included(context, "report/_notes.html", rule=on_one_line(content))


@register.simple_block_tag(takes_context=True)
def empty_part(context: Context, content: SafeString, title: str) -> SafeString:
    """``{% empty_part "No scores here" %}How to get some.{% endempty_part %}``: a part without numbers."""
    return included(context, "report/parts/_nothing.html", title=title, how=on_one_line(content))


def included(context: Context, name: str, **values: object) -> SafeString:
    assert context.template is not None
    with context.push(**values):
        return context.template.engine.get_template(name).render(context)


def on_one_line(content: SafeString) -> SafeString:
    """Template text without its line ends; it is escaped already."""
    return mark_safe(" ".join(content.split()))


@register.simple_tag
def figure(number: Figure | None, kind: str, notes: Remarks | None = None) -> str:
    """A value with its interval: 71% [66–76]."""
    if number is None:
        return SafeString('<span class="muted">–</span>')
    if number.value is None:
        return format_html('<span class="muted">n/a</span>{}', marked(number.why, notes))
    alone, at_end = KINDS[kind]
    return format_html("{}{}", alone(number.value), interval_of(number, at_end, notes))


def interval_of(number: Figure, spell: Callable[[float], str], notes: Remarks | None) -> SafeString:
    if number.ci95 is None:
        return marked(number.ci95_why, notes)
    if notes is not None and number.ci95_rule:
        notes.made_by(number.ci95_rule)
    low, high = number.ci95
    dash = "–" if low >= 0 and spell(low)[0] not in "+−" else " to "
    return format_html(
        ' <span class="ci" title="{}">[{}{}{}]</span>', number.ci95_rule or "", spell(low), dash, spell(high)
    )


@register.simple_tag
def marked(reason: str | None, notes: Remarks | None) -> SafeString:
    return notes.mark(reason) if reason and notes is not None else SafeString("")


@register.simple_tag
def cell(number: Figure | None, kind: str, notes: Remarks | None = None, n: bool = False) -> str:
    """An estimate as a table cell; ``n=True`` adds the sample size."""
    counted = format_html(' <small class="of">n {}</small>', f"{number.n:,}") if n and number is not None else ""
    return format_html('<td class="number">{}{}</td>', figure(number, kind, notes), counted)


@register.simple_tag
def block_heads(ties: str) -> str:
    """The heads of the cells that `block_cells` makes."""
    heads = [(head,) for _, head, _ in COLUMNS[ties]] + [("n",)] + ([("Dropped",)] if ties == "without" else [])
    return format_html_join("", '<th scope="col" class="number">{}</th>', heads)


@register.simple_tag
def block_cells(block: Any, ties: str, notes: Remarks) -> str:
    """Every number of a block in one row, with ties or without."""
    agreement = block.with_ties if ties == "with" else block.without_ties
    dropped = cell(block.dropped, "percent", notes) if ties == "without" else ""
    if not agreement.n:
        why = agreement.agreement.why
        return format_html(
            '<td class="muted" colspan="{}">n/a: {}</td><td class="number">0</td>{}', len(COLUMNS[ties]), why, dropped
        )
    numbers = ((cell(getattr(agreement, name), kind, notes),) for name, _, kind in COLUMNS[ties])
    return format_html(
        '{}<td class="number">{}</td>{}', format_html_join("", "{}", numbers), f"{agreement.n:,}", dropped
    )


@register.simple_tag
def level(ceiling: Any, ties: str) -> Any:
    """The ceiling with ties, or without."""
    return ceiling.s1 if ties == "with" else ceiling.s2


@register.simple_tag(takes_context=True)
def changed(context: Context, **changes: str) -> str:
    """The address of this page with these parameters changed; an empty value takes one out."""
    query = {**context["query"], **{name: [str(value)] for name, value in changes.items()}}
    return address(context["path"], query)


def address(path: str, query: Mapping[str, list[str]]) -> str:
    query_string = urlencode({name: values for name, values in query.items() if any(values)}, doseq=True)
    return f"{path}?{query_string}" if query_string else path


@register.simple_tag(takes_context=True)
def without(context: Context, query: Mapping[str, list[str]]) -> str:
    """The address of this page with this query alone."""
    return address(context["path"], query)


@register.filter
def breakdown_tables(of_judge: AgreementBreakdowns) -> list[tuple[str, AgreementBreakdown, bool]]:
    """Each breakdown with its heading, and whether its groups are pairs of models."""
    return [("by category", of_judge.by_category, False), ("by pair of models", of_judge.by_pair, True)]


@register.filter
def get_values(query: Mapping[str, list[str]], name: str) -> list[str]:
    return query.get(name, [])


@register.filter
def share_of_row(count: int, row: list[int]) -> str:
    """A cell of a matrix as a share of its row."""
    return whole_percent(count / sum(row))
