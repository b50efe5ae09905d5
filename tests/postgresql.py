"""A PostgreSQL server in a temporary folder, which asks for a password."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSWORD = "se/cr:et@1"


class NoServerError(Exception):
    """The server cannot be started here; the text says why."""


@dataclass(frozen=True)
class PostgresqlServer:
    """A server that tests start, stop and run SQL on."""

    programs: Path
    folder: Path
    port: int
    as_user: tuple[str, ...]
    fsync: bool

    def url(self, database: str = "postgres") -> str:
        password = PASSWORD.replace("/", "%2F").replace(":", "%3A").replace("@", "%40")
        return f"postgresql://ann:{password}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        flags = ("-U", "ann", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")
        encoding = ("-E", "UTF8", "--locale=C")
        self._call("initdb", "-D", self._data, *flags, *encoding, stderr=subprocess.DEVNULL)

    def start(self) -> None:
        fsync = "on" if self.fsync else "off"
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync={fsync}"
        log = str(self.folder / "log")
        self._call("pg_ctl", "-D", self._data, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop at once, as after a failure."""
        self._call("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def run(self, sql: str, database: str = "postgres") -> None:
        flags = ("-qh", "127.0.0.1", "-p", str(self.port), "-U", "ann", "-d", database)
        self._call("psql", *flags, "-c", sql, env={**os.environ, "PGPASSWORD": PASSWORD})

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _call(self, program: str, *words: str, **more: Any) -> None:
        command = [*self.as_user, str(self.programs / program), *words]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=300, **more)


@contextmanager
def postgresql_server(*, fsync: bool = False) -> Iterator[PostgresqlServer]:
    """Start a server; raise NoServerError where that is not possible."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not found:
        raise NoServerError("PostgreSQL's server is not installed")
    user = getpass.getuser()
    as_user: tuple[str, ...] = ()
    if os.geteuid() == 0:  # which the server refuses to run as
        user = "postgres"
        as_user = ("runuser", "-u", user, "--")
        if shutil.which("runuser") is None or user not in {each.pw_name for each in pwd.getpwall()}:
            raise NoServerError(
                "the superuser cannot start PostgreSQL without runuser and a user postgres"
            )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    if as_user:
        shutil.chown(folder, user)
    server = PostgresqlServer(found[-1].parent, folder, port, as_user, fsync)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.stop()
    finally:
        shutil.rmtree(folder)
