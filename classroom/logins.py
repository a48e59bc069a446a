"""Log in with an account's password, as with JupyterHub's own `PAMAuthenticator`; guessers wait.

`classroom.guesses` says who may try. Here is what it needs from JupyterHub, PAM and Linux.
"""

import asyncio
import os
import secrets
import time
from ctypes import CFUNCTYPE, c_int, c_uint, c_void_p, cast
from pathlib import Path

import pamela
from jupyterhub.auth import PAMAuthenticator
from tornado import web

from classroom.accounts import NAME, members
from classroom.guesses import Guesses, TooFast, Try, address_of

COOKIE = "attention-browser"
NAMES = 8  # that a browser is remembered to have logged in; a school's computers have many
ANSWER = 1  # seconds until a wrong password is answered, whether or not there is such a name
AFTER = 0.7  # of them at least after the check, so that who mistypes once may try again at once
PAM_FAIL_DELAY = 10  # of pam_set_item
WRONG = "Wrong password for %r from %s"


class Logins(PAMAuthenticator):
    """The students' logins."""

    executor_threads = 32  # more names than that are seldom checked in the same moment

    def __init__(self, **settings):
        super().__init__(**settings)
        self._class = Guesses()
        # Names that do not exist must not push out what is remembered of the others.
        self._others = Guesses(self._class.addresses)

    async def authenticate(self, handler, data: dict[str, str]) -> str | None:
        """Check a password; returns the name where it is right."""
        began = time.monotonic()
        name, password = data.get("username", ""), data.get("password", "")
        exists = name in members()
        mark, names = browser_of(handler)
        tried = Try(name[:32], address(handler), mark if name in names else "")

        async def check() -> bool:
            # A name that may not log in is not even asked for: else it would have to wait as well.
            if not exists:
                return False
            asked = (is_right, name, password, self.service)
            return await asyncio.get_running_loop().run_in_executor(self.executor, *asked)

        try:
            right = await (self._class if exists else self._others).right(tried, check)
        except TooFast as error:
            refused = web.HTTPError(429, str(error))
            refused.headers = {"Retry-After": str(error.seconds)}
            raise refused from None
        if right:
            remember(handler, mark, [*(each for each in names if each != name), name])
            return name
        told = name if NAME.fullmatch(name) else "a name that cannot be one"
        self.log.warning(WRONG, told, tried.address)
        await asyncio.sleep(max(AFTER, began + ANSWER - time.monotonic()))
        return None


def is_right(name: str, password: str, service: str) -> bool:
    """Ask PAM, and have it answer at once: by itself it keeps a wrong password for some seconds."""
    conversation = pamela.new_simple_password_conv((password,), "utf-8")
    handle = pamela.pam_start(service, name, conv_func=conversation)
    set_item = pamela.LIBPAM["pam_set_item"]
    set_item.argtypes = [pamela.PamHandle, c_int, c_void_p]
    set_item(handle, PAM_FAIL_DELAY, cast(_no_delay, c_void_p))
    said = pamela.PAM_AUTHENTICATE(handle, 0) or pamela.PAM_ACCT_MGMT(handle, 0)
    pamela.PAM_END(handle, said)
    return said == 0


@CFUNCTYPE(None, c_int, c_uint, c_void_p)
def _no_delay(said, microseconds, data):
    """Wait not at all: `Guesses` has the guesser wait, and nobody else."""


def address(handler) -> str:
    """Where a request comes from."""
    request = handler.request
    return address_of(
        request.headers.get("X-Forwarded-For", ""),
        past_the_proxy=owner(request.connection.context.address) != 0,
        behind=os.environ.get("PROXY") == "1",
    )


def owner(peer: tuple, state: str = "") -> int:
    """The number of the account of this machine that a connection comes from, -1 where unknown.

    The hub's proxy is root's; a student could ask the hub itself, with any address in the header.
    Of one ``state`` alone, as Linux writes it, it tells who listens at an address.
    """
    host, port = peer[:2]
    packed = bytes(map(int, host.split(".")))[::-1].hex().upper()  # as Linux writes it
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, now, _, _, _, uid, *_ = line.split()
        if local == f"{packed}:{port:04X}" and state in ("", now):
            return int(uid)
    return -1


def browser_of(handler) -> tuple[str, list[str]]:
    """The mark of a browser, and the names that have logged in there; the hub has signed them."""
    said = handler.get_secure_cookie(COOKIE) or b""
    mark, *names = said.decode().split() or [""]
    return mark, names


def remember(handler, mark: str, names: list[str]) -> None:
    """Let a browser say next time who has logged in there."""
    handler.set_secure_cookie(
        COOKIE,
        " ".join([mark or secrets.token_hex(8), *names[-NAMES:]]),
        path=handler.hub.base_url,
        httponly=True,
        samesite="Lax",
        secure=handler.request.protocol == "https",
    )
