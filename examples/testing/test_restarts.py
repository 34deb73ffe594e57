"""A test of a service that loses a node. Run it with pytest."""

from __future__ import annotations

from podium.testing import ControlPlane

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web, resources: {requests: {cpu: "1"}}}]
"""


def test_a_service_is_whole_again_seven_minutes_after_a_node_has_failed() -> None:
    with ControlPlane(nodes=3) as cluster:
        cluster.apply(WEB)
        failed = cluster.pods(label_selector="app=web")[0]["spec"]["nodeName"]

        cluster.stop_node(failed)
        cluster.advance("7m")

        left = [pod for pod in cluster.pods() if not pod["metadata"].get("deletionTimestamp")]
        assert [pod["status"]["phase"] for pod in left] == ["Running"] * 3
        assert failed not in {pod["spec"]["nodeName"] for pod in left}
