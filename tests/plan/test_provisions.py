from dataclasses import dataclass, field, replace

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.plan.model import Selection
from pytest_cre.plan.platform import ground_of
from pytest_cre.plan.site import NO_SITE
from pytest_cre.plan.workflow import plan_workflow

ALL_REDUCE, LOOPBACK = "communication/nccl-all-reduce", "communication/nccl-loopback"


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


@dataclass
class Offered:
    """A cluster that says what it is told to; it counts what it is asked."""

    kinds: tuple[str, ...] = ("ComputeDomain", "ResourceClaimTemplate")
    domains: frozenset[str] | None = None
    services: frozenset[tuple[str, str]] | None = frozenset({("gpu-operator", "nvidia-dcgm")})
    asked: list[str] = field(default_factory=list)

    def serves(self, kind):
        self.asked.append(kind)
        return kind in self.kinds

    def domain_nodes(self):
        return self.domains

    def has_service(self, namespace, name):
        self.asked.append(f"{namespace}/{name}")
        return None if self.services is None else (namespace, name) in self.services


@pytest.fixture
def planned(catalog, node):
    def plan(name, platform, architecture, resources, *, scale=None, site=NO_SITE, given=None,
             simulated=False, **offered):  # fmt: skip
        """Plan on as many nodes as there are lists of resources; return (problem's code, words)."""
        known = catalog.architecture(architecture)
        label = {"cre.pytest.org/simulated": "true"} if simulated else {}
        nodes = tuple(
            replace(
                node(
                    f"n{index}",
                    product=known.product_labels[0],
                    gpus=known.gpus_per_node,
                    labels={"nvidia.com/gpu.clique": "r0", **label},
                ),
                resources=each,
            )
            for index, each in enumerate(resources)
        )
        entry = catalog.entry(name)
        found = plan_workflow(
            entry,
            scale or entry.scales[0],
            Selection(nodes=nodes, excluded=(), architecture=architecture, is_simulated=simulated),
            known,
            served=("indexedJob",),
            run_id="run",
            owner=("cre-run", "uid"),
            namespace="default",
            options=resolve_options(entry, given or {}),
            scripts=dict.fromkeys(entry.scripts, "pass"),
            ground=ground_of(platform, known, catalog.platforms, nodes=nodes, site=site),
            offered=Offered(**offered),
        )
        if found.groups:
            assert found.problems == ()
            return None
        [problem] = found.problems
        assert "\n" not in problem.message
        return problem.code, problem.message

    return plan


EFA = {"vpc.amazonaws.com/efa": 32}


def test_nics_that_every_node_allocates_are_enough(planned):
    assert planned(ALL_REDUCE, "aws", "h100", [EFA, EFA]) is None


def test_nics_that_no_node_allocates_are_unmet(planned):
    assert planned(ALL_REDUCE, "aws", "h100", [{}, {}]) == (
        "unschedulable",
        "communication/nccl-all-reduce needs NICs on each node: vpc.amazonaws.com/efa is not "
        "allocatable on any of the 2 nodes; install its device plugin, or say in --cre-site how pods "
        "reach them: nicResource, networks as annotation, or rdmaDeviceAccess: hostPath",
    )


def test_nics_that_one_node_lacks_are_unmet_and_name_it(planned):
    _, words = planned(ALL_REDUCE, "aws", "h100", [EFA, {}, EFA])

    assert "vpc.amazonaws.com/efa is not allocatable on n1; " in words


def test_one_node_alone_needs_no_nics_for_a_collective(planned):
    assert planned(ALL_REDUCE, "aws", "h100", [{}, {}], scale="intra-node") is None


def test_loopback_through_nics_needs_them_on_one_node(planned):
    code, words = planned(LOOPBACK, "aws", "h100", [{}])

    assert code == "unschedulable"
    assert words.startswith("communication/nccl-loopback needs NICs on each node: ")


def test_loopback_through_nics_is_not_applicable_where_nodes_are_made_without(planned):
    assert planned(LOOPBACK, "gcp", "rtxpro6000", [{}]) == (
        "not-applicable",
        "communication/nccl-loopback tests NICs, and these nodes are made without",
    )
    assert planned(ALL_REDUCE, "gcp", "rtxpro6000", [{}, {}]) is None


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ({}, "no rdma/* and no nvidia.com/mlnxnics is allocatable on every node"),
        ({"rdma/a": 8, "rdma/b": 8}, "every node allocates 8 of rdma/a, 8 of rdma/b"),
        ({"rdma/a": 2}, "every node allocates 2 of rdma/a"),
    ],
)
def test_own_hardware_without_one_clear_nic_resource_is_unmet(planned, resources, found):
    code, words = planned(ALL_REDUCE, "onprem", "h100", [resources, resources])

    assert code == "unschedulable"
    assert f" needs NICs, one resource with 8 of them on each node: {found}; " in words


def test_own_hardware_with_one_nic_resource_is_enough(planned):
    assert planned(ALL_REDUCE, "onprem", "h100", [{"rdma/a": 8}] * 2) is None


def test_site_names_its_nics_or_attaches_networks(planned):
    named = replace(NO_SITE, nic_resource="site/nic")
    attached = replace(NO_SITE, annotations={"k8s.v1.cni.cncf.io/networks": "rail-0"})

    assert planned(ALL_REDUCE, "onprem", "h100", [{"site/nic": 8}] * 2, site=named) is None
    assert planned(ALL_REDUCE, "onprem", "h100", [{}] * 2, site=named)[0] == "unschedulable"
    assert planned(ALL_REDUCE, "onprem", "h100", [{}] * 2, site=attached) is None


def test_device_that_pods_ask_for_and_a_node_lacks_is_unmet(planned):
    all_four = {f"networking.gke.io.networks/rdma-{number}": 1 for number in range(4)}
    three = dict.fromkeys(sorted(all_four)[:3], 1)

    assert planned(ALL_REDUCE, "gcp", "gb200", [all_four] * 2) is None
    code, words = planned(ALL_REDUCE, "gcp", "gb200", [all_four, three])
    assert code == "unschedulable"
    assert (
        "needs 1 of networking.gke.io.networks/rdma-3 on each node: not allocatable on n1" in words
    )


NICS = {"vpc.amazonaws.com/efa": 4}


def test_compute_domain_that_the_cluster_does_not_serve_is_unmet(planned):
    assert planned(ALL_REDUCE, "aws", "gb200", [NICS] * 2, kinds=()) == (
        "unschedulable",
        "communication/nccl-all-reduce needs a ComputeDomain, for NVLink between nodes: the cluster "
        "does not serve ComputeDomain of resource.nvidia.com/v1beta1; install NVIDIA's DRA driver "
        "for GPUs, with compute domains",
    )


def test_compute_domain_without_its_driver_on_a_node_is_unmet(planned):
    _, words = planned(ALL_REDUCE, "aws", "gb200", [NICS] * 2, domains=frozenset({"n0"}))

    assert "no ResourceSlice of compute-domain.nvidia.com is for n1; " in words


def test_compute_domain_is_asked_for_by_no_group_of_one_node(planned):
    assert planned(ALL_REDUCE, "aws", "gb200", [NICS], scale="intra-node", kinds=()) is None


def test_slices_that_may_not_be_read_hold_nothing_up(planned):
    assert planned(ALL_REDUCE, "aws", "gb200", [NICS] * 2, domains=None) is None


def test_claims_need_a_cluster_that_serves_them(planned):
    code, words = planned(ALL_REDUCE, "nscale", "b200", [{}] * 2, kinds=())

    assert code == "unschedulable"
    assert "does not serve ResourceClaimTemplate of resource.k8s.io/v1" in words


DCGM = "diagnostics/dcgm-level1"


def test_dcgm_without_its_service_is_unmet_with_the_remedy(planned):
    assert planned(DCGM, "onprem", "h100", [{}], services=frozenset()) == (
        "unschedulable",
        "diagnostics/dcgm-level1 needs a DCGM host engine: namespace gpu-operator has no Service "
        "nvidia-dcgm; enable dcgm in the GPU Operator, or name an engine with "
        "--cre-option dcgmHost=HOST:PORT",
    )


@pytest.mark.parametrize("services", [None, frozenset({("gpu-operator", "nvidia-dcgm")})])
def test_dcgm_with_its_service_or_without_a_right_to_see_it_is_run(planned, services):
    assert planned(DCGM, "onprem", "h100", [{}], services=services) is None


def test_dcgm_at_an_address_that_is_no_service_is_run(planned):
    given = {"dcgmHost": "10.0.0.1:5555"}

    assert planned(DCGM, "onprem", "h100", [{}], services=frozenset(), given=given) is None


def test_simulated_nodes_have_what_their_scenario_gives(planned):
    nics = {"cre.pytest.org/nics": 8}

    assert planned(ALL_REDUCE, "simulated", "h100", [nics] * 2, simulated=True) is None
    assert planned(ALL_REDUCE, "onprem", "h100", [nics] * 2, simulated=True) is None
    assert planned(DCGM, "simulated", "h100", [{}], simulated=True, services=frozenset()) is None
    code, words = planned(ALL_REDUCE, "simulated", "h100", [nics, {}], simulated=True)
    assert code == "unschedulable"
    assert words.endswith(
        "cre.pytest.org/nics is not allocatable on n1; give the scenario's hardware nics, or say "
        "rdmaDeviceAccess: hostPath in --cre-site"
    )


@pytest.mark.parametrize(("platform", "simulated"), [("onprem", False), ("simulated", True)])
def test_pods_that_reach_nics_in_the_way_of_the_site_ask_for_none(planned, platform, simulated):
    opened = replace(NO_SITE, rdma_device_access="hostPath")
    attached = replace(NO_SITE, annotations={"k8s.v1.cni.cncf.io/networks": "rail-0"})

    for name in (ALL_REDUCE, LOOPBACK):
        bare = planned(name, platform, "h100", [{}] * 2, simulated=simulated)
        assert bare is not None, name
        for site in (opened, attached):
            found = planned(name, platform, "h100", [{}] * 2, simulated=simulated, site=site)
            assert found is None, name


def test_site_that_opens_devices_and_names_a_resource_asks_for_it(planned):
    site = replace(NO_SITE, rdma_device_access="hostPath", nic_resource="site/nic")

    assert planned(ALL_REDUCE, "onprem", "h100", [{}] * 2, site=site)[0] == "unschedulable"
    assert planned(ALL_REDUCE, "onprem", "h100", [{"site/nic": 8}] * 2, site=site) is None
