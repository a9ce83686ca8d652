"""What is recognized as the page round a pasted prompt, and what never is."""

import pytest

from evaluations.judge_prompts.page_boilerplate import find_boilerplate, remove_boilerplate

PROMPT = (
    "You are an impartial judge.\n\nCriteria:\n1. Accuracy: is it true?\n2. Clarity: is it clear?\n\n"
    "Question: {question}\nAnswer: {answer}\n\nRate it from 1 to 5."
)
LINES = PROMPT.split("\n")


def numbered(form: str, first: int = 1) -> str:
    return "\n".join(form.format(number, line).rstrip(" ") for number, line in enumerate(LINES, start=first))


@pytest.mark.parametrize(
    "text",
    [
        f"Skip to content\n\n{PROMPT}",
        f"Skip to main content\nHome\nDocs\nBlog\n{PROMPT}",
        f"Home\nPricing\nDocs\n\n{PROMPT}",
        f"Docs > Guides > LLM judges\n{PROMPT}",
        f"☰ Menu\n🔍 Search docs\n⌘K\n{PROMPT}",
        f"On this page\n{PROMPT}",
        f"{PROMPT}\nCopy",
        f"Copy\n{PROMPT}",
        f"Copy code\n{PROMPT}",
        f"python\nCopy code\n{PROMPT}",
        f"jsonCopy\n{PROMPT}",
        f"📋 Copied!\n{PROMPT}",
        PROMPT.replace("\n\nQuestion", "\n\nCopy to clipboard\n\nQuestion").replace(
            "\nCopy to clipboard\n", "\nCopy\n"
        ),
        f"We use cookies to improve your experience.\nAccept all\nReject all\n{PROMPT}",
        f"This website uses essential cookies to work. Read our policy.\n{PROMPT}",
        f"By continuing to use this site you agree to cookies.\nCookie settings\n{PROMPT}",
        f"{PROMPT}\n\nEdit this page",
        f"{PROMPT}\nEdit this page on GitHub\nLast updated on March 3, 2025",
        f"{PROMPT}\nWas this page helpful?\nYes\nNo",
        f"{PROMPT}\nPrevious\nNext\nPowered by Docusaurus",
        f"{PROMPT}\n© 2025 Example Inc. All rights reserved.\nPrivacy\nTerms",
        f"{PROMPT}\nPrivacy Policy\nTerms of Service",
        "Skip to content\n\nLatest commit\n\n \n\nHistory\n\n72 lines (51 loc) · 2.26 KB\n\nprompt.md\n\n"
        f"File metadata and controls\n\n{PROMPT}",
        f"5 min read\nSign in\nGet started\n{PROMPT}",
        f"{PROMPT}\nSubscribe to our newsletter\nFollow us on LinkedIn",
        f"View on GitHub\nOpen in Colab\n{PROMPT}",
        f"{PROMPT}\n* Edit on GitHub\n* Report an issue",
        numbered("{} | {}"),
        numbered("{}│{}"),
        numbered("{}\t{}"),
        numbered("{}→{}"),
        numbered("{:>4} | {}", first=97),
        numbered("{:>3} {}"),
        numbered("{}: {}"),
        f"Copy\n{numbered('{} | {}')}\nEdit this page",
        "\n".join(str(number) for number in range(1, len(LINES) + 1)) + f"\n{PROMPT}",
        " ".join(str(number) for number in range(1, len(LINES) + 1)) + f"\n{PROMPT}",
        f"prompt.txt\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n{PROMPT}",
        "\n".join(f"{number}\n{line}" for number, line in enumerate((line for line in LINES if line), start=1)),
        f"{PROMPT}\r\nEdit this page\r\n",
    ],
)
def test_what_surrounds_a_prompt_is_recognized_and_nothing_of_the_prompt_is_taken(text: str) -> None:
    assert find_boilerplate(text)
    left = remove_boilerplate(text)
    wanted = [line for line in LINES if line]
    assert [line for line in left.split("\n") if line and line != "prompt.txt"] == wanted
    assert not find_boilerplate(left)


@pytest.mark.parametrize(
    "text",
    [
        PROMPT,
        "1. Accuracy: is it true?\n2. Clarity: is it clear?\n3. Depth: is it thorough?\n{question}\n{answer}",
        "1) Accuracy\n2) Clarity\n3) Depth\n4) Tone\n{answer}",
        "1. Copy\n2. Share\n3. Download\n{answer}",
        "1 Accuracy\n2 Clarity\n3 Depth\n4 Tone\n5 Safety\n6 Length",
        "Criteria\n1 Accuracy\n2 Clarity\n3 Depth\n\n{question}\n{answer}",
        "1: very bad\n2: bad\n3: ok\n4: good\n5: very good\n{answer}",
        "Rate {answer}:\n1\n2\n3\n4\n5",
        "Rate the answer.\n1 2 3 4 5\n{question}\n{answer}\nOne number.\nNothing else.\nThanks.",
        "Scale:\n1 | very bad\n2 | bad\n3 | ok\n\nQuestion: {question}\n\nAnswer: {answer}\n\nBe fair.\nBe short.",
        "Is {b} a copy of {a}? Answer with one of:\nOriginal\nCopy",
        "Which edit? Choose a label:\n- Edit this page\n- Yes\n- No\n\n{question} {answer_a} {answer_b}",
        "Is the answer helpful?\nYes\nNo\n{question}\n{answer}",
        "Was this answer helpful?\n{question}\n{answer}",
        "Answer Yes or No.\n\n{question}\n{answer}\n\nYes\nNo",
        "Compare the summaries.\nText\n{source}\nSummary\n{summary}",
        "The response says why this site uses cookies and how to reject all of them.\n{answer}",
        "We judge pages. Edit this page so that it is clear: {answer}",
        "Search: {question}\nNext: {answer}",
        "Home insurance\n{question}\n{answer}",
        "# Documentation\n{context}\n# Question\n{question}\n# Answer\n{answer}",
        "Copy the label exactly.\n{question}\n{answer}",
        '{\n  "copy": "yes",\n  "share": "no"\n}\n{answer}',
        "| 1 | bad |\n| 2 | ok |\n| 3 | good |\n{answer}",
        "2024 was the year.\n2025 is this year.\n{answer}",
        "Step 1\nRead {question}.\nStep 2\nRead {answer}.\nStep 3\nRate it.",
        "",
        "   \n\n",
    ],
)
def test_a_prompt_is_left_alone(text: str) -> None:
    assert find_boilerplate(text) == []
    assert remove_boilerplate(text) == text


def test_a_line_that_is_partly_of_the_page_is_shown_with_what_stays_of_it() -> None:
    (heading,) = find_boilerplate(f"# Judge¶\n{PROMPT}")
    assert (heading.number, heading.line, heading.kept) == (1, "# Judge¶", "# Judge")
    found = find_boilerplate("1 | Judge:\n2 |   {answer}\n3 |\nEdit this page")
    assert [(one.number, one.kept) for one in found] == [(1, "Judge:"), (2, "  {answer}"), (3, ""), (4, None)]


def test_the_indentation_of_numbered_lines_stays() -> None:
    lines = ["Answer with:", "{", '  "why": "…",', '  "score": 1', "}", "", "{answer}"]
    text = "\n".join(f"{number:>2} {line}".rstrip() for number, line in enumerate(lines, start=8))
    assert remove_boilerplate(text).split("\n") == lines
