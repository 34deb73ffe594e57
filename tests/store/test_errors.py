"""Errors in the form of the API."""

from podium.store.api_resources import POD
from podium.store.errors import too_many_requests
from podium.store.store import Store
from tests.store.objects import pod
from tests.store.refusals import refusal


def test_a_refusal_is_a_status() -> None:
    store = Store()
    store.create(pod("web"), now=0)

    error = refusal(store, lambda: store.create(pod("web"), now=0))

    assert error.to_dict() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "web" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "web", "group": "", "kind": "pods"},
        "code": 409,
    }


def test_validation_errors_list_their_causes_by_field() -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod("web", labels={"app": "a b"}), now=0, is_new=True))

    status = error.to_dict()
    (cause,) = status["details"]["causes"]
    assert (status["code"], status["reason"], status["details"]["kind"]) == (422, "Invalid", "Pod")
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "metadata.labels.app")
    assert status["message"] == f'Pod "web" is invalid: metadata.labels.app: {cause["message"]}'


def test_b23_annotations_have_a_size() -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod("web", annotations={"a": "x" * 262_144}), now=0))

    assert error.code == 422
    assert error.details["causes"][0]["field"] == "metadata.annotations"


def test_hostile_names_come_back_harmless() -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod("\x1b[31m" + "x" * 5_000), now=0))

    assert error.message.isprintable()
    assert len(error.message) < 2_100


def test_an_answer_429_says_what_is_used_up_and_how_long_to_wait() -> None:
    status = too_many_requests(POD, "default/web", "all is used up", "DisruptionRate", 7).to_dict()

    assert (status["code"], status["reason"]) == (429, "TooManyRequests")
    assert status["message"] == "Pod default/web cannot be disrupted now: all is used up"
    assert status["details"] == {
        "name": "web",
        "group": "",
        "kind": "pods",
        "causes": [{"reason": "DisruptionRate", "message": "all is used up"}],
        "retryAfterSeconds": 7,
    }
