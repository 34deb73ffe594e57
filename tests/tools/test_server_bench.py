"""The measurements of an API server, and of a scheduler with one."""

from __future__ import annotations

from tools.server_bench import measure_api_server, measure_live


def test_pods_are_created_updated_listed_and_watched_over_http() -> None:
    created, updated, listed, watched = measure_api_server(20)

    assert (created.workload, created.pods, created.counts) == ("apiserver-create", 20, {"watchers": 1})
    assert (updated.workload, updated.pods) == ("apiserver-update", 20)
    assert (listed.workload, listed.pods, listed.counts) == ("apiserver-list", 200, {"lists": 10})
    assert (watched.workload, watched.pods, watched.counts) == ("apiserver-watch", 2_000, {"watchers": 100})
    assert all(row.seconds > 0 and row.attempt_us and row.peak_memory_mib > 10 for row in (created, watched))


def test_pods_are_bound_over_http_by_a_scheduler_in_its_own_process() -> None:
    live = measure_live(3, 10)

    assert (live.workload, live.nodes, live.pods) == ("live", 3, 10)
    assert live.seconds > 0
    assert live.counts.keys() == {"server_cpu_ms", "scheduler_cpu_ms"}
