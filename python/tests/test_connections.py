"""Connections as libpq makes them: encrypted, with passwords from files, by services. With a server of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from joader_fixtures import until

import corgipile

pytestmark = pytest.mark.skipif(
    "CORGIPILE_PG_BIN" not in os.environ or shutil.which("openssl") is None,
    reason="no server's programs, or no openssl",
)

#: True of all rows if the connection is encrypted.
ENCRYPTED = "(SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid())"

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]

HBA = """
local    all  all                    trust
hostssl  all  by_certificate  all    cert
hostssl  all  all             all    scram-sha-256
hostnossl all plain           all    scram-sha-256
"""


class Server(NamedTuple):
    """Where it is."""

    port: int
    directory: Path

    def connection(self, more: str = "", user: str = "me") -> str:
        return f"host=localhost port={self.port} dbname=postgres user={user} {more}"

    def run(self, sql: str) -> None:
        with_socket = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self.directory), "-U", "postgres"]
        subprocess.run([*with_socket, "-p", str(self.port), "-d", "postgres", "-c", sql], check=True)


def _openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def _certificates(directory: Path) -> None:
    """An authority, another one, and what the first has signed for the server and for a client."""
    for name in ("ca", "other"):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
        _openssl(directory, "req", "-x509", *NEW_KEY, "-nodes", "-days", "2", "-subj", f"/CN={name}", *files)
    for name, common, more in (("server", "localhost", "DNS:localhost"), ("client", "by_certificate", "DNS:nobody")):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.csr"]
        _openssl(directory, "req", *NEW_KEY, "-nodes", "-subj", f"/CN={common}", *files)
        (directory / "more").write_text(f"subjectAltName={more}\n")
        signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "more"]
        _openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *signed)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that takes encrypted connections with passwords."""
    programs = Path(os.environ["CORGIPILE_PG_BIN"])
    built = subprocess.run([programs / "pg_config", "--configure"], check=True, capture_output=True, text=True).stdout
    if "ssl" not in built:
        pytest.skip("the server was built without TLS")
    directory = Path(tempfile.mkdtemp(prefix="corgipile-tls-", dir="/tmp"))
    _certificates(directory)
    as_owner: list[str] = []
    if os.geteuid() == 0:
        as_owner = ["runuser", "-u", "postgres", "--"]
        for path in (directory, *directory.iterdir()):
            shutil.chown(path, "postgres")
    data = directory / "data"
    made = Server(_free_port(), directory)
    run = lambda *command: subprocess.run([*as_owner, *map(str, command)], check=True, cwd="/", capture_output=True)  # noqa: E731
    run(programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
    settings = f"""
listen_addresses = '127.0.0.1'
port = {made.port}
unix_socket_directories = '{directory}'
fsync = off
ssl = on
ssl_ca_file = '{directory}/ca.crt'
ssl_cert_file = '{directory}/server.crt'
ssl_key_file = '{directory}/server.key'
"""
    with (data / "postgresql.conf").open("a") as file:
        file.write(settings)
    (data / "pg_hba.conf").write_text(HBA)
    # what another user reads later is this one's
    directory.chmod(0o755)
    (directory / "ca.crt").chmod(0o644)
    run(programs / "pg_ctl", "start", "-w", "-D", data, "-l", directory / "log", "-s")
    try:
        for role in (r"me LOGIN PASSWORD 'se:cr\et'", "plain LOGIN PASSWORD 'x'", "by_certificate LOGIN"):
            made.run(f"CREATE ROLE {role}")
        made.run("CREATE TABLE rows AS SELECT i FROM generate_series(1, 10) i; GRANT SELECT ON rows TO PUBLIC")
        yield made
    finally:
        run(programs / "pg_ctl", "stop", "-D", data, "-m", "immediate", "-s")
        shutil.rmtree(directory)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's directory with nothing in it, and an environment without what speaks of servers."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def encrypted(connection: str) -> bool:
    """Whether the connection is made, and encrypted."""
    return {10: True, 0: False}[len(corgipile.postgres("rows", connection=connection, where=ENCRYPTED))]


def connects(connection: str) -> bool:
    """Whether an encrypted connection can be made."""
    try:
        return encrypted(connection)
    except corgipile.SourceError:
        return False


def refused(connection: str) -> str:
    with pytest.raises((corgipile.SourceError, ValueError, OSError)) as error:
        corgipile.postgres("rows", connection=connection)
    return str(error.value)


def test_what_is_asked_for_is_verified(server: Server, home: Path) -> None:
    ca, password = f"sslrootcert={server.directory}/ca.crt", r"password='se:cr\\et'"
    for mode in ("verify-full", "verify-ca", "require", "prefer"):
        assert encrypted(server.connection(f"{password} sslmode={mode} {ca}"))
    for mode in ("", "sslmode=prefer", "sslmode=require", "sslmode=require channel_binding=require"):
        assert encrypted(server.connection(f"{password} {mode}"))
    assert "no pg_hba.conf entry" in refused(server.connection(f"{password} sslmode=disable"))
    assert not encrypted(server.connection("password=x sslmode=disable", user="plain"))
    # the certificate is localhost's
    by_address = server.connection(password).replace("host=localhost", "host=127.0.0.1")
    assert encrypted(f"{by_address} {ca} sslmode=verify-ca")
    assert "not valid for" in refused(f"{by_address} {ca} sslmode=verify-full")
    # signed by somebody else
    other = f"sslrootcert={server.directory}/other.crt"
    for mode in ("verify-full", "verify-ca", "require"):
        assert "invalid peer certificate" in refused(server.connection(f"{password} sslmode={mode} {other}"))
    assert "sslrootcert" in refused(server.connection(f"{password} sslmode=verify-full"))
    assert "nosuch.crt" in refused(server.connection(f"{password} sslmode=verify-full sslrootcert=/nosuch.crt"))
    assert "invalid peer certificate" in refused(server.connection(f"{password} sslrootcert=system"))
    # without a name the file at home counts
    (home / ".postgresql").mkdir()
    shutil.copy(server.directory / "ca.crt", home / ".postgresql/root.crt")
    assert encrypted(server.connection(f"{password} sslmode=verify-full"))


def test_a_certificate_that_is_trusted_itself_is_enough(server: Server) -> None:
    # as PostgreSQL's manual makes one: it says that it may sign others
    files = [
        "-keyout",
        "self.key",
        "-out",
        "self.crt",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    _openssl(server.directory, "req", "-new", "-x509", "-days", "2", "-nodes", "-newkey", "rsa:2048", *files)
    if os.geteuid() == 0:
        shutil.chown(server.directory / "self.key", "postgres")
    place = f"{server.directory}/self"
    password = rf"password='se:cr\\et' sslrootcert={place}.crt"
    try:
        server.run(f"ALTER SYSTEM SET ssl_cert_file = '{place}.crt'")
        server.run(f"ALTER SYSTEM SET ssl_key_file = '{place}.key'")
        server.run("SELECT pg_reload_conf()")
        until(lambda: connects(server.connection(f"{password} sslmode=verify-full")))
        by_address = server.connection(password).replace("host=localhost", "host=127.0.0.1")
        assert "not valid for" in refused(f"{by_address} sslmode=verify-full")
        other = server.connection(rf"password='se:cr\\et' sslmode=verify-ca sslrootcert={server.directory}/ca.crt")
        assert "invalid peer certificate" in refused(other)
    finally:
        server.run("ALTER SYSTEM RESET ALL")
        server.run("SELECT pg_reload_conf()")
        ca = rf"password='se:cr\\et' sslmode=verify-full sslrootcert={server.directory}/ca.crt"
        until(lambda: connects(server.connection(ca)))


def test_a_client_s_certificate_is_shown(server: Server, home: Path) -> None:
    for name in ("client.crt", "client.key"):
        shutil.copy(server.directory / name, home / name)
    (home / "client.key").chmod(0o600)
    own = f"sslmode=require sslcert={home}/client.crt sslkey={home}/client.key"
    assert encrypted(server.connection(own, user="by_certificate"))
    assert "certificate" in refused(server.connection("sslmode=require", user="by_certificate"))
    (home / "client.key").chmod(0o644)
    assert "chmod 600" in refused(server.connection(own, user="by_certificate"))


def test_the_environment_counts_where_the_connection_says_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"PGHOST": "localhost", "PGPORT": str(server.port), "PGUSER": "me", "PGDATABASE": "postgres"}
    values |= {"PGPASSWORD": r"se:cr\et", "PGSSLMODE": "verify-full", "PGSSLROOTCERT": f"{server.directory}/ca.crt"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert encrypted("")
    assert encrypted(f"postgresql://me@localhost:{server.port}/postgres?sslmode=require")
    assert "no pg_hba.conf entry" in refused("sslmode=disable")
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=5MB")
    settings = "current_setting('timezone') = 'Asia/Tokyo' AND current_setting('work_mem') = '5MB'"
    assert len(corgipile.postgres("rows", where=settings)) == 10
    monkeypatch.setenv("PGSSLCRL", "/nosuch")
    assert "sslcrl (PGSSLCRL)=/nosuch is not supported" in refused("")


def test_passwords_come_from_files_that_others_cannot_read(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".pgpass"
    file.write_text(f"localhost:1:*:me:wrong\n# a comment\nlocalhost:{server.port}:*:me:se\\:cr\\\\et\n")
    file.chmod(0o600)
    assert encrypted(server.connection())
    file.chmod(0o644)
    assert "was not read, because others may read it, too: chmod 600" in refused(server.connection())
    elsewhere = home / "elsewhere"
    elsewhere.write_text("*:*:*:*:wrong\n")
    elsewhere.chmod(0o600)
    assert "password authentication failed" in refused(server.connection(f"passfile={elsewhere}"))
    elsewhere.write_text("*:*:postgres:me:se\\:cr\\\\et\n")
    monkeypatch.setenv("PGPASSFILE", str(elsewhere))
    assert encrypted(server.connection())
    assert "there is no password file /nosuch" in refused(server.connection("passfile=/nosuch"))
    # what is said counts before the file
    assert "password authentication failed" in refused(server.connection("password=wrong"))


def test_services_are_looked_up(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / ".pg_service.conf"
    lines = ["[other]", "host=/nosuch", "", "[mine]", "# a comment", "host=localhost", f"port={server.port}"]
    file.write_text("\n".join([*lines, "dbname=postgres", "user=nobody", r"password=se:cr\et", "[last]", "host=/x"]))
    assert encrypted("service=mine user=me")
    monkeypatch.setenv("PGSERVICE", "mine")
    assert encrypted("user=me")
    assert 'service "nosuch" is defined in no file' in refused("service=nosuch")
    file.write_text("[mine]\nnonsense=1\n")
    assert 'line 2: there is no parameter "nonsense"' in refused("")
