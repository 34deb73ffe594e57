"""`podium up` as a process: it starts, answers, keeps its objects, and ends."""

import json
import os
import signal
import socket
import stat
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from podium.app.console.command import podium
from tests.app.processes import START, run
from tests.app.serving.lives import up
from tests.store.objects import Raw, pod

PODS = "/api/v1/namespaces/default/pods"
READ = "import json, os, sys, urllib.request as r; c = open(os.environ['KUBECONFIG']).read(); "
READ += (
    "s = c.split('server: ')[1].split()[0]; print(len(json.load(r.urlopen(s + '/api/v1/nodes'))['items'])); sys.exit(7)"
)


def test_a_server_comes_up_with_a_page_runs_pods_and_ends(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "2", "--port", "0") as life:
        assert life.log[0] == f"Kubernetes v1.36.2, simulated by Podium, with 2 nodes: {life.server}\n"
        assert life.kubeconfig == tmp_path / "podium.kubeconfig"
        assert stat.S_IMODE(life.kubeconfig.stat().st_mode) == 0o600
        assert f"  in a browser: {life.server}/ui/\n" in life.log
        with urllib.request.urlopen(f"{life.server}/ui/") as answer:
            assert answer.headers["Content-Type"].startswith("text/html")

        code, created = life.ask("POST", PODS, pod("a"))
        assert (code, created["metadata"]["name"]) == (201, "a")
        running = life.wait_for(PODS, lambda raw: raw["status"].get("phase") == "Running")
        assert running["spec"]["nodeName"] in {"node-1", "node-2"}

        assert life.ask("DELETE", f"{PODS}/b")[0] == 404
        assert life.end() == 0


def test_a_disabled_page_is_not_served(tmp_path: Path) -> None:
    with up(tmp_path, "--port", "0", "--no-page") as life:
        assert not [line for line in life.log if "/ui/" in line]
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"{life.server}/ui/")
        refused.value.close()


def test_a_signal_ends_the_server_despite_open_watches(tmp_path: Path) -> None:
    with up(tmp_path, "--port", "0") as life, urllib.request.urlopen(f"{life.server}{PODS}?watch=true"):
        assert life.end(signal.SIGINT) == 0


def test_written_state_and_tokens_survive_a_restart(tmp_path: Path) -> None:
    group, token = "authentication.k8s.io", "/api/v1/namespaces/default/serviceaccounts/default/token"
    request: Raw = {"apiVersion": f"{group}/v1", "kind": "TokenRequest", "spec": {}}
    with up(tmp_path, "--port", "0", "--data-dir", "data", "--nodes", "1") as life:
        _, made = life.ask("POST", token, request)
        life.ask("POST", PODS, pod("a"))
        before = life.wait_for(PODS, lambda raw: raw["status"].get("phase") == "Running")
        assert life.end() == 0
    review = {"apiVersion": f"{group}/v1", "kind": "TokenReview", "spec": {"token": made["status"]["token"]}}

    with up(tmp_path, "--port", "0", "--data-dir", "data") as life:
        assert life.kubeconfig == tmp_path / "data" / "podium.kubeconfig"
        [after] = life.items(PODS)
        assert after == before
        assert [raw["metadata"]["name"] for raw in life.items("/api/v1/nodes")] == ["node-1"]
        assert life.ask("POST", PODS, pod("b"))[0] == 201
        _, found = life.ask("POST", f"/apis/{group}/v1/tokenreviews", review)
        assert found["status"]["user"]["username"] == "system:serviceaccount:default:default"
    with up(tmp_path, "--port", "0", "--data-dir", "other") as life:
        _, found = life.ask("POST", f"/apis/{group}/v1/tokenreviews", review)
        assert "authenticated" not in found["status"]


def test_acknowledged_writes_survive_a_kill(tmp_path: Path) -> None:
    with up(tmp_path, "--port", "0", "--data-dir", "data", "--nodes", "1") as life:
        names = [f"a{number}" for number in range(20)]
        written = [life.ask("POST", PODS, pod(name, cpu="10m"))[1]["metadata"]["uid"] for name in names]
        life.process.kill()
        life.process.wait()
    with up(tmp_path, "--port", "0", "--data-dir", "data") as life:
        assert [raw["metadata"]["uid"] for raw in life.items(PODS)] == [
            uid for _, uid in sorted(zip(names, written, strict=True))
        ]
        life.wait_for(PODS, lambda raw: raw["metadata"]["name"] == "a19" and raw["status"]["phase"] == "Running")


def test_two_do_not_share_a_data_directory(tmp_path: Path) -> None:
    with up(tmp_path, "--port", "0", "--data-dir", "data"):
        second = CliRunner().invoke(podium, ["up", "--port", "0", "--data-dir", str(tmp_path / "data")])

    assert second.exit_code == 1
    assert second.stderr.startswith(f"podium: error: {tmp_path}/data: another podium up uses this data directory")
    assert "Traceback" not in second.stderr


def test_a_command_has_the_cluster_as_its_own_and_its_exit_code_is_passed_on(tmp_path: Path) -> None:
    ended = run("up", "--port", "0", "--nodes", "4", "--", "python3", "-c", READ, TMPDIR=str(tmp_path))

    assert (ended.returncode, ended.stdout) == (7, "4\n")
    assert ended.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_a_signal_ends_answers_as_in_a_shell() -> None:
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

    assert run("up", "--port", "0", "--", "python3", "-c", killed).returncode == 128 + 9


def test_a_missing_program_is_reported() -> None:
    ended = run("up", "--port", "0", "--", "no-such-command")

    assert ended.returncode == 127
    assert ended.stderr == "podium: error: no-such-command: No such file or directory\n"


def test_only_the_token_grants_access(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-some-length\n")
    (tmp_path / "token").chmod(0o600)
    with up(tmp_path, "--port", "0", "--token-file", "token") as life:
        assert life.ask("GET", PODS)[0] == 401
        user = yaml.safe_load(life.kubeconfig.read_text())["users"][0]["user"]

        assert user == {"token": "a-token-of-some-length"}
        assert "a-token" not in "".join(life.log)


def test_the_audit_log_appends_only_mutations_and_is_private(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    for name in ("a", "b"):
        with up(tmp_path, "--port", "0", "--audit-log-path", "audit.jsonl") as life:
            life.ask("GET", PODS)
            assert life.ask("POST", PODS, pod(name))[0] == 201

    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(event["verb"], event["objectRef"]["resource"]) for event in events] == [("create", "pods")] * 2
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_audit_annotations_of_policies_are_in_the_audit_log(tmp_path: Path) -> None:
    group, head = "admissionregistration.k8s.io", {"metadata": {"name": "p"}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    annotation = {"key": "user", "valueExpression": "request.userInfo.username"}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "auditAnnotations": [annotation]}
    with up(tmp_path, "--port", "0", "--audit-log-path", "audit.jsonl") as life:
        for plural, kind, spec in (
            ("policies", "Policy", policy),
            ("policybindings", "PolicyBinding", {"policyName": "p", "validationActions": ["Audit"]}),
        ):
            raw = {**head, "apiVersion": f"{group}/v1", "kind": f"ValidatingAdmission{kind}", "spec": spec}
            assert life.ask("POST", f"/apis/{group}/v1/validatingadmission{plural}", raw)[0] == 201
        assert life.ask("POST", PODS, pod("a"))[0] == 201

    last = json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[-1])
    assert last["annotations"] == {"p/user": last["user"]["username"]}


def test_an_occupied_default_port_is_not_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        # Other programs may have the real default port, and leave it at any time.
        code = f"from podium.app.serving import serving; serving.DEFAULT_PORT = {port}; {START}"
        with up(tmp_path, code=code) as life:
            assert not life.server.endswith(f":{port}")
            assert life.ask("GET", PODS)[0] == 200


WRONG = [
    (["--bind", "0.0.0.0"], "without TLS"),
    (["--tls-cert", "cert.pem"], "a certificate needs its key"),
    (["--client-ca", "ca.pem"], "need TLS"),
    (["--token-file", "token"], "token: others than its owner can read or write it"),
    (["--audit-log-path", "."], ".: the audit log cannot be written"),
    (["--write-kubeconfig", "theirs"], "theirs: is not a kubeconfig of `podium up`"),
    (["--node-template", "pod.yaml"], 'pod.yaml, .kind: "Pod" is not Node'),
    (["--autoscaler", "pod.yaml"], 'pod.yaml, .apiVersion: "v1" is not podium.dev/v1alpha1'),
    (["--priority-cutoff", "5"], "needs an autoscaler"),
    (["-f", "missing.yaml"], "missing.yaml"),
    (["--config", "pod.yaml"], "pod.yaml"),
]


@pytest.mark.parametrize(("args", "problem"), WRONG, ids=[" ".join(args) for args, _ in WRONG])
def test_invalid_settings_prevent_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(yaml.safe_dump(pod("a")))
    Path("token").write_text("a-token-of-some-length")
    os.chmod("token", 0o644)
    Path("theirs").write_text("apiVersion: v1\nkind: Config\n")

    ended = CliRunner().invoke(podium, ["up", "--port", "0", *args], prog_name="podium")

    assert ended.exit_code == 1
    assert ended.stderr.startswith("podium: error: ")
    assert problem in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert Path("theirs").read_text() == "apiVersion: v1\nkind: Config\n"
