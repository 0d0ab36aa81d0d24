"""A check that `python -O` does not remove, unlike `assert`."""


def expect(condition: object, message: str) -> None:
    """Raise `AssertionError` with a message unless the condition holds."""
    if not condition:
        raise AssertionError(message)
