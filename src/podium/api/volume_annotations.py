"""The annotations by which schedulers, the persistent volume controller and provisioners tell one another about claims.

Source: k8s.io/component-helpers/storage/volume/pv_helpers.go.
"""

from __future__ import annotations

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Of a claim: the node for which its volume is to be provisioned."""

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Of a claim: it is bound to its volume, and the volume to it."""

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Of a claim or volume: it was bound by a component, and not by people."""

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""Of a volume: the driver that made it."""

STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Of a claim or volume: its class, in place of the field."""

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Of a CSINode: the kinds of volumes whose CSI drivers have taken over there."""

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes people make."""
