import pytest

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.provisions import ClusterProvisions


class Page:
    def __init__(self, *items):
        self.items = items


class FakeClient:
    """Answers as it is told to, or refuses; counts what it is asked."""

    def __init__(self, *, kinds=(), slices=(), services=(), refused=None):
        self.kinds, self.slices, self.services = kinds, slices, services
        self.refused, self.asked = refused, []

    def _ask(self, words):
        self.asked.append(words)
        if self.refused is not None:
            raise self.refused

    def serves(self, kind):
        self.asked.append(kind.plural)
        return kind.kind in self.kinds

    def pages(self, kind):
        self._ask(kind.plural)
        yield Page(*self.slices[:1])
        yield Page(*self.slices[1:])

    def get(self, kind, name, namespace=None):
        self._ask(f"{kind.plural} {namespace}/{name}")
        return {} if (namespace, name) in self.services else None


def refusal(status):
    return ApiProblem("no", status=status, reason="Forbidden")


def slice_of(node, driver="compute-domain.nvidia.com"):
    return {"spec": {"nodeName": node, "driver": driver}}


def test_kinds_are_those_that_the_cluster_serves_and_asked_for_once():
    client = FakeClient(kinds=("ComputeDomain",))
    provisions = ClusterProvisions(client)

    assert [provisions.serves("ComputeDomain") for _ in range(3)] == [True] * 3
    assert not provisions.serves("ResourceClaimTemplate")
    assert client.asked == ["computedomains", "resourceclaimtemplates"]


def test_domain_nodes_are_those_of_the_drivers_own_slices():
    slices = (slice_of("a"), slice_of("b", "gpu.nvidia.com"), slice_of("c"), {})
    provisions = ClusterProvisions(FakeClient(slices=slices))

    assert provisions.domain_nodes() == {"a", "c"}


def test_service_is_looked_for_in_its_namespace():
    provisions = ClusterProvisions(FakeClient(services=[("gpu-operator", "nvidia-dcgm")]))

    assert provisions.has_service("gpu-operator", "nvidia-dcgm") is True
    assert provisions.has_service("default", "nvidia-dcgm") is False


@pytest.mark.parametrize("status", [403, 404])
def test_what_may_not_be_seen_is_not_known(status):
    provisions = ClusterProvisions(FakeClient(refused=refusal(status)))

    assert provisions.domain_nodes() is None
    assert provisions.has_service("gpu-operator", "nvidia-dcgm") is None


def test_trouble_of_the_api_is_told():
    provisions = ClusterProvisions(FakeClient(refused=refusal(500)))

    with pytest.raises(ApiProblem):
        provisions.domain_nodes()
    with pytest.raises(ApiProblem):
        provisions.has_service("a", "b")
