# SPDX-License-Identifier: Apache-2.0
"""Mutual TLS between the controller and softswitch, and what a certificate permits, whichever role its owner claims."""

from __future__ import annotations

import asyncio
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from finsy import GRPCCredentialsTLS, GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import p4r

from authorities import Authority
from conftest import EXAMPLE, PROGRAM, new_switch
from frontage.config import Config, load
from frontage.p4.credentials import Credentials, credentials_of
from frontage.p4.errors import SwitchError, UnreachableError
from frontage.p4.session import Session
from frontage.service.certificates import describe_certificates
from frontage.service.health import Phase
from live import LIMIT, installed, running, until

GRANTS = "controller.example write\nmonitor.example read\n"


class SecureSwitch:
    """A softswitch that requires client certificates, and the authority of all certificates."""

    def __init__(self, folder: Path, binary: str):
        self.folder = folder
        self.authority = Authority(folder)
        self.authority.issue("switch", "switch.example")
        for name in ("controller", "monitor", "stranger"):
            self.authority.issue(name, f"{name}.example")
        (folder / "grants").write_text(GRANTS)
        self._binary = binary
        self.tls = ["--grpc-server-ssl", "--grpc-server-cert", "switch.pem", "--grpc-server-key", "switch-key.pem"]
        self.tls += ["--grpc-server-with-client-auth", "--grpc-server-cacert", "ca.pem", "--grpc-client-access", "grants"]
        options = ["--grpc-server-addr", "127.0.0.1:0", "--cpu-port", "510", "--metrics-addr", "127.0.0.1:0"]
        options += ["--bfrt-grpc-server-addr", "127.0.0.1:0"]
        self._log = (folder / "switch.log").open("wb")
        self._process = subprocess.Popen(
            [binary, "--no-p4", "--device-id", "1", "--", *options, *self.tls],
            cwd=folder, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline().decode().strip() for _ in range(3)]
        found = dict(line.split("=") for line in lines)
        self.address, self._metrics, self.bfrt = (
            found[name] for name in ("grpc-server-addr", "metrics-addr", "bfrt-grpc-server-addr")
        )

    def config(self, name: str = "controller", *, authorities: str = "ca.pem", server_name: str = "switch.example") -> Config:
        """Return a configuration with a certificate of this name; without one if it is empty."""
        own = f"certificate: {name}.pem, key: {name}-key.pem, " if name else ""
        tls = f"  tls: {{ authorities: {authorities}, {own}server_name: {server_name} }}\n"
        text = EXAMPLE.read_text().replace("127.0.0.1:9559", self.address).replace("../../build/p4", str(PROGRAM))
        file = self.folder / "secure.yaml"
        file.write_text(text.replace("  device_id: 1\n", f"  device_id: 1\n{tls}", 1))
        return load(file)

    @contextmanager
    def started(self, options: list[str], thrift_port: int | None = None) -> Iterator[dict[str, str]]:
        """Run another switch, and return the addresses that it prints."""
        words = [self._binary, "--no-p4", "--device-id", "1", *([] if thrift_port is None else ["--thrift-port", str(thrift_port)])]
        with subprocess.Popen(
            [*words, "--", *options], cwd=self.folder, stdout=subprocess.PIPE, stderr=self._log, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield dict(line.strip().split("=") for line in iter(process.stdout.readline, "ready\n"))
            finally:
                process.kill()

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=LIMIT) as page:
            text = page.read().decode()
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"softswitch_{name} "))

    def log(self) -> str:
        return (self.folder / "switch.log").read_text()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


@pytest.fixture
def secure(folder: Path) -> Iterator[SecureSwitch]:
    found = SecureSwitch(folder, new_switch(folder)._binary)
    yield found
    found.stop()


LOST_STATUS = "Internal error from Core"
"""gRPC's details if it has lost the status of a stream that ended while it was writing."""


async def failure(config: Config) -> str:
    """Return why the controller cannot connect."""
    async with running(config) as controller:
        # Without a status, the controller connects again.
        await until(lambda: not (controller.health.error or LOST_STATUS).endswith(LOST_STATUS))
        assert controller.health.phase is not Phase.INSTALLED
        return controller.health.error or ""


async def test_the_controller_programs_a_switch_over_mutual_tls(secure: SecureSwitch) -> None:
    async with running(secure.config()) as controller:
        assert await installed(controller)
        (found,) = describe_certificates({"switch": controller}, _NoApi(), None)
        assert found["error"] is None
        assert 0.9 < found["days_left"] <= 1
    assert 0.9 < secure.metric("certificate_days_left") <= 1
    assert secure.metric("certificate_error") == 0


class _NoApi:
    """An API without TLS."""

    days_left = None
    error = None


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("expired-switch", "the switch's certificate has expired: renew it on the switch"),
        ("early-switch", "the switch's certificate is not valid yet: correct the clock"),
        ("misnamed-switch", 'the switch\'s certificate is for another name, not for "switch.example": set device.tls.server_name'),
        ("untrusted-switch", "the switch's certificate is from an unknown authority: add the authority to device.tls.authorities"),
        ("missing", "the switch rejects the controller's certificate as missing: set device.tls.certificate and device.tls.key"),
        ("untrusted", "controller.pem as issued by an unknown authority: add the authority to --grpc-server-cacert"),
        ("expired", "controller.pem: the certificate expired on "),
        ("early", "controller.pem: the certificate is not valid before "),
        ("other-key", "cannot load certificate and key: "),
        ("not-granted", "the certificate of 'stranger.example' has no access: add the name to --grpc-client-access"),
    ],
)
async def test_faults_of_certificates_name_the_fix(secure: SecureSwitch, fault: str, expected: str) -> None:
    authority, name = secure.authority, "controller"
    if fault.endswith("-switch"):
        # The switch refuses to load an invalid certificate, so another server presents it.
        days = {"expired-switch": (-3.0, -1.0), "early-switch": (1.0, 3.0)}.get(fault, (-1.0, 1.0))
        issuer = Authority(secure.folder, "other") if fault == "untrusted-switch" else authority
        server = "wrong.example" if fault == "misnamed-switch" else "switch.example"
        pem, key = issuer.issue("presented", server, days=days)
        credentials = grpc.ssl_server_credentials([(key.read_bytes(), pem.read_bytes())])
        impostor = grpc.aio.server()
        port = impostor.add_secure_port("127.0.0.1:0", credentials)
        await impostor.start()
        secure.address = f"127.0.0.1:{port}"
        try:
            assert expected in await failure(secure.config())
        finally:
            await impostor.stop(None)
        return
    if fault == "missing":
        name = ""
    elif fault == "untrusted":
        Authority(secure.folder, "other").issue(name, "controller.example")
    elif fault in ("expired", "early"):
        authority.issue(name, "controller.example", days=(-3, -1) if fault == "expired" else (1, 3))
    elif fault == "other-key":
        (secure.folder / "controller-key.pem").write_bytes((secure.folder / "monitor-key.pem").read_bytes())
    else:
        name = "stranger"
    assert expected in await failure(secure.config(name))


async def test_replaced_certificates_are_used_without_a_restart(secure: SecureSwitch) -> None:
    async with running(secure.config()) as controller:
        before = await installed(controller)
        connections = controller.health.connections
        # An unusable file changes nothing, on both sides.
        (secure.folder / "switch.pem").write_text("broken")
        (secure.folder / "controller.pem").write_text("broken")
        await until(lambda: secure.metric("certificate_error") == 1)
        assert "--grpc-server-cert: switch.pem does not contain a CERTIFICATE" in secure.log()
        credentials = controller.credentials
        assert credentials is not None
        credentials.refresh()
        assert "controller.pem: cannot load a certificate" in str(credentials.error)
        async with Session(secure.address, 1, credentials) as session:
            await session.connect(LIMIT)
        # Both change their authority. The established connection goes on.
        authority = Authority(secure.folder)
        authority.issue("switch", "switch.example", days=(-1, 5))
        authority.issue("controller", "controller.example", days=(-1, 4))
        await until(lambda: secure.metric("certificate_error") == 0 and secure.metric("certificate_days_left") > 4)
        credentials.refresh()
        assert credentials.error is None
        assert credentials.days_left is not None
        assert credentials.days_left > 3
        assert await installed(controller) == before
        async with Session(secure.address, 1, credentials) as session:
            await session.connect(LIMIT)
            assert await session.installed_pipeline() is not None
        assert controller.health.connections == connections


async def test_removed_grants_end_the_access_of_a_connection(secure: SecureSwitch) -> None:
    config = secure.config("monitor")
    async with running(secure.config()) as controller:
        await installed(controller)
        async with Session(secure.address, 1, credentials_of(config.device)) as session:
            await session.connect(LIMIT)
            assert await session.installed_pipeline() is not None
            (secure.folder / "grants").write_text("controller.example write\n")
            assert "the certificate of 'monitor.example' has no access" in await refusal(session)


async def refusal(session: Session) -> str:
    """Wait until the switch refuses a request, and return why."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                await session.installed_pipeline()
            except SwitchError as error:
                return str(error)
            await asyncio.sleep(0.05)


async def test_an_expired_certificate_ends_with_its_connection(secure: SecureSwitch) -> None:
    secure.authority.issue("monitor", "monitor.example", days=(-1, 5 / 86_400))
    async with Session(secure.address, 1, credentials_of(secure.config("monitor").device)) as session:
        await session.connect(LIMIT)
        assert "your certificate: the certificate expired" in await refusal(session)


# An unmodified P4Runtime client.


async def finsy_client(secure: SecureSwitch, name: str) -> P4Client:
    files = {"cacert": "ca.pem", "cert": f"{name}.pem", "private_key": f"{name}-key.pem"}
    tls = GRPCCredentialsTLS(target_name_override="switch.example", **{key: secure.folder / file for key, file in files.items()})
    client = P4Client(secure.address, tls)
    await client.open()
    return client


def denied(error: P4ClientError) -> bool:
    return error.code == GRPCStatusCode.PERMISSION_DENIED and "permits reading only" in str(error)


async def test_a_monitor_reads_and_cannot_write_whatever_role_it_claims(secure: SecureSwitch) -> None:
    async with running(secure.config()) as controller:
        before = await installed(controller)
        assert controller.pipeline is not None
        monitor = await finsy_client(secure, "monitor")
        request = p4r.ReadRequest(device_id=1)
        request.entities.add().table_entry.SetInParent()
        read = [len(response.entities) async for response in monitor.request_iter(request)]
        assert sum(read) > 1000
        config = controller.pipeline.forwarding_config()
        verify = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        for role in ("", "monitor", "controller"):
            write = p4r.WriteRequest(device_id=1, role=role, election_id=p4r.Uint128(low=999))
            write.updates.add(type=p4r.Update.DELETE).entity.table_entry.SetInParent()
            with pytest.raises(P4ClientError) as caught:
                await monitor.request(write)
            assert denied(caught.value)
            replace = p4r.SetForwardingPipelineConfigRequest(device_id=1, role=role, action=verify, config=config)
            with pytest.raises(P4ClientError) as caught:
                await monitor.request(replace)
            assert denied(caught.value)
        await monitor.close()
        for role in ("", "monitor"):
            # It cannot become primary either, which would lock out the controller.
            monitor = await finsy_client(secure, "monitor")
            claim = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(high=1), role=p4r.Role(name=role))
            await monitor.send(p4r.StreamMessageRequest(arbitration=claim))
            with pytest.raises(P4ClientError) as caught:
                await monitor.receive()
            assert denied(caught.value)
            await monitor.close()
        assert controller.primary
        assert await installed(controller) == before


async def test_a_monitor_follows_the_arbitration_as_a_backup(secure: SecureSwitch) -> None:
    async with running(secure.config()) as controller:
        await installed(controller)
        monitor = await finsy_client(secure, "monitor")
        await monitor.send(p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=1)))
        answer = await monitor.receive()
        assert answer.arbitration.election_id.low == 100
        assert answer.arbitration.status.code != 0
        await monitor.close()
        assert controller.primary


async def test_certificates_restrict_bfruntime(secure: SecureSwitch) -> None:
    async def call(name: str, method: str) -> tuple[grpc.StatusCode, str]:
        """Send an empty request, and return its status."""
        settings = secure.config(name).device.tls
        assert settings is not None
        options = (("grpc.ssl_target_name_override", "switch.example"),)
        credentials = Credentials(settings).channel_credentials()
        async with grpc.aio.secure_channel(secure.bfrt, credentials, options=options) as channel:
            request = channel.unary_unary(f"/bfrt_proto.BfRuntime/{method}")(b"", timeout=LIMIT)
            return await request.code(), str(await request.details())

    denied = grpc.StatusCode.PERMISSION_DENIED
    code, why = await call("monitor", "Write")
    assert (code, "permits reading only" in why) == (denied, True)
    assert (await call("stranger", "GetForwardingPipelineConfig"))[0] is denied
    assert (await call("monitor", "GetForwardingPipelineConfig"))[0] is grpc.StatusCode.OK
    # The certificate permits the request, which names no device of this switch.
    assert (await call("controller", "Write"))[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_address_without_a_listener_is_not_a_fault_of_tls(secure: SecureSwitch) -> None:
    config = secure.config()
    secure.stop()
    async with Session(secure.address, 1, credentials_of(config.device)) as session:
        with pytest.raises(UnreachableError, match="no response from a P4Runtime server"):
            await session.connect(0.5)


async def test_a_plain_server_is_named(secure: SecureSwitch) -> None:
    plain = grpc.aio.server()
    port = plain.add_insecure_port("127.0.0.1:0")
    await plain.start()
    tls = secure.config().device.tls
    assert tls is not None
    assert "start the switch with TLS" in str(await Credentials(tls).explain(f"127.0.0.1:{port}"))
    await plain.stop(None)


async def test_thrift_is_for_this_machine_only(secure: SecureSwitch) -> None:
    addresses = {}
    for name, tls in (("secure", secure.tls), ("plain", [])):
        with secure.started(["--grpc-server-addr", "127.0.0.1:0", *tls], thrift_port=0) as found:
            addresses[name] = found["thrift-addr"].rpartition(":")[0]
    assert addresses == {"secure": "127.0.0.1", "plain": "[::]"}


async def test_tls_works_on_a_unix_socket(secure: SecureSwitch) -> None:
    with secure.started(["--grpc-server-addr", f"unix:{secure.folder}/tls.sock", "--cpu-port", "510", *secure.tls]) as found:
        secure.address = found["grpc-server-addr"]
        assert secure.address.startswith("unix:")
        async with running(secure.config()) as controller:
            assert await installed(controller)
        assert "has no access" in await failure(secure.config("stranger"))
