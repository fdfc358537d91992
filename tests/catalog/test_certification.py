"""Upstream's Certification: entries, scales, options, thresholds, target, scheduler; refusals."""

import pytest

from pytest_cre.catalog.certification_file import certification_of
from pytest_cre.catalog.digest import catalog_sha256
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.catalog.options import resolve_options
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.plan.overrides import Fitting
from pytest_cre.plan.site import NO_SITE, Site
from pytest_cre.plan.sitefile import site_for

HEAD = """\
apiVersion: cre.nvidia.com/v1alpha1
kind: Certification
metadata: {name: rack-validation}
spec:
  target: {nodeSelector: {nvidia.com/gpu.present: "true"}}
"""
RACK = """\
  categories:
    - domain: communication
      variant: nccl-all-reduce
      options:
        testScale: intra-rack
        enableMNNVL: true
        thresholds: {busBandwidthGBps: "value >= 900"}
    - domain: communication
      variant: nccl-all-reduce
      options: {maxBytes: 32G, numIterations: 10, timeoutPerJob: 30m}
    - domain: training
      variant: nemotron5-8b
      options: {nodesPerJob: 2}
"""
ALL_REDUCE = "communication/nccl-all-reduce"


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(),))


@pytest.fixture
def read(catalog):
    return lambda text: certification_of(HEAD + text, "cert.yaml", catalog)


@pytest.fixture
def refusal(read):
    def words(text):
        with pytest.raises(CatalogProblem) as raised:
            read(text)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    return words


def test_categories_are_entries_at_scales(read):
    found = [(each.entry, each.scale) for each in read(RACK).categories]

    assert found == [
        (ALL_REDUCE, "intra-rack"),
        (ALL_REDUCE, "full-scale"),
        ("training/nemotron5-8b", "full-scale"),
    ]


def test_threshold_is_a_given_limit_of_its_scale_only(read, catalog):
    entry = read(RACK).applied(catalog).entries[ALL_REDUCE]
    (limit,) = (each for each in entry.limits if each.tier == "given")

    assert (limit.operator, limit.value, limit.scale) == (">=", 900, "intra-rack")
    assert (limit.place, limit.source) == ("cert.yaml:12:40", "Certification cert.yaml")


def test_options_of_a_category_are_defaults_at_its_scale_only(read, catalog):
    entry = read(RACK).applied(catalog).entries[ALL_REDUCE]

    def options(scale):
        return resolve_options(entry, Fitting().option_defaults(entry, scale))

    assert (options("full-scale")["maxBytes"], options("intra-rack")["maxBytes"]) == ("32G", "16G")
    assert options("full-scale")["numIterations"] == "10"


def test_nvlink_between_nodes_is_set_where_it_is_asked_for(read, catalog):
    entry = read(RACK).applied(catalog).entries[ALL_REDUCE]
    env = [(each.when.scale.equals, dict(each.env)) for each in entry.overrides[-2:]]

    assert env == [("intra-rack", {"NCCL_MNNVL_ENABLE": "1"}), ("full-scale", {})]


def test_entry_of_a_category_has_its_timeout_and_the_others_their_own(read, catalog):
    certification = read(RACK)
    entry = catalog.entries[ALL_REDUCE]

    timeouts_s = [
        certification.category(ALL_REDUCE, scale).on(entry).timeout_s
        for scale in ("full-scale", "intra-rack")
    ]
    assert timeouts_s == [1800, entry.timeout_s]


@pytest.mark.parametrize(("nodes", "size"), [(8, 2), (1, 1)])
def test_nodes_per_job_is_at_most_what_there_is(read, nodes, size):
    category = read(RACK).category("training/nemotron5-8b", "full-scale")

    assert category.group_size(nodes) == size


def test_spec_options_hold_where_a_category_sets_none(read):
    categories = read(
        "  numCycles: 2\n  repeatCount: 3\n  thresholds: {busBandwidthGBps: value > 1}\n" + RACK
    ).categories

    assert [each.iterations for each in categories] == [3, 3, 3]
    assert [each.override.options.get("numCycles") for each in categories[:2]] == ["2", "2"]
    assert [each.override for each in categories[2:]] == [None]
    assert [[limit.value for limit in each.limits] for each in categories] == [[900], [1], []]


def test_target_becomes_selector_and_names(catalog):
    text = HEAD.replace(
        'nodeSelector: {nvidia.com/gpu.present: "true"}',
        "nodeSelector: {b: 1, a: x}, nodeNames: [n1], matchExpressions: [{key: k, operator: In, "
        "values: [v, w]}, {key: l, operator: NotIn, values: [z]}, {key: m, operator: Exists}, "
        "{key: n, operator: DoesNotExist}]",
    )
    found = certification_of(text + RACK, "cert.yaml", catalog)

    assert found.selector == "a=x,b=1,k in (v,w),l notin (z),m,!n"
    assert found.node_names == ("n1",)


def test_gang_scheduler_and_secrets_go_to_the_site(read):
    found = read(
        "  gangScheduler: {schedulerName: kai-scheduler}\n  imagePullSecrets: [{name: ngc}]\n"
        + RACK
    )
    site = site_for(Site(image_pull_secrets=("own",)), found)

    assert site.scheduler == "kai-scheduler"
    assert site.pod_labels == {"kai.scheduler/queue": "default-queue"}
    assert site.image_pull_secrets == ("own", "ngc")


def test_gang_scheduler_that_differs_from_the_sites_is_refused(read):
    found = read("  gangScheduler: {schedulerName: kai-scheduler}\n" + RACK)

    with pytest.raises(UsageProblem, match=r"^cert\.yaml: the scheduler 'kai-scheduler' differs"):
        site_for(Site(scheduler="volcano"), found)


def test_site_without_a_certification_stays(read):
    assert site_for(NO_SITE, None) is NO_SITE


def test_devices_of_the_nodes_are_opened_for_the_whole_run(read, refusal):
    found = read("  rdmaDeviceAccess: hostPath\n" + RACK)
    assert found.rdma_device_access == "hostPath"
    assert site_for(NO_SITE, found).has_host_rdma
    assert site_for(Site(rdma_device_access="hostPath"), read(RACK)).has_host_rdma
    with pytest.raises(UsageProblem, match="the RDMA device access 'hostPath' differs from 'devi"):
        site_for(Site(rdma_device_access="devicePlugin"), found)
    assert "rdmaDeviceAccess must be one of devicePlugin, hostPath, got 'host'" in refusal(
        ONE.format("rdmaDeviceAccess: host")
    )


def test_document_read_again_gives_the_same_catalog(read, catalog):
    first, second = (catalog_sha256(read(RACK).applied(catalog)) for _ in range(2))

    assert first == second != catalog_sha256(catalog)


def test_measurement_timeout_is_told_to_have_no_effect(read):
    (note,) = read("  measurementTimeout: 5m\n" + RACK).notes

    assert note == "cert.yaml:6:23: measurementTimeout has no effect: logs are read to their end"


def test_diagnosis_has_its_own_defaults_and_group_size(catalog):
    text = HEAD + "  minGroupSize: 4\n  repeatCount: 3\n" + RACK.replace("intra-rack", "diagnose")
    found = certification_of(text, "cert.yaml", catalog)
    diagnosis, full = found.categories[:2]
    entry = found.applied(catalog).entries[ALL_REDUCE]
    options = resolve_options(entry, Fitting().option_defaults(entry, "diagnose"))

    assert (diagnosis.scale, diagnosis.min_group_size, diagnosis.iterations) == ("diagnose", 4, 1)
    assert (full.min_group_size, full.iterations) == (2, 3)
    assert diagnosis.on(entry.at("diagnose")).timeout_s == 900
    assert (options["numIterations"], options["numCycles"]) == ("5", "1")
    assert entry.scales_on_request == ()


ONE = "  categories: [{{domain: communication, variant: nccl-all-reduce, options: {{{}}}}}]\n"


@pytest.mark.parametrize(
    "option",
    [
        "mlnxPerNode: 8",
        "placement: Unpinned",
        "resources: {limits: {cpu: 6}}",
        "saveRetainInterval: 10",
        "saveTopK: 1",
        "sourceRepo: 'https://example.org/x'",
        "startupStallTimeoutSeconds: 60",
    ],
)
def test_unsupported_option_is_refused_by_name(refusal, option):
    name = option.partition(":")[0]

    assert refusal(ONE.format(option)).startswith("cert.yaml:6:")
    assert f"spec.categories[0].options.{name} is not supported" in refusal(ONE.format(option))
    assert f"spec.{name} is not supported" in refusal(f"  {option}\n" + RACK)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ONE.format("testScale: diagnos"),
            "must be one of full-scale, intra-node, intra-rack, diagnose",
        ),
        (ONE.format("minGroupSize: 2"), "minGroupSize has no meaning at full-scale; take it out"),
        (ONE.format("minGroupSize: 0, testScale: diagnose"), "must be at least 1"),
        (
            ONE.format("repeatCount: 2, testScale: diagnose"),
            "repeatCount has no meaning at diagnose",
        ),
        (
            ONE.format("nodesPerJob: 2, testScale: diagnose"),
            "nodesPerJob has no meaning at diagnose",
        ),
        ("  minGroupSize: 4\n" + ONE.format(""), "no category takes minGroupSize"),
        (
            "  categories: [{domain: communication, variant: nccl-loopback, options: "
            "{testScale: diagnose}}]\n",
            "communication/nccl-loopback cannot run at diagnose; choices: intra-node",
        ),
        (ONE.format("maxByte: 1G"), "is an unknown key; did you mean 'maxBytes'"),
        (
            ONE.format("maxBytes: 1Q"),
            "option 'maxBytes' of communication/nccl-all-reduce must match",
        ),
        (ONE.format("maxSteps: 5"), "communication/nccl-all-reduce has no option maxSteps"),
        (ONE.format("thresholds: {goodputRatio: value > 0}"), "so nothing gives goodputRatio"),
        (ONE.format("thresholds: {busBandwith: value > 0}"), "threshold 'busBandwith' is unknown"),
        (ONE.format("testScale: intra-node, nodesPerJob: 2"), "has no meaning at intra-node"),
        (ONE.format("workloadMetadata: {labels: {team: a}}"), "'team', which is not supported"),
        ("  maxSteps: 5\n" + ONE.format(""), "no category takes maxSteps"),
        ("  thresholds: {goodputRatio: value > 0}\n" + ONE.format(""), "no category measures"),
        ("  thresholds: {goodput: value > 0}\n" + ONE.format(""), "threshold 'goodput' is unknown"),
        ("  categories: []\n", "must not be empty"),
        (
            "  categories: [{domain: communication, variant: nccl-all-reduc}]\n",
            "category 'communication/nccl-all-reduc' is unknown",
        ),
        (
            "  categories: [{domain: communication, variant: nccl-loopback, options: "
            "{testScale: full-scale}}]\n",
            "communication/nccl-loopback cannot run at full-scale; choices: intra-node",
        ),
        (RACK + RACK.replace("  categories:\n", ""), "stands twice, first in cert.yaml:7:7"),
        (
            "  gangScheduler: {schedulerName: a, queueLabelKey: cre.pytest.org/run}\n" + RACK,
            "which the harness owns",
        ),
    ],
)
def test_what_the_catalog_cannot_do_is_refused_in_one_line_with_its_place(refusal, text, words):
    line = refusal(text)

    assert line.startswith("cert.yaml:")
    assert words in line


def test_taint_selectors_are_refused_by_name(catalog):
    text = HEAD.replace("nodeSelector:", "taintSelectors: [{key: a}], nodeSelector:") + RACK

    with pytest.raises(CatalogProblem, match=r"spec\.target\.taintSelectors is not supported"):
        certification_of(text, "cert.yaml", catalog)


def test_workload_run_given_as_a_certification_names_its_option(catalog):
    with pytest.raises(CatalogProblem, match="a WorkloadRun belongs to --cre-workload"):
        certification_of("kind: WorkloadRun\n", "w.yaml", catalog, "Certification")


TRAINING = """\
  categories:
  - domain: training
    variant: nemotron5-8b
    options: {OPTIONS}
"""


def test_checkpoint_options_become_those_of_the_entry(read):
    options = "{enableCheckpoint: true, maxRestarts: 1, storageClassName: fast, storageSize: 2.5Ti}"
    (category,) = read(TRAINING.replace("{OPTIONS}", options)).categories

    assert category.override.options == {
        "enableCheckpoint": "true", "maxRestarts": "1", "storageClassName": "fast",
        "storageSize": "2.5Ti",
    }  # fmt: skip


def test_checkpoint_options_that_no_volume_can_have_are_refused(refusal):
    words = refusal(TRAINING.replace("{OPTIONS}", "{enableCheckpoint: true, storageSize: 10 TB}"))

    assert "option 'storageSize' of training/nemotron5-8b must match" in words


def test_checkpoint_option_of_a_category_without_one_is_refused(refusal):
    words = refusal(ONE.format("enableCheckpoint: true"))

    assert "communication/nccl-all-reduce has no option enableCheckpoint" in words


def test_fields_that_are_not_supported_are_all_named_at_once(refusal):
    text = """\
  sourceRepo: x
  categories:
    - domain: communication
      variant: nccl-all-reduce
      options: {placement: x, mlnxPerNode: 4}
"""
    assert refusal(text) == (
        "cert.yaml:6:15: spec.sourceRepo, spec.categories[0].options.placement (10:28), "
        "spec.categories[0].options.mlnxPerNode (10:44) are not supported; take them out, or run this "
        "in another way"
    )


def test_field_that_alone_is_not_supported_is_told_by_itself(refusal):
    assert refusal("  sourceRepo: x\n" + RACK) == (
        "cert.yaml:6:15: spec.sourceRepo is not supported; take it out, or run this in another way"
    )
