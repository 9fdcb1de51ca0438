"""HTTP client for both servers of the commands, with error messages for a person."""

from __future__ import annotations

import os
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx

from agent_otel._internal import __version__
from agent_otel._internal.errors import masked
from agent_otel.cli.console import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds for a connection and for each part of a response; attempts at a connection.
TIMEOUT_SECONDS: Final = 20.0
RETRIES: Final = 2
#: Bytes and seconds of a whole response.
MOST_BYTES: Final = 32 * 1024 * 1024
MOST_SECONDS: Final = 120.0
_ENCODINGS: Final = ("identity", "gzip", "deflate")  # one at a time: a response may name several
_KEPT: Final = ("content-type", "location")
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": f"agent-otel/{__version__}",
}


@dataclass(frozen=True)
class Variables:
    """The environment variables that hold a server's credentials; a command line would show them to all users."""

    token: str
    user: str
    password: str

    def __str__(self) -> str:
        return f"{self.token}, or {self.user} and {self.password}"

    def auth(self) -> httpx.Auth | None:
        """Return the credentials of the variables, or None when they are not set."""
        token = os.environ.get(self.token, "").strip()
        if token:
            if not (token.isascii() and token.isprintable() and " " not in token):
                raise Failure(f"{self.token} is no token: it has a blank, a line break or a letter beyond ASCII in it")
            return _Bearer(token)
        user, password = os.environ.get(self.user, ""), os.environ.get(self.password, "")
        return httpx.BasicAuth(user, password) if user else None


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class Server:
    """A server below one URL that answers in JSON.

    ``name`` is its name in messages. Redirects are not followed: they reveal a wrong URL or a login page.
    """

    def __init__(self, name: str, url: str, variables: Variables, headers: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.url = checked(url)
        self.variables = variables
        self.auth = variables.auth()
        self._client = httpx.Client(
            auth=self.auth,
            headers={**_HEADERS, **(headers or {})},
            timeout=TIMEOUT_SECONDS,
            transport=_transport(self.url),
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def send(self, method: str, path: str, *, accept: tuple[int, ...] = (), **arguments: Any) -> httpx.Response:
        """Send one request. ``accept`` lists the error statuses that the caller handles; ``arguments`` are httpx's."""
        try:
            with self._client.stream(method, self.url + path, **arguments) as answer:
                response = self._read(answer)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # the last one of a host's name
            why = str(error) or type(error).__name__
            if isinstance(error, httpx.TimeoutException):
                why = f"nothing came within {TIMEOUT_SECONDS:.0f} seconds"
            elif "CERTIFICATE_VERIFY_FAILED" in why:
                why += ". SSL_CERT_FILE names the certificates to trust."
            raise Failure(f"{self.name} at {self.url} does not answer: {why}") from None
        if response.status_code not in accept:
            self._refuse(response, path)
        return response

    def _read(self, answer: httpx.Response) -> httpx.Response:
        """Return a response with its content; one that has no end or unfolds to a multiple of its size is refused."""
        end, content = time.monotonic() + MOST_SECONDS, bytearray()
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in _ENCODINGS:
            raise Failure(f"{self.name} at {self.url} answers in an encoding that was not asked for")
        for block in answer.iter_bytes():
            content += block
            if len(content) > MOST_BYTES or time.monotonic() > end:
                most = f"{MOST_BYTES:,} bytes or for {MOST_SECONDS:.0f} seconds"
                raise Failure(f"{self.name} at {self.url} answers with more than {most}")
        kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
        return httpx.Response(answer.status_code, headers=kept, content=bytes(content), request=answer.request)

    def json(
        self, method: str, path: str, *, none_for: tuple[int, ...] = (), shape: type = dict, **arguments: Any
    ) -> Any:
        """Send one request and return the JSON of its response, of this shape; None for these error statuses."""
        response = self.send(method, path, accept=none_for, **arguments)
        if response.status_code in none_for:
            return None
        if response.is_error:
            raise Failure(f"{self.name} at {self.url} answers {path} with {told(response)}")
        return self.parsed(response, path, shape)

    def parsed(self, response: httpx.Response, path: str, shape: type = dict) -> Any:
        """Return the JSON of a response, of this shape."""
        try:
            found = response.json()
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "something without a type").partition(";")[0]
            raise Failure(
                f"{self.url} is not {self.name}'s address: {path} answers with {kind}, not with JSON. "
                f"Give the address that {self.name} is served below, with the path if there is one."
            ) from None
        if not isinstance(found, shape):
            raise Failure(self.other_json(path))
        return found

    def other_json(self, path: str) -> str:
        """Return the message for a response that is another server's JSON."""
        return f"{self.url} is not {self.name}'s address: {path} answers with other JSON than {self.name}'s"

    def _refuse(self, response: httpx.Response, path: str) -> None:
        status = response.status_code
        if response.is_redirect:
            where = masked(str(response.headers.get("location", "elsewhere"))).partition("?")[0]
            hint = f"set {self.variables}" if "login" in where else "give the address it leads to"
            raise Failure(f"{self.url} redirects {path} to {where}: {hint}")
        if status == httpx.codes.UNAUTHORIZED:
            have = "refuses these credentials" if self.auth else "wants to know who asks"
            raise Failure(f"{self.name} at {self.url} {have} (401: {_message(response)}): set {self.variables}")
        if status == httpx.codes.FORBIDDEN:
            asked = f"{response.request.method} {path}"
            raise Failure(f"{self.name} at {self.url} does not allow {asked} to these credentials ({told(response)})")
        if status == httpx.codes.NOT_FOUND:
            raise Failure(f"{self.url} is not {self.name}'s address: it has no {path} (404)")


def checked(url: str) -> str:
    """Return a URL without a slash at its end."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise Failure(f"{url!r} is no address; one reads https://host:port/path")
    if "@" in parts.netloc:
        raise Failure("leave user and password out of the address: a command line is no secret")
    if parts.query or parts.fragment:
        raise Failure("give the address alone, without what follows ? or #")
    return url.rstrip("/")


def told(response: httpx.Response) -> str:
    """Return the status of a response and the server's message, in at most 300 characters."""
    return f"{response.status_code}: {_message(response)}"


def _message(response: httpx.Response) -> str:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return response.reason_phrase
    message = body.get("message") or body.get("error") if isinstance(body, dict) else None
    return str(message or response.reason_phrase)[:300]


def _transport(url: str) -> httpx.HTTPTransport:
    """Return a transport that retries connections and uses the environment's proxy for this host."""
    parts = urlsplit(url)
    bypassed = urllib.request.proxy_bypass(parts.hostname or "")
    proxies = urllib.request.getproxies()
    proxy = None if bypassed else proxies.get(parts.scheme) or proxies.get("all")
    try:
        return httpx.HTTPTransport(retries=RETRIES, proxy=proxy)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        what = "what SSL_CERT_FILE names" if isinstance(error, OSError) else "the proxy that the environment names"
        raise Failure(f"{what} cannot be used: {type(error).__name__}") from None
