import pytest

from podium.cluster.cluster import Cluster
from podium.framework.verdicts import Calling, PluginError
from tests.builders import pod
from tests.plugin_errors import without_place


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit("no"), GeneratorExit("no")])
def test_plugin_errors_are_reported_as_failures(error: BaseException) -> None:
    record = Cluster().read(pod("web"))

    with pytest.raises(PluginError) as caught, Calling("Own", "Filter", record):
        raise error

    assert (
        without_place(str(caught.value))
        == f"plugin Own failed at Filter for pod default/web: {type(error).__name__}: no"
    )


def test_ctrl_c_while_a_plugin_is_called_goes_through() -> None:
    record = Cluster().read(pod("web"))

    with pytest.raises(KeyboardInterrupt), Calling("Own", "Filter", record):
        raise KeyboardInterrupt
