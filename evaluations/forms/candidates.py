"""Two candidates as a filter has them, in whatever order."""


def candidates_where(one: str, other: str) -> tuple[tuple[str, str], ...]:
    """Of whose comparisons a report speaks: those of the pair, those of the one that was named, or everyone's."""
    names = sorted(filter(None, (one, other)))
    return tuple(zip(("candidate_a", "candidate_b") if len(names) > 1 else ("candidate",), names, strict=False))
