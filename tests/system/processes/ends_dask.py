"""Local workers of Dask, processes under their nannies, that make the calls."""

# In its environment Dask is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"

from __future__ import annotations

import sys

from distributed import Client, LocalCluster
from ends_program import call

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        results = client.gather(client.map(call, range(int(sys.argv[1])), pure=False))
    assert ["x"] * int(sys.argv[1]) == results
