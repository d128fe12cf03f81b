"""Who may connect to a server: addresses of this machine, tokens."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Iterable

_TOKEN_BYTES = 16


def is_loopback(host: str) -> bool:
    """Return whether an address or name is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def new_token() -> str:
    """Return a random token that cannot be guessed."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def knows_token(given: Iterable[str], token: str) -> bool:
    """Return whether one of the given texts is the token; the time taken does not reveal it."""
    return any(hmac.compare_digest(text.encode(), token.encode()) for text in given)
