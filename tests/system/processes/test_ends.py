"""However a process ends, with the documented setting no finished call is lost, and none arrives twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.otlp import OtlpReceiver
from tests.system.processes.ends import CALLS, ENDS, LONG, LOST, PAGE, PROGRAM, Arrived, End, measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.environments import Environment

_HANDLED = ("Python: SIGTERM", "Python: SIGHUP")


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.title)
def test_nothing_is_lost(environment: Callable[[str], Environment], end: End) -> None:
    assert Arrived(CALLS * end.spans, CALLS, 0) == measure(end, environment(end.environment), flush=True)


@pytest.mark.parametrize("end", [end for end in ENDS if end.title in _HANDLED], ids=lambda end: end.title)
def test_without_the_setting_signals_keep_their_action(environment: Callable[[str], Environment], end: End) -> None:
    assert Arrived(0, 0, 0) == measure(end, environment(end.environment), flush=False)


@pytest.mark.parametrize("end", [end for end in ENDS if end.environment == "celery"], ids=lambda end: end.title)
def test_celery_needs_no_setting(environment: Callable[[str], Environment], end: End) -> None:
    assert Arrived(CALLS * end.spans, CALLS, 0) == measure(end, environment(end.environment), flush=False)


def test_the_page_has_all_ends() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [end.title for end in (*ENDS, *LOST) if f"\n| {end.title} | " not in page] == []


def test_a_job_that_is_killed_in_its_first_minute_has_metrics(environment: Callable[[str], Environment]) -> None:
    """OpenTelemetry's own interval is a minute, from the first call on."""
    bare = environment("bare")
    with OtlpReceiver() as receiver:
        env = {**receiver.environment(), "OTEL_METRICS_EXPORTER": "otlp", "AGENT_OTEL": "1"}
        with bare.start(str(bare.python), str(PROGRAM), "signal", "3", env=env) as child:
            points = receiver.wait_for_metric("agent_otel.tool.args.size", timeout=50)
            child.kill()

    assert [3] == [point.count for point in points]


_IGNORES = """
import signal
print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""


def test_a_signal_that_is_ignored_stays_so(environment: Callable[[str], Environment]) -> None:
    bare = environment("bare")
    command = ("sh", "-c", 'trap "" HUP; exec "$0" -c "$1"', str(bare.python), _IGNORES)
    with bare.start(*command, env={"AGENT_OTEL": "1", "AGENT_OTEL_FLUSH_ON_SIGTERM": "1"}) as child:
        stdout, stderr = child.communicate()

    assert ("True False\n", "") == (stdout, stderr)


_FORKS = """
import os, sys
from ends_program import call

for number in range(10):
    call(number)
for child in range(3):
    if not os.fork():
        for number in range(5):
            call(100 * (child + 1) + number)
        sys.exit()
    os.wait()
for number in range(2):
    call(1000 + number)
"""


@pytest.mark.parametrize("temporality", ["delta", "cumulative"])
@pytest.mark.parametrize("name", ["bare", "oldest"])
def test_a_forked_child_sends_what_it_counted_itself(
    environment: Callable[[str], Environment], name: str, temporality: str
) -> None:
    """The SDK copies the parent's counts into each child, which would send them once more."""
    with OtlpReceiver() as receiver:
        env = {
            **receiver.environment(),
            "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": temporality,
            "AGENT_OTEL": "1",
            "PYTHONPATH": str(PROGRAM.parent),
        }
        child = environment(name).run(_FORKS, env=env | LONG, check=True)

    assert "" == child.stderr
    counts = [point.count for point in receiver.points if point.name == "agent_otel.tool.args.size"]
    assert ([5, 5, 5, 12], 27) == (counts, len(receiver.spans))


_SIBLINGS = """
import os, time
import agent_otel
from ends_program import call

call(0)
assert agent_otel.flush(60)  # opens the connection that children would share
start = time.time() + 0.5
for child in range(1, 13):
    if not os.fork():
        for number in range(5):
            call(100 * child + number)
        time.sleep(max(0.0, start - time.time()))
        assert agent_otel.flush(60)
        os._exit(0)
assert [0] * 12 == [os.wait()[1] for _ in range(12)]
"""


@pytest.mark.parametrize("name", ["bare", "oldest"])
def test_forked_children_that_send_at_once_lose_nothing(environment: Callable[[str], Environment], name: str) -> None:
    """Each has connections of its own: a shared one mixes the requests of two processes."""
    with OtlpReceiver() as receiver:
        env = {
            **receiver.environment(),
            "OTEL_METRICS_EXPORTER": "otlp",
            "AGENT_OTEL": "1",
            "PYTHONPATH": str(PROGRAM.parent),
        }
        child = environment(name).run(_SIBLINGS, env=env | LONG, check=True)

    assert "" == child.stderr
    counts = [point.count for point in receiver.points if point.name == "agent_otel.tool.args.size"]
    # The parent sends its one call once more when it ends.
    assert ([1, 1, *[5] * 12], 61) == (sorted(counts), len(receiver.spans))
