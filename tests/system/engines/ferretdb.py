"""A real FerretDB, which speaks MongoDB's wire protocol and has SQLite below; Go builds it from its module proxy."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, Final

from tests.interpreters import lock
from tests.system.engines import starting
from tests.system.engines.go_tools import go

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = "1.24.2"

# Its own program wants files of its repository that its module does not have; the package in it does not.
_PROGRAM: Final = """
package main

import (
    "context"
    "os"

    "github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
    listener := ferretdb.ListenerConfig{TCP: os.Args[1]}
    server, err := ferretdb.New(&ferretdb.Config{Listener: listener, Handler: "sqlite", SQLiteURL: os.Args[2]})
    if err != nil {
        panic(err)
    }
    panic(server.Run(context.Background()))
}
"""


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start one; yield its URL. UnavailableError when it cannot be built."""
    program, port = build(), starting.free_port()
    with starting.folder() as folder:
        arguments = (f"127.0.0.1:{port}", f"file:{folder}/")
        env = {"HOME": str(folder)}
        with starting.process(program, *arguments, answers=lambda: starting.listens(port), env=env, cwd=folder):
            yield f"mongodb://127.0.0.1:{port}/?directConnection=true"


def build() -> Path:
    """Return the program, built, in some minutes, if it is not there yet; UnavailableError when it cannot be."""
    program = starting.cache("go") / f"ferretdb-{VERSION}" / "ferretdb"
    with lock(program.parent.with_name(f"{program.parent.name}.lock")):
        if not program.exists():
            with starting.folder() as scratch:
                (scratch / "main.go").write_text(_PROGRAM)
                lines = ("module scratch", "go 1.26", f"require github.com/FerretDB/FerretDB v{VERSION}")
                (scratch / "go.mod").write_text("\n".join(lines))
                go(scratch, f"FerretDB {VERSION}", "build", "-mod=mod", "-trimpath", "-o", "ferretdb", ".")
                program.parent.mkdir(exist_ok=True)
                shutil.move(scratch / "ferretdb", program)
    return program
