"""What the hub needs to know of students' servers, as students choose what runs on this machine."""

import os
import pwd
from contextlib import suppress

from jupyterhub.proxy import ConfigurableHTTPProxy
from jupyterhub.spawner import LocalProcessSpawner

from classroom.logins import owner

LISTENS = "0A"  # as Linux writes it


class Servers(LocalProcessSpawner):
    """Servers without systemd; one of an earlier hub is known by its owner, too."""

    async def _signal(self, sig: int) -> bool:
        """Signal a server; whether it is there. Since its start, root may have its number."""
        with suppress(FileNotFoundError):
            if os.stat(f"/proc/{self.pid}").st_uid == pwd.getpwnam(self.user.name).pw_uid:
                return await super()._signal(sig)
        return False


class Proxy(ConfigurableHTTPProxy):
    """The proxy, which leads to a student only where it is the student who listens."""

    async def add_user(self, user, server_name: str = "") -> None:
        """Lead to a server. Another student may have taken its port before it began to listen."""
        spawner = user.spawners[server_name]
        number = owner((spawner.server.ip, spawner.server.port), LISTENS)
        if number == pwd.getpwnam(user.name).pw_uid:
            return await super().add_user(user, server_name)
        told = f"account {number} listens at port {spawner.server.port}, and not {user.name}"
        if spawner.pending == "spawn":
            raise RuntimeError(told)  # the hub stops this server, and says that it did not start
        self.log.error(told)
