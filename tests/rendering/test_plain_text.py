"""The words of a rendering are counted as a browser counts them."""

from evaluations.rendering.markdown import render_markdown
from evaluations.rendering.plain_text import text_content


def test_words_are_what_stands_between_the_tags() -> None:
    assert text_content("<p>One <strong>two</strong> &lt;three&gt; &amp; four</p>\n<p>five</p>") == (
        "One two <three> & four\nfive"
    )


def test_the_line_break_that_a_browser_drops_after_pre_is_not_counted() -> None:
    assert text_content("<pre>\n\nx</pre>") == "\nx"
    assert text_content("<pre><code>\nx</code></pre>") == "\nx"


def test_words_on_buttons_are_nobodys() -> None:
    assert text_content("<pre><button>Copy</button><code>x</code></pre>y") == "xy"


def test_markup_that_was_written_as_text_counts_as_text() -> None:
    assert text_content(render_markdown("a <b>bold</b> word")).strip() == "a <b>bold</b> word"
