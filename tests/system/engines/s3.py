"""An endpoint that speaks S3: moto's server, in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import sys
from typing import TYPE_CHECKING

from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUCKET = "results"


@contextlib.contextmanager
def server() -> Iterator[dict[str, str]]:
    """Start one, with an empty bucket ``results``; give the variables that lead to it once it answers."""
    port = starting.free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with (
        starting.folder() as folder,
        starting.process(
            *(sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)),
            answers=lambda: _has_bucket(port),
            env={"PATH": os.defpath},
            cwd=folder,
        ),
    ):
        yield {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        }


def _has_bucket(port: int) -> bool:
    """Whether it answers, and has made the bucket."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.request("PUT", f"/{_BUCKET}")
        return connection.getresponse().status == http.client.OK
    return False
