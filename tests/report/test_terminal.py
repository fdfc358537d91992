from dataclasses import dataclass, replace

from pytest_cre.report.model import PlatformReport
from pytest_cre.report.terminal import header_lines, result_line, summary_lines


def lines_of(report):
    return [line for line, _ in summary_lines(report)]


def test_result_line_counts_what_passed(check, group, item, reported, run):
    items = [reported(item(group(check(412.0)), entry=f"communication/{name}")) for name in "abc"]

    assert result_line(run(*items)) == "certification PASSED: 3 passed"


def test_result_line_names_every_kind_of_verdict_and_what_was_not_tested(mixed_run):
    report = replace(mixed_run, planned=(*mixed_run.planned, "zz"))

    assert result_line(report) == (
        "certification ERROR: 1 in error, 2 failed, 1 inconclusive, 1 unmet, 1 passed, 1 not run, "
        "1 node excluded"
    )


def test_result_line_of_nothing_says_so(run):
    assert result_line(run(result="INCOMPLETE")) == "certification INCOMPLETE: nothing was run"


def test_summary_lines_table_shows_metric_measured_limit_margin_and_verdict(
    check, group, item, reported, run
):
    verdict = item(group(check(371.4), reasons=["too slow"]))
    lines = lines_of(run(reported(verdict), result="FAILED"))

    assert ("nccl-all-reduce  busbw (GB/s)     371.4  >= 400  -7.2 %  fail") in lines
    assert "communication/nccl-all-reduce: fail: too slow (8 nodes: node-0..7)" in lines
    assert lines[-1] == "certification FAILED: 1 failed"


def test_summary_lines_are_at_most_100_columns_and_end_with_the_result(mixed_run):
    long_names = replace(
        mixed_run,
        items=tuple(
            replace(item, entry=f"communication/{'very-long-name-' * 8}{index}")
            for index, item in enumerate(mixed_run.items)
        ),
    )
    for report in (mixed_run, long_names):
        lines = lines_of(report)
        assert max(map(len, lines)) <= 100
        assert lines[-1].startswith("certification ERROR: ")


def test_summary_lines_name_reasons_exclusions_and_recorded_figures(mixed_run):
    text = "\n".join(lines_of(mixed_run))

    assert "training/other: error: GET /apis/batch/v1/jobs: 500" in text
    assert "excluded node node-9: cordoned: spec.unschedulable" in text
    assert "nccl-alltoall: unmet: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu." in text
    assert "site.power (kW)" in text


def test_summary_lines_several_groups_show_the_worst_with_its_count(mixed_run):
    failed = mixed_run.items[1]
    passed = replace(failed, code="pass", groups=(failed.groups[0], failed.groups[0]))

    for item, words in ((failed, "group-1"), (passed, "worst of 2")):
        rows = [line for line in lines_of(replace(mixed_run, items=(item,))) if "busbw (" in line]
        assert len(rows) == 1
        assert f"nccl-all-reduce@intra-node  {words}  " in rows[0]


def test_summary_lines_reason_of_one_group_of_several_names_its_nodes(mixed_run):
    text = " ".join(line.strip() for line in lines_of(mixed_run))

    assert (
        "communication/nccl-all-reduce@intra-node: fail: group-1 (node node-0): busbw 371.4 GB/s is "
    ) in text


def test_summary_lines_entries_of_one_variant_are_told_apart_by_domain(
    check, group, item, reported, run
):
    names = ("communication/loopback", "diagnostics/loopback")
    text = "\n".join(lines_of(run(*(reported(item(group(check(412.0)), entry=n)) for n in names))))

    assert all(f"{name}  " in text for name in names)


def test_summary_lines_thousand_groups_stay_short(check, group, item, reported, run):
    groups = [group(check(300.0), name=f"group-{number}") for number in range(1000)]

    assert len(lines_of(run(reported(item(*groups)), result="FAILED"))) < 30


def test_summary_lines_simulated_run_starts_with_the_watermark(mixed_run):
    line, markup = summary_lines(replace(mixed_run, is_simulated=True))[0]

    assert line == "simulated hardware, not a certification"
    assert markup["yellow"]


def test_summary_lines_colour_follows_the_result(run):
    for result, colour in (("PASSED", "green"), ("FAILED", "red"), ("INCOMPLETE", "yellow")):
        assert summary_lines(run(result=result))[-1][1][colour]


@dataclass
class Settings:
    cluster: str
    scenario: str = "h100-8"
    architecture: str | None = None


@dataclass
class Catalog:
    entries: tuple[str, ...]


def test_header_lines_local_cluster_says_that_it_is_simulated():
    assert header_lines(Settings("embedded"), Catalog(("a", "b"))) == [
        "cre: cluster embedded (h100-8), 2 catalog entries, simulated hardware, not a certification"
    ]


def test_header_lines_real_cluster_names_the_architecture_asked_for():
    settings = Settings("kubernetes", architecture="gb200")

    assert header_lines(settings, Catalog(("a",))) == [
        "cre: cluster kubernetes, 1 catalog entry, architecture gb200"
    ]


AWS = PlatformReport(name="aws", told_by="providerID aws://", settings="onprem")
WARNING = "platform aws has no settings for l40 (it knows h100); those of onprem are taken"


def test_summary_lines_name_the_platform_its_fallback_and_the_warnings(run):
    lines = lines_of(replace(run(), platform=AWS, warnings=(WARNING,)))

    assert "platform aws, with the settings of onprem (told by providerID aws://)" in lines
    assert f"warning: {WARNING}" in lines


def test_summary_lines_of_a_platform_with_own_settings_name_no_other(run):
    own = replace(AWS, settings="aws")

    assert "platform aws (told by providerID aws://)" in lines_of(replace(run(), platform=own))
    assert not any(line.startswith("platform") for line in lines_of(run()))


def test_summary_lines_several_tests_of_an_entry_are_told_apart(check, group, item, reported, run):
    verdict = item(group(check(412.0)))
    items = [
        replace(reported(verdict), node_id=f"test_mine.py::{test}[nccl-all-reduce]")
        for test in ("test_fast", "test_steady")
    ]
    text = "\n".join(lines_of(run(*items)))

    for test in ("test_fast", "test_steady"):
        assert f"communication/nccl-all-reduce {test}  " in text


def test_summary_lines_attempt_made_again_is_none_of_those_that_count(
    check, group, item, reported, run
):
    whole = reported(item(group(check(412.0))))
    lost = replace(whole.groups[0], code="inconclusive", is_retried=True)
    text = "\n".join(lines_of(run(replace(whole, groups=(lost, *whole.groups)))))

    assert "worst of" not in text
    assert f"{whole.groups[0].title}, retried  " in text
