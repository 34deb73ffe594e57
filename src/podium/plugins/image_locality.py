"""ImageLocality: nodes that already have the pod's images are liked better.

Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope

_MEGABYTE = 1024 * 1024
_MINIMUM_BYTES = 23 * _MEGABYTE
_MAXIMUM_BYTES_A_CONTAINER = 1000 * _MEGABYTE


class ImageLocality:
    """Adds up the images' sizes on a node, each in proportion to how widely it is spread over the cluster."""

    name = "ImageLocality"
    scope = Scope.NODE

    def __init__(self, context: PluginContext) -> None:
        pass

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """0 up to 23 MB of images on the node, 100 from 1000 MB a container, even between."""
        containers = pod.spec.init_containers + pod.spec.containers
        nodes = view.cluster.nodes
        found = [nodes.images.find(_with_tag(container.image)) for container in containers]
        images = [image for image in found if image is not None]
        maximum = _MAXIMUM_BYTES_A_CONTAINER * len(containers)
        if not images or maximum <= _MINIMUM_BYTES:
            return np.zeros(len(view), dtype=np.int64)
        sizes = np.zeros(nodes.capacity, dtype=np.int64)
        for image in images:
            sizes[list(image.rows)] += int(image.size_bytes * (len(image.rows) / len(nodes)))
        counted = np.clip(view.take(sizes), _MINIMUM_BYTES, maximum)
        scores: Int64s = MAX_NODE_SCORE * (counted - _MINIMUM_BYTES) // (maximum - _MINIMUM_BYTES)
        return scores


def _with_tag(image: str) -> str:
    """The image's name with its tag; `latest` where it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
