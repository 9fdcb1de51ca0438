"""``agent-otel dashboards push`` against a Grafana that answers as its documentation says."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing
from copy import deepcopy
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
from tests.servers.grafana import PASSWORD, TOKEN, USER, VIEWER, Grafana, Stored
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


def _states(ran: Ran) -> dict[str, str]:
    return {row[1]: row[0] for row in ran.rows if len(row) > 1 and row[1] in OURS}


def _saved(grafana: Grafana) -> list[dict[str, Any]]:
    return [write for write in grafana.writes if write["path"] == "/api/dashboards/db"]


def test_every_dashboard_is_created_in_a_folder_that_is_made(grafana: Grafana) -> None:
    ran = _push(grafana, "--folder", "Agents & tools")
    assert (0, "") == (ran.code, ran.err)
    assert dict.fromkeys(OURS, "created") == _states(ran)
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
        (message,) = stored.messages
        assert re.fullmatch(r"agent-otel 0\.1\.0 \([0-9a-f]{12}\)", message)


def test_tiles_link_to_the_runbooks(grafana: Grafana) -> None:
    """The links are part of the dashboard: they are pushed again when the address of the runbooks changes."""
    for pattern, state in (("", "created"), ("https://wiki.example/{alert}", "updated")):
        ran = _push(grafana, "--only", "agent-otel-agents", *(("--runbook-url", pattern) if pattern else ()))
        assert {"agent-otel-agents": state} == _states(ran)
        stored = json.dumps(grafana.dashboards["agent-otel-agents"].model)
        assert bool(pattern) == ('"https://wiki.example/AgentWorkflowPayloadNearCap"' in stored)
        assert bool(pattern) != ("/alerting/list?search=AgentWorkflowPayloadNearCap" in stored)


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


def test_a_dry_run_writes_nothing(grafana: Grafana) -> None:
    ran = _push(grafana, "--folder", "New", "--dry-run")
    assert (0, "") == (ran.code, ran.err)
    assert dict.fromkeys(OURS, "would be created") == _states(ran)
    assert "New (new)" in ran.out
    assert [] == grafana.writes
    assert {"GET"} == {line.split()[0] for line in grafana.asked}


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
        assert 0 == run("dashboards", "push", "--url", f"{grafana.url}/", env=ENV).code


def test_nothing_is_written_for_what_is_the_same(grafana: Grafana) -> None:
    _push(grafana, "--folder", "Agents")
    before = len(grafana.writes)
    ran = _push(grafana, "--folder", "Agents")
    assert (0, "") == (ran.code, ran.err)
    assert dict.fromkeys(OURS, "unchanged") == _states(ran)
    assert before == len(grafana.writes)


def test_what_was_pushed_and_left_alone_is_updated(grafana: Grafana) -> None:
    """A dashboard of an older release: its newest version is that of a push."""
    _push(grafana)
    _age(grafana, "agent-otel-tools")
    ran = _push(grafana)
    assert "updated" == _states(ran)["agent-otel-tools"]
    assert 3 == grafana.dashboards["agent-otel-tools"].version
    assert (
        files.dashboards(("agent-otel-tools",))[0].model["panels"]
        == (grafana.dashboards["agent-otel-tools"].model["panels"])
    )


def test_a_change_by_hand_is_not_overwritten(grafana: Grafana) -> None:
    _push(grafana)
    grafana.edit("agent-otel-tools", _retitle)
    _age(grafana, "agent-otel-payload")
    before = deepcopy(grafana.dashboards), len(grafana.writes)
    ran = _push(grafana)
    assert (1, "Error: nothing was written\n") == (ran.code, ran.err)
    states = _states(ran)
    assert ("refused", "would be updated") == (states["agent-otel-tools"], states["agent-otel-payload"])
    assert "it was not saved by this command last; --overwrite replaces it" in ran.out
    assert before == (grafana.dashboards, len(grafana.writes))


def test_a_change_by_hand_is_overwritten_when_told_so(grafana: Grafana) -> None:
    _push(grafana)
    grafana.edit("agent-otel-tools", _retitle)
    ran = _push(grafana, "--overwrite", "--dry-run")
    assert (0, "would be replaced") == (ran.code, _states(ran)["agent-otel-tools"])
    assert 2 == grafana.dashboards["agent-otel-tools"].version
    ran = _push(grafana, "--overwrite")
    assert (0, "replaced") == (ran.code, _states(ran)["agent-otel-tools"])
    assert "unchanged" == _states(_push(grafana))["agent-otel-tools"]


def test_another_dashboard_with_our_uid(grafana: Grafana) -> None:
    theirs = {"uid": "agent-otel-tools", "title": "Theirs", "panels": [], "schemaVersion": 39}
    grafana.dashboards["agent-otel-tools"] = Stored(id=4, folder="", models=[theirs], messages=["Initial save"])
    ran = _push(grafana)
    assert 1 == ran.code
    assert "it was not saved by this command last; --overwrite replaces it" in ran.out
    assert [] == grafana.writes


def test_the_values_that_are_selected_stay(grafana: Grafana) -> None:
    _push(grafana)
    picked = {"selected": True, "text": "Other", "value": "P9"}
    _age(grafana, "agent-otel-tools", picked)
    assert "updated" == _states(_push(grafana))["agent-otel-tools"]
    assert picked == grafana.dashboards["agent-otel-tools"].model["templating"]["list"][0]["current"]
    assert "unchanged" == _states(_push(grafana))["agent-otel-tools"]


def test_defaults_that_grafana_adds_are_no_change(grafana: Grafana) -> None:
    _push(grafana)
    grafana.normalise = lambda model: {**deepcopy(model), "preload": False, "fiscalYearStartMonth": None, "links": (
        model.get("links") or [])}  # fmt: skip
    assert dict.fromkeys(OURS, "unchanged") == _states(_push(grafana))


def test_a_grafana_that_migrated_them_is_told_from_a_person(grafana: Grafana) -> None:
    """The content reads otherwise, but the newest version is still the one that was pushed."""
    _push(grafana)
    grafana.normalise = lambda model: {**deepcopy(model), "schemaVersion": 43, "kiosk": "tv"}
    assert dict.fromkeys(OURS, "unchanged") == _states(_push(grafana))
    grafana.edit("agent-otel-tools", _retitle)
    assert "refused" == _states(_push(grafana))["agent-otel-tools"]


def test_a_folder_moves_them_and_none_leaves_them(grafana: Grafana) -> None:
    _push(grafana, "--folder", "One")
    ran = _push(grafana, "--folder", "Two")
    assert dict.fromkeys(OURS, "moved") == _states(ran)
    assert ["f1", "f2"] == [folder["uid"] for folder in grafana.folders]
    assert dict.fromkeys(OURS, "unchanged") == _states(_push(grafana))
    assert {"f2"} == {stored.folder for stored in grafana.dashboards.values()}


def test_a_save_that_comes_between_wins(grafana: Grafana) -> None:
    _push(grafana)
    _age(grafana, "agent-otel-tools")
    grafana.before_save = lambda: grafana.edit("agent-otel-tools", _retitle)
    ran = _push(grafana)
    expected = "agent-otel-tools: somebody saved it in the meantime; nothing of theirs was touched. Run this again."
    assert (1, f"Error: {expected}\n") == (ran.code, ran.err)
    assert "Mine" == grafana.dashboards["agent-otel-tools"].model["panels"][0]["title"]
    assert "unchanged" == _states(ran)["agent-otel-payload"]


def test_a_provisioned_dashboard(grafana: Grafana) -> None:
    _push(grafana)
    grafana.dashboards["agent-otel-tools"].provisioned = "agents/agent-otel-tools.json"
    before = len(grafana.writes)
    ran = _push(grafana, "--overwrite")
    assert 1 == ran.code
    assert "it is provisioned from a file on Grafana's side (agents/agent-otel-tools.json): change it there" in ran.out
    assert before == len(grafana.writes)


def test_a_dashboard_of_a_plugin(grafana: Grafana) -> None:
    _push(grafana)
    _age(grafana, "agent-otel-tools")
    grafana.dashboards["agent-otel-tools"].plugin = "Agents"
    ran = _push(grafana)
    assert 1 == ran.code
    assert "agent-otel-tools: Grafana says that it belongs to a plugin: 412: The dashboard belongs to" in ran.err


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


@pytest.mark.parametrize("given", ["Prometheus main", "P1"])
def test_a_data_source_is_selected(grafana: Grafana, given: str) -> None:
    assert 0 == _push(grafana, "--datasource", given).code
    for stored in grafana.dashboards.values():
        (current,) = (
            variable["current"]
            for variable in stored.model["templating"]["list"]
            if (variable["type"], variable.get("query")) == ("datasource", "prometheus")
        )
        assert {"selected": True, "text": "Prometheus main", "value": "P1"} == current
    assert dict.fromkeys(OURS, "unchanged") == _states(_push(grafana, "--datasource", given))
    assert dict.fromkeys(OURS, "unchanged") == _states(_push(grafana))


def test_another_data_source_is_an_update(grafana: Grafana) -> None:
    _push(grafana)
    assert dict.fromkeys(OURS, "updated") == _states(_push(grafana, "--datasource", "P1"))


def test_a_data_source_that_is_no_prometheus(grafana: Grafana) -> None:
    ran = _push(grafana, "--datasource", "Logs")
    assert (1, "Error: the data source 'Logs' is of type loki, not prometheus\n") == (ran.code, ran.err)


def test_a_data_source_that_there_is_not(grafana: Grafana) -> None:
    ran = _push(grafana, "--datasource", "Nowhere/else")
    assert (1, f"Error: Grafana at {grafana.url} has no data source 'Nowhere/else'\n") == (ran.code, ran.err)
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


def _age(grafana: Grafana, uid: str, picked: dict[str, Any] | None = None) -> None:
    """Store as a dashboard what an older release would have pushed, with a value of its first variable selected."""
    older = files.dashboards((uid,))[0].model
    older["panels"] = older["panels"][1:]
    older["templating"]["list"][0]["current"] = picked
    stored = grafana.dashboards[uid]
    stored.models.append(older)
    stored.messages.append("agent-otel 0.0.9 (0123456789ab)")


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
