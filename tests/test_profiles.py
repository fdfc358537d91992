"""Each embedded hardware profile against the catalog: what is planned, and that limits judge it."""

import json
import re
from pathlib import Path

import pytest

from pytest_cre.catalog.limit import Metric
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.catalog.simulated import limits_from_json
from pytest_cre.cluster.inventory import node_facts
from pytest_cre.judge.limits import applying_limits, fabric_of
from pytest_cre.plan.platform import choose_platform, ground_of
from pytest_cre.plan.selection import select_nodes
from pytest_cre.plan.site import NO_SITE
from pytest_cre.plan.sitefile import read_site
from pytest_cre.plan.workflow import plan_workflow
from pytest_cre.simulator.nodeobjects import node_object, node_status
from pytest_cre.simulator.scenario import load_scenario

from .profiles import HEALTHY

DEMANDED: dict[str, set[Metric]] = {
    "bandwidth": {"busbw"},
    "training": {"step_time", "tflops_per_gpu", "goodput"},
    "gemm": {"gemm_tflops", "gemm_spread"},
    "diagnostics": {"dcgm_failed_tests"},
}
PCIE = ("l40", "l40s", "rtxpro6000")
NVSWITCH = ("communication/nccl-loopback-nvswitch", "intra-node")


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


class NothingElse:
    """A cluster that serves Kubernetes and no more."""

    def serves(self, kind):
        return False

    def domain_nodes(self):
        return None

    def has_service(self, namespace, name):
        return False


class Profile:
    """A scenario's nodes as a run sees them."""

    def __init__(self, name, catalog, site=NO_SITE):
        scenario = load_scenario(name)
        nodes = [
            node_facts(
                node_object(node, scenario.limits_json)
                | {
                    "status": node_status(
                        node, port=1, version="v1", boot="", ready_since="", gpus=node.gpus
                    )
                }
            )
            for node in scenario.nodes
        ]
        self.catalog, self.scenario = catalog, scenario
        self.limits = limits_from_json(scenario.limits_json, name)
        self.selection = select_nodes(nodes, catalog.architectures)
        self.architecture = catalog.architecture(self.selection.architecture)
        platform = choose_platform(self.selection.nodes, catalog.platforms)
        self.ground = ground_of(
            platform, self.architecture, catalog.platforms, nodes=self.selection.nodes, site=site
        )

    def plan(self, entry, scale):
        given = self.ground.fitting.option_defaults(entry, scale)
        return plan_workflow(
            entry,
            scale,
            self.selection,
            self.architecture,
            served=("indexedJob",),
            run_id="run",
            owner=("cre-run", "uid"),
            namespace="default",
            options=resolve_options(entry, given),
            scripts=dict.fromkeys(entry.scripts, "pass"),
            ground=self.ground,
            offered=NothingElse(),
        )


@pytest.fixture(scope="module", params=HEALTHY)
def profile(request, catalog):
    return Profile(request.param, catalog)


def test_profiles_cover_every_architecture(catalog):
    found = {Profile(name, catalog).architecture.name for name in HEALTHY}

    assert found == set(catalog.architectures)


def test_profile_is_recognised_and_its_platform_has_no_warning(profile):
    assert profile.selection.excluded == ()
    assert profile.selection.is_simulated
    assert (profile.ground.platform, profile.ground.settings_of) == ("simulated", "simulated")
    assert profile.ground.warnings == ()


def test_profile_runs_every_entry_or_says_in_one_line_why_not(profile):
    name = profile.architecture.name
    told = {}
    for entry in profile.catalog.entries.values():
        for scale in entry.all_scales:
            plan = profile.plan(entry, scale)
            assert bool(plan.groups) != bool(plan.problems), (entry.name, scale)
            for problem in plan.problems:
                assert problem.code == "not-applicable", problem
                assert "\n" not in problem.message
                told[entry.name, scale] = problem.message

    racked = {
        (each.name, "intra-rack")
        for each in profile.catalog.entries.values()
        if "intra-rack" in each.all_scales
    }
    expected = set(racked) if name not in ("gb200", "gb300") else set()
    expected |= {NVSWITCH} if name in PCIE else set()
    gpus = sum(node.gpus_allocatable for node in profile.selection.nodes)
    expected |= {("training/nemotron5-56b", "full-scale")} if gpus < 32 else set()
    assert set(told) == expected
    assert all(name in words for key, words in told.items() if key in {NVSWITCH, *racked})


def test_every_item_of_a_profile_has_limits_that_demand_something(profile):
    network = profile.scenario.nodes[0].model.network
    for entry in profile.catalog.entries.values():
        for scale in entry.all_scales:
            for group in profile.plan(entry, scale).groups:
                is_nvlink = group.fabrics == ("nvlink",)
                found = applying_limits(
                    profile.limits,
                    entry=entry.name,
                    scale=scale,
                    nodes=len(group.group.nodes),
                    architecture=profile.architecture.name,
                    fabric="nvlink" if is_nvlink else fabric_of((network,)),
                    is_simulated=True,
                    collective=entry.test,
                )
                place = (entry.name, scale, group.group.name)
                assert {each.metric for each in found} == DEMANDED[entry.measures], place
                assert any(each.demands_speed for each in found), place


def test_nvlink_between_nodes_is_judged_by_its_own_limit(catalog):
    racks = Profile("gb300-racks", catalog)
    entry = catalog.entry("communication/nccl-all-reduce")
    (group, _) = racks.plan(entry, "intra-rack").groups
    assert group.fabrics == ("nvlink",)
    (limit,) = applying_limits(
        racks.limits,
        entry=entry.name,
        scale="intra-rack",
        nodes=4,
        architecture="gb300",
        fabric="nvlink",
        is_simulated=True,
    )
    assert limit.value == 875  # 932 GB/s, 6 % easier


def test_site_of_the_docs_lets_pods_reach_nics_that_no_plugin_offers(catalog, tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "reference" / "site.md").read_text()
    for content, name in re.findall(r"```yaml\n(# (\S+)\n.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(content)
    entry, bare = catalog.entry("communication/nccl-all-reduce"), str(tmp_path / "bare.yaml")

    (problem,) = Profile(bare, catalog).plan(entry, "full-scale").problems
    told = re.search(r"The reason: `(.+?)`", page, re.DOTALL)[1].replace("\n", " ")
    assert problem.message.startswith(told)
    site = read_site(tmp_path / "site.yaml")
    (group,) = Profile(bare, catalog, site).plan(entry, "full-scale").groups
    assert group.fabrics == ("infiniband",)


def test_node_annotation_of_every_profile_is_small(profile):
    # A cluster of 20,000 such nodes keeps it as often.
    assert len(profile.scenario.limits_json) < 12_000
    assert json.loads(profile.scenario.limits_json)
