import pytest

from pytest_cre.catalog.entry import CatalogEntry, OptionSpec, WorkloadCommand
from pytest_cre.catalog.override import Condition, Override, When
from pytest_cre.errors import CatalogProblem
from pytest_cre.plan.model import NodeGroup
from pytest_cre.plan.overrides import NO_FITTING, Fitting
from pytest_cre.plan.podsites import all_templates
from pytest_cre.plan.render import render_group
from pytest_cre.plan.site import Site

KINDS = ("indexedJob", "jobSet", "mpiJob", "trainJob")
MPI = WorkloadCommand(
    command=("timeout", "3600", "mpirun"),
    args=("-N", "${gpusPerNode}", "-x", "NCCL_DEBUG=INFO", "all_reduce_perf_mpi", "-b", "8"),
)
TORCH = WorkloadCommand(command=("torchrun",), args=("--nnodes=${nodes}", "bench.py"))


@pytest.fixture
def bench():
    return CatalogEntry(
        name="communication/nccl-all-reduce",
        description="all-reduce",
        measures="bandwidth",
        image="example.com/pytorch:1",
        workloads={"indexedJob": TORCH, "jobSet": TORCH, "mpiJob": MPI, "trainJob": TORCH},
        log_profile="nccl-bandwidth",
        timeout_s=900,
        start_timeout_s=600,
        options={"size": OptionSpec(name="size", default="8")},
        env={"NCCL_DEBUG": "INFO"},
        test="all_reduce",
    )


def rendered(entry, kind, *overrides, nodes=2, **fitting):
    return render_group(
        entry,
        kind,
        NodeGroup(name="group-0", nodes=tuple(f"node-{index}" for index in range(nodes))),
        scale="full-scale",
        architecture="h100",
        gpus_per_node=8,
        run_id="run-1",
        owner=("cre-run-1", "uid-1"),
        namespace="gpu",
        options={"size": "8"},
        scripts={},
        fitting=Fitting(platform="aws", architecture="h100", overrides=overrides, **fitting),
    )


def override(name="one", **parts):
    return Override(name=name, when=parts.pop("when", When()), place="f.yaml:1:1", **parts)


def gpu_container(plan):
    for template in all_templates(plan.manifests):
        container = template["spec"]["containers"][0]
        if "resources" in container:
            return container
    raise AssertionError


def env_of(container):
    return {each["name"]: each["value"] for each in container["env"]}


@pytest.mark.parametrize("kind", KINDS)
def test_without_overrides_nothing_changes(bench, kind):
    plain = rendered(bench, kind)
    assert (
        plain.manifests
        == rendered(bench, kind, override(when=When(entries=("x/*",)), image="i")).manifests
    )
    assert plain.overrides == ()
    assert NO_FITTING.overrides == ()


@pytest.mark.parametrize("kind", KINDS)
def test_variables_resources_and_tolerations_reach_the_pods_of_every_kind(bench, kind):
    plan = rendered(
        bench,
        kind,
        override(
            env={"NCCL_ALGO": "Ring", "NCCL_DEBUG": "WARN"},
            resources={"vpc.amazonaws.com/efa": "32"},
            tolerations=({"key": "arm", "operator": "Exists"},),
            annotations={"net": "a"},
        ),
    )
    container = gpu_container(plan)
    assert env_of(container)["NCCL_ALGO"] == "Ring"
    assert env_of(container)["NCCL_DEBUG"] == "WARN"
    assert container["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
    }
    for template in all_templates(plan.manifests):
        keys = [each.get("key") for each in template["spec"]["tolerations"]]
        assert keys == ["nvidia.com/gpu", "cre.pytest.org/simulated", "arm"]
        names = [each["name"] for each in template["spec"]["containers"][0]["env"]]
        assert len(names) == len(set(names))
    (applied,) = plan.overrides
    assert (applied.name, applied.is_no_op) == ("one", False)
    assert set(applied.changes) == {
        "env NCCL_ALGO", "env NCCL_DEBUG", "resource vpc.amazonaws.com/efa", "toleration arm",
        "annotation net",
    }  # fmt: skip


def test_variables_are_handed_on_by_mpirun_once_each(bench):
    plan = rendered(
        bench,
        "mpiJob",
        override(env={"NCCL_DEBUG": "WARN", "NCCL_ALGO": "Ring", "OMPI_MCA_coll": "^hcoll"}),
    )
    launcher = plan.manifests[-1]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    container = launcher["spec"]["containers"][0]
    assert container["command"] == ["timeout", "3600", "mpirun"]
    assert container["args"] == [
        *("-x", "NCCL_ALGO=Ring", "-x", "NCCL_DEBUG=WARN", "-N", "8"),
        *("all_reduce_perf_mpi", "-b", "8"),
    ]
    assert env_of(container)["OMPI_MCA_coll"] == "^hcoll"


def test_variable_that_is_taken_away_is_gone_everywhere(bench):
    plan = rendered(bench, "mpiJob", override(env={"NCCL_DEBUG": None}))
    text = str(plan.manifests)
    assert "NCCL_DEBUG" not in text
    assert "all_reduce_perf_mpi" in text


def test_words_image_and_values_are_replaced_as_whole_arguments(bench):
    plan = rendered(
        bench,
        "mpiJob",
        override(
            image="efa:2", words={"all_reduce_perf_mpi": "/opt/${test}_perf", "mpirun": "/o/mpirun"}
        ),
    )
    specs = plan.manifests[-1]["spec"]["mpiReplicaSpecs"]
    launcher = specs["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["command"] == ["timeout", "3600", "/o/mpirun"]
    assert "/opt/all_reduce_perf" in launcher["args"]
    worker = specs["Worker"]["template"]["spec"]["containers"][0]
    assert {launcher["image"], worker["image"]} == {"efa:2"}


def test_later_override_adds_to_the_earlier_one_and_wins_by_name(bench):
    first = override("first", env={"A": "1", "B": "1"}, resources={"rdma/ib": "1"})
    second = override("second", env={"B": "2", "C": "2"}, tolerations=({"key": "x"},))
    plan = rendered(bench, "indexedJob", first, second)
    env = env_of(gpu_container(plan))
    assert (env["A"], env["B"], env["C"]) == ("1", "2", "2")
    assert gpu_container(plan)["resources"]["limits"]["rdma/ib"] == "1"
    assert [each.name for each in plan.overrides] == ["first", "second"]


def test_override_that_finds_everything_as_it_wants_it_is_a_no_op(bench):
    plan = rendered(bench, "indexedJob", override(env={"NCCL_DEBUG": "INFO"}))
    assert plan.overrides[0].is_no_op
    assert plan.manifests == rendered(bench, "indexedJob").manifests


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        (When(platform=Condition(equals="aws")), True),
        (When(platform=Condition(equals="gcp")), False),
        (When(platform=Condition(not_in=("aws",))), False),
        (When(architecture=Condition(is_in=("h100", "h200"))), True),
        (When(architecture=Condition(not_in=("gb200",)), kind=Condition(equals="jobSet")), False),
        (When(kind=Condition(equals="indexedJob"), measures=("bandwidth",)), True),
        (When(measures=("training",)), False),
        (When(entries=("communication/*",), min_nodes=2), True),
        (When(min_nodes=3), False),
        (When(scale=Condition(equals="full-scale"), options={"size": "8"}), True),
        (When(options={"size": "9"}), False),
    ],
)
def test_override_applies_where_every_condition_holds(bench, when, applies):
    plan = rendered(bench, "indexedJob", override(when=when, env={"X": "1"}))
    assert ("X" in env_of(gpu_container(plan))) is applies
    assert len(plan.overrides) == int(applies)


def test_merge_and_json_patch_work_on_pod_and_container(bench):
    plan = rendered(
        bench,
        "jobSet",
        override(
            container={"securityContext": {"privileged": True, "capabilities": None}},
            pod={"spec": {"hostNetwork": True}},
            patch=(
                {"op": "add", "path": "/spec/volumes/-", "value": {"name": "${job}"}},
                {"op": "test", "path": "/spec/hostNetwork", "value": True},
            ),
        ),
    )
    (template,) = all_templates(plan.manifests)
    assert template["spec"]["hostNetwork"] is True
    assert template["spec"]["volumes"][-1] == {"name": plan.job_name}
    assert gpu_container(plan)["securityContext"] == {"privileged": True}
    assert plan.overrides[0].changes == ("container", "pod", "pod patch")


def test_patch_that_does_not_fit_names_override_entry_and_place(bench):
    broken = override(patch=({"op": "remove", "path": "/spec/nothing"},))
    with pytest.raises(CatalogProblem, match=r"^f.yaml:1:1: override one on communication/nccl-"):
        rendered(bench, "indexedJob", broken)


def test_objects_and_claims_are_created_first_and_owned_like_all_others(bench):
    parts = {
        "claims": {"channel": "${job}-channel"},
        "objects": (
            {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "ComputeDomain",
                "metadata": {"name": "${job}-domain"},
                "spec": {"numNodes": "${nodes}", "text": "n${nodes}"},
            },
        ),
    }
    plan = rendered(bench, "trainJob", override(**parts), override("two", claims={"roce": "r"}))
    first, last = plan.manifests[0], plan.manifests[-1]
    assert (first["kind"], last["kind"]) == ("ComputeDomain", "TrainJob")
    assert first["metadata"] == {**last["metadata"], "name": f"{plan.job_name}-domain"}
    assert first["spec"] == {"numNodes": 2, "text": "n2"}
    assert gpu_container(plan)["resources"]["claims"] == [{"name": "channel"}, {"name": "roce"}]
    (template,) = all_templates(plan.manifests)
    assert template["spec"]["resourceClaims"][0] == {
        "name": "channel",
        "resourceClaimTemplateName": f"{plan.job_name}-channel",
    }


def test_nics_are_asked_for_as_the_nodes_allocate_them(bench):
    efa = override(nic_resource="vpc.amazonaws.com/efa")
    known = rendered(bench, "indexedJob", efa, nics_per_node=32, nics={"vpc.amazonaws.com/efa": 16})
    unknown = rendered(bench, "indexedJob", efa, nics_per_node=32)
    none = rendered(bench, "indexedJob", efa, nics_per_node=32, nics={})
    assert gpu_container(known)["resources"]["limits"]["vpc.amazonaws.com/efa"] == "16"
    assert gpu_container(unknown)["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"
    assert list(gpu_container(none)["resources"]["limits"]) == ["nvidia.com/gpu"]


@pytest.mark.parametrize(
    ("nics", "found"),
    [
        ({"rdma/ib": 8}, "rdma/ib"),
        ({"rdma/ib": 8, "rdma/eth": 2}, "rdma/ib"),
        ({"nvidia.com/mlnxnics": 8}, "nvidia.com/mlnxnics"),
        ({"rdma/a": 8, "rdma/b": 8}, None),
        ({"rdma/a": 4}, None),
        ({}, None),
    ],
)
def test_auto_takes_the_only_nic_resource_that_every_node_has_enough_of(bench, nics, found):
    plan = rendered(bench, "indexedJob", override(nic_resource="auto"), nics_per_node=8, nics=nics)
    limits = gpu_container(plan)["resources"]["limits"]
    assert set(limits) - {"nvidia.com/gpu"} == ({found} if found else set())


def test_site_names_the_nic_resource_instead(bench):
    site = Site(nic_resource="rdma/own")
    plan = rendered(bench, "indexedJob", override(nic_resource="auto"), nics_per_node=8, site=site)
    assert gpu_container(plan)["resources"]["limits"]["rdma/own"] == "8"


def test_network_is_attached_once_for_each_nic(bench):
    parts = {"nic_resource": "nvidia.com/mlnxnics", "nic_network": "op/sriov"}
    plan = rendered(bench, "indexedJob", override(**parts), nics_per_node=3)
    (template,) = all_templates(plan.manifests)
    assert template["metadata"]["annotations"] == {
        "k8s.v1.cni.cncf.io/networks": "op/sriov,op/sriov,op/sriov"
    }
    none = rendered(bench, "indexedJob", override(**parts), nics_per_node=0)
    assert "annotations" not in all_templates(none.manifests)[0]["metadata"]


def test_option_defaults_come_from_the_overrides_that_hold(bench):
    h100 = When(architecture=Condition(is_in=("h100",)))
    b200 = When(architecture=Condition(equals="b200"))
    fitting = Fitting(
        architecture="h100",
        overrides=(
            override(when=h100, options={"size": "2", "other": "1"}),
            override(when=b200, options={"size": "4"}),
        ),
    )
    assert fitting.option_defaults(bench, "full-scale") == {"size": "2"}


def test_given_manifests_and_overrides_are_not_changed(bench):
    before = rendered(bench, "mpiJob").manifests
    objects = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${job}-x"}},)
    one = override(env={"A": "1"}, objects=objects)
    first, second = (rendered(bench, "mpiJob", one) for _ in range(2))
    assert first.manifests == second.manifests
    assert objects[0]["metadata"] == {"name": "${job}-x"}
    assert rendered(bench, "mpiJob").manifests == before
