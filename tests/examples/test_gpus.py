"""The example scenario of devices that are claimed, used and released."""

from tests.examples.stories import played, story


def test_a_pod_waits_for_a_device_until_its_user_has_ended() -> None:
    result = played("gpus")

    assert story(result, ("Scheduled",), owners=("batch",)) == [
        "0 Scheduled batch-2 node-2",
        "0 Scheduled batch-1 node-1",
        "0 Scheduled batch-3 node-2",
        "10 Scheduled infer node-1",
        "60 Scheduled train node-2",
    ]
