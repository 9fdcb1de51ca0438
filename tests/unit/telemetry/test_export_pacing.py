"""An exporter that encodes gives other threads the interpreter, without being asked for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Python takes the interpreter from a thread that computes after 1,000 s here: other threads run only where it pauses.
PROGRAM = """
import sys, threading, time
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExporter
from opentelemetry.sdk.trace import TracerProvider
from agent_otel.telemetry.providers import PacedList, paced, paced_points

tracer = TracerProvider().get_tracer("test")
spans = [tracer.start_span(f"span {number}") for number in range(20)]
reader = InMemoryMetricReader()
counter = MeterProvider(metric_readers=[reader]).get_meter("test").create_counter("calls")
for number in range(20):
    counter.add(number, {"number": number})
turns, done = 0, False

class Exporter:
    def __init__(self, items):
        self.items, self.exported, self.turns = items, [], 0
    def export(self, batch, timeout_millis=0):
        began = turns
        for item in self.items(batch):
            ends = time.thread_time() + 0.002
            while time.thread_time() < ends:
                pass
            self.exported.append(item)
        self.turns = turns - began
        return "exported"

def points(batch):
    return batch.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points

def count():
    global turns
    while not done:
        turns += 1
        time.sleep(0.0001)

threading.Thread(target=count, daemon=True).start()
while not turns:
    time.sleep(0.001)
sys.setswitchinterval(1000)
seen = turns
while turns < seen + 2:  # a thread that waits already asks after the old interval
    time.sleep(0.001)
{export}
turned = exporter.turns
sys.setswitchinterval(0.005)
done = True
print(answer, len(exporter.exported), turned > 0)
"""


@pytest.mark.parametrize(
    "export",
    [
        "exporter = Exporter(iter); answer = paced(exporter, PacedList).export(spans)",
        "exporter = Exporter(points); answer = paced(exporter, paced_points).export(reader.get_metrics_data(), 30)",
    ],
)
def test_other_threads_run_between_two_items_of_a_batch(export: str) -> None:
    program = PROGRAM.replace("{export}", export)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("exported 20 True\n", "")


def test_without_pauses_no_other_thread_runs() -> None:
    program = PROGRAM.replace("{export}", "exporter = Exporter(iter); answer = exporter.export(spans)")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("exported 20 False\n", "")
