"""What a person may be shown of a text that nobody vouches for."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering.formulas import VALUES
from evaluations.rendering.markdown import DEEPEST, MAX_COLOURED, MAX_PARSED_CHARACTERS, render_markdown
from evaluations.rendering.sanitizer import ALLOWED_TAGS
from tests.rendering.payloads import PAYLOADS

# Tags, and what stands in them, that a page of ours may carry; all else must have become text.
OURS = re.compile(
    r"</?(?:a|blockquote|br|code|em|h[3-6]|hr|li|ol|p|pre|s|span|strong|table|tbody|td|th|thead|tr|ul"
    r"|math|menclose|mfrac|m[inorst]|mover|mpadded|mphantom|mroot|mrow|mspace|msqrt|mstyle|msub|msubsup|msup|mtable"
    r"|mtd|mtext|mtr|munder|munderover)"
    r"(?: (?:aria-hidden|class|dir|start|rel|data-address|data-language"
    r"|display|notation|linethickness|mathvariant|stretchy|fence"
    r'|movablelimits|form|minsize|maxsize|accent|accentunder|width|displaystyle|scriptlevel|columnalign)="[^"<>]*")*>'
)


def holds_only_ours(html: str) -> bool:
    return not re.search("[<>]", OURS.sub("", html))


class Elements(HTMLParser):
    """Every element of a page as a browser would read it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


ATTRIBUTES = {"aria-hidden", "class", "dir", "start", "rel", "data-address", "data-language"}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_that_runs_loads_or_navigates_comes_through(payload: str) -> None:
    html = render_markdown(payload)
    assert holds_only_ours(html)
    for tag, attributes in Elements(html).found:
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= ATTRIBUTES | set(VALUES.get(tag, {}))
        assert (attributes.get("data-address") or "http").lower().startswith("http")


def test_there_are_payloads_enough_and_none_twice() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 60


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_inside_other_markup_is_as_harmless(payload: str) -> None:
    for around in ("> {}", "- {}", "| a |\n|---|\n| {} |", "**{}**", "[{}](https://example.org)", "`{}`", "$x_{{{}}}$"):
        assert holds_only_ours(render_markdown(around.format(payload)))


@given(st.text(max_size=400))
def test_any_text_is_rendered_and_stays_within_our_tags(text: str) -> None:
    assert holds_only_ours(render_markdown(text))


MARKED = st.text(alphabet="ab<>&\"'`*_~[]()!#|-:> \n\t1.\\${}^\ud800\x00א漢", max_size=300)


@given(MARKED)
def test_any_heap_of_markup_is_rendered_and_stays_within_our_tags(text: str) -> None:
    assert holds_only_ours(render_markdown(text))


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=80))
def test_no_letter_is_lost(text: str) -> None:
    assert unescape(re.sub("<[^>]*>", "", render_markdown(text))).strip() == text


def test_raw_html_is_shown_as_text() -> None:
    assert render_markdown("<b>bold</b>") == '<p dir="auto">&lt;b&gt;bold&lt;/b&gt;</p>\n'


def test_an_image_is_its_words_and_its_address() -> None:
    html = render_markdown("![a cat](https://example.org/cat.png)")
    assert "Image: a cat" in html
    assert "(https://example.org/cat.png)" in html
    assert "<img" not in html


def test_a_link_shows_where_it_leads_and_leads_nowhere_by_itself() -> None:
    html = render_markdown("[click me](https://example.org/a?b=1&c=2)")
    assert 'data-address="https://example.org/a?b=1&amp;c=2"' in html
    assert "(https://example.org/a?b=1&amp;c=2)" in html
    assert 'rel="noopener nofollow noreferrer"' in html
    assert "href" not in html


def test_an_address_written_out_is_not_repeated() -> None:
    assert render_markdown("<https://example.org>").count("https://example.org") == 2  # the attribute and the words


def test_an_address_that_is_not_of_the_web_is_only_text() -> None:
    assert render_markdown("[write](mailto:a@example.org)") == (
        '<p dir="auto">write <span class="address">(mailto:a@example.org)</span></p>\n'
    )


def test_a_table_is_aligned_by_classes() -> None:
    html = render_markdown("| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |")
    assert '<th class="left">a</th>' in html
    assert '<td class="center">2</td>' in html
    assert '<td class="right">3</td>' in html
    assert "style" not in html


def test_strikethrough_and_line_breaks_are_kept() -> None:
    assert render_markdown("~~old~~\nnew") == '<p dir="auto"><s>old</s><br>\nnew</p>\n'


@pytest.mark.parametrize(
    ("written", "shown"), [("#", "h3"), ("##", "h4"), ("###", "h5"), ("####", "h6"), ("#####", "h6")]
)
def test_headings_stand_below_those_of_the_page(written: str, shown: str) -> None:
    assert render_markdown(f"{written} Title") == f'<{shown} dir="auto">Title</{shown}>\n'


def test_code_is_coloured_by_classes_where_its_language_is_known() -> None:
    assert '<span class="k">def</span> <span class="f">f</span>' in render_markdown("```python\ndef f(): pass\n```")
    assert "<span" not in render_markdown("```klingon\ndef f(): pass\n```")


def test_code_keeps_its_lines_and_blanks() -> None:
    assert ">\n\n  a\n\n</code>" in render_markdown("```python\n\n\n  a\n\n```")


@pytest.mark.parametrize("block", ["سلام", "- سلام", "> سلام", "# سلام", "1. سلام", "| سلام |\n|---|\n| ب |"])
def test_outer_blocks_find_their_direction_in_their_text(block: str) -> None:
    assert render_markdown(block).count('dir="auto"') == 1


def test_code_always_runs_from_left_to_right() -> None:
    assert '<pre dir="ltr">' in render_markdown("```\nسلام\n```")


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("https://example.org/a?b=1", "https://example.org/a?b=1"),
        ("http://example.org", "http://example.org"),
        ("www.example.org", "http://www.example.org"),
    ],
)
def test_an_address_without_brackets_is_a_link_that_leads_nowhere_by_itself(written: str, address: str) -> None:
    html = render_markdown(f"See {written}, please.")
    assert f'<a class="link" data-address="{address}" rel="noopener nofollow noreferrer">{written}</a>,' in html
    assert 'address">(' not in html  # what is read already is not said again


@pytest.mark.parametrize("words", ["README.md", "node.js", "me@example.org", "`https://example.org`"])
def test_what_only_looks_like_an_address_is_no_link(words: str) -> None:
    assert "<a" not in render_markdown(words)


def test_a_link_whose_words_are_another_address_shows_where_it_leads() -> None:
    assert "(https://evil.example)" in render_markdown("[https://bank.example](https://evil.example)")


def test_a_task_has_a_mark_and_says_in_words_whether_it_is_done() -> None:
    html = render_markdown("- [ ] **wash**\n- [x] iron\n- [X] fold\n- [y] other")
    mark = (
        '<li class="task"><span class="marker" aria-hidden="true">{}</span>'
        '<span class="visually-hidden" dir="ltr">{}: </span>'
    )
    todo, done = mark.format("☐", "Not done"), mark.format("☑", "Done")
    assert f"{todo}<strong>wash</strong></li>" in html
    assert f"{done}iron</li>" in html
    assert f"{done}fold</li>" in html
    assert "<li>[y] other</li>" in html
    assert "<input" not in html


def test_code_names_its_language() -> None:
    assert render_markdown("```Python title\nx\n```").startswith('<pre dir="ltr" data-language="Python"><code>')
    assert render_markdown("```\nx\n```").startswith('<pre dir="ltr"><code>')


def test_only_so_much_code_of_a_text_is_in_colour() -> None:
    block = "```python\n" + "x = 1\n" * 1000 + "```\n\n"
    html = render_markdown(block * 12)
    assert html.count("<pre") == 12
    assert 0 < html.count('<span class="m">') <= MAX_COLOURED // 6


def test_a_word_of_code_does_not_decide_about_the_direction_of_its_paragraph() -> None:
    assert render_markdown("`print` سلام") == '<p dir="auto"><code dir="ltr">print</code> سلام</p>\n'


def test_half_a_character_becomes_a_question_mark() -> None:
    assert render_markdown("a\ud800b") == '<p dir="auto">a?b</p>\n'


AS_WRITTEN = '<pre class="as-written" dir="auto">'


def test_words_nested_deeper_than_the_parser_goes_are_not_lost() -> None:
    assert "bottom" in render_markdown("> " * (DEEPEST + 50) + "bottom")


def test_a_text_longer_than_is_parsed_is_shown_as_written() -> None:
    assert render_markdown("**a** " * (MAX_PARSED_CHARACTERS // 5)).startswith(AS_WRITTEN + "**a** **a**")
