"""The samples of upstream's documents in the reference are taken as they stand."""

import re
from pathlib import Path

from pytest_cre.catalog.certification_file import read_certification
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "upstream-documents.md"
SAMPLE = re.compile(r"```yaml\n(# (\S+)\n.*?)```", re.DOTALL)


def samples(folder):
    for content, name in SAMPLE.findall(PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(content)
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


def test_sample_of_a_certification_is_the_items_and_limits_that_it_names(tmp_path):
    catalog = samples(tmp_path)
    found = read_certification(tmp_path / "certification.yaml", catalog, "Certification")

    assert [(each.entry, each.scale) for each in found.categories] == [
        ("communication/nccl-all-reduce", "intra-rack"),
        ("training/nemotron5-8b", "full-scale"),
    ]
    limits = [(limit.metric, limit.value) for each in found.categories for limit in each.limits]
    assert limits == [("busbw", 800), ("tflops_per_gpu", 1000)]


def test_sample_of_a_workload_run_is_an_entry_that_measures_bandwidth(tmp_path):
    catalog = samples(tmp_path)
    found = read_certification(tmp_path / "workloadrun.yaml", catalog, "WorkloadRun")

    entry = found.applied(catalog).entry("workload/all-reduce-perf")
    assert (entry.measures, entry.test) == ("bandwidth", "all_reduce")
