"""Who may connect to a server, what it may send, and how often."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import time
from collections.abc import Callable, Iterable
from typing import TypeGuard

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


def is_number(value: object, low: float = -1e300, high: float = 1e300) -> TypeGuard[float]:
    """Return whether a value from a browser is a number within limits."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


class TokenBucket:
    """A limit on the rate of messages, which lets bursts pass.

    Args:
        rate: Messages per second.
        burst: Messages at once.
        clock: Wall time [s].
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._time = burst, clock()

    def take(self) -> bool:
        """Return whether a message may pass now, and count it if so."""
        self._fill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    async def wait(self) -> None:
        """Count a message, and wait until it may pass."""
        self._fill()
        self._tokens -= 1.0
        if self._tokens < 0.0:
            await asyncio.sleep(-self._tokens / self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._tokens + self._rate * (now - self._time), self._burst)
        self._time = now
