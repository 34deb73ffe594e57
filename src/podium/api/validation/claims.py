"""Claims on storage (core/validation, ValidatePersistentVolumeClaimSpec)."""

from __future__ import annotations

from podium.api.names import label_name_problem, subdomain_problem
from podium.api.validation import finding
from podium.api.validation.amounts import amount, check_amount
from podium.api.validation.place import Place
from podium.api.validation.selectors import check_label_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_ALONE = "ReadWriteOncePod"


def check_access_modes(spec: Place) -> None:
    """At least one mode; the mode of one pod stands alone."""
    modes = spec.texts("accessModes")
    if not modes:
        spec.required("accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode.value not in ACCESS_MODES:
            spec.report(finding.unsupported(spec.path("accessModes"), mode.value, ACCESS_MODES))
    known = {mode.value for mode in modes} & set(ACCESS_MODES)
    if _ALONE in known and len(known) > 1:
        spec.forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")


def check_class_name(spec: Place, name: str) -> None:
    """The name of a class, where one is given."""
    if spec.text(name):
        spec.check(name, subdomain_problem(spec.text(name)))


def check_claim_spec(spec: Place) -> None:
    """What a claim asks for."""
    check_access_modes(spec)
    check_label_selector(spec, "selector")
    _check_size(spec)
    check_class_name(spec, "storageClassName")
    check_class_name(spec, "volumeAttributesClassName")
    spec.check_one_of("volumeMode", VOLUME_MODES)
    for name in ("dataSource", "dataSourceRef"):
        source = spec.child(name)
        if source is not None:
            _check_data_source(spec, name, source)


def _check_size(spec: Place) -> None:
    resources = spec.child_or_empty("resources")
    requests = resources.child_or_empty("requests")
    if not requests.has("storage"):
        resources.required("storage")
        return
    size = amount(requests.value["storage"])
    if size is not None and size <= 0:
        requests.invalid("storage", requests.value["storage"], "must be greater than zero")
    else:
        check_amount(requests, "storage", "storage")


def _check_data_source(spec: Place, name: str, source: Place) -> None:
    source.require("name", "kind")
    group, kind = source.text("apiGroup"), source.text("kind")
    if group:
        source.check("apiGroup", subdomain_problem(group))
    elif kind and kind != "PersistentVolumeClaim":
        spec.invalid(name, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if name == "dataSourceRef" and source.text("namespace"):
        source.check("namespace", label_name_problem(source.text("namespace")))
