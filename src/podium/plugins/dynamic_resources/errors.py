"""What ends the search for devices on a node."""

from __future__ import annotations


class AllocationError(Exception):
    """Something is wrong with a claim or a class; the pod's attempt fails."""


class NodeAllocationError(Exception):
    """Something is wrong with what this node offers; others may do."""


class TooManyStepsError(Exception):
    """The search was given up."""
