"""The settings that the options of `podium up` select, without a server."""

import json
import ssl
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
import yaml

from podium.api import collector
from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.versions.choice import read_choice
from podium.api.versions.gates import Gate
from podium.apirequests.request import Request
from podium.app.console.options import Source
from podium.app.serving import run as run_module
from podium.app.serving.run import UpOptions, assembled, place_of, settings_of
from podium.app.serving.serving import Serving
from podium.controlplane.control_plane import EmbeddedControlPlane
from tests.app.processes import run
from tests.app.serving.lives import up
from tests.store.objects import node, pod
from tests.waiting import GUARD_SECONDS

RESCHEDULER = {"apiVersion": "podium.dev/v1alpha1", "kind": "ReschedulerConfiguration"}
AUTOSCALER = Path(__file__).parents[3] / "examples" / "up" / "autoscaler.yaml"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "elsewhere"}


def plane_of(wanted: UpOptions) -> EmbeddedControlPlane:
    return assembled(wanted, settings_of(wanted))[1].plane


def until(plane: EmbeddedControlPlane, condition: Callable[[], object]) -> None:
    """Let the plane have its turns until a condition holds."""
    end = time.monotonic() + GUARD_SECONDS
    while not condition():
        assert time.monotonic() < end
        plane.turn()


def phases(plane: EmbeddedControlPlane) -> list[str]:
    return [raw["status"].get("phase", "") for raw in pods(plane)]


def pods(plane: EmbeddedControlPlane) -> list[Raw]:
    return plane.answer(Request(verb="list", kind="Pod")).objects()


def test_a_snapshot_is_a_beginning_as_a_dump_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = pod("a", node="n1", metadata={"ownerReferences": [OWNER]}, status={"phase": "Running"})
    items = [node("n1"), running]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    run("snapshot", "-f", str(tmp_path / "dump.json"), "--save", str(tmp_path / "cluster.podium"))

    found = [
        plane_of(UpOptions(source=Source((str(tmp_path / name),)), seed=0)) for name in ("dump.json", "cluster.podium")
    ]

    for plane in found:
        [a] = pods(plane)
        assert (a["spec"]["nodeName"], a["status"]["phase"]) == ("n1", "Running")
    assert capsys.readouterr().err == ""


def test_a_scenario_in_the_initial_objects_is_skipped_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "spec": {}}
    (tmp_path / "story.yaml").write_text(yaml.safe_dump_all([node("n1"), raw]))

    plane = plane_of(UpOptions(source=Source((str(tmp_path / "story.yaml"),))))

    assert [stored.key for stored in plane.store.objects("Node")] == ["n1"]
    assert "the Scenario is left out" in capsys.readouterr().err


def test_a_configuration_and_feature_gates_are_the_schedulers(tmp_path: Path) -> None:
    profiles = [{"schedulerName": "ours"}]
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": profiles}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw))
    gates = read_choice(gates="NonPreemptingPriority=false")
    plane = plane_of(UpOptions(nodes=1, config=str(tmp_path / "config.yaml"), release=gates))

    for name, scheduler in (("a", "ours"), ("b", "default-scheduler")):
        plane.answer(Request(verb="create", kind="Pod", body=pod(name, spec={"schedulerName": scheduler})))
    until(plane, lambda: phases(plane)[0] == "Running")

    assert [raw["spec"].get("nodeName", "") for raw in pods(plane)] == ["node-1", ""]
    assert not settings_of(UpOptions(release=gates)).release.enabled(Gate.NON_PREEMPTING_PRIORITY)


def test_served_objects_are_loaded_and_others_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    unknown = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    items = [node("n1"), pod("a", node="n1", namespace="team"), config_map, unknown]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    planes: list[EmbeddedControlPlane] = []

    async def end(serving: Serving) -> int:
        planes.append(serving.plane)
        return 0

    monkeypatch.setattr(Serving, "run", end)
    monkeypatch.setattr(collector, "settle_collector", lambda: None)

    wanted = UpOptions(source=Source((str(tmp_path / "dump.json"),)), write_kubeconfig=str(tmp_path / "config"))
    assert run_module.run(wanted) == 0

    [plane] = planes
    assert [raw["metadata"]["namespace"] for raw in pods(plane)] == ["team"]
    assert plane.store.get("ConfigMap", "default/settings").raw["data"] == {"a": "b"}
    assert "1 of example.com/v1 Widget is left out: the kind is not served" in capsys.readouterr().err


def test_nodes_are_made_after_a_template(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"pool": "big"}}, "status": {"allocatable": {"cpu": "64", "pods": "10"}}}
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(template))
    plane = plane_of(UpOptions(nodes=1, node_template=str(tmp_path / "node.yaml")))

    until(plane, lambda: plane.store.get("Node", "node-1").raw["status"].get("conditions"))

    raw = plane.store.get("Node", "node-1").raw
    assert raw["metadata"]["labels"]["pool"] == "big"
    assert raw["status"]["capacity"] == {"cpu": "64", "pods": "10"}


def test_an_autoscaler_adds_nodes_for_pods_that_fit_nowhere() -> None:
    plane = plane_of(UpOptions(autoscaler=str(AUTOSCALER), priority_cutoff=-5, speed=1000.0))
    plane.answer(Request(verb="create", kind="Pod", body=pod("a")))

    until(plane, lambda: phases(plane) == ["Running"])

    assert pods(plane)[0]["spec"]["nodeName"] == "pool-0"
    autoscaling = settings_of(UpOptions(autoscaler=str(AUTOSCALER), priority_cutoff=-5)).autoscaling
    assert autoscaling is not None
    assert autoscaling[1].priority_cutoff == -5
    plain = settings_of(UpOptions(autoscaler=str(AUTOSCALER))).autoscaling
    assert plain is not None
    assert plain[1].priority_cutoff == -10


def test_a_rescheduler_works_as_its_file_says(tmp_path: Path) -> None:
    written = {**RESCHEDULER, "policies": [{"name": "Consolidate"}], "interval": "7s"}
    (tmp_path / "rescheduler.yaml").write_text(yaml.safe_dump(written))
    wanted = UpOptions(rescheduler=str(tmp_path / "rescheduler.yaml"))

    settings = settings_of(wanted).rescheduling
    assert settings is not None
    assert settings.interval_ns == 7 * 10**9
    assert "rescheduler" in plane_of(wanted).checks()
    assert "rescheduler" not in plane_of(UpOptions()).checks()


def test_an_unknown_policy_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "rescheduler.yaml"
    file.write_text(yaml.safe_dump({**RESCHEDULER, "policies": [{"name": "NoSuch"}]}))

    with pytest.raises(InputError, match=r"rescheduler.yaml.*NoSuch"):
        settings_of(UpOptions(rescheduler=str(file)))


def test_uids_are_others_each_time_unless_a_seed_is_given() -> None:
    def uid(seed: int | None) -> str:
        return plane_of(UpOptions(nodes=1, seed=seed)).store.get("Node", "node-1").uid

    assert uid(None) != uid(None)
    assert uid(7) == uid(7)


def test_time_goes_on_from_where_a_faster_cluster_has_left_it(tmp_path: Path) -> None:
    wanted = UpOptions(nodes=1, data_dir=str(tmp_path / "data"), speed=100_000.0)
    first = plane_of(wanted)
    while first.now() < settings_time() + 3600 * 10**9:
        pass
    first.answer(Request(verb="create", kind="Pod", body=pod("late")))
    late = first.store.get("Pod", "default/late").object.metadata.creation_timestamp
    first.close()

    second = assembled(UpOptions(data_dir=str(tmp_path / "data")), settings_of(wanted))[1]
    second.plane.answer(Request(verb="create", kind="Pod", body=pod("later")))
    later = second.plane.store.get("Pod", "default/later").object.metadata.creation_timestamp
    second.plane.close()

    assert late is not None
    assert later is not None
    assert late <= later


def test_a_data_directory_has_one_user_and_the_second_gets_advice(tmp_path: Path) -> None:
    wanted = UpOptions(data_dir=str(tmp_path / "data"))
    first = plane_of(wanted)

    with pytest.raises(InputError, match="another podium up uses this data directory: end that one") as refused:
        assembled(wanted, settings_of(wanted))
    first.close()

    assert refused.value.source == wanted.data_dir
    plane_of(wanted).close()


@pytest.mark.parametrize("name", ["file", "file/data"])
def test_a_data_directory_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    wanted = UpOptions(data_dir=str(tmp_path / name))

    with pytest.raises(InputError, match="is not a directory, and cannot be created") as refused:
        assembled(wanted, settings_of(wanted))

    assert refused.value.source == wanted.data_dir


def settings_time() -> int:
    return assembled(UpOptions(), settings_of(UpOptions()))[0].now()


@pytest.mark.parametrize(
    ("host", "client_ca", "is_made"), [("127.0.0.1", None, False), ("10.0.0.1", None, True), ("10.0.0.1", "ca", True)]
)
def test_a_listener_that_needs_credentials_gets_a_token(host: str, client_ca: str | None, is_made: bool) -> None:
    place = place_of(UpOptions(host=host, tls_cert="cert", tls_key="key", client_ca=client_ca))

    assert (len(place.token) >= 32) is is_made


def test_clients_of_a_server_with_a_certificate_find_it_in_the_kubeconfig(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(tmp_path / "cert.pem", append=True)

    with up(tmp_path, "--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem") as life:
        cluster = yaml.safe_load(life.kubeconfig.read_text())["clusters"][0]["cluster"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        with urllib.request.urlopen(f"{cluster['server']}/version", timeout=GUARD_SECONDS, context=context) as answer:
            assert json.load(answer)["major"] == "1"
        assert cluster["server"].startswith("https://127.0.0.1:")
