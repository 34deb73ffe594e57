"""A preemption policy: a pod may say which priority it takes to make it give way."""

from __future__ import annotations

from podium.plugin import DefaultPreemption, PodRecord

SHIELD = "example.com/gives-way-to-priority"


class ShieldedPreemption(DefaultPreemption):
    """DefaultPreemption, but for pods with the annotation: they give way to that priority or a higher one alone."""

    name = "ShieldedPreemption"

    def may_disrupt(self, pod: PodRecord, victim: PodRecord) -> bool:
        """Whether the shield, if there is one and it is a number, lets the pod through."""
        shield = victim.annotations.get(SHIELD, "")
        return not shield.isdecimal() or pod.priority >= int(shield)
