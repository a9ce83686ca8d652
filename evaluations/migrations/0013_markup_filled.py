"""Which kinds of Markdown the responses hold that were stored before."""

import re

from django.db import migrations

AT_ONCE = 2_000
# The rules as they were when the column was made, whatever they are by now.
A_LIST, A_HEADING, AN_EMPHASIS, A_TABLE, A_CODE = 1, 2, 4, 8, 16
FENCE = re.compile(r"\n[ \t]*+(`{3,}+|~{3,}+)([^\n]*+)")
CODE_SPAN = re.compile(r"`[^`\n]++`")
RULE = r"(?:[-*_][ \t]*+){3,}+(?:\n|\Z)"
LIST_ITEM = re.compile(rf"\n[ \t]*+(?!{RULE})(?:[-*+•]|\d{{1,3}}[.)])[ \t]++[^\s]")
HEADING = re.compile(r"\n {0,3}#{1,6}[ \t]++[^\s]")
# Not inside a word of Latin letters or digits: 2**3**4 and snake_case are no emphasis, 很**重要**的 is.
EMPHASIS = (
    ("*", re.compile(r"\*(?<![A-Za-z0-9*\\]\*)(\*{0,2}+)(?!\s)[^*\n]++(?<!\s)\*\1(?![A-Za-z0-9*])")),
    ("_", re.compile(r"_(?<![A-Za-z0-9_\\]_)(_{0,2}+)(?!\s)[^_\n]++(?<!\s)_\1(?![A-Za-z0-9_])")),
)
CELL = r"[ \t]*+:?-++:?[ \t]*+"
BELOW_TABLE_HEAD = re.compile(rf"\n[ \t]*+\|?{CELL}(?:\|{CELL})++\|?[ \t]*+(?=\n|\Z)")


def fill(apps, schema_editor):
    response = apps.get_model("evaluations", "Response")
    some = []
    for pk, messages in response.objects.values_list("pk", "messages").iterator(chunk_size=AT_ONCE):
        if found := markup_of(text_of(messages)):
            some.append((found, pk))
        if len(some) == AT_ONCE:
            write(schema_editor.connection, some)
            some = []
    write(schema_editor.connection, some)


def write(connection, rows):
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE evaluations_response SET markup = %s WHERE id = %s", rows)


def text_of(messages):
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)


def markup_of(text):
    lines = "\n" + (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text)
    prose = without_code(lines)
    found = A_CODE if prose != lines else 0
    if LIST_ITEM.search(prose):
        found |= A_LIST
    if "#" in prose and HEADING.search(prose):
        found |= A_HEADING
    if any(sign in prose and pattern.search(prose) for sign, pattern in EMPHASIS):
        found |= AN_EMPHASIS
    if "|" in prose and has_table(prose):
        found |= A_TABLE
    return found


def without_code(lines):
    if "~~~" in lines or "```" in lines:
        lines = without_fenced(lines)
    return CODE_SPAN.sub("x", lines) if "`" in lines else lines


def without_fenced(lines):
    kept, start, opened = [], 0, ""
    for fence in FENCE.finditer(lines):
        marks, after = fence[1], fence[2].strip()
        if not opened and not ("`" in marks and "`" in after):
            kept.append(lines[start : fence.start()])
            opened = marks
        elif opened and not after and marks.startswith(opened):
            start, opened = fence.end(), ""
    return "".join(kept if opened else [*kept, lines[start:]])


def has_table(prose):
    for found in BELOW_TABLE_HEAD.finditer(prose):
        head = prose.rfind("\n", 0, found.start()) + 1
        if "|" in prose[head : found.start()]:
            return True
    return False


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0012_markup")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
