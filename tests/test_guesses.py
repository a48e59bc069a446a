"""Who waits for a guesser: the guesser, and nobody else. Clock and passwords are made up."""

import asyncio
from collections import Counter

import pytest

from classroom import guesses
from classroom.guesses import HERE, LONGEST, MOST, Failures, Guesses, TooFast, Try, address_of

TAKES = 0.001  # seconds that a password is checked


class Hub:
    """Guesses with a clock that is set by hand, and what is checked at the same time."""

    def __init__(self, monkeypatch):
        self.time = 0.0
        self.guesses = Guesses(now=lambda: self.time)
        self.checked, self.at_once, self.most = 0, Counter(), Counter()
        monkeypatch.setattr(guesses, "HELD_UP", TAKES)

    async def login(self, name, address, right=False, browser=""):
        """Returns whether the password was right, or how long to wait."""

        async def check():
            self.checked += 1
            for key in (name, address):
                self.at_once[key] += 1
                self.most[key] = max(self.most[key], self.at_once[key])
            await asyncio.sleep(TAKES)
            self.at_once -= Counter((name, address))
            return right

        try:
            return await self.guesses.right(Try(name, address, browser), check)
        except TooFast as error:
            return error.seconds

    def logins(self, *logins):
        async def all_at_once():
            tries = [self.login(*each) for each in logins]
            return await asyncio.wait_for(asyncio.gather(*tries), 20)

        return asyncio.run(all_at_once())

    def guessed(self, seconds, *pairs, every=1):
        """How many passwords a guesser gets checked who tries again and again."""
        before = self.checked
        for _ in range(0, seconds, every):
            self.logins(*pairs)
            self.time += every
        return self.checked - before


@pytest.fixture
def hub(monkeypatch):
    return Hub(monkeypatch)


def test_of_many_guesses_at_once_one_is_checked_and_another_name_gets_in(hub):
    *guesser, anna = hub.logins(*[("ben", "a")] * 40, ("anna", "a", True))
    assert anna is True and guesser.count(False) == 1
    assert all(wait >= 1 for wait in guesser if wait is not False)
    assert hub.checked == 2


def test_a_class_that_shares_an_address_gets_in_whatever_is_guessed_there(hub):
    names = [f"s{i}" for i in range(30)]
    assert hub.guessed(600, *[(name, "a") for name in names], every=10) < 30 * 8
    fresh = [(f"t{i}", "a", True) for i in range(30)]
    assert hub.logins(*fresh) == [True] * 30
    assert hub.most["a"] == 1


def test_whoever_is_guessed_from_many_addresses_gets_in_at_their_first_try(hub):
    addresses = [f"a{i}" for i in range(40)]
    assert hub.logins(*[("anna", a) for a in addresses], ("anna", "home", True))[-1] is True
    assert hub.most["anna"] == 1
    hub.guessed(600, *[("anna", a) for a in addresses], every=10)
    assert hub.logins(*[("anna", a) for a in addresses], ("anna", "work", True))[-1] is True
    assert hub.logins(("anna", "work", True)) == [True]


def test_too_many_that_wait_for_one_name_are_sent_away(hub):
    said = hub.logins(*[("anna", f"a{i}") for i in range(guesses.STRANGERS + 20)])
    assert said.count(False) == guesses.STRANGERS and said.count(10) + said.count(11) == 20


def test_a_browser_that_knows_the_name_waits_for_no_stranger(hub):
    crowd = [("anna", f"a{i}") for i in range(guesses.STRANGERS + 20)]
    hub.logins(*crowd)

    async def order():
        done = []

        async def one(*login):
            done.append((await hub.login(*login), login))

        more = [one("anna", f"b{i}") for i in range(60)]
        await asyncio.gather(*more, one("anna", "a0", True, "mark"))
        return [said for said, login in done if len(login) == 4], done[:5]

    said, first = asyncio.run(order())
    assert said == [True] and any(len(login) == 4 for _, login in first)
    assert hub.most["anna"] == 1
    # Its own mistakes it has to wait for, but not for theirs.
    assert hub.logins(("anna", "a0", False, "mark")) == [False]
    assert hub.guesses.pause(Try("anna", "a0", "mark")) < 1 < hub.guesses.pause(Try("anna", "a0"))


def test_guessing_gets_slower_and_not_slower_than_five_minutes(hub):
    pauses = []
    for _ in range(12):
        assert hub.logins(("anna", "a")) == [False]
        pauses.append(hub.guesses.pause(Try("anna", "a")))
        hub.time += pauses[-1]
    assert pauses == sorted(pauses) and pauses[0] < 1 and pauses[3] < 15
    assert pauses[-1] == LONGEST
    hub.time += 24 * 3600
    assert hub.guesses.pause(Try("anna", "a")) < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "first", "later"),
    [
        ([("anna", "a")], 20, 12),
        ([(f"s{i}", "a") for i in range(40)], 40 * 15, 40 * 12),
        pytest.param(
            [("anna", f"a{i}") for i in range(40)], 40 * 15, 40 * 12, marks=pytest.mark.slow
        ),
    ],
)
def test_an_hour_of_guessing_brings_what_the_page_for_teachers_says(hub, pairs, first, later):
    assert len(pairs) < hub.guessed(3600, *pairs, every=5) <= first
    assert len(pairs) < hub.guessed(3600, *pairs, every=60) <= later


def test_who_mistypes_and_then_logs_in_leaves_nothing_to_the_class(hub):
    for i in range(30):
        hub.logins((f"s{i}", "a"))
    hub.time += 100
    assert hub.guesses.addresses.of("a") > 25
    hub.logins(*[(f"s{i}", "a", True) for i in range(30)])
    assert hub.guesses.addresses.of("a") == pytest.approx(0, abs=1e-6)
    # And a login does not wipe out what others have failed there.
    hub.logins(("anna", "a"), ("ben", "a"))
    hub.time += 100
    hub.logins(("ben", "a", True))
    assert hub.guesses.addresses.of("a") == pytest.approx(1, abs=0.1)


def test_the_memory_is_bounded_and_forgets_the_oldest():
    failures = Failures(lambda: 0.0)
    for i in range(MOST + 5):
        failures.add(i)
        failures.add("steady")
    assert len(failures) == MOST and failures.of(0) == 0 and failures.of("steady") == MOST + 5


def test_nothing_stays_of_who_has_waited(hub):
    hub.logins(*[(f"s{i % 5}", f"a{i % 7}", i % 3 == 0) for i in range(100)])
    assert not hub.guesses._waiting and not len(hub.guesses._turns)


@pytest.mark.parametrize(
    ("forwarded", "behind", "address"),
    [
        ("192.0.2.1", False, "192.0.2.1"),
        ("198.51.100.7,192.0.2.1", False, "192.0.2.1"),  # what stands before is a guesser's word
        ("198.51.100.7, 192.0.2.1", True, "192.0.2.1"),  # it was no server of this machine
        ("198.51.100.7,127.0.0.1", False, HERE),
        ("203.0.113.9,198.51.100.7,127.0.0.1", True, "198.51.100.7"),
        ("198.51.100.7,::ffff:127.0.0.1", True, "198.51.100.7"),
        ("::ffff:192.0.2.1", False, "192.0.2.1"),
        ("127.9.9.9", False, HERE),
        ("127.0.0.1", True, HERE),
        ("2001:db8::1", False, "2001:db8::/64"),
        ("2001:db8::2,127.0.0.1", True, "2001:db8::/64"),
        ("<script>,127.0.0.1", True, HERE),
        ("", True, HERE),
    ],
)
def test_only_the_address_that_a_server_of_ours_has_added_counts(forwarded, behind, address):
    assert address_of(forwarded, behind=behind) == address
    assert address_of(forwarded, behind=behind, past_the_proxy=True) == HERE
