"""``agent-otel dashboards push`` against a Grafana that answers as its documentation says."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import certifi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent_otel.cli import files
from tests.rows import each_row
from tests.servers.grafana import PASSWORD, TOKEN, USER, VIEWER, Grafana
from tests.unit.cli.other import Other
from tests.unit.cli.running import Ran, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OURS = ["agent-otel-agents", "agent-otel-executions", "agent-otel-health", "agent-otel-payload", "agent-otel-tools"]
ENV = {"GRAFANA_TOKEN": TOKEN}


@pytest.fixture
def grafana() -> Iterator[Grafana]:
    with Grafana() as server:
        yield server


def _push(grafana: Grafana, *arguments: str) -> Ran:
    ran = run("dashboards", "push", "--url", grafana.url, *arguments, env=ENV)
    assert TOKEN not in ran.out + ran.err
    return ran


def _saved(grafana: Grafana) -> list[dict[str, Any]]:
    return [write for write in grafana.writes if write["path"] == "/api/dashboards/db"]


def test_every_dashboard_is_created_in_a_folder_that_is_made(grafana: Grafana) -> None:
    ran = _push(grafana, "--folder", "Agents & tools")
    assert (0, "") == (ran.code, ran.err)
    assert OURS == [row[1] for row in ran.rows if row[0] == "written"]
    assert [{"id": 1, "uid": "f1", "title": "Agents & tools"}] == grafana.folders
    assert OURS == [write["dashboard"]["uid"] for write in _saved(grafana)]
    assert {"f1"} == {write["folderUid"] for write in _saved(grafana)}
    assert {False} == {write["overwrite"] for write in _saved(grafana)}
    assert {None} == {write["dashboard"]["id"] for write in _saved(grafana)}
    assert f"{grafana.url}/d/agent-otel-tools/slug" in ran.out


def test_what_is_stored_is_what_is_shipped(grafana: Grafana) -> None:
    _push(grafana)
    for dashboard in files.dashboards():
        stored = grafana.dashboards[dashboard.uid]
        assert dashboard.model == {key: value for key, value in stored.model.items() if key not in {"id", "version"}}
        assert ["agent-otel 0.1.0"] == stored.messages


def test_tiles_link_to_the_runbooks(grafana: Grafana) -> None:
    for pattern in ("", "https://wiki.example/{alert}"):
        options = ("--runbook-url", pattern) if pattern else ()
        assert 0 == _push(grafana, "--only", "agent-otel-agents", "--overwrite", *options).code
        stored = json.dumps(grafana.dashboards["agent-otel-agents"].model)
        assert bool(pattern) == ('"https://wiki.example/AgentWorkflowPayloadNearCap"' in stored)
        assert bool(pattern) != ("/alerting/list?search=AgentWorkflowPayloadNearCap" in stored)


def test_a_dashboard_that_exists_is_replaced_when_told_so(grafana: Grafana) -> None:
    _push(grafana)
    grafana.edit("agent-otel-tools", _retitle)
    ran = _push(grafana)
    expected = "Error: dashboards of these uids exist; --overwrite replaces them, and Grafana keeps their versions\n"
    assert (1, expected) == (ran.code, ran.err)
    assert OURS == [row[1] for row in ran.rows if row[0] == "refused"]
    assert "Mine" == grafana.dashboards["agent-otel-tools"].model["panels"][0]["title"]
    assert 0 == _push(grafana, "--overwrite").code
    shipped = files.dashboards(("agent-otel-tools",))[0].model
    assert shipped["panels"] == grafana.dashboards["agent-otel-tools"].model["panels"]
    assert 3 == grafana.dashboards["agent-otel-tools"].version


def test_a_provisioned_dashboard(grafana: Grafana) -> None:
    _push(grafana)
    grafana.dashboards["agent-otel-tools"].provisioned = "agents/agent-otel-tools.json"
    ran = _push(grafana, "--overwrite", "--only", "agent-otel-tools")
    expected = "Error: agent-otel-tools: Grafana does not take it, 400: Cannot save provisioned dashboard\n"
    assert (1, expected) == (ran.code, ran.err)


def test_without_a_folder_they_are_at_the_top(grafana: Grafana) -> None:
    assert 0 == _push(grafana).code
    assert [""] * 5 == [write["folderUid"] for write in _saved(grafana)]
    assert [] == grafana.folders


def test_a_folder_is_found_by_title_by_uid_and_within_others(grafana: Grafana) -> None:
    grafana.folders += [{"id": 7, "uid": "ops", "title": "Operations"}, {"id": 8, "uid": "x", "title": "ops"}]
    grafana.nested.append({"id": 9, "uid": "deep", "title": "Deep"})
    for name, uid in (("Operations", "ops"), ("ops", "ops"), ("deep", "deep")):
        assert 0 == _push(grafana, "--folder", name, "--overwrite").code
        assert {uid} == {stored.folder for stored in grafana.dashboards.values()}
    assert {"/api/dashboards/db"} == {write["path"] for write in grafana.writes}


def test_two_folders_of_one_title_are_one_too_many(grafana: Grafana) -> None:
    grafana.folders += [{"id": 1, "uid": "a", "title": "Agents"}, {"id": 2, "uid": "b", "title": "Agents"}]
    ran = _push(grafana, "--folder", "Agents")
    assert (1, "Error: 2 folders are called 'Agents': give a uid, one of a, b\n") == (ran.code, ran.err)
    assert [] == grafana.writes


def test_more_folders_than_a_page_holds(grafana: Grafana) -> None:
    grafana.folders += [{"id": at, "uid": f"u{at}", "title": f"Folder {at}"} for at in range(1001)]
    assert 0 == _push(grafana, "--folder", "Folder 1000", "--only", "agent-otel-tools").code
    assert "u1000" == grafana.dashboards["agent-otel-tools"].folder


def test_one_dashboard_only(grafana: Grafana) -> None:
    assert 0 == _push(grafana, "--only", "agent-otel-tools").code
    assert ["agent-otel-tools"] == list(grafana.dashboards)


def test_a_dashboard_that_there_is_not(grafana: Grafana) -> None:
    ran = _push(grafana, "--only", "agent-otel-tool")
    expected = f"Error: no dashboard of ours: agent-otel-tool. There are {', '.join(OURS)}.\n"
    assert (1, expected) == (ran.code, ran.err)


def test_user_and_password(grafana: Grafana) -> None:
    env = {"GRAFANA_USER": USER, "GRAFANA_PASSWORD": PASSWORD}
    ran = run("dashboards", "push", "--url", grafana.url, env=env)
    assert 0 == ran.code
    assert PASSWORD not in ran.out


def test_grafana_below_a_path() -> None:
    with Grafana(base="/grafana") as grafana:
        ran = _push(grafana)
        assert 0 == ran.code
        assert f"{grafana.url}/d/agent-otel-tools/slug" in ran.out
        assert 0 == run("dashboards", "push", "--overwrite", "--url", f"{grafana.url}/", env=ENV).code


def test_a_bad_token(grafana: Grafana) -> None:
    ran = run("dashboards", "push", "--url", grafana.url, env={"GRAFANA_TOKEN": "glsa_wrong"})
    asked = "set GRAFANA_TOKEN, or GRAFANA_USER and GRAFANA_PASSWORD"
    expected = f"Error: Grafana at {grafana.url} refuses these credentials (401: Invalid API key): {asked}\n"
    assert (1, "", expected) == ran
    assert [] == grafana.writes


@pytest.mark.parametrize("token", ["two words", "glsa_\nX-Evil: 1", "größer"])
def test_a_token_that_cannot_be_sent_is_not_shown(grafana: Grafana, token: str) -> None:
    ran = run("dashboards", "push", "--url", grafana.url, env={"GRAFANA_TOKEN": token})
    assert 1 == ran.code
    assert "GRAFANA_TOKEN is no token" in ran.err
    assert token not in ran.err
    assert [] == grafana.asked


def test_no_credentials(grafana: Grafana) -> None:
    ran = run("dashboards", "push", "--url", grafana.url)
    asked = "set GRAFANA_TOKEN, or GRAFANA_USER and GRAFANA_PASSWORD"
    assert (1, "", f"Error: no credentials for {grafana.url}: {asked}\n") == ran


def test_a_token_that_may_only_read(grafana: Grafana) -> None:
    grafana.role = VIEWER
    ran = _push(grafana, "--folder", "Agents")
    assert 1 == ran.code
    assert "does not allow POST /api/folders to these credentials (403: You'll need additional permi" in ran.err
    assert ({}, []) == (grafana.dashboards, grafana.writes)


@each_row(("version", "code"), [("10.4.19", 1), ("9.5.2", 1), ("11.0.0", 0), ("13.1.0-pre", 0)])
@each_row("hide", [False, True])
def test_versions(version: str, code: int, hide: bool) -> None:  # noqa: FBT001 - a case
    with Grafana(version, hide_version=hide) as grafana:
        ran = _push(grafana)
        assert code == ran.code
        if code:
            expected = f"Grafana {version} at {grafana.url} is too old: the dashboards need 11.0 or newer"
            assert f"Error: {expected}\n" == ran.err
            assert [] == grafana.writes


@each_row("url", ["grafana:3000", "ftp://grafana", "http://", "http://[::1", "http://a:99999"])
def test_no_address(url: str) -> None:
    expected = f"Error: {url!r} is no address; one reads https://host:port/path\n"
    assert (1, "", expected) == run("dashboards", "push", "--url", url, env=ENV)


def test_a_password_in_it_is_not_shown() -> None:
    ran = run("dashboards", "push", "--url", "http://me:hunter2@127.0.0.1:1", env=ENV)
    assert 1 == ran.code
    assert "leave user and password out of the address" in ran.err
    assert "hunter2" not in ran.out + ran.err


def test_nobody_listens() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        ran = run("dashboards", "push", "--url", url, env=ENV)
    assert 1 == ran.code
    assert f"Error: Grafana at {url} does not answer: [Errno 111] Connection refused\n" == ran.err


def test_no_such_host() -> None:
    ran = run("dashboards", "push", "--url", "http://grafana.invalid", env=ENV)
    assert 1 == ran.code
    assert "Grafana at http://grafana.invalid does not answer: " in ran.err


def test_certificates_that_are_not_there() -> None:
    ran = run("dashboards", "push", "--url", "https://127.0.0.1:1", env={**ENV, "SSL_CERT_FILE": "/nowhere"})
    expected = "Error: what SSL_CERT_FILE names cannot be used: FileNotFoundError\n"
    assert (1, "", expected) == ran


def test_a_certificate_that_is_not_trusted_and_one_that_is(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path / "grafana.pem")
    with Grafana(certificate=certificate) as grafana:
        ran = run("dashboards", "push", "--url", grafana.url, env={**ENV, "SSL_CERT_FILE": certifi.where()})
        assert 1 == ran.code
        assert f"Error: Grafana at {grafana.url} does not answer: [SSL: CERTIFICATE_VERIFY_FAILED]" in ran.err
        assert "SSL_CERT_FILE names the certificates to trust." in ran.err
        assert [] == grafana.asked
        assert 0 == run("dashboards", "push", "--url", grafana.url, env={**ENV, "SSL_CERT_FILE": str(certificate)}).code


def test_a_proxy_that_does_not_answer(grafana: Grafana) -> None:
    env = {**ENV, "NO_PROXY": "", "HTTP_PROXY": "http://me:hunter2@127.0.0.1:1"}
    ran = run("dashboards", "push", "--url", grafana.url, env=env)
    assert (1, f"Error: Grafana at {grafana.url} does not answer: [Errno 111] Connection refused\n") == (
        ran.code,
        ran.err,
    )
    assert [] == grafana.asked


def test_a_proxy_of_a_kind_that_is_not_known(grafana: Grafana) -> None:
    env = {**ENV, "NO_PROXY": "", "HTTP_PROXY": "gopher://me:hunter2@127.0.0.1:1"}
    expected = "Error: the proxy that the environment names cannot be used: ValueError\n"
    assert (1, "", expected) == run("dashboards", "push", "--url", grafana.url, env=env)


def test_a_path_that_grafana_is_not_below(grafana: Grafana) -> None:
    ran = run("dashboards", "push", "--url", f"{grafana.url}/grafana", env=ENV)
    expected = f"Error: {grafana.url}/grafana is not Grafana's address: it has no /api/health (404)\n"
    assert (1, expected) == (ran.code, ran.err)


def test_tls_is_spoken_to_one_who_does_not(grafana: Grafana) -> None:
    ran = run("dashboards", "push", "--url", grafana.url.replace("http:", "https:"), env=ENV)
    assert 1 == ran.code
    assert "does not answer: " in ran.err


@each_row(
    ("status", "kind", "body", "expected"),
    [
        (200, "text/html; charset=utf-8", "<!doctype html>", "/api/health answers with text/html, not with JSON"),
        (200, "application/json", '{"status": "UP"}', "/api/health answers with other JSON than Grafana's"),
        (200, "application/json", "[]", "/api/health answers with other JSON than Grafana's"),
        (502, "text/plain", "bad gateway", "answers /api/health with 502: Bad Gateway"),
    ],
)
def test_another_server(status: int, kind: str, body: str, expected: str) -> None:
    with Other(status, {"Content-Type": kind}, body) as other:
        ran = run("dashboards", "push", "--url", other.url, env=ENV)
    assert (1, "") == (ran.code, ran.out)
    assert expected in ran.err
    assert other.url in ran.err


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ("/login?next=secret", "to /login: set GRAFANA_TOKEN, or GRAFANA_USER and GRAFANA_PASSWORD"),
        (
            "https://grafana.example/api/health",
            "to https://grafana.example/api/health: give the address it leads to",
        ),
    ],
)
def test_a_redirect_is_not_followed(location: str, hint: str) -> None:
    with Other(302, {"Location": location}, "") as other:
        ran = run("dashboards", "push", "--url", other.url, env=ENV)
    assert (1, "", f"Error: {other.url} redirects /api/health {hint}\n") == ran


def _retitle(model: dict[str, Any]) -> None:
    model["panels"][0]["title"] = "Mine"


def _certificate(file: Path) -> Path:
    """Write a certificate of 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "grafana")])
    now = datetime.now(timezone.utc)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(plain[0]) + key.private_bytes(*plain))
    return file
