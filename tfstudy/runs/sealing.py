"""Seal a JSON file with a digest of its own text, so that damage and edits are noticed. Imports no torch.

The digest is the value of the last key, `digest`, and covers all bytes before this key.
"""

import hashlib

KEY = b'"digest": "'
EMPTY = KEY + b'"\n}'
SIZE = len(EMPTY) + 64


def seal(content: bytes) -> bytes:
    """Return an indented JSON object with its digest in place of the empty one, which must be its last value."""
    if not content.endswith(EMPTY):
        raise ValueError("'digest' must be the last key and empty")
    body = content[: -len(EMPTY)]
    return body + _end(body)


def seal_matches(content: bytes) -> bool:
    """Whether the text of a sealed object still has the digest that it was sealed with."""
    return content[-SIZE:] == _end(content[:-SIZE])


def _end(body: bytes) -> bytes:
    return KEY + hashlib.sha256(body).hexdigest().encode() + b'"\n}'
