"""Test support for software for Kubernetes: a control plane for each test."""

from podium.testing.control_plane import ControlPlane, RefusedError

__all__ = ["ControlPlane", "RefusedError"]
