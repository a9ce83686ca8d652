"""Key and value arguments of a command line."""

import re
from argparse import ArgumentParser
from typing import Any, Final, TypeAlias

from evaluations.domain.errors import InputRefused

# The parsed arguments of a command, as argparse holds them.
CommandOptions: TypeAlias = dict[str, Any]

# A label such as -2, or a column or category of that name, with its value: no option of ours has one minus and a value.
NEGATIVE_KEY: Final = re.compile(r"-\d+|-\d*\.\d+|-[^-].*=.*|-=.*", re.DOTALL)


def accept_negative_keys(parser: ArgumentParser) -> None:
    """Let ``--choice -2=A`` be written as it is. argparse takes only numbers below 0 for values."""
    parser._negative_number_matcher = NEGATIVE_KEY


def parse_key_value(pair: str, option: str = "--where") -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if any("\ud800" <= character <= "\udfff" for character in pair):  # bytes that are no text
        raise InputRefused(f"{option} {pair!a}: write it in UTF-8")
    if not key or not equals:
        example = "category=math" if option == "--where" else "train=80,dev=10,test=10"
        raise InputRefused(f"{option} {pair}: write it as key=value, for example {option} {example}")
    return key, value
