"""Who may try a password now: a guesser waits longer and longer, and nobody else waits for them.

A `Try` is a name, with the address or the browser that it comes from. After a wrong password this
name has to wait for the next try from there: half a second at first, about twice as long after each
further failure, up to five minutes. It is longer, too, where many passwords were wrong for the name
or from the address, so that forty addresses for one name, or forty names from one address, get slow
together. But a name that has not failed at an address may always try there at once: a class that
shares one address gets in, whatever somebody there guesses. So does whoever is under attack.

Of each name and of each address one password at a time is checked; others wait for their turn.
A browser in which the name has logged in before waits neither for strangers nor for their failures.
"""

import asyncio
import ipaddress
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

HALF = 1800  # seconds after which a failure counts half
LONGEST = 300  # seconds until the next try, at most
SHARED = 6  # what others' failures make of it: at most 2 ** 6 times as long
MOST = 10_000  # names, addresses or pairs that are remembered; the oldest are forgotten
STRANGERS = 60  # that may wait for one name; each failure holds up the others
HELD_UP = 0.5  # seconds at most, so nobody waits for longer than half a minute
MANY = 40  # failures of a name from which on it is as long
HERE = "this machine"  # the address of all that is not told apart


class TooFast(Exception):
    """A try that is not made; the text is for the guesser, who may come back after ``seconds``."""

    def __init__(self, text: str, seconds: float):
        super().__init__(text)
        self.seconds = max(1, round(seconds + 0.5))


@dataclass(frozen=True)
class Try:
    """A name, the ``address`` it comes from, and the mark of a ``browser`` that it knows, or ""."""

    name: str
    address: str
    browser: str = ""

    @property
    def pair(self) -> tuple[str, ...]:
        """What has to wait after a failure."""
        return (self.name, "browser", self.browser) if self.browser else (self.name, self.address)


class Failures:
    """How often something has failed; each failure counts half after `HALF` seconds."""

    def __init__(self, now: Callable[[], float]):
        self._now = now
        self._counted: dict[Hashable, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._counted)

    def of(self, key: Hashable) -> float:
        """How many they are by now."""
        number, when = self._counted.get(key, (0.0, 0.0))
        return number * 0.5 ** ((self._now() - when) / HALF)

    def add(self, key: Hashable, number: float = 1) -> float:
        """Count more of them, or fewer; returns how many they are."""
        number = max(0.0, self.of(key) + number)
        self._counted.pop(key, None)  # so that the oldest stand first
        self._counted[key] = number, self._now()
        if len(self._counted) > MOST:
            del self._counted[next(iter(self._counted))]
        return number


class Guesses:
    """What is remembered about failures, and who waits for whom."""

    def __init__(
        self, addresses: Failures | None = None, now: Callable[[], float] = time.monotonic
    ):
        self._now = now
        self._names, self._pairs = Failures(now), Failures(now)
        self.addresses = Failures(now) if addresses is None else addresses
        self._until: dict[tuple[str, ...], float] = {}
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._waiting: Counter = Counter()

    async def right(self, tried: Try, check: Callable[[], Awaitable[bool]]) -> bool:
        """Whether the password is right, which ``check`` says when it is this one's turn.

        Raises
        ------
        TooFast
            Where it is not tried at all.
        """
        self._not_too_fast(tried)
        with self._one_more(("pair", tried.pair), 2), self._one_more(*self._crowd(tried)):
            async with self._turn("pair", tried.pair):
                self._not_too_fast(tried)  # the one before may have failed
                if tried.browser:
                    return await self._checked(tried, check)
                async with self._turn("strangers", tried.name):
                    right = await self._checked(tried, check)
                    if not right and (many := self._names.of(tried.name)):
                        await asyncio.sleep(HELD_UP * min(1, many / MANY))
                    return right

    async def _checked(self, tried: Try, check: Callable[[], Awaitable[bool]]) -> bool:
        # Always first the address, then the name: two that held one each would wait for ever.
        async with self._turn("address", tried.address), self._turn("name", tried.name):
            right = await check()
        self._forgive(tried) if right else self._count(tried)
        return right

    def pause(self, tried: Try) -> float:
        """How many seconds the next try has to wait, after what has failed so far."""
        power = self._pairs.of(tried.pair) - 2
        if not tried.browser:
            others = self._names.of(tried.name) + self.addresses.of(tried.address)
            power += min(others / 10, SHARED)
        return min(LONGEST, 2 ** min(power, 20))

    def _count(self, tried: Try) -> None:
        self._pairs.add(tried.pair)
        if not tried.browser:
            self._names.add(tried.name)
            self.addresses.add(tried.address)
        self._until.pop(tried.pair, None)
        self._until[tried.pair] = self._now() + self.pause(tried)
        if len(self._until) > MOST:
            del self._until[next(iter(self._until))]

    def _forgive(self, tried: Try) -> None:
        """Forget the failures of who has logged in: it was they who mistyped."""
        own = self._pairs.of(tried.pair)
        if not own:
            return
        self._pairs.add(tried.pair, -own)
        self._until.pop(tried.pair, None)
        if not tried.browser:
            self._names.add(tried.name, -own)
            self.addresses.add(tried.address, -own)

    def _not_too_fast(self, tried: Try) -> None:
        seconds = self._until.get(tried.pair, 0) - self._now()
        if seconds > 0:
            wait = TooFast("", seconds).seconds
            raise TooFast(
                f"The last password for this name was wrong. Wait {wait} second{'s' * (wait > 1)} "
                "before the next try. If it was not you who tried, tell your teacher.",
                seconds,
            )

    def _crowd(self, tried: Try) -> tuple[Hashable, int]:
        if tried.browser:
            return ("browser", tried.pair), 2
        return ("strangers", tried.name), STRANGERS

    @contextmanager
    def _one_more(self, key: Hashable, most: int) -> Iterator[None]:
        """Count who waits; one too many is sent away."""
        if self._waiting[key] >= most:
            raise TooFast(
                "Other logins with this name are being checked. Wait 10 seconds, then try again, "
                "if possible in a browser in which you have logged in before.",
                10,
            )
        self._waiting[key] += 1
        try:
            yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    @asynccontextmanager
    async def _turn(self, *key: Hashable) -> AsyncIterator[None]:
        # A lock lives as long as somebody holds it or waits for it.
        async with self._turns.setdefault(key, asyncio.Lock()):
            yield


def address_of(forwarded: str, *, past_the_proxy: bool = False, behind: bool = False) -> str:
    """Where a request comes from, by its header ``X-Forwarded-For``.

    The hub's own proxy adds the address that has connected to it at the end; what stands before is
    anybody's word. Only where a web server of this machine stands before the hub (``behind``) and
    it was this machine that connected, the address before is believed: that server has added it.
    ``past_the_proxy`` is a request that has not come through the hub's proxy.

    Returns
    -------
    str
        The address; of IPv6 the network of 64 bits, all of which one household has; `HERE` for this
        machine itself.
    """
    said = [] if past_the_proxy else [each.strip() for each in forwarded.split(",")]
    address = _known(said[-1]) if said else HERE
    if address == HERE and behind and len(said) > 1:
        address = _known(said[-2])
    return address


def _known(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return HERE
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback:
        return HERE
    if address.version == 6:
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
