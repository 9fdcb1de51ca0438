"""A Celery application whose tasks make one tool call each; ``python ends_celery.py CALLS`` sends them and waits."""

# In its environment Celery is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,misc,unused-ignore"

from __future__ import annotations

import os
import sys

from celery import Celery
from ends_program import call

app = Celery("ends_celery", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.update(worker_hijack_root_logger=False)


@app.task
def work(number: int) -> str:
    """Make one tool call."""
    result: str = call(number)
    return result


if __name__ == "__main__":
    sent = [work.delay(number) for number in range(int(sys.argv[1]))]
    assert ["x"] * len(sent) == [result.get(timeout=300) for result in sent]
