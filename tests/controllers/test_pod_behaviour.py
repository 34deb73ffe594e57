"""A pod's behavior annotations are read once; unreadable ones are ignored."""

from podium.controllers.kubelets.pod_run import PLAIN, PodBehaviour, behaviour_of

SECOND = 10**9


def said(**annotations: str) -> PodBehaviour:
    return behaviour_of({f"podium.dev/{name.replace('_', '-')}": value for name, value in annotations.items()})


def test_a_pod_that_says_nothing_of_it_is_plain() -> None:
    assert behaviour_of({}) is PLAIN
    assert behaviour_of({"example.com/duration": "5s"}) is PLAIN


def test_every_documented_behaviour_field_is_parsed() -> None:
    found = said(duration="1m", crash_after="5s", ready_after="2s", termination="3s", memory_usage="1Ki")

    assert found == PodBehaviour(
        duration_ns=60 * SECOND,
        crash_after_ns=5 * SECOND,
        ready_after_ns=2 * SECOND,
        termination_ns=3 * SECOND,
        memory_bytes=1024,
    )


def test_unreadable_behaviour_fields_do_not_affect_readable_ones() -> None:
    assert said(duration="soon", crash_after="5s", memory_usage="-1") == PodBehaviour(crash_after_ns=5 * SECOND)


def test_a_pod_that_never_terminates_takes_no_time_for_it() -> None:
    assert said(termination="never") == PodBehaviour(never_terminates=True)
