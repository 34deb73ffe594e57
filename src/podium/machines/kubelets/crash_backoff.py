"""How long containers that keep failing wait until they are started again.

Source: pkg/kubelet/kuberuntime (doBackOff); k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

import msgspec

_SECOND = 10**9
_FIRST_NS = 10 * _SECOND
_LONGEST_NS = 300 * _SECOND
# Containers that ran longer than this before they failed are taken to be well again.
_WELL_NS = 2 * _LONGEST_NS


class CrashBackOff(msgspec.Struct, gc=False):
    """The back-off of a pod's containers: none after the first failure, then 10 s, doubled each time, up to 300 s.

    After 10 minutes of running it begins anew. ``crashes`` counts the failures since then.
    """

    crashes: int = 0
    _wait_ns: int = 0
    _restarted_ns: int = 0

    def next_start_ns(self, failed_ns: int) -> int:
        """When containers that failed at ``failed_ns`` are started again."""
        if failed_ns - self._restarted_ns > _WELL_NS:
            self.crashes = self._wait_ns = 0
        self.crashes += 1
        self._restarted_ns = failed_ns + self._wait_ns
        self._wait_ns = min(max(2 * self._wait_ns, _FIRST_NS), _LONGEST_NS)
        return self._restarted_ns
