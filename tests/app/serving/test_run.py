"""What the options of `podium up` come to, without a server."""

import json
import ssl
import urllib.request
from pathlib import Path

import pytest
import trustme
import yaml

from podium.api.meta import Raw
from podium.app.console.source import Source
from podium.app.serving.run import Wanted, assembled, place_of, settings_of
from podium.framework.settings.feature_gates import read_feature_gates
from podium.plane.control_plane import ControlPlane
from podium.requests.request import Request
from tests.app.processes import run
from tests.app.serving.lives import SECONDS, up
from tests.store.objects import node, pod

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "elsewhere"}


def plane_of(wanted: Wanted) -> ControlPlane:
    plane = assembled(wanted, settings_of(wanted))[1].plane
    while plane.turn() is not None and plane._live.has_arrived:
        pass
    return plane


def pods(plane: ControlPlane) -> list[Raw]:
    return plane.answer(Request(verb="list", kind="Pod")).objects()


def test_a_snapshot_is_a_beginning_as_a_dump_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = pod("a", node="n1", metadata={"ownerReferences": [OWNER]}, status={"phase": "Running"})
    items = [node("n1"), running]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    run("snapshot", "-f", str(tmp_path / "dump.json"), "-o", str(tmp_path / "cluster.podium"))

    found = [
        plane_of(Wanted(source=Source((str(tmp_path / name),)), seed=0)) for name in ("dump.json", "cluster.podium")
    ]

    for plane in found:
        [a] = pods(plane)
        assert (a["spec"]["nodeName"], a["status"]["phase"]) == ("n1", "Running")
    assert capsys.readouterr().err == ""


def test_a_scenario_is_left_out_and_that_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "spec": {}}
    (tmp_path / "story.yaml").write_text(yaml.safe_dump_all([node("n1"), raw]))

    plane = plane_of(Wanted(source=Source((str(tmp_path / "story.yaml"),))))

    assert [stored.key for stored in plane.store.objects("Node")] == ["n1"]
    assert "the Scenario is left out" in capsys.readouterr().err


def test_a_configuration_and_feature_gates_are_the_schedulers(tmp_path: Path) -> None:
    profiles = [{"schedulerName": "ours"}]
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": profiles}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw))
    gates = read_feature_gates("NonPreemptingPriority=false")
    plane = plane_of(Wanted(nodes=1, config=str(tmp_path / "config.yaml"), feature_gates=gates))

    for name, scheduler in (("a", "ours"), ("b", "default-scheduler")):
        plane.answer(Request(verb="create", kind="Pod", body=pod(name, spec={"schedulerName": scheduler})))
    while plane.turn() is not None and plane._live.has_arrived:
        pass

    assert [raw["spec"].get("nodeName", "") for raw in pods(plane)] == ["node-1", ""]
    assert not settings_of(Wanted(feature_gates=gates)).feature_gates.non_preempting_priority


def test_uids_are_others_each_time_unless_a_seed_is_given() -> None:
    def uid(seed: int | None) -> str:
        return plane_of(Wanted(nodes=1, seed=seed)).store.get("Node", "node-1").uid

    assert uid(None) != uid(None)
    assert uid(7) == uid(7)


def test_time_goes_on_from_where_a_faster_cluster_has_left_it(tmp_path: Path) -> None:
    wanted = Wanted(nodes=1, data_dir=str(tmp_path / "data"), speed=100_000.0)
    first = plane_of(wanted)
    while first.now() < settings_time() + 3600 * 10**9:
        pass
    first.answer(Request(verb="create", kind="Pod", body=pod("late")))
    late = first.store.get("Pod", "default/late").object.metadata.creation_timestamp
    first.close()

    _, second = assembled(Wanted(data_dir=str(tmp_path / "data")), settings_of(wanted))
    second.plane.answer(Request(verb="create", kind="Pod", body=pod("later")))
    later = second.plane.store.get("Pod", "default/later").object.metadata.creation_timestamp
    second.plane.close()

    assert late is not None
    assert later is not None
    assert late <= later


def settings_time() -> int:
    return assembled(Wanted(), settings_of(Wanted()))[0].now()


@pytest.mark.parametrize(
    ("host", "client_ca", "is_made"), [("127.0.0.1", None, False), ("10.0.0.1", None, True), ("10.0.0.1", "ca", False)]
)
def test_whoever_listens_for_others_without_saying_who_may_come_gets_a_token(
    host: str, client_ca: str | None, is_made: bool
) -> None:
    place = place_of(Wanted(host=host, tls_cert="cert", tls_key="key", client_ca=client_ca))

    assert (len(place.token) >= 32) is is_made
    assert place.takes_token(place.token) is is_made
    assert not place.takes_token("")


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
        with urllib.request.urlopen(f"{cluster['server']}/version", timeout=SECONDS, context=context) as answer:
            assert json.load(answer)["major"] == "1"
        assert cluster["server"].startswith("https://127.0.0.1:")
