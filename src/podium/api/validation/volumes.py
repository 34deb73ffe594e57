"""Validation of volumes: of pods, persistent ones, claims, and storage classes.

Source: core/validation (validateVolumeSource, ValidatePersistentVolume), pkg/apis/storage/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any

from podium.api.names import label_key_problem, subdomain_problem
from podium.api.schemas.schema import Object, fields_of
from podium.api.validation import amounts
from podium.api.validation.findings import Place
from podium.api.validation.placement import only_one
from podium.api.validation.rules import check, check_type, declare, fields_with_rules, report_repeats

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "ReadWriteOncePod"
_SEVERAL = "may not specify more than 1 volume type"

# The sources are in kube-apiserver's order, in which the first counts.
declare(
    """\
PersistentVolumeSource: hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi
  cinder fc flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos csi
VolumeSource: emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker
  persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile vsphereVolume
  photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi ephemeral image
AWSElasticBlockStoreVolumeSource: volumeID! partition:partition
AzureDiskVolumeSource: diskName! diskURI! cachingMode:None|ReadOnly|ReadWrite kind:Shared|Dedicated|Managed
AzureFilePersistentVolumeSource AzureFileVolumeSource: secretName! shareName!
CSIPersistentVolumeSource: driver!:subdomain-in-any-case volumeHandle! controllerPublishSecretRef nodeStageSecretRef
  nodePublishSecretRef controllerExpandSecretRef nodeExpandSecretRef
CSIVolumeSource: driver!:subdomain-in-any-case
CephFSPersistentVolumeSource CephFSVolumeSource: monitors!
CinderPersistentVolumeSource CinderVolumeSource PortworxVolumeSource: volumeID!
ClusterTrustBundleProjection: path!:local-path =name|signerName
ConfigMapProjection SecretProjection: name! items
ConfigMapVolumeSource: name! defaultMode:mode items
DownwardAPIProjection: items
DownwardAPIVolumeFile: path!:local-path mode:mode =fieldRef|resourceFieldRef fieldRef resourceFieldRef
DownwardAPIVolumeSource: defaultMode:mode items
EmptyDirVolumeSource: @size_limit
EphemeralVolumeSource: volumeClaimTemplate!
FCVolumeSource: @fibre_channel lun:0..255
FlexPersistentVolumeSource FlexVolumeSource: driver! @flex_options
FlockerVolumeSource: =datasetName|datasetUUID datasetName:no-path
GCEPersistentDiskVolumeSource: pdName! partition:partition
GitRepoVolumeSource: repository! directory:relative-path
GlusterfsPersistentVolumeSource GlusterfsVolumeSource: endpoints! path!
HostPathVolumeSource: path!:path-without-backsteps
  type:DirectoryOrCreate|Directory|FileOrCreate|File|Socket|CharDevice|BlockDevice
ISCSIPersistentVolumeSource ISCSIVolumeSource: targetPortal! iqn! @iscsi lun:0..255
ImageVolumeSource: pullPolicy:Always|Never|IfNotPresent
KeyToPath: key! path!:local-path mode:mode
LocalVolumeSource: path!:path-without-backsteps
NFSVolumeSource: server! path! path::absolute-path
PersistentVolumeClaimTemplate: spec!
PersistentVolumeClaimVolumeSource: claimName!
PhotonPersistentDiskVolumeSource: pdID!
ProjectedVolumeSource: defaultMode:mode sources @projected
QuobyteVolumeSource: registry! volume!
RBDPersistentVolumeSource RBDVolumeSource: monitors! image!
SecretReference: name! namespace!
ScaleIOPersistentVolumeSource ScaleIOVolumeSource: gateway! system! volumeName!
SecretVolumeSource: secretName! defaultMode:mode items
ServiceAccountTokenProjection: path!:local-path expirationSeconds:600..4294967296
StorageOSPersistentVolumeSource StorageOSVolumeSource: volumeName!:label volumeNamespace:label
Volume: @source
VolumeProjection: @one_projection secret configMap downwardAPI serviceAccountToken clusterTrustBundle
VsphereVirtualDiskVolumeSource: volumePath!
CSIDriver PersistentVolume PersistentVolumeClaim VolumeAttachment: spec+
CSIDriverSpec: fsGroupPolicy:File|None|ReadWriteOnceWithFSType volumeLifecycleModes:Ephemeral|Persistent
CSIStorageCapacity: nodeTopology storageClassName!:subdomain capacity:size* maximumVolumeSize:size*
PersistentVolumeClaimSpec: accessModes! @access_modes selector @storage_request storageClassName:subdomain
  volumeAttributesClassName:subdomain volumeMode:Block|Filesystem dataSource dataSourceRef
PersistentVolumeSpec: accessModes! @access_modes @capacity persistentVolumeReclaimPolicy:Delete|Recycle|Retain
  volumeMode:Block|Filesystem storageClassName:subdomain volumeAttributesClassName:subdomain nodeAffinity
  @persistent_source
StorageClass: provisioner!:key-in-any-case parameters:..512 reclaimPolicy:Delete|Retain
  volumeBindingMode:Immediate|WaitForFirstConsumer allowedTopologies
TopologySelectorTerm: @topology_term
TypedLocalObjectReference: name! kind! @api_group
TypedObjectReference: name! kind! @api_group namespace:label
VolumeAttachmentSource: =inlineVolumeSpec|persistentVolumeName
VolumeAttachmentSpec: attacher! nodeName! source+
VolumeNodeAffinity: required!
""",
    """\
PersistentVolumeClaimSpec: resources
PersistentVolumeSpec: capacity:amounts
VolumeResourceRequirements: requests:amounts limits:amounts
""",
)

Volumes = Mapping[str, Mapping[str, Any]]
"""The valid volumes of a pod, by name."""


@cache
def sources(type_: str) -> Mapping[str, str]:
    """Return the sources of VolumeSource or PersistentVolumeSource in kube-apiserver's order, with their types."""
    fields = ((name, fields_of(type_)[name].type) for name in fields_with_rules(type_))
    return {name: field.name for name, field in fields if isinstance(field, Object)}


@check
def _source(volume: Place) -> None:
    """Check that there is one source; a volume without any is an emptyDir (SetDefaults_Volume)."""
    given, pod_name = volume.fields_set(*sources("VolumeSource")), volume.context.name
    source = only_one(volume, given, "", _SEVERAL)
    if source is not None:
        check_type(source, sources("VolumeSource")[given[0]])
    if given == ["image"] and pod_name:
        volume.child_or_empty("image").require("reference")
    if given == ["ephemeral"] and pod_name and volume.text("name"):
        volume.check("name", subdomain_problem(f"{pod_name}-{volume.text('name')}"))
    claim = volume.child_or_empty("persistentVolumeClaim")
    others = volume.owner.objects("volumes") if pod_name and claim.text("claimName") else ()
    if claim.text("claimName") in {f"{pod_name}-{other.text('name')}" for other in others if other.has("ephemeral")}:
        detail = "must not reference a PVC that gets created for an ephemeral volume"
        claim.invalid("claimName", claim.text("claimName"), detail)


@check
def _size_limit(source: Place) -> None:
    size = amounts.amount(source.value.get("sizeLimit", 0))
    if size is None or size < 0:
        source.forbidden("sizeLimit", "SizeLimit field must be a valid resource quantity")


@check
def _iscsi(source: Place) -> None:
    if (name := source.text("iqn")) and not name.startswith(("iqn", "eui", "naa")):
        source.invalid("iqn", name, "must be valid format starting with iqn, eui, or naa")
    if (source.flag("chapAuthDiscovery") or source.flag("chapAuthSession")) and not source.has("secretRef"):
        source.required("secretRef")


@check
def _fibre_channel(source: Place) -> None:
    names, ids = source.texts("targetWWNs"), source.texts("wwids")
    if not names and not ids:
        source.required("targetWWNs", "must specify either targetWWNs or wwids, but not both")
    elif names and ids:
        source.invalid("targetWWNs", [], "targetWWNs and wwids can not be specified simultaneously")
    if names and not source.has("lun"):
        source.required("lun", "lun is required if targetWWNs is specified")


@check
def _flex_options(source: Place) -> None:
    for key in source.text_mapping("options"):
        namespace = f".{key.partition('/')[0].lower()}"
        if "/" in key and namespace.endswith((".kubernetes.io", ".k8s.io")):
            source.child_or_empty("options").invalid(key, key, "kubernetes.io and k8s.io namespaces are reserved")


@check
def _one_projection(source: Place) -> None:
    if len(source.value) > 1:
        source.forbidden("", "may not specify more than 1 volume type per source")


@check
def _projected(volume: Place) -> None:
    """Check that the file paths of the sources do not conflict."""
    paths: set[str] = set()
    for source in volume.objects("sources"):
        parts = [source.child_or_empty(name).objects("items") for name in ("secret", "configMap", "downwardAPI")]
        for item in chain(*parts, [source.child_or_empty("clusterTrustBundle")]):
            path = item.text("path")
            if path and path in paths:
                volume.invalid("", path, "conflicting duplicate paths")
            paths.add(path)


@check
def _access_modes(spec: Place) -> None:
    """Check that the access modes are known, and that ReadWriteOncePod is the only one."""
    modes = [mode.value for mode in spec.texts("accessModes")]
    for mode in modes:
        if mode not in _ACCESS_MODES:
            spec.unsupported("accessModes", mode, _ACCESS_MODES)
    if _ALONE in modes and len({*modes} & {*_ACCESS_MODES}) > 1:
        spec.forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")


@check
def _storage_request(spec: Place) -> None:
    requests = spec.child_or_empty("resources", "requests")
    if requests.has("storage"):
        _check_positive(requests, "storage")
    else:
        spec.child_or_empty("resources").required("storage")


def _check_positive(sizes: Place, name: str) -> None:
    size = amounts.amount(sizes.value[name])
    if size is not None and size <= 0:
        sizes.invalid(name, sizes.value[name], "must be greater than zero")
    else:
        amounts.check_amount(sizes, name, name)


@check
def _api_group(source: Place) -> None:
    if group := source.text("apiGroup"):
        source.check("apiGroup", subdomain_problem(group))
    elif (kind := source.text("kind")) not in ("", "PersistentVolumeClaim"):
        source.invalid("", kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")


@check
def _capacity(spec: Place) -> None:
    sizes = spec.child_or_empty("capacity")
    if not sizes.value:
        spec.required("capacity")
    elif not sizes.has("storage") or len(sizes.value) > 1:
        spec.unsupported("capacity", sizes.value, ("storage",))
    for name in sizes.value:
        _check_positive(sizes, name)


@check
def _persistent_source(spec: Place) -> None:
    given = spec.fields_set(*sources("PersistentVolumeSource"))
    source = only_one(spec, given, "must specify a volume type", _SEVERAL)
    if source is not None:
        check_type(source, sources("PersistentVolumeSource")[given[0]])
    if spec.text("persistentVolumeReclaimPolicy") == "Recycle" and spec.child_or_empty("hostPath").text("path") == "/":
        spec.forbidden("persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
    if given[:1] == ["local"] and spec.child("nodeAffinity") is None:
        spec.required("nodeAffinity", "Local volume requires node affinity")


@check
def _topology_term(term: Place) -> None:
    """Check a term of a storage class's topology: unique keys and unique values."""
    for place in report_repeats(term.objects("matchLabelExpressions"), "key"):
        place.require("values")
        report_repeats(place.texts("values"))
        place.check("key", label_key_problem(place.text("key")))
