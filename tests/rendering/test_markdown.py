"""What a person may be shown of a text that nobody vouches for."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering.markdown import DEEPEST, LONGEST_PARSED, rendered

# Tags, and what stands in them, that a page of ours may carry; all else must have become text.
OURS = re.compile(
    r"</?(?:a|blockquote|br|code|em|h[3-6]|hr|li|ol|p|pre|s|span|strong|table|tbody|td|th|thead|tr|ul)"
    r'(?: (?:class|dir|start|rel|data-address|data-language)="[^"<>]*")*>'
)

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "<style>body{display:none}</style>",
    "<p style='position:fixed'>over everything</p>",
    "<base href=//evil.example>",
    "<form action=//evil.example><input name=q></form>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    '![" onerror="alert(1)](https://evil.example/"onerror="alert(1))',
    '[x](https://evil.example/"onmouseover="alert(1))',
    "[x](https://evil.example 'title\" onmouseover=\"alert(1)')",
    "<https://evil.example/\"onclick='alert(1)'>",
    '```"><script>alert(1)</script>\nx\n```',
    "```html\n<script>alert(1)</script>\n```",
    "```python\n</code></pre><script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "| <script>alert(1)</script> |\n|---|\n| <img src=x onerror=alert(1)> |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!-- --><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<math><mtext></mtext><script>alert(1)</script></math>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "[a]: javascript:alert(1)\n\n[a]",
    "# <script>alert(1)</script>",
    "> - <b onclick=alert(1)>x</b>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "\x00<script>alert(1)</script>",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
]


def holds_only_ours(html: str) -> bool:
    return not re.search("[<>]", OURS.sub("", html))


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_runs_loads_or_navigates_comes_through(attack: str) -> None:
    html = rendered(attack)
    assert holds_only_ours(html)
    assert not re.search(r"<[^>]* (?:href|src|style|on\w+)=", html)


@given(st.text(max_size=400))
def test_any_text_is_rendered_and_stays_within_our_tags(text: str) -> None:
    assert holds_only_ours(rendered(text))


MARKED = st.text(alphabet="ab<>&\"'`*_~[]()!#|-:> \n\t1.\\\ud800\x00א漢", max_size=300)


@given(MARKED)
def test_any_heap_of_markup_is_rendered_and_stays_within_our_tags(text: str) -> None:
    assert holds_only_ours(rendered(text))


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=80))
def test_no_letter_is_lost(text: str) -> None:
    assert unescape(re.sub("<[^>]*>", "", rendered(text))).strip() == text


def test_raw_html_is_shown_as_text() -> None:
    assert rendered("<b>bold</b>") == '<p dir="auto">&lt;b&gt;bold&lt;/b&gt;</p>\n'


def test_an_image_is_its_words_and_its_address() -> None:
    html = rendered("![a cat](https://example.org/cat.png)")
    assert "Image: a cat" in html
    assert "(https://example.org/cat.png)" in html
    assert "<img" not in html


def test_a_link_shows_where_it_leads_and_leads_nowhere_by_itself() -> None:
    html = rendered("[click me](https://example.org/a?b=1&c=2)")
    assert 'data-address="https://example.org/a?b=1&amp;c=2"' in html
    assert "(https://example.org/a?b=1&amp;c=2)" in html
    assert 'rel="noopener nofollow noreferrer"' in html
    assert "href" not in html


def test_an_address_written_out_is_not_repeated() -> None:
    assert rendered("<https://example.org>").count("https://example.org") == 2  # the attribute and the words


def test_an_address_that_is_not_of_the_web_is_only_text() -> None:
    assert rendered("[write](mailto:a@example.org)") == (
        '<p dir="auto">write <span class="address">(mailto:a@example.org)</span></p>\n'
    )


def test_a_table_is_aligned_by_classes() -> None:
    html = rendered("| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |")
    assert '<th class="left">a</th>' in html
    assert '<td class="center">2</td>' in html
    assert '<td class="right">3</td>' in html
    assert "style" not in html


def test_strikethrough_and_line_breaks_are_kept() -> None:
    assert rendered("~~old~~\nnew") == '<p dir="auto"><s>old</s><br>\nnew</p>\n'


@pytest.mark.parametrize(
    ("written", "shown"), [("#", "h3"), ("##", "h4"), ("###", "h5"), ("####", "h6"), ("#####", "h6")]
)
def test_headings_stand_below_those_of_the_page(written: str, shown: str) -> None:
    assert rendered(f"{written} Title") == f'<{shown} dir="auto">Title</{shown}>\n'


def test_code_is_coloured_by_classes_where_its_language_is_known() -> None:
    assert '<span class="k">def</span> <span class="f">f</span>' in rendered("```python\ndef f(): pass\n```")
    assert "<span" not in rendered("```klingon\ndef f(): pass\n```")


def test_code_keeps_its_lines_and_blanks() -> None:
    assert ">\n\n  a\n\n</code>" in rendered("```python\n\n\n  a\n\n```")


@pytest.mark.parametrize("block", ["سلام", "- سلام", "> سلام", "# سلام", "1. سلام", "| سلام |\n|---|\n| ب |"])
def test_outer_blocks_find_their_direction_in_their_text(block: str) -> None:
    assert rendered(block).count('dir="auto"') == 1


def test_code_always_runs_from_left_to_right() -> None:
    assert '<pre dir="ltr">' in rendered("```\nسلام\n```")


def test_half_a_character_becomes_a_question_mark() -> None:
    assert rendered("a\ud800b") == '<p dir="auto">a?b</p>\n'


def test_words_nested_deeper_than_the_parser_goes_are_not_lost() -> None:
    assert "bottom" in rendered("> " * (DEEPEST + 50) + "bottom")


def test_a_text_longer_than_is_parsed_is_shown_as_written() -> None:
    assert rendered("**a** " * (LONGEST_PARSED // 5)).startswith('<pre dir="auto">**a** **a**')
