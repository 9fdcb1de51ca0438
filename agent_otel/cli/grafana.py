"""The calls of Grafana's HTTP API that read and write dashboards.

They are the calls below ``/api``, which Grafana 11 to 13 have; 13 calls them legacy and keeps them
(https://grafana.com/docs/grafana/latest/developer-resources/api-reference/http-api/api-legacy/).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx

from agent_otel.cli.console import Failure
from agent_otel.cli.http_client import Server, Variables, told

if TYPE_CHECKING:
    from agent_otel.cli.dashboard_diff import Model

VARIABLES: Final = Variables("GRAFANA_TOKEN", "GRAFANA_USER", "GRAFANA_PASSWORD")
#: Oldest major version whose panels have every option that the dashboards use.
OLDEST: Final = 11
#: Folders on one page of ``/api/folders``; Grafana's maximum is 1000.
_PAGE: Final = 1000
_ABSENT: Final = (httpx.codes.NOT_FOUND,)


@dataclass(frozen=True)
class Existing:
    """A dashboard in Grafana; ``provisioned`` ones come from files on its side, and its API cannot write them."""

    model: Model
    version: int
    folder: str
    folder_title: str
    provisioned: bool
    provisioned_by: str


@dataclass(frozen=True)
class Folder:
    """A folder of dashboards; without a ``uid`` it does not exist yet."""

    uid: str
    title: str


ROOT: Final = Folder("", "Dashboards")


class Grafana:
    """A client of a Grafana server. Every method raises Failure with the cause."""

    def __init__(self, url: str) -> None:
        self._server = Server("Grafana", url, VARIABLES)
        self.url = self._server.url

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def check(self) -> str:
        """Check that this is a Grafana of a supported version that accepts the credentials.

        Return its version, empty when the server hides it.
        """
        if self._server.auth is None:
            raise Failure(f"no credentials for {self.url}: set {VARIABLES}")
        health = self._server.json("GET", "/api/health")
        if "database" not in health:
            raise Failure(self._server.other_json("/api/health"))
        version = str(health.get("version") or self._version_of_settings())
        major = re.match(r"\d+", version)
        if major and int(major[0]) < OLDEST:
            raise Failure(f"Grafana {version} at {self.url} is too old: the dashboards need {OLDEST}.0 or newer")
        self._server.json("GET", "/api/search", shape=list, params={"limit": 1})
        return version

    def _version_of_settings(self) -> str:
        # [auth.anonymous] hide_version removes it from /api/health for all users, from this endpoint for anonymous ones
        # only.
        settings = self._server.json("GET", "/api/frontend/settings", none_for=_ABSENT)
        build = (settings or {}).get("buildInfo")
        return str(build.get("version") or "") if isinstance(build, dict) else ""

    def dashboard(self, uid: str) -> Existing | None:
        """Return the dashboard of this uid, None when there is none."""
        found = self._server.json("GET", f"/api/dashboards/uid/{quote(uid, safe='')}", none_for=_ABSENT)
        if found is None:
            return None
        model, meta = found.get("dashboard"), found.get("meta") or {}
        if not isinstance(model, dict) or "panels" not in model:
            raise Failure(f"Grafana at {self.url} gives {uid} in a form without panels, which this command cannot read")
        return Existing(
            model=model,
            version=int(model.get("version") or meta.get("version") or 0),
            folder=str(meta.get("folderUid") or ""),
            folder_title=str(meta.get("folderTitle") or ROOT.title),
            provisioned=bool(meta.get("provisioned")),
            provisioned_by=str(meta.get("provisionedExternalId") or ""),
        )

    def message_of_version(self, uid: str, version: int) -> str:
        """Return the message that this version was saved with; empty when it is not available."""
        path = f"/api/dashboards/uid/{quote(uid, safe='')}/versions/{version}"
        response = self._server.send("GET", path, accept=(*_ABSENT, httpx.codes.FORBIDDEN))
        if response.status_code != httpx.codes.OK:
            return ""
        return str(self._server.parsed(response, path).get("message") or "")

    def save(self, model: Model, *, version: int, folder: str, message: str) -> str:
        """Write a dashboard over the version that was read, 0 for a new one; return its address.

        The request does not allow Grafana to overwrite: Grafana refuses it when another version was saved since.
        """
        path = "/api/dashboards/db"
        body = {
            "dashboard": {**model, "id": None, "version": version},
            "folderUid": folder,
            "message": message,
            "overwrite": False,
        }
        response = self._server.send("POST", path, json=body)
        if response.status_code == httpx.codes.PRECONDITION_FAILED:
            said = self._server.parsed(response, path)
            raise Failure(_REFUSALS.get(str(said.get("status")), "{uid}: Grafana refuses it, {told}").format(
                uid=model["uid"], told=told(response)))  # fmt: skip
        if response.status_code != httpx.codes.OK:
            raise Failure(f"{model['uid']}: Grafana does not take it, {told(response)}")
        address = str(self._server.parsed(response, path).get("url") or "")
        # Grafana served below a path starts the address with that path, which our URL contains already.
        return self.url + address[max(address.find("/d/"), 0) :]

    def folder(self, name: str) -> Folder:
        """Return the folder with this uid, else the top one with this title, else one that does not exist yet."""
        folders = self._folders()
        for folder in folders:
            if folder.uid == name:
                return folder
        titled = [folder for folder in folders if folder.title == name]
        if len(titled) > 1:
            uids = ", ".join(folder.uid for folder in titled)
            raise Failure(f"{len(titled)} folders are called {name!r}: give a uid, one of {uids}")
        return titled[0] if titled else self._nested_folder(name) or Folder("", name)

    def make_folder(self, title: str) -> Folder:
        """Make a folder at the top."""
        made = self._server.json("POST", "/api/folders", json={"title": title})
        return _folder(made)

    def datasource(self, name_or_uid: str) -> tuple[str, str]:
        """Return name and uid of a Prometheus data source."""
        for kind in ("uid", "name"):
            path = f"/api/datasources/{kind}/{quote(name_or_uid, safe='')}"
            found = self._server.json("GET", path, none_for=_ABSENT)
            if found is None:
                continue
            if "prometheus" not in str(found.get("type")):
                raise Failure(f"the data source {name_or_uid!r} is of type {found.get('type')}, not prometheus")
            return str(found.get("name")), str(found.get("uid"))
        raise Failure(f"Grafana at {self.url} has no data source {name_or_uid!r}")

    def _nested_folder(self, uid: str) -> Folder | None:
        if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", uid) is None:
            return None
        # Grafana answers 403 for a missing folder when the credentials may read some folders only.
        none_for = (*_ABSENT, httpx.codes.FORBIDDEN)
        found = self._server.json("GET", f"/api/folders/{uid}", none_for=none_for)
        return _folder(found) if found else None

    def _folders(self) -> list[Folder]:
        found: list[Folder] = []
        for page in range(1, 101):
            rows = self._server.json("GET", "/api/folders", shape=list, params={"limit": _PAGE, "page": page})
            found += [_folder(row) for row in rows]
            if len(rows) < _PAGE:
                break
        return found


_REFUSALS: Final = {
    "version-mismatch": "{uid}: somebody saved it in the meantime; nothing of theirs was touched. Run this again.",
    "name-exists": "{uid}: another dashboard has its place: {told}",
    "plugin-dashboard": "{uid}: Grafana says that it belongs to a plugin: {told}",
}


def _folder(said: dict[str, Any]) -> Folder:
    return Folder(str(said.get("uid") or ""), str(said.get("title") or ""))
