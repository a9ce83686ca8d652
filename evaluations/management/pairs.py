"""Words of a command line that are a key and its value."""

from evaluations.domain import InputRefused


def key_and_value(pair: str, option: str = "--where") -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if any("\ud800" <= character <= "\udfff" for character in pair):  # bytes that are no text
        raise InputRefused(f"{option} {pair!a}: write it in UTF-8")
    if not key or not equals:
        example = "category=math" if option == "--where" else "train=80,dev=10,test=10"
        raise InputRefused(f"{option} {pair}: write it as key=value, for example {option} {example}")
    return key, value
