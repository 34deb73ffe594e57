"""Reading a KubeSchedulerConfiguration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.errors import InputError
from podium.framework.settings.configuration import (
    Configuration,
    ProfileConfiguration,
    default_configuration,
    load_configuration,
    read_configuration,
)

TYPE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def reported(**fields: Any) -> Configuration:
    return read_configuration({**TYPE, **fields}, "scheduler.yaml")


def refusal(**fields: Any) -> str:
    with pytest.raises(InputError) as refused:
        reported(**fields)
    return str(refused.value)


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def test_a_configuration_that_says_nothing_is_kube_schedulers_default() -> None:
    assert reported() == Configuration(
        source="scheduler.yaml",
        parallelism=16,
        pod_initial_backoff_seconds=1,
        pod_max_backoff_seconds=10,
        max_futile_preemptions=0,
        profiles=(ProfileConfiguration(scheduler_name="default-scheduler"),),
    )
    assert default_configuration().profiles == reported().profiles


def test_an_empty_list_of_profiles_means_the_default_profile() -> None:
    assert reported(profiles=[]).profiles == reported().profiles


def test_backoff_is_read_as_seconds() -> None:
    read = reported(podInitialBackoffSeconds=2, podMaxBackoffSeconds=30)
    assert (read.pod_initial_backoff_seconds, read.pod_max_backoff_seconds) == (2, 30)


def test_the_wait_after_futile_preemptions_can_be_switched_on_and_not_turned_round() -> None:
    assert reported(maxFutilePreemptions=3).max_futile_preemptions == 3
    assert refusal(maxFutilePreemptions=-1).startswith("scheduler.yaml, .maxFutilePreemptions: ")


def test_backoff_may_stay_the_same() -> None:
    assert reported(podInitialBackoffSeconds=10).pod_initial_backoff_seconds == 10


def test_a_single_profile_needs_no_name() -> None:
    assert reported(**profile(percentageOfNodesToScore=50)).profiles[0].scheduler_name == "default-scheduler"


def test_each_of_several_profiles_needs_a_name() -> None:
    assert refusal(profiles=[{"schedulerName": "one"}, {}]) == (
        "scheduler.yaml, .profiles[1].schedulerName: is missing; each of several profiles needs a name of its own"
    )


def test_two_profiles_with_one_name_are_refused() -> None:
    assert ".profiles[2].schedulerName" in refusal(
        profiles=[{"schedulerName": "one"}, {"schedulerName": "two"}, {"schedulerName": "one"}]
    )


def test_a_profile_takes_the_global_percentage_unless_it_has_its_own() -> None:
    profiles = [{"schedulerName": "one"}, {"schedulerName": "two", "percentageOfNodesToScore": 0}]
    read = reported(percentageOfNodesToScore=40, profiles=profiles)
    assert [each.percentage_of_nodes_to_score for each in read.profiles] == [40, 0]


def test_without_any_percentage_every_node_is_looked_at() -> None:
    assert reported().profiles[0].percentage_of_nodes_to_score is None


def test_arguments_stay_as_they_were_written() -> None:
    args = {"anything": [{"goes": 1.5}], "kind": "OwnArgs"}
    (config,) = reported(**profile(pluginConfig=[{"name": "Own", "args": args}])).profiles[0].plugin_config
    assert (config.name, config.args) == ("Own", args)


def test_process_settings_do_not_change_scheduling_settings() -> None:
    read = reported(
        leaderElection={"leaderElect": True, "leaseDuration": "15s", "resourceLock": "leases", "resourceName": "x"},
        clientConnection={"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 50, "burst": 100},
        metricsBindAddress="",
        healthzBindAddress="0.0.0.0:10251",
        enableProfiling=False,
        enableContentionProfiling=True,
        delayCacheUntilActive=True,
        extenders=[],
    )
    usual = reported()
    assert (read.leader_election.resource_name, read.client_connection.qps) == ("x", 50)
    assert read == replace(usual, leader_election=read.leader_election, client_connection=read.client_connection)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"parallelism": 0}, ".parallelism"),
        ({"parallelism": 2**31}, ".parallelism"),
        ({"parallelism": "16"}, ".parallelism"),
        ({"parallelism": True}, ".parallelism"),
        ({"parallelism": 1.0}, ".parallelism"),
        ({"parallelism": 10**5_000}, ".parallelism"),
        ({"percentageOfNodesToScore": 101}, ".percentageOfNodesToScore"),
        ({"percentageOfNodesToScore": -1}, ".percentageOfNodesToScore"),
        ({"podInitialBackoffSeconds": 0}, ".podInitialBackoffSeconds"),
        ({"podMaxBackoffSeconds": 2**62}, ".podMaxBackoffSeconds"),
        ({"podInitialBackoffSeconds": 11}, ".podMaxBackoffSeconds"),
        ({"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4}, ".podMaxBackoffSeconds"),
        ({"leaderElection": {"leaderElect": "yes"}}, ".leaderElection.leaderElect"),
        ({"leaderElection": {"leaseDuration": 15}}, ".leaderElection.leaseDuration"),
        ({"clientConnection": {"qps": "fast"}}, ".clientConnection.qps"),
        ({"enableProfiling": "no"}, ".enableProfiling"),
        ({"profiles": {}}, ".profiles"),
        ({"profiles": ["default-scheduler"]}, ".profiles[0]"),
        (profile(percentageOfNodesToScore=101), ".profiles[0].percentageOfNodesToScore"),
        (profile(plugins=[]), ".profiles[0].plugins"),
        (profile(plugins={"filter": {"enabled": "A"}}), ".profiles[0].plugins.filter.enabled"),
        (profile(plugins={"filter": {"enabled": ["A"]}}), ".profiles[0].plugins.filter.enabled[0]"),
        (profile(plugins={"filter": {"enabled": [{}]}}), ".profiles[0].plugins.filter.enabled[0].name"),
        (profile(plugins={"filter": {"enabled": [{"name": ""}]}}), ".profiles[0].plugins.filter.enabled[0].name"),
        (profile(plugins={"filter": {"enabled": [{"name": "*"}]}}), ".profiles[0].plugins.filter.enabled"),
        (profile(pluginConfig=[{"args": {}}]), ".profiles[0].pluginConfig[0].name"),
        (profile(pluginConfig=[{"name": "A", "args": []}]), ".profiles[0].pluginConfig[0].args"),
        (profile(pluginConfig=[{"name": "A"}, {"name": "A"}]), ".profiles[0].pluginConfig[1].name"),
    ],
)
def test_invalid_configuration_is_rejected_at_its_path(fields: dict[str, Any], path: str) -> None:
    assert refusal(**fields).startswith(f"scheduler.yaml, {path}: ")


@pytest.mark.parametrize("weight", [0, -1, 2**31])
def test_a_weight_is_a_positive_number(weight: int) -> None:
    entries = {"score": {"enabled": [{"name": "NodeAffinity", "weight": weight}]}}
    assert ".profiles[0].plugins.score.enabled[0].weight" in refusal(**profile(plugins=entries))


@pytest.mark.parametrize("point", ["filter", "score", "multiPoint"])
def test_a_plugin_enabled_twice_in_one_list_is_refused(point: str) -> None:
    entries = {point: {"enabled": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}}
    assert f'.plugins.{point}.enabled[2].name: "A" is listed twice' in refusal(**profile(plugins=entries))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"percentageOfNodeToScore": 5}, 'there is no field "percentageOfNodeToScore"; did you mean percentageOfNodes'),
        (profile(plugins={"preFitler": {}}), '.profiles[0].plugins: there is no field "preFitler"; did you mean preFi'),
        (profile(plugins={"bind": {"enable": []}}), '.plugins.bind: there is no field "enable"; did you mean enabled?'),
        ({"leaderElection": {"leaderelect": True}}, "did you mean leaderElect"),
    ],
)
def test_an_unknown_field_is_refused_with_the_field_that_may_be_meant(fields: dict[str, Any], says: str) -> None:
    assert says in refusal(**fields)


EXTENDER = {"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter"}


def test_extenders_are_read() -> None:
    full = {
        **EXTENDER,
        "prioritizeVerb": "rate",
        "weight": 5,
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "enableHTTPS": True,
        "tlsConfig": {"insecure": True, "caFile": "ca.crt"},
        "httpTimeout": "10s",
        "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "ignorable": True,
    }
    (first, second) = read_configuration({**TYPE, "extenders": [full, EXTENDER]}, "").extenders

    assert (first.url_prefix, first.weight, first.enable_https, first.ignorable) == (
        EXTENDER["urlPrefix"],
        5,
        True,
        True,
    )
    assert (second.filter_verb, second.http_timeout, second.managed_resources) == ("filter", "5s", ())


def managing(*names: str) -> dict[str, Any]:
    return {**EXTENDER, "managedResources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("extenders", "says"),
    [
        ([{"filterVerb": "filter"}], ".extenders[0].urlPrefix: is missing, and must be given"),
        ([{"urlPrefix": ""}], ".extenders[0].urlPrefix: is empty"),
        ([{**EXTENDER, "filterverb": "x"}], 'there is no field "filterverb"'),
        ([{**EXTENDER, "prioritizeVerb": "rate"}], ".extenders[0].weight: is 0; one that prioritizes needs 1 or more"),
        ([{**EXTENDER, "httpTimeout": "soon"}], ".extenders[0].httpTimeout: "),
        ([{**EXTENDER, "httpTimeout": "-1s"}], ".extenders[0].httpTimeout: "),
        ([managing("gpu")], ".extenders[0].managedResources[0].name: "),
        ([managing("cpu")], ".extenders[0].managedResources[0].name: "),
        ([managing("a.io/x"), managing("a.io/y", "a.io/x")], ".extenders[1].managedResources[1].name: "),
        ([{**EXTENDER, "bindVerb": "bind"}] * 2, ".extenders[1].bindVerb: so has .extenders[0]; only one"),
    ],
)
def test_extenders_that_kube_scheduler_would_refuse_are_refused(extenders: list[Any], says: str) -> None:
    assert says in refusal(extenders=extenders)


def test_resources_that_the_scheduler_leaves_to_extenders_are_no_business_of_its_own() -> None:
    managed = [{"name": "a.io/x", "ignoredByScheduler": True}, {"name": "a.io/y"}]
    written = {"extenders": [{**EXTENDER, "managedResources": managed}]}
    own = {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.io/z"]}}]}

    for fields in (written, {**written, "profiles": [own]}):
        (profile,) = read_configuration({**TYPE, **fields}, "").profiles
        assert [config.args for config in profile.plugin_config] == [{"ignoredResources": ["a.io/x"]}]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({**TYPE, "kind": "Pod"}, '.kind: is "Pod"; KubeSchedulerConfiguration is needed'),
        ({**TYPE, "apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, '.apiVersion: is "kubescheduler.config.k8s.i'),
        ({"kind": "KubeSchedulerConfiguration"}, ".apiVersion: is missing"),
        ({}, ".kind: is missing; KubeSchedulerConfiguration is needed"),
        ({**TYPE, "kind": ["KubeSchedulerConfiguration"]}, ".kind: is a list"),
        ([], "must be an object of kind KubeSchedulerConfiguration, not a list"),
    ],
)
def test_another_kind_of_document_is_called_by_its_kind(raw: Any, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_configuration(raw, "")
    assert str(refused.value).startswith(says)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "parallelism",
    "profiles",
    "plugins",
    "pluginConfig",
    "score",
    "enabled",
    "name",
    "weight",
    "args",
    "extenders",
]
near_misses = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(), near_misses, max_size=4))
def test_every_configuration_document_is_read_or_rejected(fields: dict[str, Any]) -> None:
    try:
        outcome = str(read_configuration({**fields, **TYPE}, "scheduler.yaml").profiles[0].scheduler_name)
    except InputError as error:
        outcome = str(error)
    assert outcome


FILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism:
profiles:
- schedulerName: packing
  plugins:
    multiPoint:
      disabled: [{name: ImageLocality}]
      enabled:
"""


def test_a_file_may_leave_values_empty(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(FILE)
    read = load_configuration(str(file))
    assert (read.source, read.parallelism, read.profiles[0].scheduler_name) == (str(file), 16, "packing")


def test_a_file_with_more_than_the_configuration_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{FILE}---{FILE}")
    with pytest.raises(InputError, match="holds 2 objects; one KubeSchedulerConfiguration is needed"):
        load_configuration(str(file))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("# nothing but a comment\n", "holds 0 objects"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "holds 0 objects"),
        ("- a\n- b\n", "an object with apiVersion and kind is expected"),
        ("parallelism: 1\nparallelism: 2\n", "given twice"),
        ("a: &x [*x]\n", "alias"),
        ("a: !!python/object/apply:os.system [ls]\n", "tag"),
        ("[" * 100_000, "nested too deep"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web}]}\n", '"Pod"'),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        load_configuration(str(file))
    assert says in str(refused.value)
    assert str(file)[:100] in str(refused.value)
