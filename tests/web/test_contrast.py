"""Text can be read in both schemes: the colours of the stylesheet held against WCAG 2.2."""

import re
from pathlib import Path

import pytest

STYLESHEET = (Path(__file__).parent.parent.parent / "static" / "css" / "app.css").read_text()
ROOT = STYLESHEET[STYLESHEET.index(":root {") : STYLESHEET.index("\n}")]
TOKENS = dict(re.findall(r"--([\w-]+):\s*([^;]+);", ROOT))
SCHEMES = {"light": 0, "dark": 1}

Colour = tuple[float, float, float]


def colour(value: str, scheme: str) -> Colour:
    """A colour of the stylesheet as red, green and blue from 0 to 1."""
    value = value.strip()
    if pair := re.fullmatch(r"light-dark\((#\w{6}), (#\w{6})\)", value):
        return colour(pair.group(SCHEMES[scheme] + 1), scheme)
    if token := re.fullmatch(r"var\(--([\w-]+)\)", value):
        return colour(TOKENS[token.group(1)], scheme)
    if mix := re.fullmatch(r"color-mix\(in srgb, (var\(--[\w-]+\)) (\d+)%, (var\(--[\w-]+\))\)", value):
        first, share, second = colour(mix.group(1), scheme), int(mix.group(2)) / 100, colour(mix.group(3), scheme)
        return blended(first, second, share)
    assert re.fullmatch(r"#[0-9a-f]{6}", value), f"{value} is no colour that this test knows"
    red, green, blue = (int(value[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def blended(first: Colour, second: Colour, share: float) -> Colour:
    red, green, blue = (one * share + other * (1 - share) for one, other in zip(first, second, strict=True))
    return red, green, blue


def luminance(one: Colour) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in one]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Colour, other: Colour) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def token(name: str, scheme: str) -> Colour:
    return colour(TOKENS[name], scheme)


TEXTS = [
    *((ink, ground) for ink in ("ink", "ink-soft") for ground in ("page", "surface", "sunken")),
    *(("accent", ground) for ground in ("page", "surface", "sunken", "accent-wash")),
    *((ink, ground) for ink in ("a", "b", "warn", "error") for ground in ("surface", f"{ink}-wash")),
    *(("ink", wash) for wash in ("accent-wash", "a-wash", "b-wash", "warn-wash", "error-wash")),
    ("on-accent", "accent"),
    ("surface", "a"),
    ("surface", "b"),
    ("surface", "ink-soft"),
]
SHAPES = [
    *(("line-strong", ground) for ground in ("page", "surface")),
    *((shape, "surface") for shape in ("accent", "a", "b")),
    *((f"series-{number}", "surface") for number in range(1, 8)),
]


def test_the_formula_gives_the_published_extremes() -> None:
    # Black on white is 21:1, a colour on itself 1:1; #767676 is the lightest grey that passes on white.
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast(colour("#767676", "light"), (1, 1, 1)) == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), TEXTS)
def test_text_stands_out_from_its_ground(ink: str, ground: str, scheme: str) -> None:
    assert contrast(token(ink, scheme), token(ground, scheme)) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("shape", "ground"), SHAPES)
def test_borders_of_fields_and_bars_stand_out_from_their_ground(shape: str, ground: str, scheme: str) -> None:
    assert contrast(token(shape, scheme), token(ground, scheme)) >= 3


def test_a_colour_with_a_scheme_of_its_own_is_made_at_the_top_alone() -> None:
    """Everything below the tokens uses them, apart from the colours of highlighted code."""
    below = STYLESHEET[STYLESHEET.index("\n}") :]
    plain = [line for line in below.splitlines() if re.search(r"#[0-9a-f]{3,8}\b|light-dark\(", line)]
    assert [line for line in plain if not re.match(r"\s*(\.rendered \.\w|:root \{ color-scheme)", line)] == []
