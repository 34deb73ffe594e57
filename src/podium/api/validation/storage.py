"""Volumes, claims and classes of storage (core/validation, pkg/apis/storage/validation)."""

from __future__ import annotations

from podium.api.names import label_key_problem, subdomain_problem
from podium.api.validation.amounts import amount, check_amount
from podium.api.validation.claims import VOLUME_MODES, check_access_modes, check_claim_spec, check_class_name
from podium.api.validation.place import Place
from podium.api.validation.selectors import check_label_selector, check_node_selector, check_topology_term

_RECLAIMING = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_MAX_PARAMETERS = 512
SOURCES = {
    "hostPath": ("path",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "nfs": ("server", "path"),
    "rbd": ("monitors", "image"),
    "quobyte": ("registry", "volume"),
    "cephfs": ("monitors",),
    "iscsi": ("targetPortal", "iqn"),
    "cinder": ("volumeID",),
    "fc": (),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "scaleIO": ("gateway", "system", "volumeName", "secretRef"),
    "local": ("path",),
    "storageos": (),
    "csi": ("driver", "volumeHandle"),
}
"""The sources that a persistent volume can have, in kube-apiserver's order, each with the fields that it must have."""


def check_volume(volume: Place) -> None:
    """A persistent volume: its size, one source, and from where it can be reached."""
    spec = volume.child_or_empty("spec")
    check_access_modes(spec)
    _check_capacity(spec)
    spec.check_one_of("persistentVolumeReclaimPolicy", _RECLAIMING)
    spec.check_one_of("volumeMode", VOLUME_MODES)
    check_class_name(spec, "storageClassName")
    check_class_name(spec, "volumeAttributesClassName")
    affinity = spec.child("nodeAffinity")
    if affinity is not None:
        affinity.require("required")
        check_node_selector(affinity, "required")
    given = [name for name in SOURCES if spec.has(name)]
    if not given:
        spec.required("", "must specify a volume type")
        return
    for name in given[1:]:
        spec.forbidden(name, "may not specify more than 1 volume type")
    source = spec.child(given[0])
    if source is not None:
        source.require(*SOURCES[given[0]])
    if given[0] == "local" and affinity is None:
        spec.required("nodeAffinity", "Local volume requires node affinity")


def check_claim(claim: Place) -> None:
    """A persistent volume claim."""
    check_claim_spec(claim.child_or_empty("spec"))


def check_storage_class(storage_class: Place) -> None:
    """How volumes of a class are made and bound."""
    provisioner = storage_class.text("provisioner")
    if provisioner:
        storage_class.check("provisioner", label_key_problem(provisioner.lower()))
    else:
        storage_class.required("provisioner")
    if len(storage_class.text_mapping("parameters")) > _MAX_PARAMETERS:
        storage_class.invalid("parameters", {}, f"must have at most {_MAX_PARAMETERS} items")
    storage_class.check_one_of("reclaimPolicy", ("Delete", "Retain"))
    storage_class.check_one_of("volumeBindingMode", _BINDING_MODES)
    for term in storage_class.objects("allowedTopologies"):
        check_topology_term(term)


def check_csi_driver(driver: Place) -> None:
    """A storage driver."""
    spec = driver.child_or_empty("spec")
    spec.check_one_of("fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in spec.texts("volumeLifecycleModes"):
        if mode.value not in ("Persistent", "Ephemeral"):
            mode.invalid("", mode.value, "must be Persistent or Ephemeral")


def check_storage_capacity(capacity: Place) -> None:
    """What a driver can still make of a class in a topology."""
    check_label_selector(capacity, "nodeTopology")
    class_name = capacity.text("storageClassName")
    if class_name:
        capacity.check("storageClassName", subdomain_problem(class_name))
    else:
        capacity.required("storageClassName")
    for name in ("capacity", "maximumVolumeSize"):
        if capacity.has(name):
            check_amount(capacity, name, "storage")


def _check_capacity(spec: Place) -> None:
    sizes = spec.child_or_empty("capacity")
    if not sizes.value:
        spec.required("capacity")
        return
    if not sizes.has("storage") or len(sizes.value) > 1:
        spec.invalid("capacity", {}, "must be storage alone")
    for name, value in sizes.value.items():
        size = amount(value)
        if size is not None and size <= 0:
            sizes.invalid(name, value, "must be greater than zero")
        else:
            check_amount(sizes, name, name)
