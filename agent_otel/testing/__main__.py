"""``python -m agent_otel.testing serve``: the APIs of several providers of models, answered from a script."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from agent_otel.testing.servers.providers import ProvidersServer
from agent_otel.testing.servers.replies import Replies, from_json, tool_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.testing.servers.replies import Decider, Json, Reply

_PORT = 8765
_DEFAULT = "This is the answer of the scripted model."
_EPILOG = """\
A script is a JSON list of replies, which each conversation gets in order. A reply is a text, or the calls of a turn:

  [[{"name": "search", "arguments": {"query": "invoices"}}], "There are three invoices."]

A command after -- runs with the variables that point the clients at the server, and the server ends with it:

  python -m agent_otel.testing serve --script script.json -- python agent.py
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and serve."""
    own = list(sys.argv[1:] if arguments is None else arguments)
    end = own.index("--") if "--" in own else len(own)
    command = own[end + 1 :]
    options = _parser().parse_args(own[:end])
    try:
        if options.script is None:
            script = Replies(_DEFAULT)
        elif options.script == "-":
            script = from_json(json.load(sys.stdin))
        else:
            script = from_json(json.loads(Path(options.script).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        sys.exit(f"{options.script} is no script: {error}")
    # With a command the port may be any: the variables name it.
    port = options.port if options.port is not None else 0 if command else _PORT
    server = ProvidersServer(script if options.quiet else _logged(script), port)
    try:
        code = _serve(server, command)
    except OSError as error:
        sys.exit(f"cannot start: {error}")
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agent_otel.testing", description="Tools for tests of agents.")
    serve = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "serve",
        help="a model that answers from a script",
        description="Serve the APIs of OpenAI, Anthropic, Gemini, Bedrock, Cohere, Groq and Ollama on 127.0.0.1, "
        "answered from a script.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("--script", metavar="FILE", help="JSON list of replies; - is standard input; default: a text")
    serve.add_argument("--port", type=int, help=f"default: {_PORT}, with a command a free one")
    serve.add_argument("--quiet", action="store_true", help="do not print a line for each request")
    return parser


def _serve(server: ProvidersServer, command: list[str]) -> int:
    """Serve until the command ends or Ctrl-C; return the exit code."""
    stopped = threading.Event()
    # A command gets Ctrl-C itself, and ends by its own rules.
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    with server:
        if command:
            environment = {**os.environ, **server.environment}
            return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - the user's own
        lines = (f"export {name}={shlex.quote(value)}" for name, value in server.environment.items())
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        stopped.wait()
    return 0


def _logged(script: Decider) -> Decider:
    """Return the script with a line on standard error for each request."""
    numbers = itertools.count(1)

    def decide(request: Json) -> Reply:
        reply = script(request)
        results = tool_results(request)
        size = sum(len(text.encode()) for text in results.values())
        said = json.dumps(reply) if isinstance(reply, str) else f"calls {', '.join(call.name for call in reply)}"
        sys.stderr.write(f"request {next(numbers)}: tool results: {len(results)} ({size:,} bytes); reply: {said}\n")
        return reply

    return decide


if __name__ == "__main__":
    main()
