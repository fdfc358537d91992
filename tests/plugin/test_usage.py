"""A user's mistakes: one line, exit code 4, no traceback."""

import os

import pytest

from pytest_cre.options import add_options
from pytest_cre.settings import check_writable

MINE = """
import pytest

@pytest.mark.certification({patterns})
def test_mine(cre_bandwidth):
    pass
"""


@pytest.fixture(autouse=True)
def _no_cluster_configured(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def run(pytester, *arguments: str, patterns: str = "'communication/*'"):
    pytester.makepyfile(MINE.format(patterns=patterns))
    return pytester.runpytest("-m", "certification", "-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--cre-option", "maxByte=8G"), "*option 'maxByte'*maxBytes*"),
        (("--cre-option", "maxBytes=lots"), "*option 'maxBytes'*must match*'lots'*"),
        (("--cre-arch", "h10"), "*architecture 'h10'*h100*"),
        (("--cre-scale", "galaxy"), "*scale 'galaxy'*full-scale*"),
        (("--cre-catalog", "missing"), "*--cre-catalog: no such file or folder: missing*"),
        (("--cre-profiles", "missing"), "*--cre-profiles: no such file or folder: missing*"),
        (("--cre-kubeconfig", "missing"), "*--cre-kubeconfig: no such file: missing*"),
        (("--cre-cluster", "moon"), "*--cre-cluster*invalid choice: 'moon'*"),
        (("--cre-max-nodes", "0"), "*must be a whole number of at least 1, got '0'*"),
        (("--cre-option", "maxBytes"), "*must be KEY=VALUE*"),
        (("--cre-accept-excluded", "foo"), "*unknown reason 'foo'; choices: *cordoned*"),
        (("--cre-json", "."), "*--cre-json: is a folder, not a file*"),
        (("--cre-json", "/proc/x/r.json"), "*--cre-json: /proc/x cannot be made*"),
        (("--cre-json", "/proc/r.json"), "*--cre-json: /proc/r.json cannot be written: *"),
        (("--cre-html", "/dev/full"), "*--cre-html: /dev/full cannot be written: No space left*"),
        (("--cre-evidence", "/proc/x"), "*--cre-evidence: /proc/x cannot be written: *"),
        (("--cre-nodes", ","), "*--cre-nodes: must name something, got ','*"),
        (("--cre-node-selector", "a b"), "*--cre-node-selector: label selector 'a b'*forms:*"),
        (("--cre-context", "x"), "*--cre-context belongs to --cre-cluster kubernetes*"),
    ],
    ids=lambda value: value[0] + value[1] if isinstance(value, tuple) else "",
)
def test_wrong_option_ends_the_run_in_one_line(pytester, arguments, line):
    result = run(pytester, *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([line])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


class Names:
    """Takes the names of options in place of pytest's parser."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def getgroup(self, *_: str) -> "Names":
        return self

    def addoption(self, name: str, **_: object) -> None:
        self.found.append(name)

    def addini(self, *_: object, **__: object) -> None:
        pass

    @classmethod
    def of_all_options(cls) -> list[str]:
        names = cls()
        add_options(names)
        return names.found


@pytest.mark.parametrize("value", ["", " "], ids=["empty", "blank"])
@pytest.mark.parametrize("name", Names.of_all_options())
def test_empty_value_is_refused_by_name_and_not_taken_for_an_option_left_out(pytester, name, value):
    result = run(pytester, f"{name}={value}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*{name}: needs a value, got {value!r}; is a variable not set[?]"]
    )
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_empty_value_after_a_blank_is_refused_as_well(pytester):
    result = run(pytester, "--cre-nodes", "")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--cre-nodes: needs a value, got ''*"])


def test_evidence_folder_that_is_a_file_ends_the_run_before_it_begins(pytester):
    pytester.makefile(".txt", taken="x")

    result = run(pytester, "--cre-evidence=taken.txt")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--cre-evidence: is a file, not a folder: */taken.txt"])


@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout", "new.json", "old.json", "pipe"])
def test_target_that_can_be_written_is_left_as_it_is(tmp_path, name):
    (tmp_path / "old.json").write_text("old")
    os.mkfifo(tmp_path / "pipe")

    check_writable("--cre-json", tmp_path / name, is_folder=False)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["old.json", "pipe"]
    assert (tmp_path / "old.json").read_text() == "old"


def test_evidence_folder_is_made_and_left_empty(tmp_path):
    check_writable("--cre-evidence", tmp_path / "evidence", is_folder=True)

    assert list((tmp_path / "evidence").iterdir()) == []


@pytest.mark.parametrize(
    ("patterns", "line"),
    [
        ("'communication/ncl-all-reduce'", "*'communication/ncl-all-reduce'*nccl-all-reduce*"),
        ("5", "*patterns must be texts*got*5*"),
        ("", "*name entries, such as 'communication/*'*"),
    ],
    ids=["unknown-entry", "not-a-text", "none"],
)
def test_wrong_marker_ends_the_run_in_one_line(pytester, patterns, line):
    result = run(pytester, patterns=patterns)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([line])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_malformed_entry_is_told_with_its_place(pytester):
    folder = pytester.mkdir("mine") / "communication"
    folder.mkdir()
    (folder / "broken.yaml").write_text("description: x\nmeasures: bandwidth\nimagee: y\n")

    result = run(pytester, "--cre-catalog", "mine")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*communication/broken.yaml:*:*: *"])
    assert "Traceback" not in result.stderr.str()


def test_configured_cluster_without_a_choice_is_refused(pytester, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/somewhere/config")

    result = run(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--cre-cluster is needed*KUBECONFIG*kubernetes*embedded*"])


def test_unknown_scenario_is_a_usage_error(pytester):
    result = run(pytester, "--cre-scenario", "no-such-scenario")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no-such-scenario*h100-8*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_setup_only_is_refused_for_it_would_judge_nothing(pytester):
    result = run(pytester, "--setup-only")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--setup-only would run workloads and judge none*"])


def test_setup_plan_certifies_nothing(pytester):
    result = run(pytester, "--setup-plan")

    assert "certification PASSED" not in result.stdout.str()


@pytest.mark.parametrize("mode", ["each", "loadscope", "loadfile", "loadgroup"])
def test_distribution_that_runs_items_twice_is_refused(pytester, mode):
    result = run(pytester, "-n", "2", "--dist", mode)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--dist {mode}: would run items twice*load, worksteal*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_workers_on_other_machines_are_refused(pytester):
    result = run(pytester, "--dist", "load", "--tx", "2*ssh=host")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tx 2[*]ssh=host: workers share this machine's*"])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_mistake_that_collection_finds_is_one_line_with_and_without_workers(pytester, workers):
    pytester.makepyfile(MINE.format(patterns="'communication/ncl-all-reduce'"))
    arguments = ("-m", "certification", "-p", "no:cacheprovider", "-n", workers)
    arguments += ("--cre-scenario", "h100-2")

    result = pytester.runpytest_subprocess(*arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'communication/ncl-all-reduce'*nccl-all-reduce*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_node_that_does_not_exist_ends_the_run_in_one_line(pytester, workers):
    result = run(pytester, "-n", workers, "--cre-scenario", "h100-2", "--cre-nodes", "node-9")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*node 'node-9' does not exist; GPU nodes: *"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_context_that_does_not_exist_ends_the_run_in_one_line(pytester, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("contexts: [{name: here, context: {}}, {name: there, context: {}}]\n")

    result = run(pytester, "--cre-kubeconfig", str(kubeconfig), "--cre-context", "nowhere")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*context 'nowhere'*choices: here, there*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "is_told"),
    [
        (("-m", "certification"), True),
        (("--cre-scenario=h100-2",), True),
        ((), False),
    ],
)
def test_run_that_finds_no_certification_test_says_where_they_are(pytester, arguments, is_told):
    pytester.makepyfile("")
    done = pytester.runpytest("-p", "no:cacheprovider", *arguments)

    hint = (
        "cre: no certification tests here; name suites/ or --pyargs pytest_cre.suites, or write one "
        "(README, Your own test)"
    )
    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert (hint in done.outlines) is is_told


def test_run_whose_certification_tests_are_deselected_is_not_told_that_there_are_none(pytester):
    done = pytester.runpytest(
        "-m", "certification", "--pyargs", "pytest_cre.suites", "-k", "nothing-of-the-kind"
    )

    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    done.stdout.no_fnmatch_line("*no certification tests here*")


@pytest.mark.parametrize(
    "words",
    [
        "Cluster to certify: embedded, controlplane, kubernetes",
        "or the published ones: scenario, published",
        "that no limit applies to: skip, fail, record",
        "keep a workload's objects: never, failed, always",
        "Platform of the nodes: aws, azure, forge, gcp, mistral, nscale, oci, onprem, simulated",
        "GPU architecture to certify: a100, b200, b300, gb200, gb300, h100",
        "items of this scale: full-scale, intra-node, intra-rack, diagnose",
        "Simulated hardware of a local cluster: a100-4, b200-4",
    ],
)
def test_help_names_the_choices_of_an_option(pytester, words):
    text = " ".join(pytester.runpytest("--help").stdout.str().split())
    assert words in text
