"""The volumes of a pod: names, and one source each (core/validation, validateVolumeSource)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from podium.api.names import subdomain_problem
from podium.api.validation.amounts import amount
from podium.api.validation.claims import check_claim_spec
from podium.api.validation.environment import check_field_reference, check_resource_reference
from podium.api.validation.formats import backsteps_problem, descending_problem, local_path_problem
from podium.api.validation.metadata import check_own_name
from podium.api.validation.place import Place

Volumes = Mapping[str, Mapping[str, Any]]
"""The volumes of a pod that are right, by name."""

_MAX_MODE = 0o777
_HOST_PATH_TYPES = ("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_FILE_FIELDS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
_ISCSI_NAMES = ("iqn", "eui", "naa")
_LEAST_TOKEN_SECONDS, _MOST_TOKEN_SECONDS = 600, 2**32
_PULL_POLICIES = ("Always", "Never", "IfNotPresent")

REQUIRED_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "emptyDir": (),
        "hostPath": ("path",),
        "gitRepo": ("repository",),
        "gcePersistentDisk": ("pdName",),
        "awsElasticBlockStore": ("volumeID",),
        "secret": ("secretName",),
        "nfs": ("server", "path"),
        "iscsi": ("targetPortal", "iqn"),
        "glusterfs": ("endpoints", "path"),
        "flocker": (),
        "persistentVolumeClaim": ("claimName",),
        "rbd": ("monitors", "image"),
        "cinder": ("volumeID",),
        "cephfs": ("monitors",),
        "quobyte": ("registry", "volume"),
        "downwardAPI": (),
        "fc": (),
        "flexVolume": ("driver",),
        "configMap": ("name",),
        "azureFile": ("secretName", "shareName"),
        "vsphereVolume": ("volumePath",),
        "photonPersistentDisk": ("pdID",),
        "portworxVolume": ("volumeID",),
        "azureDisk": ("diskName", "diskURI"),
        "storageos": (),
        "projected": (),
        "scaleIO": ("gateway", "system", "volumeName"),
        "csi": ("driver",),
        "ephemeral": ("volumeClaimTemplate",),
        "image": (),
    }
)
"""The sources that a volume can have, in kube-apiserver's order, each with the fields that it must have."""


def check_volumes(spec: Place, pod_name: str) -> Volumes:
    """All volumes of a pod, or of a template, whose pods have no name yet; those without a problem."""
    right: dict[str, Mapping[str, Any]] = {}
    volumes = spec.objects("volumes")
    made = {f"{pod_name}-{place.text('name')}" for place in volumes if place.has("ephemeral")} if pod_name else set()
    seen: set[str] = set()
    for volume in volumes:
        name = check_own_name(volume, seen)
        right.setdefault(name, volume.value)
        _check_sources(volume, pod_name)
        claim = volume.child_or_empty("persistentVolumeClaim").text("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            volume.child_or_empty("persistentVolumeClaim").invalid("claimName", claim, detail)
    return right


def check_source(volume: Place, name: str) -> None:
    """One source of a pod's volume, or of a persistent volume: its required fields, and its own rule."""
    source = volume.child(name)
    if source is None:
        return
    source.require(*REQUIRED_FIELDS[name])
    rule = _RULES.get(name)
    if rule is not None:
        rule(source)


def _check_sources(volume: Place, pod_name: str) -> None:
    """A volume without any source is an emptyDir (SetDefaults_Volume)."""
    given = [name for name in REQUIRED_FIELDS if volume.has(name)]
    for name in given[1:]:
        volume.forbidden(name, "may not specify more than 1 volume type")
    if given:
        check_source(volume, given[0])
    if given == ["ephemeral"] and pod_name and volume.text("name"):
        volume.check("name", subdomain_problem(f"{pod_name}-{volume.text('name')}"))


def _check_empty_dir(source: Place) -> None:
    size = amount(source.value.get("sizeLimit", 0))
    if size is None or size < 0:
        source.forbidden("sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_host_path(source: Place) -> None:
    source.check("path", backsteps_problem(source.text("path")))
    source.check_one_of("type", _HOST_PATH_TYPES)


def _check_git_repo(source: Place) -> None:
    source.check("directory", descending_problem(source.text("directory")))


def _check_disk(source: Place) -> None:
    if source.number("partition"):
        source.check_range("partition", 1, 255)


def _check_nfs(source: Place) -> None:
    path = source.text("path")
    if not path.startswith("/"):
        source.invalid("path", path, "must be an absolute path")


def _check_iscsi(source: Place) -> None:
    name = source.text("iqn")
    if name and not name.startswith(_ISCSI_NAMES):
        source.invalid("iqn", name, "must be valid format starting with iqn, eui, or naa")
    source.check_range("lun", 0, 255)
    if (source.flag("chapAuthDiscovery") or source.flag("chapAuthSession")) and not source.has("secretRef"):
        source.required("secretRef")


def _check_flocker(source: Place) -> None:
    name, uuid = source.text("datasetName"), source.text("datasetUUID")
    if not name and not uuid:
        source.required("", "one of datasetName and datasetUUID is required")
    elif name and uuid:
        source.invalid("", "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        source.invalid("datasetName", name, "must not contain '/'")


def _check_fibre_channel(source: Place) -> None:
    names, ids = source.texts("targetWWNs"), source.texts("wwids")
    if not names and not ids:
        source.required("targetWWNs", "must specify either targetWWNs or wwids, but not both")
    elif names and ids:
        source.invalid("targetWWNs", [], "targetWWNs and wwids can not be specified simultaneously")
    if names and not source.has("lun"):
        source.required("lun", "lun is required if targetWWNs is specified")
    source.check_range("lun", 0, 255)


def _check_files(source: Place) -> None:
    """A secret or a ConfigMap as files."""
    _check_mode(source, "defaultMode")
    for item in source.objects("items"):
        _check_key_to_path(item)


def _check_key_to_path(item: Place) -> None:
    item.require("key", "path")
    item.check("path", local_path_problem(item.text("path")))
    _check_mode(item, "mode")


def _check_mode(place: Place, name: str) -> None:
    mode = place.number(name)
    if mode is not None and not 0 <= mode <= _MAX_MODE:
        place.invalid(name, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _check_downward_api(source: Place) -> None:
    _check_mode(source, "defaultMode")
    for item in source.objects("items"):
        _check_downward_file(item)


def _check_downward_file(item: Place) -> None:
    item.require("path")
    item.check("path", local_path_problem(item.text("path")))
    _check_mode(item, "mode")
    if item.has("fieldRef") and item.has("resourceFieldRef"):
        item.invalid("", "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif item.has("fieldRef"):
        check_field_reference(item, "fieldRef", _FILE_FIELDS)
    elif item.has("resourceFieldRef"):
        check_resource_reference(item, "resourceFieldRef", needs_container=True)
    else:
        item.required("", "one of fieldRef and resourceFieldRef is required")


def _check_projected(source: Place) -> None:
    """Several sources in one volume, each of one type, whose files are in places of their own."""
    _check_mode(source, "defaultMode")
    paths: set[str] = set()
    for place in source.objects("sources"):
        if len(place.value) > 1:
            place.forbidden("", "may not specify more than 1 volume type per source")
        for path in _projected_paths(place):
            if path in paths:
                source.invalid("", path, "conflicting duplicate paths")
            paths.add(path)


def _projected_paths(source: Place) -> list[str]:
    """The files of one of the sources of a projected volume, which is checked on the way."""
    files: list[Place] = []
    for name in ("secret", "configMap"):
        projection = source.child(name)
        if projection is not None:
            projection.require("name")
            files += projection.objects("items")
    for item in files:
        _check_key_to_path(item)
    downward = source.child_or_empty("downwardAPI").objects("items")
    for item in downward:
        _check_downward_file(item)
    token = source.child("serviceAccountToken")
    if token is not None:
        _check_token(token)
    bundle = source.child("clusterTrustBundle")
    if bundle is not None:
        _check_bundle(bundle)
        downward.append(bundle)
    return [item.text("path") for item in (*files, *downward) if item.text("path")]


def _check_token(token: Place) -> None:
    token.require("path")
    token.check("path", local_path_problem(token.text("path")))
    seconds = token.number("expirationSeconds")
    if seconds is not None and seconds < _LEAST_TOKEN_SECONDS:
        token.invalid("expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    elif seconds is not None and seconds > _MOST_TOKEN_SECONDS:
        token.invalid("expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")


def _check_bundle(bundle: Place) -> None:
    bundle.require("path")
    bundle.check("path", local_path_problem(bundle.text("path")))
    if bundle.has("name") and bundle.has("signerName"):
        bundle.invalid("", bundle.text("name"), "only one of name and signerName may be used")
    elif not bundle.has("name") and not bundle.has("signerName"):
        bundle.required("", "either name or signerName must be specified")


def _check_flex(source: Place) -> None:
    for key in source.text_mapping("options"):
        namespace = f".{key.partition('/')[0].lower()}"
        if "/" in key and namespace.endswith((".kubernetes.io", ".k8s.io")):
            source.child_or_empty("options").invalid(key, key, "kubernetes.io and k8s.io namespaces are reserved")


def _check_azure_disk(source: Place) -> None:
    source.check_one_of("cachingMode", ("None", "ReadOnly", "ReadWrite"))
    source.check_one_of("kind", ("Shared", "Dedicated", "Managed"))


def _check_csi(source: Place) -> None:
    driver = source.text("driver")
    if driver:
        source.check("driver", subdomain_problem(driver.lower()))


def _check_ephemeral(source: Place) -> None:
    template = source.child("volumeClaimTemplate")
    if template is None:
        return
    spec = template.child("spec")
    if spec is None:
        template.required("spec")
    else:
        check_claim_spec(spec)


def _check_image(source: Place) -> None:
    source.check_one_of("pullPolicy", _PULL_POLICIES)


_RULES: Mapping[str, Callable[[Place], None]] = MappingProxyType(
    {
        "awsElasticBlockStore": _check_disk,
        "azureDisk": _check_azure_disk,
        "configMap": _check_files,
        "csi": _check_csi,
        "downwardAPI": _check_downward_api,
        "emptyDir": _check_empty_dir,
        "ephemeral": _check_ephemeral,
        "fc": _check_fibre_channel,
        "flexVolume": _check_flex,
        "flocker": _check_flocker,
        "gcePersistentDisk": _check_disk,
        "gitRepo": _check_git_repo,
        "hostPath": _check_host_path,
        "image": _check_image,
        "iscsi": _check_iscsi,
        "nfs": _check_nfs,
        "projected": _check_projected,
        "secret": _check_files,
    }
)
