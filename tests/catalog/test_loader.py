import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.errors import CatalogProblem, UsageProblem

from .conftest import ARCHITECTURE, ENTRY, PROFILE


def test_entry_is_read_whole(folder):
    folder.entry()
    entry = folder.load().entry("mine/bench")
    assert (entry.domain, entry.variant, entry.label_value) == ("mine", "bench", "mine.bench")
    assert (entry.measures, entry.test, entry.image) == (
        "bandwidth",
        "all_reduce",
        "example.org/bench:1",
    )
    assert (entry.timeout_s, entry.start_timeout_s) == (3600.0, 300.0)
    assert entry.scales == ("full-scale", "intra-node")
    assert entry.env == {"NCCL_DEBUG": "INFO"}
    assert entry.options["maxBytes"].default == "16G"
    assert entry.workloads["mpiJob"].args == ("-e", "${maxBytes}", "-N", "${gpusPerNode}")
    assert entry.place == "catalog/mine/bench.yaml:1:1"


def test_workloads_keep_the_order_of_the_file_as_order_of_preference(folder):
    folder.entry()
    assert list(folder.load().entry("mine/bench").workloads) == ["mpiJob", "indexedJob"]


def test_numbers_in_arguments_keep_what_was_written(folder):
    folder.entry(ENTRY.replace('[-e, "${maxBytes}", -N,', "[007, 6e-4, 1.50,"))
    args = folder.load().entry("mine/bench").workloads["mpiJob"].args
    assert args == ("007", "6e-4", "1.50", "${gpusPerNode}")


def test_copy_of_an_entry_under_another_name_is_another_entry(folder):
    path = folder.entry()
    shutil.copy(path, path.with_name("bench-2.yaml"))
    assert list(folder.load().entries) == ["mine/bench", "mine/bench-2"]


def test_profile_is_named_by_its_metadata_not_by_its_file(folder):
    folder.profile(name="other-file")
    folder.entry(ENTRY.replace("nccl-bandwidth", "my-bench"))
    profile = folder.load().log_profile("my-bench")
    assert profile.patterns["bandwidthResult"].example == "8 1.0 2.0"
    assert profile.timestamp_layout == "2006-01-02 15:04:05"
    assert profile.reads == "bandwidth"


def test_architecture_is_read_with_its_limits(folder):
    folder.entry()
    folder.architecture()
    architecture = folder.load().architecture("x1")
    assert (architecture.gpus_per_node, architecture.nics_per_node) == (4, 2)
    (limit,) = architecture.limits
    assert (limit.metric, limit.operator, limit.value, limit.unit) == ("busbw", ">=", 90.0, "GB/s")
    assert (limit.statistic, limit.size_bytes) == ("at-size", 16 * 1024**3)
    assert (limit.scale, limit.min_nodes, limit.max_nodes) == ("full-scale", 2, 4)
    assert (limit.architecture, limit.fabric, limit.tier) == ("x1", "roce", "site")
    assert (limit.source, limit.date) == ("our own acceptance runs", "2026-11-30")
    assert limit.note == "0.9 x 100"
    assert limit.place == "profiles/architectures/x1.yaml:6:5"


def test_maps_are_sorted_by_name_whatever_the_order_of_folders(folder, tmp_path):
    folder.entry(name="z/last")
    folder.entry(name="a/first")
    catalog = load_catalog(
        suites=[folder.suites, shipped_suites()], profiles=[folder.profiles, shipped_profiles()]
    )
    for names in (catalog.entries, catalog.log_profiles, catalog.architectures):
        assert list(names) == sorted(names)
    assert next(iter(catalog.entries)) == "a/first"


def test_name_that_stands_in_two_catalogs_is_refused_with_both_places(folder, tmp_path):
    folder.entry()
    other = tmp_path / "other" / "mine"
    other.mkdir(parents=True)
    (other / "bench.yaml").write_text(ENTRY)
    with pytest.raises(CatalogProblem) as caught:
        load_catalog(suites=[folder.suites, other.parent], profiles=[shipped_profiles()])
    assert str(caught.value) == (
        "other/mine/bench.yaml:1:1: the name 'mine/bench' stands also in "
        "catalog/mine/bench.yaml:1:1"
    )


def test_profile_that_shadows_a_shipped_one_is_refused(folder):
    folder.entry()
    folder.profile(PROFILE.replace("my-bench", "nccl-bandwidth"))
    message = folder.problem()
    assert message.startswith("profiles/logs/my-bench.yaml:4:9: the name 'nccl-bandwidth' stands")
    assert message.endswith("profiles/logs/nccl-bandwidth.yaml:4:9")


def test_folder_that_is_named_twice_is_read_once(folder):
    folder.entry()
    again = folder.suites.parent / "profiles" / ".." / "catalog"
    catalog = load_catalog(
        suites=[folder.suites, again], profiles=[shipped_profiles(), shipped_profiles()]
    )
    assert list(catalog.entries) == ["mine/bench"]


def test_product_label_of_two_architectures_is_refused(folder):
    folder.entry()
    folder.architecture()
    folder.architecture(name="x2")
    assert folder.problem() == (
        "profiles/architectures/x2.yaml:2:17: product label 'EXAMPLE-X1' stands also in "
        "profiles/architectures/x1.yaml:2:17"
    )


@pytest.mark.parametrize("name", ["_lib/part", ".hidden/part"])
def test_folder_of_fragments_is_no_domain(folder, name):
    folder.entry()
    folder.entry("not: an entry", name=name)
    assert list(folder.load().entries) == ["mine/bench"]


def test_folder_without_an_entry_is_no_catalog(folder):
    folder.suites.mkdir()
    words = "a catalog is a folder that holds <domain>/<variant>.yaml"
    assert folder.problem() == f"catalog: {words}"


def test_catalog_that_does_not_exist_is_refused(folder):
    assert folder.problem() == "catalog: a catalog is a folder, with <domain>/<variant>.yaml"


def test_profiles_folder_without_profiles_is_refused(folder):
    folder.entry()
    with pytest.raises(
        CatalogProblem, match=r"^catalog: profiles are a folder that holds logs/, arch"
    ):
        load_catalog(suites=[folder.suites], profiles=[folder.suites])


def test_file_that_ends_in_yml_is_told_instead_of_passed_over(folder):
    folder.entry().rename(folder.suites / "mine" / "bench.yml")
    assert folder.problem() == "catalog/mine/bench.yml:1:1: is not read; rename it to bench.yaml"


def test_file_that_is_no_text_is_refused(folder):
    folder.entry(b"description: \xff\xfe")
    assert folder.problem() == "catalog/mine/bench.yaml:1:1: byte 13 is not UTF-8"


def test_file_that_cannot_be_read_is_refused(folder):
    (folder.suites / "mine" / "bench.yaml").mkdir(parents=True)
    assert folder.problem() == "catalog/mine/bench.yaml:1:1: cannot be read: Is a directory"


def test_match_takes_shell_patterns_on_names_sorted(folder):
    for name in ("b/two", "b/one", "a/one"):
        folder.entry(name=name)
    catalog = folder.load()
    assert [entry.name for entry in catalog.match(["b/*"])] == ["b/one", "b/two"]
    assert [entry.name for entry in catalog.match(["*/one", "b/*"])] == ["a/one", "b/one", "b/two"]
    assert catalog.match([]) == ()
    assert catalog.match(["z/*"], may_be_empty=True) == ()


@pytest.mark.parametrize(
    ("look_up", "words"),
    [
        (
            lambda catalog: catalog.entry("mine/bnech"),
            "unknown entry 'mine/bnech'; did you mean 'mine/bench'? choices: mine/bench",
        ),
        (
            lambda catalog: catalog.match(["theirs/*"]),
            "no catalog entry matches 'theirs/*'; choices: mine/bench",
        ),
        (
            lambda catalog: catalog.architecture("h10"),
            "unknown GPU architecture 'h10'; did you mean 'h100'? choices: ",
        ),
        (
            lambda catalog: catalog.check_architecture("v100"),
            "unknown GPU architecture 'v100'; did you mean 'h100'? choices: ",
        ),
        (
            lambda catalog: catalog.log_profile("megatron"),
            "unknown log profile 'megatron'; did you mean 'megatron-bridge'? choices: dcgm, ",
        ),
    ],
)
def test_look_up_of_an_unknown_name_tells_the_choices(folder, look_up, words):
    folder.entry()
    with pytest.raises(UsageProblem) as caught:
        look_up(folder.load())
    assert str(caught.value).startswith(words)


def test_architecture_that_is_not_asked_for_is_no_mistake(folder):
    folder.entry()
    folder.load().check_architecture(None)


def test_catalog_with_other_entries_holds_exactly_those(folder):
    folder.entry(name="b/two")
    folder.entry(name="a/one")
    catalog = folder.load()
    assert list(catalog.with_entries(reversed(list(catalog.entries.values()))).entries) == [
        "a/one",
        "b/two",
    ]
    assert catalog.with_entries([]).entries == {}


@pytest.mark.parametrize("kind", ["entry", "profile", "architecture"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
)
@given(data=st.data())
def test_any_text_is_loaded_or_refused_in_one_line(folder, kind, data):
    whole = {"entry": ENTRY, "profile": PROFILE, "architecture": ARCHITECTURE}[kind]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    noise = data.draw(st.text(max_size=20) | st.text("{}[]:-&*!#|>'\"$\n 0", max_size=10))
    folder.entry()
    folder.profile(PROFILE.replace("my-bench", "nccl-bandwidth"), name="nccl")
    getattr(folder, kind)((whole[:start] + noise + whole[end:]).encode(errors="surrogatepass"))
    told = "one line"
    try:
        load_catalog(suites=[folder.suites], profiles=[folder.profiles])
    except CatalogProblem as problem:
        told = str(problem)
    assert len(told.splitlines()) == 1


def test_shipped_folders_are_there_however_the_package_is_installed():
    assert (shipped_suites() / "communication" / "nccl-all-reduce.yaml").is_file()
    assert (shipped_profiles() / "logs").is_dir()
    assert isinstance(shipped_suites(), Path)


def test_replacing_profiles_take_the_place_of_their_namesakes(folder, tmp_path):
    folder.entry()
    folder.architecture()
    other = tmp_path / "strict/architectures"
    other.mkdir(parents=True)
    text = next(folder.profiles.rglob("x1.yaml")).read_text()
    (other / "x1.yaml").write_text(text.replace("gpusPerNode: 4", "gpusPerNode: 6"))

    catalog = load_catalog(
        suites=[folder.suites],
        profiles=[shipped_profiles(), folder.profiles],
        replacing=[other.parent],
    )

    assert catalog.architectures["x1"].gpus_per_node == 6
    assert "h100" in catalog.architectures
