from dataclasses import replace

import pytest

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.platform import platform_of
from pytest_cre.errors import UsageProblem
from pytest_cre.plan.platform import choose_platform, ground_of, selection_tolerations
from pytest_cre.plan.podsites import all_templates
from pytest_cre.plan.preview import preview
from pytest_cre.plan.site import Site
from pytest_cre.plan.taints import untolerated

from .conftest import make_node

ARCHITECTURES = (
    *("a100", "b200", "b300", "gb200", "gb300", "h100", "h200", "l40", "l40s", "rtxpro6000"),
)
PLATFORMS = ("aws", "azure", "forge", "gcp", "mistral", "nscale", "oci", "onprem", "togetherai")


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


def node_of(provider="", labels=None, resources=None, name="node-0"):
    node = make_node(name, labels=labels or {})
    return replace(node, provider_id=provider, resources=resources or {})


def ground(catalog, platform, architecture, nodes=None, **more):
    known = catalog.architectures.get(architecture)
    return ground_of(platform, known, catalog.platforms, nodes=nodes, **more)


@pytest.mark.parametrize(
    ("node", "platform"),
    [
        (node_of("aws:///us-east-1a/i-0"), "aws"),
        (node_of("gce://p/z/n"), "gcp"),
        (node_of("azure:///subscriptions/x"), "azure"),
        (node_of("ocid1.instance.oc1..x"), "oci"),
        (node_of("openstack:///x", resources={"nscale.com/rdmashare": 8}), "nscale"),
        (node_of("openstack:///x"), "onprem"),
        (node_of("kubevirt://x", {"node-role.together.ai/worker": ""}), "togetherai"),
        (node_of("kubevirt://x"), "onprem"),
        (node_of("metal3://x"), "mistral"),
        (node_of("", {"kubernetes.io/hostname": "forge-7"}), "forge"),
        (node_of("", {"nke.nvidia.com/site-name": "a"}), "forge"),
        (node_of("x://y", {"nke.nvidia.com/site-name": "a"}), "onprem"),
        (node_of(""), "onprem"),
        (node_of("", {"cre.pytest.org/simulated": "true"}), "simulated"),
        (node_of("aws:///x", {"cre.pytest.org/simulated": "true"}), "aws"),
    ],
)
def test_platform_is_told_by_the_node(catalog, node, platform):
    assert platform_of(node, catalog.platforms) == platform


def test_nodes_of_several_platforms_are_refused_with_their_numbers(catalog):
    nodes = [node_of("aws://a"), node_of("aws://b"), node_of("")]
    with pytest.raises(UsageProblem, match=r"several platforms \(aws 2, onprem 1\); choose"):
        choose_platform(nodes, catalog.platforms)
    assert choose_platform(nodes, catalog.platforms, "gcp") == "gcp"
    assert choose_platform([], catalog.platforms) == "onprem"


def test_unknown_platform_is_refused_with_the_choices(catalog):
    with pytest.raises(
        UsageProblem, match=r"unknown platform 'aw'; did you mean 'aws'\? choices: "
    ):
        choose_platform([], catalog.platforms, "aw")


def test_every_required_platform_is_there(catalog):
    assert {*PLATFORMS, "simulated"} == set(catalog.platforms)


@pytest.mark.parametrize(
    ("platform", "architecture", "gpus", "nics"),
    [
        ("oci", "l40s", 4, 2),
        ("oci", "gb200", 4, 0),
        ("oci", "gb300", 4, 4),
        ("nscale", "gb300", 4, 4),
        ("azure", "h100", 8, 8),
        ("aws", "h100", 8, 32),
        ("onprem", "l40", 8, 4),
    ],
)
def test_hardware_of_a_platform_stands_above_that_of_the_architecture(
    catalog, platform, architecture, gpus, nics
):
    found = ground(catalog, platform, architecture)
    assert (found.gpus_per_node, found.nics_per_node) == (gpus, nics)


def test_combination_without_settings_takes_those_of_onprem_and_says_so(catalog):
    found = ground(catalog, "mistral", "h100", was_asked=True)
    assert found.warnings == (
        "platform mistral has no settings for h100 (it knows gb300); those of onprem are taken",
    )
    assert found.platform == "mistral"
    names = [override.name for override in found.fitting.overrides]
    assert names == [override.name for override in catalog.platform("onprem").overrides]


def test_unknown_architecture_is_told(catalog):
    found = ground(catalog, "onprem", "v100")
    assert "has no settings for an unknown GPU architecture" in found.warnings[0]
    assert (found.gpus_per_node, found.nics_per_node) == (None, 0)


def test_metal3_site_is_warned_that_it_was_taken_for_mistral(catalog):
    assert (
        "every Metal3 site is taken for mistral" in ground(catalog, "mistral", "gb300").warnings[0]
    )
    assert ground(catalog, "mistral", "gb300", was_asked=True).warnings == ()


def test_nvlink_is_expected_inside_one_rack_unless_it_is_switched_off(catalog):
    found = ground(catalog, "aws", "gb200")
    rack = [node_of(name=f"n{i}", labels={"nvidia.com/gpu.clique": "r1"}) for i in range(2)]
    other = node_of(name="n9", labels={"nvidia.com/gpu.clique": "r2"})
    assert found.fabrics(rack, {}) == ("nvlink",)
    assert found.fabrics(rack, {"NCCL_MNNVL_ENABLE": "0"}) == ("efa",)
    assert found.fabrics([*rack, other], {}) == ("efa",)
    assert found.fabrics([node_of(), node_of(name="n2")], {}) == ("efa",)
    assert found.fabrics(rack[:1], {}) == ()


def test_rack_is_told_by_the_label_of_the_platform(catalog):
    label = "topology.nks.nscale.com/accelerator-domain"
    rack = [node_of(name=f"n{i}", labels={label: "r1"}) for i in range(2)]
    assert ground(catalog, "nscale", "gb300").fabrics(rack, {}) == ("nvlink",)


@pytest.mark.parametrize(
    ("resources", "network"),
    [
        ({"rdma/ib": 8}, ("infiniband", "roce")),
        ({"nvidia.com/mlnxnics": 8}, ("infiniband", "roce")),
        ({"vpc.amazonaws.com/efa": 32}, ("efa",)),
        ({"vpc.amazonaws.com/efa": 32, "rdma/ib": 8}, ()),
        ({"other.io/x": 1}, ()),
        ({}, ()),
    ],
)
def test_network_of_own_hardware_is_told_by_what_every_node_allocates(catalog, resources, network):
    nodes = [node_of(name="n0", resources=resources), node_of(name="n1", resources=resources)]
    assert ground(catalog, "onprem", "h100", nodes).network == network
    nodes = [node_of(name="n0", resources=resources), node_of(name="n1")]
    assert ground(catalog, "onprem", "h100", nodes).network == ()


def test_nodes_are_selected_with_the_tolerations_that_pods_will_have(catalog):
    arm = {"key": "kubernetes.io/arch", "value": "arm64", "effect": "NoSchedule"}
    own = {"key": "team", "value": "x", "effect": "NoSchedule"}
    node = replace(node_of("gce://x"), taints=(arm, own))
    tolerations = selection_tolerations([node], catalog.platforms)
    assert untolerated(node.taints, tolerations) == ("team=x:NoSchedule",)
    site = Site(tolerations=({"key": "team", "operator": "Exists"},))
    tolerations = selection_tolerations([node], catalog.platforms, site=site)
    assert untolerated(node.taints, tolerations) == ()


def rendered(catalog, entry, platform, architecture, kind, nodes):
    plan, _ = preview(
        catalog.entry(entry),
        platform=platform,
        architecture=catalog.architecture(architecture),
        platforms=catalog.platforms,
        nodes=nodes,
        scripts=dict.fromkeys(catalog.entry(entry).scripts, "pass"),
        kind=kind,
    )
    return [manifest for group in plan.groups for manifest in group.manifests]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_entry_renders_on_every_platform_and_architecture_as_every_kind(catalog, platform):
    for name, entry in catalog.entries.items():
        for architecture in entry.architectures or ARCHITECTURES:
            if entry.needs.has_nvlink and catalog.architecture(architecture).domain_gpus < 2:
                with pytest.raises(UsageProblem, match="needs NVLink between the GPUs of a node"):
                    rendered(catalog, name, platform, architecture, None, 8)
                continue
            # Pods are the same for every architecture; what differs between kinds is seen on one.
            kinds = list(entry.workloads)
            for kind in kinds if architecture == "h100" else kinds[:1]:
                nodes = max(entry.needs.nodes, 8)
                manifests = rendered(catalog, name, platform, architecture, kind, nodes)
                place = (name, architecture, kind)
                assert "${" not in str([m for m in manifests if m["kind"] != "ConfigMap"]), place
                for template in all_templates(manifests):
                    tolerated = [each.get("key") for each in template["spec"]["tolerations"]]
                    assert "nvidia.com/gpu" in tolerated, place
                    for container in template["spec"]["containers"]:
                        names = [each["name"] for each in container["env"]]
                        assert len(names) == len(set(names)), place
                        limits = (container.get("resources") or {}).get("limits") or {}
                        assert "0" not in limits.values(), place


def test_collective_on_aws_h100_asks_for_every_efa_device(catalog):
    manifests = rendered(catalog, "communication/nccl-all-reduce", "aws", "h100", "indexedJob", 2)
    (template,) = all_templates(manifests)
    container = template["spec"]["containers"][0]
    assert container["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
    }
    env = {each["name"]: each["value"] for each in container["env"]}
    assert (env["FI_PROVIDER"], env["NCCL_SOCKET_IFNAME"]) == ("efa", "eth0")


def test_collective_between_gb200_nodes_has_a_compute_domain_of_their_number(catalog):
    name = "communication/nccl-all-reduce"
    manifests = rendered(catalog, name, "gcp", "gb200", "mpiJob", 18)
    (domain,) = [each for each in manifests if each["kind"] == "ComputeDomain"]
    assert domain["spec"]["numNodes"] == 18
    worker = all_templates(manifests)[-1]["spec"]
    assert {"key": "kubernetes.io/arch", "operator": "Equal", "value": "arm64",
            "effect": "NoSchedule"} in worker["tolerations"]  # fmt: skip
    assert (
        worker["containers"][0]["resources"]["limits"]["networking.gke.io.networks/rdma-3"] == "1"
    )


def test_diagnostics_ask_for_no_nics_on_any_platform(catalog):
    for platform in PLATFORMS:
        for template in all_templates(
            rendered(catalog, "diagnostics/dcgm-level1", platform, "h100", "indexedJob", 1)
        ):
            for container in template["spec"]["containers"]:
                assert set((container.get("resources") or {}).get("limits") or {}) <= {
                    "nvidia.com/gpu"
                }


@pytest.mark.parametrize(
    ("platform", "changes", "asked", "told", "settings"),
    [
        ("aws", {"provider_id": "aws:///eu/i-1"}, False, "providerID aws://", "aws"),
        ("aws", {}, True, "--cre-platform", "aws"),
        ("onprem", {}, False, "no rule of another platform", "onprem"),
        (
            "togetherai",
            {"provider_id": "kubevirt://x", "labels": {"node-role.together.ai/worker": ""}},
            False,
            "providerID kubevirt://, label node-role.together.ai/worker",
            "togetherai",
        ),
    ],
)
def test_ground_says_by_what_the_platform_was_told(
    catalog, node, platform, changes, asked, told, settings
):
    nodes = [replace(node("n1"), **changes)]
    ground = ground_of(
        platform, catalog.architecture("h100"), catalog.platforms, nodes=nodes, was_asked=asked
    )

    assert (ground.platform, ground.told_by, ground.settings_of) == (platform, told, settings)


def test_ground_names_the_platform_whose_settings_stand_in(catalog):
    ground = ground_of("togetherai", catalog.architecture("l40"), catalog.platforms, nodes=[])

    assert ground.settings_of == "onprem"
    assert len(ground.warnings) == 1


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            {"nvidia.com/gpu.product": "ACME-Zephyr-9"},
            "nvidia.com/gpu.product is 'ACME-Zephyr-9', which no productLabels has; mend the label, "
            "or add it to an architecture of --cre-profiles",
        ),
        ({}, "no node has the label nvidia.com/gpu.product; name the architecture with --cre-arch"),
    ],
)
def test_ground_tells_the_product_that_no_architecture_knows(catalog, labels, words):
    node = replace(node_of(), labels=labels)
    assert ground(catalog, "onprem", None, [node]).warnings[0] == words
