"""LaTeX as MathML, where it is LaTeX, and as it was written where it is not."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering.formulas import DEEPEST, MAX_FORMULA_CHARACTERS, latex_to_mathml
from evaluations.rendering.markdown import MAX_IN_FORMULAS, render_markdown


def inner(latex: str) -> str:
    """What stands in the row of a formula."""
    found = re.fullmatch(
        r'<math display="inline" dir="ltr"><mrow>(.*)</mrow></math>', latex_to_mathml(latex, display=False) or ""
    )
    assert found, f"{latex} was not read"
    return found.group(1)


def words(html: str) -> str:
    return unescape(re.sub("<[^>]*>", "", html)).strip()


@pytest.mark.parametrize(
    ("latex", "mathml"),
    [
        ("x", "<mi>x</mi>"),
        ("x^2", "<msup><mi>x</mi><mn>2</mn></msup>"),
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\alpha<\beta", "<mi>α</mi><mo>&lt;</mo><mi>β</mi>"),
        (r"\mathrm{d}x", '<mi mathvariant="normal">d</mi><mi>x</mi>'),
        (r"\mathbb{R}", "<mi>ℝ</mi>"),
        (r"\text{if <b>}", "<mtext>if\u00a0&lt;b&gt;</mtext>"),
        (r"\max_x", '<munder><mo movablelimits="true">max</mo><mi>x</mi></munder>'),
        (r"\boxed{4}", '<menclose notation="box"><mrow><mn>4</mn></mrow></menclose>'),
    ],
)
def test_a_formula_is_mathml(latex: str, mathml: str) -> None:
    assert inner(latex) == mathml


@pytest.mark.parametrize(
    "name",
    ["align", "align*", "aligned", "alignedat", "alignat*", "eqnarray", "gather", "gathered", "multline", "split"],
)
def test_environments_of_several_lines_are_tables(name: str) -> None:
    columns = "{2}" if "at" in name and "gath" not in name else ""
    html = inner(rf"\begin{{{name}}}{columns}a=b\\c=d\end{{{name}}}")
    assert html.count("<mtr>") == 2
    assert words(html) == "a=bc=d"


@pytest.mark.parametrize("name", ["matrix", "pmatrix", "bmatrix", "vmatrix", "cases", "dcases"])
def test_matrices_and_cases_are_tables(name: str) -> None:
    assert inner(rf"\begin{{{name}}}a&b\\c&d\end{{{name}}}").count("<mtd") == 4


def test_lines_of_a_matrix_are_classes_of_its_cells() -> None:
    html = inner(r"\begin{array}{c|c}a&b\\\hline c&d\end{array}")
    assert '<mtd columnalign="center" class="ruled-right ruled-below"><mi>a</mi>' in html
    assert '<mtd columnalign="center"><mi>d</mi>' in html


def test_lines_without_an_environment_are_a_table_too() -> None:
    assert inner(r"a \\ b").count("<mtr>") == 2


@pytest.mark.parametrize(
    "latex",
    [
        "",
        "  ",
        r"\unknown x",
        r"\frac{a}",
        "x_",
        "{",
        "a & b",
        r"\left(",
        r"\ce{H2O}",
        r"\def\a{\a\a}\a",
        r"\newcommand{\a}{b}\a",
        "x" * (MAX_FORMULA_CHARACTERS + 1),
        "{" * (DEEPEST + 1) + "x" + "}" * (DEEPEST + 1),
    ],
)
def test_what_cannot_be_read_as_a_formula_is_none(latex: str) -> None:
    assert latex_to_mathml(latex, display=True) is None


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\style{color:red}{x}",
        r"\color{red}x",
        r"\hspace{-99em}x",
        r"\rule{9em}{9em}x",
    ],
)
def test_nothing_of_a_formula_navigates_colours_or_covers(latex: str) -> None:
    assert not re.search(r"href|style=|color|background|99em|9em|alert", latex_to_mathml(latex, display=True) or "")


COMMANDS = (
    r"\frac \sqrt { } ^ _ x 1 \left( \right) [ ] & \\ \begin{matrix} \end{matrix} \begin{cases} \end{cases} \text \sum "
    r"\color{a} \hspace{1em} ' \over \hline | $ < \verb \mathbf \genfrac \tag &#x3C; &#xD800; &#x0;"
)
LATEX = st.lists(st.sampled_from([" ", *COMMANDS.split()]), max_size=25).map("".join)


@given(LATEX, st.booleans())
def test_any_heap_of_commands_is_mathml_or_nothing(latex: str, display: bool) -> None:
    html = latex_to_mathml(latex, display=display)
    assert html is None or re.fullmatch(r"(?:</?m[a-z]+(?: [a-z]+=\"[^\"<>]*\")*>|[^<>])*", html)
    assert html is None or html.encode()


# ---- where formulas are found ---------------------------------------------------------------


@pytest.mark.parametrize("written", ["$x^2$", r"\(x^2\)", "$$x^2$$", r"\[x^2\]"])
def test_formulas_are_found_in_a_line(written: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup></mrow></math> here" in render_markdown(f"so {written} here")


@pytest.mark.parametrize(("written", "display"), [("$x$", "inline"), (r"\(x\)", "inline"), ("$$x$$", "block")])
def test_a_formula_stands_in_its_line_or_alone(written: str, display: str) -> None:
    assert f'<math display="{display}"' in render_markdown(f"so {written}")


@pytest.mark.parametrize(
    "written",
    [
        "$$\na\n= b\n- c\n$$",
        "\\[\na\n= b\n- c\n\\]",
        "\\begin{equation}\na\n= b\n- c\n\\end{equation}",
        "$$a\n= b\n- c$$",
    ],
)
@pytest.mark.parametrize("before", ["", "so:\n", "> ", "- item\n\n  "])
def test_a_formula_with_lines_of_its_own_is_one_formula(written: str, before: str) -> None:
    indent = "> " if before == "> " else "  " if before.startswith("-") else ""
    html = render_markdown(before + written.replace("\n", "\n" + indent))
    assert "<mi>a</mi><mo>=</mo><mi>b</mi><mo>-</mo><mi>c</mi>" in html.replace("−", "-")
    assert html.count("<math") == 1
    assert "<h" not in html


def test_the_full_stop_after_a_formula_is_kept() -> None:
    assert render_markdown("$$\nx\n$$.").endswith("</math>.</p>\n")


@pytest.mark.parametrize(
    "money",
    [
        "$5 and $10",
        "between $5-$10 a month",
        "cost $5, or 5$ in cash",
        "US$5 and AU$6",
        "**$5**/month and **$10**/month",
        "$100 (about £80) to $200 (£160)",
        "it is $5/month (or $50/year)",
        "$1,000.50 = €900; $2",
        "$HOME/bin:$PATH",
        "echo $A and $B",
        "$(document).ready(f); $(x)",
        "100$ or 200$",
        r"\$x\$",
        "$ x $",
        "$$",
        "a $ b",
    ],
)
def test_money_and_variables_are_no_formulas(money: str) -> None:
    html = render_markdown(money)
    assert "<math" not in html
    assert 'class="formula"' not in html


@pytest.mark.parametrize("words_", [r"\[sic\]", r"\[link\](https://example.org)", r"\(optional\)", r"\[not a list\]"])
def test_brackets_that_were_only_protected_are_no_formulas(words_: str) -> None:
    assert "<math" not in render_markdown(words_)


@pytest.mark.parametrize("written", ["the $n$th", "2$x$", "$x$-axis", "$x$, $y$", "($x$)", r"$a\$b$", "$f(x)$", "$5$"])
def test_formulas_close_to_letters_numbers_and_signs_are_found(written: str) -> None:
    assert "<math" in render_markdown(written)


def test_code_holds_no_formulas() -> None:
    assert "<math" not in render_markdown("`$x$`\n\n```\n$$x$$\n```\n\n    $y$")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (r"so $\foo$", r"$\foo$"),
        (r"so \(\foo\)", r"\(\foo\)"),
        ("$$\n\\foo\n$$", "$$\n\\foo\n$$"),
        (r"\begin{align}\foo\end{align}", r"\begin{align}\foo\end{align}"),
    ],
)
def test_a_formula_that_cannot_be_read_is_shown_as_it_was_written(written: str, shown: str) -> None:
    html = render_markdown(written)
    assert "<math" not in html
    assert shown in words(html)


def test_only_so_many_formulas_of_a_text_are_set() -> None:
    html = render_markdown("$x^2$ and " * MAX_IN_FORMULAS)
    assert 'class="formula"' not in html  # too long to be parsed at all
    html = render_markdown("$x^2$ and " * 10_000)
    assert 0 < html.count("<math") < 10_000
    assert html.count("<math") + html.count('<code class="formula"') == 10_000


@given(st.text(alphabet="ab $\\[](){}^_1\n.>-", max_size=120))
def test_no_letter_is_lost_beside_and_in_formulas(text: str) -> None:
    letters = [character for character in text if character in "ab"]
    assert [character for character in words(render_markdown(text)) if character in "ab"] == letters
