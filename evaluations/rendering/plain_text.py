"""The text content of a rendering, as a browser counts it."""

from html.parser import HTMLParser

# Elements that pages add to a text: buttons that copy code.
NOT_WORDS = frozenset({"button"})


class TextCollector(HTMLParser):
    """Collects what ``textContent`` gives in a browser, without the words on buttons."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.ignoring = 0
        self.after_pre = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ignoring += tag in NOT_WORDS
        self.after_pre = tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self.ignoring -= tag in NOT_WORDS
        self.after_pre = False

    def handle_data(self, data: str) -> None:
        # A browser drops the line break that follows <pre> at once.
        words = data.removeprefix("\n") if self.after_pre else data
        self.after_pre = False
        if not self.ignoring:
            self.found.append(words)


def text_content(html: str) -> str:
    words = TextCollector()
    words.feed(html)
    words.close()
    return "".join(words.found)
