"""Podium against 134 stories of 15 to 40 seconds on a real control plane of Kubernetes v1.36.2.

kube-apiserver, kube-scheduler and kube-controller-manager ran with stub kubelets: preemptors and their victims, pods
that come and end meanwhile, budgets, affinity, spread, taints, nodes that come, change and go, and workloads. A story
agrees if Podium's outcome is one of its recorded outcomes: the end and node of every pod, the time of its binding, the
victims of each preemptor, and the nominations with the times of their clearing, all within 1.6 s; and the moments of
the attempts. A real cluster may attempt a pod more often within a moment: events of one virtual instant happen there
one after the other.

32 more (drains, evictions, claims, local volumes, rollouts, taints, node deletion) are played with latencies, since
controllers and the scheduler act on the same events there. Attempts are not compared: the recording machine was slow.

Seven stories are left out: in five, some milliseconds of the real control plane decide the outcome, and two begin in a
state that no cluster can have.
"""

from __future__ import annotations

import pytest

from tests.conformance.stories import Story, all_stories, differences, more_stories, other_attempts

STORIES = 134
WITHOUT_CONSEQUENCE = 7
MORE_STORIES = 32
# A drain that began seconds late on the recording machine, and a backoff that ends as the victim's grace period does.
MORE_WITHOUT_CONSEQUENCE = ["x911-3", "x912-30"]
# A pod is deleted at the very instant at which it would be attempted once more.
ATTEMPT_AT_THE_END = {"s4-6"}


def counted(family: str) -> list[Story]:
    return [story for story in all_stories() if story.name.startswith(family) and not story.known]


def disagreement(story: Story) -> str:
    """Return what differs from the outcome that is nearest; "" where nothing does."""
    own, nearest = story.play(), None
    for real in story.outcomes():
        found = differences(real, own, story.until)
        if not found and story.name not in ATTEMPT_AT_THE_END:
            found = other_attempts(real, own)
        nearest = found if nearest is None or len(found) < len(nearest) else nearest
    return "\n".join([story.name, *nearest]) if nearest else ""


@pytest.mark.parametrize("family", ["m", "s2", "s4", "s6"])
def test_every_story_ends_as_in_a_real_cluster(family: str) -> None:
    wrong = [found for found in map(disagreement, counted(family)) if found]

    assert not wrong, f"{len(wrong)} stories differ:\n" + "\n".join(wrong)


def test_every_story_of_drains_claims_and_rollouts_ends_as_in_a_real_cluster() -> None:
    wrong = []
    for story in more_stories():
        own = story.play()
        found = min((differences(real, own, story.until) for real in story.outcomes()), key=len)
        if found and not story.known:
            wrong.append("\n".join([story.name, *found]))

    assert not wrong, f"{len(wrong)} stories differ:\n" + "\n".join(wrong)


def test_there_are_32_more_stories_and_all_but_two_count() -> None:
    stories = more_stories()

    assert len(stories) == MORE_STORIES
    assert sorted(story.name for story in stories if story.known) == MORE_WITHOUT_CONSEQUENCE


def test_there_are_134_stories_and_all_but_seven_count() -> None:
    stories = all_stories()

    assert len(stories) == len({story.name for story in stories}) == STORIES
    assert sum(bool(story.known) for story in stories) == WITHOUT_CONSEQUENCE
    assert sum(map(len, (counted(family) for family in ("m", "s2", "s4", "s6")))) == STORIES - WITHOUT_CONSEQUENCE


def test_the_comparison_notices_a_pod_that_ends_elsewhere() -> None:
    story = next(one for one in all_stories() if one.name.startswith("m4"))
    without_steps = Story(story.name, story.objects, [], story.until, story.recorded)

    assert "ends" in disagreement(without_steps)
