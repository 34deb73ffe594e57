"""The cluster and the user that kubeconfig files select."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.client.credentials import ClusterAccess, ExecVariable
from podium.client.kubeconfig import Kubeconfig, find_access, in_cluster, kubeconfig_paths

Raw = dict[str, Any]


def config(name: str = "a", *, cluster: Raw | None = None, user: Raw | None = None, **more: Any) -> Raw:
    """Return a kubeconfig with one context of that name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": f"{name}-cluster", "cluster": {"server": f"https://{name}:6443", **(cluster or {})}}],
        "users": [{"name": f"{name}-user", "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": f"{name}-cluster", "user": f"{name}-user"}}],
        **more,
    }


def written(folder: Path, raw: Raw, name: str = "config", mode: int = 0o600) -> str:
    path = folder / name
    path.write_text(json.dumps(raw))
    path.chmod(mode)
    return str(path)


def access(folder: Path, raw: Raw, context: str = "") -> ClusterAccess:
    return Kubeconfig([written(folder, raw)]).access(context)


def test_the_current_context_is_meant_unless_another_is_named(tmp_path: Path) -> None:
    first, second = written(tmp_path, config("a"), "a"), written(tmp_path, config("b"), "b")

    kubeconfig = Kubeconfig([first, second])

    assert kubeconfig.contexts == ["a", "b"]
    assert kubeconfig.access().server == "https://a:6443"
    assert kubeconfig.access("b").server == "https://b:6443"


def test_the_first_kubeconfig_wins_for_duplicate_names(tmp_path: Path) -> None:
    other = config("a", cluster={"server": "https://other:6443"})
    paths = [written(tmp_path, config("a"), "first"), written(tmp_path, other, "second")]

    assert Kubeconfig(paths).access().server == "https://a:6443"


def test_paths_are_relative_to_the_file_they_stand_in(tmp_path: Path) -> None:
    raw = config(
        cluster={"certificate-authority": "ca.pem"}, user={"client-certificate": "/etc/me.pem", "tokenFile": "t"}
    )

    found = access(tmp_path, raw)

    assert found.authority_file == str(tmp_path / "ca.pem")
    assert found.identity.certificate_file == "/etc/me.pem"
    assert found.identity.token_file == str(tmp_path / "t")


def test_kubeconfig_data_becomes_bytes_and_exec_plugins_keep_their_fields(tmp_path: Path) -> None:
    plugin = {"command": "aws", "args": ["token"], "env": [{"name": "A", "value": "b"}], "apiVersion": "v1beta1"}
    raw = config(
        cluster={"certificate-authority-data": base64.b64encode(b"ca").decode(), "proxy-url": "http://proxy:3128"},
        user={"exec": {**plugin, "provideClusterInfo": True}},
    )

    found = access(tmp_path, raw)

    assert (found.authority_data, found.proxy) == (b"ca", "http://proxy:3128")
    exec_plugin = found.identity.exec_plugin
    assert exec_plugin is not None
    assert (exec_plugin.command, exec_plugin.args) == ("aws", ("token",))
    assert exec_plugin.env == (ExecVariable(name="A", value="b"),)
    assert exec_plugin.provide_cluster_info


@pytest.mark.parametrize(
    ("raw", "context", "problem"),
    [
        ([], "", "is not one object"),
        ({"clusters": "none"}, "", '.clusters: "none" is not a list'),
        ({**config(), "current-context": ""}, "", "names no current-context"),
        (config(), "z", 'has no context "z"; there are: a'),
        (config(clusters=[]), "", 'has no cluster "a-cluster"; there are: none'),
        (config(users=[]), "", 'has no user "a-user"'),
        (config(cluster={"server": "ftp://a"}), "", '"ftp://a" is not a URL of an API server'),
        (config(cluster={"certificate-authority-data": "?"}), "", ".certificate-authority-data: is not base64"),
        (config(user={"auth-provider": {"name": "gcp"}}), "", "let an exec plugin give out the credentials"),
        (config(user={"as": "admin"}), "", "impersonation is not supported"),
        (config(user={"exec": {}}), "", "command: is missing"),
    ],
)
def test_kubeconfig_errors_name_the_file_and_the_field(tmp_path: Path, raw: Any, context: str, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        access(tmp_path, raw, context)

    assert problem in str(raised.value)
    assert str(tmp_path / "config") in str(raised.value)


@pytest.mark.parametrize("secret", [{"token": "t0psecret"}, {"password": "t0psecret"}, {"client-key-data": "dDBw"}])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_with_keys_that_others_may_read_is_refused(tmp_path: Path, secret: Raw, mode: int) -> None:
    path = written(tmp_path, config(user=secret), mode=mode)

    with pytest.raises(InputError, match="chmod 600") as raised:
        Kubeconfig([path])

    assert "t0psecret" not in str(raised.value)


def test_a_file_without_keys_may_be_read_by_all(tmp_path: Path) -> None:
    path = written(tmp_path, config(user={"tokenFile": "token"}), mode=0o644)

    assert Kubeconfig([path]).access().server == "https://a:6443"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    found = access(tmp_path, config(user={"token": "t0psecret", "password": "t0psecret"}))

    assert "t0psecret" not in repr(found)
    assert "t0psecret" not in f"{found.identity}"


def test_the_file_that_is_given_comes_before_those_of_the_environment(tmp_path: Path) -> None:
    there = written(tmp_path, config())

    assert kubeconfig_paths("given", {"KUBECONFIG": there}) == (["given"], [])
    assert kubeconfig_paths("", {"KUBECONFIG": f"{there}:/not/there:{there}"}) == ([there], ["/not/there"])
    assert kubeconfig_paths("", {"HOME": str(tmp_path)}) == ([], [])


@pytest.mark.parametrize(
    ("there", "context", "problem"),
    [
        (config("a"), "b", r'has no context "b"; there are: a; KUBECONFIG names /not/there, which does not exist$'),
        ({"contexts": []}, "", r"choose one with --context; KUBECONFIG names /not/there, which does not exist$"),
        (None, "", r"no cluster is known: .*; KUBECONFIG names /not/there, which does not exist$"),
    ],
    ids=["context", "current-context", "no file"],
)
def test_errors_about_what_no_file_has_name_the_files_that_do_not_exist(
    tmp_path: Path, there: Raw | None, context: str, problem: str
) -> None:
    paths = ["/not/there", *([] if there is None else [written(tmp_path, there)])]

    with pytest.raises(InputError, match=problem):
        find_access({"KUBECONFIG": ":".join(paths)}, "", context, tmp_path)


def service_account(folder: Path) -> Path:
    for name, text in (("token", "abc"), ("ca.crt", "PEM"), ("namespace", "shop\n")):
        (folder / name).write_text(text)
    return folder


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_reaches_its_own_cluster_by_its_service_account(tmp_path: Path) -> None:
    found = in_cluster(IN_POD, service_account(tmp_path))

    assert found is not None
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "shop")
    assert found.identity.token_file == str(tmp_path / "token")
    assert in_cluster({}, tmp_path) is None


def test_a_kubeconfig_comes_before_the_service_account_and_one_of_them_there_must_be(tmp_path: Path) -> None:
    folder = service_account(tmp_path)
    path = written(tmp_path, config())

    assert find_access(IN_POD, path, folder=folder).name == "a"
    assert find_access(IN_POD, folder=folder).name == "in-cluster"
    with pytest.raises(InputError, match="no cluster is known"):
        find_access({}, folder=folder)
    with pytest.raises(InputError, match="no cluster is known"):
        find_access(IN_POD, context="a", folder=folder)


@pytest.mark.parametrize(
    ("cluster", "path", "problem"),
    [
        ({"server": "https://me:s3cret@a:6443"}, ".server", "has a name or a password in it"),
        ({"server": "https://s3cret@a"}, ".server", "has a name or a password in it"),
        ({"server": "https://a:99999"}, ".server", "is not a URL"),
        ({"server": "https://[::1"}, ".server", "is not a URL"),
        ({"server": "https://"}, ".server", "is not a URL"),
        ({"proxy-url": "http://me:s3cret@a:99999"}, ".proxy-url", "is not a URL"),
        ({"proxy-url": "socks5://me:s3cret@a"}, ".proxy-url", "is not a URL"),
    ],
)
def test_an_invalid_url_is_reported_without_its_password(tmp_path: Path, cluster: Raw, path: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as raised:
        access(tmp_path, config(cluster=cluster))

    assert path in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_a_proxy_may_ask_for_a_password(tmp_path: Path) -> None:
    assert access(tmp_path, config(cluster={"proxy-url": "http://me:s3cret@a:3128"})).proxy == "http://me:s3cret@a:3128"


def test_an_invalid_in_cluster_address_is_reported(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")

    with pytest.raises(InputError, match="KUBERNETES_SERVICE_PORT"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "tcp"}, tmp_path)
