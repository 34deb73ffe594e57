"""Server-side apply: the owners of fields, and the effect of each apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.apirequests.request import Request, Response
from tests.apirequests.asking import API, NOW
from tests.store.objects import SECOND, Raw, pod
from tests.store.test_definitions import definition, version

KEY = "default/web"
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def config(data: Raw | None = None, **metadata: Any) -> Raw:
    raw: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", **metadata}}
    return raw if data is None else {**raw, "data": data}


def deployment(*containers: Raw, **spec: Any) -> Raw:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def container(name: str = "main", **fields: Any) -> Raw:
    return {"name": name, "image": "app:1", **fields}


def apply(api: API, body: Raw, manager: str = "one", **more: Any) -> Response:
    kind = body["kind"] if "." not in body["apiVersion"] or body["apiVersion"].endswith("k8s.io/v1") else ""
    return api.ask(
        "patch",
        more.pop("kind", kind),
        KEY,
        body=body,
        patch_type="apply",
        field_manager=manager,
        **more,
    )


def applied(api: API, body: Raw, manager: str = "one", **more: Any) -> Raw:
    response = apply(api, body, manager, **more)
    assert response.code in (200, 201), response.to_dict()
    return response.to_dict()


def entries(raw: Raw) -> dict[tuple[str, str, str], Raw]:
    listed = raw["metadata"].get("managedFields", [])
    return {(one["manager"], one["operation"], one.get("subresource", "")): one["fieldsV1"] for one in listed}


class TestApplying:
    def test_apply_creates_a_missing_object(self) -> None:
        api = API()

        response = apply(api, config({"a": "1"}, labels={"app": "x"}))

        assert response.code == 201
        raw = response.to_dict()
        assert raw["data"] == {"a": "1"}
        assert raw["metadata"]["managedFields"] == [
            {
                "manager": "one",
                "operation": "Apply",
                "apiVersion": "v1",
                "time": "1970-01-01T00:01:40Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:app": {}}}},
            }
        ]

    def test_applying_the_same_object_again_changes_nothing(self) -> None:
        api = API()
        before = applied(api, config({"a": "1"}))

        again = api.ask(
            "patch", "ConfigMap", KEY, body=config({"a": "1"}), patch_type="apply", field_manager="one"
        ).to_dict()

        assert again == before

    def test_fields_no_longer_applied_are_removed(self) -> None:
        api = API()
        applied(api, config({"a": "1", "b": "2"}, labels={"x": "y"}))

        raw = applied(api, config({"a": "1"}))

        assert raw["data"] == {"a": "1"}
        assert "labels" not in raw["metadata"]

    def test_a_field_applied_by_two_managers_stays_until_both_release_it(self) -> None:
        api = API()
        applied(api, config({"a": "1", "b": "2"}))
        applied(api, config({"b": "2"}), "two")

        one_left = applied(api, config({"a": "1"}))
        none_left = applied(api, config(), "two")

        assert one_left["data"] == {"a": "1", "b": "2"}
        assert none_left["data"] == {"a": "1"}
        assert ("two", "Apply", "") not in entries(none_left)

    def test_a_field_changed_by_another_manager_is_a_conflict_unless_forced(self) -> None:
        api = API()
        applied(api, config({"a": "1", "b": "2"}))

        refused = apply(api, config({"a": "9"}), "two")
        forced = applied(api, config({"a": "9"}), "two", force=True)

        assert refused.code == 409
        status = refused.to_dict()
        assert status["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
        assert status["details"]["causes"] == [
            {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
        ]
        assert forced["data"] == {"a": "9", "b": "2"}
        assert entries(forced) == {
            ("one", "Apply", ""): {"f:data": {"f:b": {}}},
            ("two", "Apply", ""): {"f:data": {"f:a": {}}},
        }

    def test_several_conflicts_are_grouped_by_manager(self) -> None:
        api = API()
        applied(api, config({"a": "1", "b": "2"}))
        api.ask("patch", "ConfigMap", KEY, body={"data": {"c": "3"}}, field_manager="three")

        status = apply(api, config({"a": "9", "b": "9", "c": "9"}), "two").to_dict()

        assert status["message"] == (
            "Apply failed with 3 conflicts: "
            'conflicts with "one":\n- .data.a\n- .data.b\nconflicts with "three" using v1:\n- .data.c'
        )

    def test_the_same_value_is_owned_together(self) -> None:
        api = API()
        applied(api, config({"a": "1"}))

        raw = applied(api, config({"a": "1"}), "two")

        assert set(entries(raw)) == {("one", "Apply", ""), ("two", "Apply", "")}

    def test_unmanaged_fields_conflict_as_before_first_apply(self) -> None:
        api = API(config({"a": "1", "b": "2"}, namespace="default"))

        refused = apply(api, config({"a": "9"}))
        forced = applied(api, config({"a": "9"}), force=True)

        assert refused.to_dict()["message"].endswith('conflict with "before-first-apply" using v1: .data.a')
        assert entries(forced)["before-first-apply", "Update", ""] == {"f:data": {".": {}, "f:b": {}}}

    def test_a_dry_run_leaves_no_trace(self) -> None:
        api = API()

        response = apply(api, config({"a": "1"}), dry_run=True)

        assert (response.code, api.store.find("ConfigMap", KEY)) == (201, None)

    @pytest.mark.parametrize(
        ("body", "more", "code"),
        [
            (config(managedFields=[{}]), {}, 400),
            (config(resourceVersion="99"), {}, 409),
            (config(uid="other"), {}, 409),
            ({**config(), "metadata": {"name": "other"}}, {}, 400),
            ({**config(), "kind": "Secret"}, {"kind": "ConfigMap"}, 400),
            ({**config(), "metadata": 7}, {}, 400),
            ({**config(), "data": {"a": 7}}, {"field_validation": "Warn"}, 400),
            ({**config(), "datta": {}}, {"field_validation": "Strict"}, 500),
            (config(), {"manager": ""}, 400),
            (config(), {"subresource": "status"}, 404),
        ],
    )
    def test_objects_that_cannot_be_applied_are_rejected(self, body: Raw, more: Raw, code: int) -> None:
        api = API()
        applied(api, config({"a": "1"}))

        assert apply(api, body, **more).code == code


class TestLists:
    def test_list_items_are_identified_by_their_keys(self) -> None:
        api = API()
        applied(api, deployment(container("a"), container("b", env=[{"name": "X", "value": "1"}])))

        raw = applied(api, deployment(container("b", env=[{"name": "Y", "value": "2"}])), "two", force=True)

        containers = raw["spec"]["template"]["spec"]["containers"]
        assert [found["name"] for found in containers] == ["a", "b"]
        assert [found["name"] for found in containers[1]["env"]] == ["X", "Y"]

    def test_an_applied_list_item_is_removed_by_its_applier(self) -> None:
        api = API()
        applied(api, deployment(container("a"), container("b")))

        raw = applied(api, deployment(container("b")))

        assert [found["name"] for found in raw["spec"]["template"]["spec"]["containers"]] == ["b"]

    def test_a_list_that_is_one_thing_is_replaced(self) -> None:
        api = API()
        applied(api, deployment(container(command=["a", "b"])))

        raw = applied(api, deployment(container(command=["c"])))

        assert raw["spec"]["template"]["spec"]["containers"][0]["command"] == ["c"]

    def test_ports_are_identified_by_number_and_protocol(self) -> None:
        api = API()
        applied(api, deployment(container(ports=[{"containerPort": 53}])))

        raw = applied(api, deployment(container(ports=[{"containerPort": 53, "protocol": "UDP"}])), "two")

        assert len(raw["spec"]["template"]["spec"]["containers"][0]["ports"]) == 2

    def test_an_item_without_its_key_is_refused(self) -> None:
        nameless = {"image": "app"}

        response = apply(API(), deployment(nameless))

        assert response.code == 400
        assert "omits key field name" in response.to_dict()["message"]

    def test_finalizers_are_a_set(self) -> None:
        api = API()
        applied(api, config(finalizers=["x/a"]))
        applied(api, config(finalizers=["x/b"]), "two")

        raw = applied(api, config())

        assert raw["metadata"]["finalizers"] == ["x/b"]
        assert entries(raw)["two", "Apply", ""] == {"f:metadata": {"f:finalizers": {'v:"x/b"': {}}}}

    def test_applied_items_come_in_their_order(self) -> None:
        api = API()
        applied(api, deployment(container("a"), container("b"), container("c")))

        raw = applied(api, deployment(container("c"), container("x"), container("a")), "two")

        names = [found["name"] for found in raw["spec"]["template"]["spec"]["containers"]]
        assert names == ["b", "c", "x", "a"]


class TestUpdating:
    def test_created_and_updated_fields_belong_to_their_writer(self) -> None:
        api = API()
        api.ask("create", "ConfigMap", namespace="default", body=config({"a": "1", "b": "2"}), field_manager="maker")

        raw = api.ask("patch", "ConfigMap", KEY, body={"data": {"b": "3"}}, field_manager="changer").to_dict()

        assert entries(raw) == {
            ("maker", "Update", ""): {"f:data": {".": {}, "f:a": {}}},
            ("changer", "Update", ""): {"f:data": {"f:b": {}}},
        }

    def test_objects_that_an_update_adds_are_fields_unless_go_writes_them_unset(self) -> None:
        probe = {"httpGet": {"path": "/", "port": 80}}
        body = deployment(container(livenessProbe=probe, resources={"limits": {"cpu": "1"}}))

        raw = API().ask("create", "Deployment", namespace="default", body=body, field_manager="maker").to_dict()

        spec = entries(raw)["maker", "Update", ""]["f:spec"]
        assert "." not in spec
        assert spec["f:strategy"] == {
            "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
            "f:type": {},
        }
        template = spec["f:template"]
        assert template["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
        assert template["f:spec"]["f:containers"].keys() == {'k:{"name":"main"}'}
        [owned] = template["f:spec"]["f:containers"].values()
        assert owned["f:resources"] == {".": {}, "f:limits": {".": {}, "f:cpu": {}}}
        assert owned["f:livenessProbe"]["."] == owned["f:livenessProbe"]["f:httpGet"]["."] == {}

    def test_the_template_of_a_replication_controller_is_a_field_as_go_may_omit_it(self) -> None:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()]}}
        body: Raw = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}}
        body["spec"] = {"replicas": 1, "template": template}

        made = API().ask("create", "ReplicationController", namespace="default", body=body, field_manager="one")

        assert "." in entries(made.to_dict())["one", "Update", ""]["f:spec"]["f:template"]

    def test_lists_that_go_omits_are_fields_of_the_manager_that_adds_them(self) -> None:
        api = API()
        api.ask("create", namespace="default", body=pod("web"))
        condition = {"type": "Ready", "status": "True"}

        raw = api.ask(
            "patch", "Pod", KEY, subresource="status", body={"status": {"conditions": [condition]}}, field_manager="one"
        ).to_dict()

        owned = entries(raw)["one", "Update", "status"]["f:status"]
        assert "." in owned["f:conditions"]
        assert "." not in owned

    def test_what_admission_adds_to_a_pod_has_no_owner(self) -> None:
        limits: Raw = {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]}
        api = API({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": limits})
        body = {**pod("web"), "metadata": {"name": "web"}, "spec": {"containers": [container()]}}

        raw = api.ask("create", namespace="default", body=body, field_manager="maker").to_dict()

        spec, owned = raw["spec"], entries(raw)["maker", "Update", ""]
        for field in ("priority", "serviceAccountName", "tolerations", "volumes"):
            assert spec[field] is not None
        assert spec["containers"][0]["volumeMounts"]
        assert spec["containers"][0]["resources"]["limits"] == {"cpu": "1"}
        assert raw["metadata"]["annotations"]
        names = ("image", "imagePullPolicy", "name", "resources", "terminationMessagePath", "terminationMessagePolicy")
        of_container: Raw = {".": {}, **{f"f:{name}": {} for name in names}}
        assert owned == {
            "f:spec": {
                "f:containers": {'k:{"name":"main"}': of_container},
                "f:dnsPolicy": {},
                "f:enableServiceLinks": {},
                "f:restartPolicy": {},
                "f:schedulerName": {},
                "f:securityContext": {},
                "f:terminationGracePeriodSeconds": {},
            }
        }

    def test_the_creator_owns_what_it_states_even_if_admission_would_add_it(self) -> None:
        api = API()
        spec = {"containers": [container()], "serviceAccountName": "default", "priority": 0}
        body = {**pod("web"), "metadata": {"name": "web"}, "spec": spec}

        raw = api.ask("create", namespace="default", body=body, field_manager="maker").to_dict()

        owned = entries(raw)["maker", "Update", ""]["f:spec"]
        assert {"f:serviceAccount", "f:serviceAccountName", "f:priority"} <= owned.keys()
        assert "f:volumes" not in owned

    def test_addresses_and_node_ports_that_a_service_gets_have_no_owner(self) -> None:
        api = API()
        spec: Raw = {"type": "NodePort", "ports": [{"port": 80}], "selector": {"app": "web"}}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}

        raw = api.ask("create", "Service", namespace="default", body=body, field_manager="maker").to_dict()

        assert raw["spec"]["clusterIP"]
        assert raw["spec"]["ports"][0]["nodePort"]
        of_port: Raw = {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}
        assert entries(raw)["maker", "Update", ""] == {
            "f:spec": {
                "f:externalTrafficPolicy": {},
                "f:internalTrafficPolicy": {},
                "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': of_port},
                "f:selector": {},
                "f:sessionAffinity": {},
                "f:type": {},
            }
        }

    def test_the_protection_of_a_claim_has_no_owner(self) -> None:
        api = API()
        spec: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "web"}, "spec": spec}

        raw = api.ask("create", "PersistentVolumeClaim", namespace="default", body=body, field_manager="a").to_dict()

        assert raw["metadata"]["finalizers"]
        assert entries(raw)["a", "Update", ""].keys() == {"f:spec"}

    def test_kubectl_takes_over_a_pod_that_it_applied_on_its_own_side(self) -> None:
        api = API()
        body = {**pod("web"), "metadata": {"name": "web", "labels": {"a": "1"}}, "spec": {"containers": [container()]}}
        made = api.ask("create", namespace="default", body=body, field_manager="kubectl").to_dict()
        # kubectl turns its own account into that of an applier.
        account = [{**one, "operation": "Apply"} for one in made["metadata"]["managedFields"]]
        patch = {"metadata": {"managedFields": account}}
        assert api.ask("patch", key=KEY, body=patch, patch_type="merge", field_manager="kubectl").code == 200

        raw = applied(api, {**body, "metadata": {"name": "web", "labels": {"a": "2"}}}, "kubectl")

        assert raw["metadata"]["labels"] == {"a": "2"}
        assert raw["spec"]["containers"][0]["volumeMounts"]

    def test_without_a_manager_no_managed_fields_are_recorded(self) -> None:
        api = API()

        raw = api.ask("create", "ConfigMap", namespace="default", body=config({"a": "1"})).to_dict()

        assert "managedFields" not in raw["metadata"]

    def test_a_write_that_changes_nothing_changes_no_account(self) -> None:
        api = API()
        before = api.ask("create", "ConfigMap", namespace="default", body=config({"a": "1"}), field_manager="x")

        after = api.ask("update", "ConfigMap", KEY, body=config({"a": "1"}), field_manager="y")

        assert after.to_dict() == before.to_dict()

    def test_an_update_takes_fields_from_appliers(self) -> None:
        api = API()
        applied(api, config({"a": "1", "b": "2"}))

        raw = api.ask("patch", "ConfigMap", KEY, body={"data": {"a": "9"}}, field_manager="editor").to_dict()

        assert entries(raw) == {
            ("one", "Apply", ""): {"f:data": {"f:b": {}}},
            ("editor", "Update", ""): {"f:data": {"f:a": {}}},
        }

    def test_a_status_and_a_scale_are_written_by_themselves(self) -> None:
        api = API()
        api.ask("create", "Deployment", namespace="default", body=deployment(container()), field_manager="maker")
        api.ask(
            "patch",
            "Deployment",
            KEY,
            subresource="status",
            body={"status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}},
            field_manager="controller",
        )

        raw = api.ask(
            "patch", "Deployment", KEY, subresource="scale", body={"spec": {"replicas": 3}}, field_manager="scaler"
        )
        assert raw.code == 200

        found = entries(api.raw("Deployment", KEY))
        assert found["controller", "Update", "status"] == {
            "f:status": {
                "f:replicas": {},
                "f:conditions": {
                    ".": {},
                    'k:{"type":"Available"}': {".": {}, "f:type": {}, "f:status": {}},
                },
            }
        }
        assert found["scaler", "Update", "scale"] == {"f:spec": {"f:replicas": {}}}
        assert "f:status" not in found["maker", "Update", ""]
        assert "f:replicas" not in found["maker", "Update", ""]["f:spec"]

    def test_a_status_can_be_applied_and_owns_nothing_else(self) -> None:
        api = API()
        applied(api, deployment(container()))
        body = {**deployment(container("other")), "status": {"replicas": 2}}

        raw = applied(api, body, "reporter", subresource="status")

        assert raw["status"] == {"replicas": 2}
        assert raw["spec"]["template"]["spec"]["containers"][0]["name"] == "main"
        assert entries(raw)["reporter", "Apply", "status"] == {"f:status": {"f:replicas": {}}}

    def test_managed_fields_can_be_set_and_reset_by_writers(self) -> None:
        api = API()
        raw = api.ask(
            "create",
            "ConfigMap",
            namespace="default",
            body=config({"a": "1"}),
            field_manager="kubectl-client-side-apply",
        ).to_dict()
        (entry,) = raw["metadata"]["managedFields"]
        taken = {**entry, "manager": "kubectl", "operation": "Apply"}
        change = [{"op": "replace", "path": "/metadata/managedFields", "value": [taken]}]

        upgraded = api.ask("patch", "ConfigMap", KEY, body=change, patch_type="json", field_manager="kubectl").to_dict()
        changed = applied(api, config({"a": "2"}), "kubectl")
        reset = api.ask(
            "patch", "ConfigMap", KEY, body={"metadata": {"managedFields": [{}]}}, field_manager="x"
        ).to_dict()

        assert entries(upgraded) == {("kubectl", "Apply", ""): entry["fieldsV1"]}
        assert changed["data"] == {"a": "2"}
        assert "managedFields" not in reset["metadata"]

    @pytest.mark.parametrize(
        "given",
        [[{"manager": "x"}], "text", [{"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"z": {}}}]],
    )
    def test_an_account_that_cannot_be_read_is_not_taken(self, given: Any) -> None:
        api = API()
        before = applied(api, config({"a": "1"}))
        body = {**before, "metadata": {**before["metadata"], "managedFields": given}, "data": {"a": "1", "b": "2"}}

        raw = api.ask("update", "ConfigMap", KEY, body=body, field_manager="x").to_dict()

        assert entries(raw)["one", "Apply", ""] == {"f:data": {"f:a": {}}}

    def test_kubectl_takes_over_what_it_applied_on_its_own_side(self) -> None:
        api = API()
        annotations = {LAST: '{"data":{"a":"1"}}'}
        body = config({"a": "1"}, annotations=annotations)
        api.ask("create", "ConfigMap", namespace="default", body=body, field_manager="kubectl-client-side-apply")

        assert apply(api, config({"a": "2"}), "other").code == 409
        assert applied(api, config({"a": "2"}), "kubectl")["data"] == {"a": "2"}

    def test_kubectl_takes_over_the_labels_that_it_applied_on_its_own_side(self) -> None:
        api = API()
        last = '{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"labels":{"b":"2"},"name":"a"}}'
        body = config({"a": "1"}, annotations={LAST: last}, labels={"b": "2"})
        api.ask("create", "ConfigMap", namespace="default", body=body, field_manager="kubectl-client-side-apply")

        assert apply(api, config({"a": "1"}, labels={"b": "3"}), "other").code == 409
        assert applied(api, config({"a": "1"}, labels={"b": "3"}), "kubectl")["metadata"]["labels"] == {"b": "3"}

    def test_kubectl_takes_no_label_that_was_changed_since(self) -> None:
        api = API()
        last = '{"data":{},"metadata":{"labels":{"b":"1"}}}'
        body = config({}, annotations={LAST: last}, labels={"b": "2"})
        api.ask("create", "ConfigMap", namespace="default", body=body, field_manager="kubectl-client-side-apply")

        assert apply(api, config({}, labels={"b": "3"}), "kubectl").code == 409

    @pytest.mark.parametrize(("manager", "is_refreshed"), [("kubectl", True), ("other", False)])
    def test_an_apply_by_kubectl_refreshes_the_annotation_of_client_side_apply(
        self, manager: str, is_refreshed: bool
    ) -> None:
        api = API()
        body = config({"a": "1"}, annotations={LAST: '{"data":{"a":"1"}}'})
        api.ask("create", "ConfigMap", namespace="default", body=body, field_manager="kubectl-client-side-apply")

        raw = applied(api, config({"b": "2"}), manager)

        refreshed = json.loads(raw["metadata"]["annotations"][LAST])
        assert refreshed["data"] == ({"b": "2"} if is_refreshed else {"a": "1"})

    def test_an_apply_by_kubectl_adds_no_annotation(self) -> None:
        api = API()
        applied(api, config({"a": "1"}), "kubectl")

        assert "annotations" not in applied(api, config({"a": "2"}), "kubectl")["metadata"]

    def test_the_keys_of_owned_fields_are_sorted(self) -> None:
        api = API()

        raw = applied(api, config({"b": "1", "a": "2"}, labels={"d": "1", "c": "2"}))

        fields = raw["metadata"]["managedFields"][0]["fieldsV1"]
        assert [list(fields), list(fields["f:data"])] == [["f:data", "f:metadata"], ["f:a", "f:b"]]

    def test_only_the_last_update_managers_are_kept_apart(self) -> None:
        api = API()
        applied(api, config({"a": "1"}))
        for number in range(15):
            patch = {"data": {f"k{number}": "x"}}
            request = Request(verb="patch", kind="ConfigMap", key=KEY, body=patch, field_manager=f"m{number:02}")
            api.answer(request, NOW + number * SECOND)

        found = entries(api.raw("ConfigMap", KEY))

        assert len(found) == 11
        assert len(found["ancient-changes", "Update", ""]["f:data"]) == 6


class TestCustomKinds:
    def test_lists_are_what_the_schema_says(self) -> None:
        api = API(definition())
        kind = "Widget.example.com"

        def widget(*parts: Raw, **spec: Any) -> Raw:
            return {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": "web"},
                "spec": {"size": 1, "parts": list(parts), **spec},
            }

        applied(api, widget({"name": "a"}, tags=["x"]), kind=kind)
        raw = applied(api, widget({"name": "b"}, tags=["y"]), "two", kind=kind)

        assert [part["name"] for part in raw["spec"]["parts"]] == ["a", "b"]
        assert raw["spec"]["tags"] == ["x", "y"]
        assert applied(api, widget(), kind=kind)["spec"]["parts"] == [{"name": "b", "count": 1}]


def pod_config(*containers: Raw, **spec: Any) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers, **spec}}


def listed(raw: Raw) -> Raw:
    """Return the object as it comes from JSON."""
    return dict(json.loads(json.dumps(raw)))


def sized(cpu: str, name: str = "main") -> Raw:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}}


def scale(replicas: int | None, **metadata: Any) -> Raw:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", **metadata}, "spec": spec}


class TestPartsOfObjects:
    @staticmethod
    def of_pod(*containers: Raw) -> API:
        api = API()
        body = listed(pod_config(*(containers or (container(**sized("1")), container("side")))))
        assert api.ask("create", "Pod", namespace="default", body=body, field_manager="maker").code == 201
        return api

    def test_a_resize_is_applied_and_owns_the_resources_alone(self) -> None:
        api = self.of_pod()

        raw = applied(
            api, listed(pod_config(container(image="app:2", **sized("2")))), "sizer", subresource="resize", force=True
        )

        assert [item["name"] for item in raw["spec"]["containers"]] == ["main", "side"]
        assert raw["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}
        assert raw["spec"]["containers"][0]["image"] == "app:1"
        resources: Raw = {"f:resources": {"f:requests": {"f:cpu": {}}}}
        found = entries(raw)
        assert found["sizer", "Apply", "resize"] == {"f:spec": {"f:containers": {'k:{"name":"main"}': resources}}}
        left = found["maker", "Update", ""]["f:spec"]["f:containers"]['k:{"name":"main"}']
        assert "f:cpu" not in left.get("f:resources", {}).get("f:requests", {})

    def test_resources_that_another_has_given_are_a_conflict(self) -> None:
        response = apply(self.of_pod(), listed(pod_config(sized("2"))), "sizer", subresource="resize")

        assert response.code == 409
        [cause] = response.to_dict()["details"]["causes"]
        assert cause["field"] == '.spec.containers[name="main"].resources.requests.cpu'

    def test_a_resize_adds_no_container(self) -> None:
        response = apply(self.of_pod(), listed(pod_config(sized("2", "new"))), "sizer", subresource="resize")

        assert response.code == 422

    def test_ephemeral_containers_are_applied_and_stay(self) -> None:
        api = self.of_pod()
        debug = {"name": "debug", "image": "busybox"}

        raw = applied(api, listed(pod_config(ephemeralContainers=[debug])), "me", subresource="ephemeralcontainers")
        again = applied(api, listed(pod_config(ephemeralContainers=[debug])), "me", subresource="ephemeralcontainers")

        assert [item["name"] for item in raw["spec"]["ephemeralContainers"]] == ["debug"]
        assert len(raw["spec"]["containers"]) == 2
        assert entries(raw)["me", "Apply", "ephemeralcontainers"] == {
            "f:spec": {"f:ephemeralContainers": {'k:{"name":"debug"}': {".": {}, "f:image": {}, "f:name": {}}}}
        }
        assert again["metadata"]["resourceVersion"] == raw["metadata"]["resourceVersion"]
        gone = apply(api, listed(pod_config()), "me", subresource="ephemeralcontainers")
        assert gone.code == 422
        assert "may not be removed" in gone.to_dict()["message"]

    def test_a_scale_is_applied_and_its_manager_recorded_in_the_workload(self) -> None:
        api = API()
        applied(api, deployment(container(), replicas=2))

        refused = apply(api, scale(5), "scaler", kind="Deployment", subresource="scale")
        assert refused.code == 409
        assert refused.to_dict()["details"]["causes"][0]["field"] == ".spec.replicas"

        report = applied(api, scale(5), "scaler", kind="Deployment", subresource="scale", force=True)

        assert (report["kind"], report["spec"]) == ("Scale", {"replicas": 5})
        raw = api.raw("Deployment", KEY)
        assert raw["spec"]["replicas"] == 5
        found = entries(raw)
        assert found["scaler", "Apply", "scale"] == {"f:spec": {"f:replicas": {}}}
        assert "f:replicas" not in found["one", "Apply", ""]["f:spec"]
        assert applied(api, deployment(container()))["spec"]["replicas"] == 5

    def test_unmanaged_replicas_are_kept_unless_forced(self) -> None:
        api = API(deployment(container(), replicas=2))

        refused = apply(api, scale(5), kind="Deployment", subresource="scale")

        assert refused.code == 409
        assert "before-first-apply" in refused.to_dict()["message"]
        assert applied(api, scale(2), kind="Deployment", subresource="scale")["spec"] == {"replicas": 2}

    def test_the_scale_of_a_custom_kind_is_where_its_definition_says(self) -> None:
        replicas = {"type": "object", "properties": {"size": {"type": "integer"}, "copies": {"type": "integer"}}}
        paths = {"specReplicasPath": ".spec.copies", "statusReplicasPath": ".status.replicas"}
        api = API()
        api.store.create(definition(version(spec=replicas, subresources={"scale": paths})), now=0, is_new=True)
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "web"}, "spec": {"size": 1}}
        api.ask("create", "Widget.example.com", namespace="default", body=body)

        report = applied(api, scale(3), kind="Widget.example.com", subresource="scale", force=True)

        assert report["spec"] == {"replicas": 3}
        raw = api.raw("Widget.example.com", KEY)
        assert raw["spec"] == {"size": 1, "copies": 3}
        assert entries(raw)["one", "Apply", "scale"] == {"f:spec": {"f:copies": {}}}

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ([], 400),
            ({"kind": "Scale"}, 400),
            (scale(1, managedFields=[{}]), 400),
            (scale(-1), 422),
            (scale(1, name="other"), 400),
            (scale(1, resourceVersion="7"), 409),
            ({**scale(1), "spec": {"replicas": "two"}}, 400),
        ],
    )
    def test_an_invalid_scale_is_not_applied(self, body: Any, code: int) -> None:
        api = API()
        applied(api, deployment(container(), replicas=2))

        response = api.ask(
            "patch",
            "Deployment",
            KEY,
            subresource="scale",
            body=body,
            patch_type="apply",
            field_manager="a",
            force=True,
        )

        assert response.code == code
        assert api.raw("Deployment", KEY)["spec"]["replicas"] == 2

    def test_a_missing_subresource_is_not_found(self) -> None:
        api = API(config())

        assert apply(api, scale(1), kind="ConfigMap", subresource="scale").code == 404
        assert apply(API(), listed(pod_config(sized("1"))), subresource="resize").code == 404


def test_creation_by_apply_ignores_the_resource_version() -> None:
    response = apply(API(), config({"a": "1"}, resourceVersion="7"))

    assert response.code == 201


def test_an_empty_list_of_managed_fields_resets_them() -> None:
    api = API()
    before = applied(api, config({"a": "1"}))
    body = {**before, "metadata": {**before["metadata"], "managedFields": []}}

    reset = api.ask("update", "ConfigMap", KEY, body=body, field_manager="x").to_dict()

    assert "managedFields" not in reset["metadata"]


@pytest.mark.parametrize(("kind", "keeps_labels"), [("Pod", True), ("Deployment", False)])
def test_an_applied_status_takes_the_metadata_that_status_updates_of_the_kind_take(
    kind: str, *, keeps_labels: bool
) -> None:
    api = API()
    body = pod("web", node="") if kind == "Pod" else deployment(container())
    assert api.ask("create", kind, namespace="default", body=body, field_manager="x").code == 201
    version = "v1" if kind == "Pod" else "apps/v1"
    status = {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "labels": {"b": "2"}}, "status": {}}

    raw = applied(api, {**status, "status": {"conditions": []}}, subresource="status")

    assert (raw["metadata"].get("labels", {}).get("b") == "2") is keeps_labels
    owned = entries(raw).get(("one", "Apply", "status"), {})
    assert ("f:metadata" in owned) is keeps_labels


def test_a_configuration_needs_no_metadata() -> None:
    api = API(config({"a": "1"}, namespace="default"))

    raw = applied(api, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2"}})

    assert raw["data"] == {"a": "1", "b": "2"}
