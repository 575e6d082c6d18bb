"""A broker of somebody else's: by token, by TLS, and never with a secret in plain text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crewlet.backends.nats import JetStream, JetStreamQueue, TlsFiles, connect
from crewlet.backends.nats.binary import find_server
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.queue import QueueConfig
from crewlet.testing import wait_until

TOKEN = "a-token-of-the-tests"
BY_TOKEN = f"authorization {{ token: {TOKEN} }}"


@asynccontextmanager
async def external_broker(directory: Path, *lines: str, login: str = BY_TOKEN) -> AsyncGenerator[str]:
    """A server that asks for the token; ``lines`` are added to its configuration. Yields its url."""
    ports = directory / "ports"
    ports.mkdir()
    config = directory / "server.conf"
    common = (
        f'ports_file_dir: "{ports}"',
        f'jetstream {{ store_dir: "{directory}" }}',
        login,
    )
    config.write_text("\n".join(['listen: "127.0.0.1:-1"', *common, *lines]))
    process = await asyncio.create_subprocess_exec(
        str(find_server().path), "-c", str(config), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        # The file is there before what is in it.
        await wait_until(lambda: any(each.read_text() for each in ports.glob("*.ports")), what="the server's start")
        said = json.loads(next(ports.glob("*.ports")).read_text())["nats"][0]
        yield f"nats://localhost:{said.rpartition(':')[2]}"
    finally:
        process.kill()
        await process.wait()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``cert.pem``, signed by its own ``key.pem``, for localhost."""
    directory = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime(2020, 1, 1, tzinfo=UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    built = (
        built.not_valid_before(now).not_valid_after(now + timedelta(days=36500)).add_extension(names, critical=False)
    )
    signed = built.sign(key, hashes.SHA256())
    (directory / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory


def tls_lines(certificate: Path) -> str:
    return f'tls {{ cert_file: "{certificate}/cert.pem", key_file: "{certificate}/key.pem" }}'


async def test_a_token_opens_it(tmp_path: Path) -> None:
    async with external_broker(tmp_path) as url:
        wire = await connect(url, token=TOKEN)
        info = await JetStream(wire).account_info()
        await wire.close()

    assert info.streams == 0


async def test_a_wrong_token_is_refused(tmp_path: Path) -> None:
    async with external_broker(tmp_path) as url:
        with pytest.raises(StartRefused, match="refused our login"):
            await connect(url, token="another")


async def test_of_several_addresses_the_one_that_answers_is_used(tmp_path: Path) -> None:
    async with external_broker(tmp_path) as url:
        wire = await connect(f"nats://127.0.0.1:1, {url}", token=TOKEN)
        await JetStream(wire).account_info()
        await wire.close()


async def test_an_account_that_allows_too_few_consumers_is_refused_with_the_number_to_allow(tmp_path: Path) -> None:
    """It would serve a small company, and drop the mail of a larger one without a word."""
    account = f"accounts {{ a: {{ jetstream: {{ max_consumers: 50 }}, users: [ {{ user: u, password: {TOKEN} }} ] }} }}"
    async with external_broker(tmp_path, login=account) as url:
        wire = await connect(url.replace("//", f"//u:{TOKEN}@"))
        queue = JetStreamQueue(wire, JetStream(wire), node="one", config=QueueConfig(), storage="memory")

        with pytest.raises(StartRefused, match=r"max_consumers .* 100,000"):
            await queue.start()
        await queue.close()
        await wire.close()


@pytest.mark.slow
async def test_tls_is_spoken_with_the_authority_given(tmp_path: Path, certificate: Path) -> None:
    async with external_broker(tmp_path, tls_lines(certificate)) as url:
        wire = await connect(url, token=TOKEN, tls=TlsFiles(ca=str(certificate / "cert.pem")))
        await JetStream(wire).account_info()
        await wire.close()


async def test_a_server_signed_by_nobody_we_know_is_not_used(tmp_path: Path, certificate: Path) -> None:
    async with external_broker(tmp_path, tls_lines(certificate)) as url:
        with pytest.raises(Unavailable, match=r"(?i)certificate"):
            await connect(url, token=TOKEN, tls=TlsFiles())


async def test_the_token_is_not_sent_where_tls_was_asked_for_and_is_not_offered(certificate: Path) -> None:
    sent = bytearray()
    hung_up = asyncio.Event()

    async def plain_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","max_payload":1048576,"auth_required":true}\r\n')
        while chunk := await reader.read(1024):
            sent.extend(chunk)
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    server = await asyncio.start_server(plain_server, "127.0.0.1", 0)
    url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    with pytest.raises(Unavailable):
        await connect(url, token=TOKEN, tls=TlsFiles(ca=str(certificate / "cert.pem")))
    await hung_up.wait()
    server.close()

    assert TOKEN.encode() not in sent


async def test_tls_files_that_do_not_load_are_named(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match=str(tmp_path / "none.pem")):
        await connect("nats://127.0.0.1:1", tls=TlsFiles(ca=str(tmp_path / "none.pem")))
