"""The page: everything that the JSON has, and nothing that a browser would run or fetch."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_cre.judge.nodes import NodeFailure
from pytest_cre.plan.diagnose.model import NodeFinding
from pytest_cre.report.diagnosis import DiagnosisReport
from pytest_cre.report.failurelog import FailureLog
from pytest_cre.report.html.page import render_html
from pytest_cre.report.json import render_json
from pytest_cre.report.model import PlatformReport, RunReport

VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = (
    "<script>alert(1)</script>",
    "</pre></details><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "javascript:alert(1)",
    "\x1b[2J\x00\x07",
    "\u202egnirts\u2066",
    "&lt;b&gt;&amp;",
    "]]>-->",
    "\ud800\ufffe",
)


class Page(HTMLParser):
    """The page as a browser's parser takes it apart; tags must be balanced."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts, self.values = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.values += [value for name, value in attrs if tag == "data" and name == "value"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


def told_numbers(report):
    """Return every number of checks, figures and clocks in the JSON."""
    for item in json.loads(render_json(report))["items"]:
        yield item["duration_s"]
        yield from (each["value"] for each in item["recorded"].values())
        for group in item["groups"]:
            yield from (each["value"] for each in group["figures"].values())
            yield from (group[name] for name in ("queue_s", "start_s", "run_s"))
            for check in group["checks"]:
                yield from (check[name] for name in ("measured", "limit", "margin"))


def test_page_holds_every_number_of_the_json_with_all_digits(mixed_run):
    page = Page(render_html(mixed_run))
    told = [repr(number) for number in told_numbers(mixed_run) if number is not None]
    assert len(told) > 30
    assert [number for number in told if number not in page.values] == []


def test_page_tells_result_cluster_exclusions_sources_and_reasons(mixed_run):
    page = Page(render_html(mixed_run))
    for words in (
        "certification ERROR: 1 in error, 2 failed, 1 inconclusive, 1 unmet, 1 passed, 1 node excluded",
        "kubernetes v1.37.2",
        "gb200",
        "node-9cordonedspec.unschedulable",
        "published, a publication, 2026-09-01, profiles/architectures/gb200.yaml:12:5",
        "busbw 371.4 GB/s is 13.8 % below the gb200 limit 431 GB/s",
        "the log of pod cre-job-0 has a gap",
        "GET /apis/batch/v1/jobs: 500",
        "maxBytes16G",
        "site.power812.5 kW",
        'missing_limit"skip"nodes["node-0"]',
    ):
        assert words in page.text


def test_page_says_that_hardware_is_simulated(mixed_run):
    words = "simulated hardware, not a certification"
    assert words in Page(render_html(replace(mixed_run, is_simulated=True))).text
    assert words not in Page(render_html(mixed_run)).text


def test_page_names_what_was_left_behind_and_never_ran(mixed_run):
    report = replace(mixed_run, leftovers=("Job gpu/x",), planned=(*mixed_run.planned, "a::never"))
    text = Page(render_html(report)).text
    assert "Left behind in the clusterJob gpu/x" in text
    assert "Planned and never runa::never" in text


def test_page_tells_platform_warnings_and_a_diagnosis(mixed_run):
    finding = NodeFinding(node="n-3", domain="n-3", state="faulty", reason="slow")
    diagnosis = DiagnosisReport(rounds=2, tests=(), nodes=(finding,))
    item = replace(mixed_run.items[1], diagnosis=diagnosis)
    platform = PlatformReport(name="aws", told_by="providerID", settings="kind")
    report = replace(mixed_run, items=(item,), platform=platform, warnings=("beware",))
    text = Page(render_html(report)).text
    assert "platformaws, with the settings of kind (told by providerID)" in text
    assert "warning: beware" in text
    assert "Diagnosis: 0 tests in 2 rounds" in text
    assert "n-3n-3faultyslow" in text


def with_hostile_texts(report):
    text = "".join(HOSTILE)
    item = report.items[1]
    group = replace(
        item.groups[0],
        group=text,
        reasons=(text,),
        warnings=(text,),
        nodes=(text,),
        failed_nodes=(NodeFailure(node=text, reason="Stalled", message=text),),
        failure_log=FailureLog(pod=text, node=text, exit_code=1, reason=text, text=text),
    )
    item = replace(
        item,
        node_id=text,
        entry=text,
        groups=(group,),
        reasons=(text,),
        text=text,
        options={text: text},
        recorded={},
        kind=text,
        evidence=text,
    )
    return replace(
        report,
        items=(item,),
        run_id=text,
        architecture=text,
        nodes=(text,),
        leftovers=(text,),
        settings={text: text, "nodes": [text]},
        planned=(text,),
    )


def test_hostile_text_is_inert(mixed_run):
    plain, page = Page(render_html(mixed_run)), Page(render_html(with_hostile_texts(mixed_run)))
    assert set(page.tags) <= {*plain.tags, "ul", "li", "pre"}
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert "\\x00\\x07" in page.text
    assert "\\u202egnirts\\u2066" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page.text)


def test_page_needs_nothing_else(mixed_run):
    page = Page(render_html(with_hostile_texts(mixed_run)))
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert not {"src", "href", "action", "style"} & {name for name, _ in page.attributes}
    policies = [value for name, value in page.attributes if name == "content"]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policies
    assert "url(" not in render_html(mixed_run)
    assert "@import" not in render_html(mixed_run)


def test_failure_log_is_folded_below_its_group(mixed_run):
    item = mixed_run.items[1]
    log = FailureLog(pod="p-0", node="n-0", exit_code=137, reason="OOMKilled", text="a < b\nend\n")
    group = replace(item.groups[0], failure_log=log)
    text = render_html(replace(mixed_run, items=(replace(item, groups=(group,)),)))
    assert (
        "<summary>log of pod p-0 on node n-0, exit code 137 (OOMKilled)</summary>"
        "<pre>a &lt; b\nend\n</pre>"
    ) in text


def test_same_report_gives_the_same_bytes_also_from_its_json(mixed_run):
    page = render_html(mixed_run)
    assert render_html(mixed_run) == page
    assert render_html(RunReport.from_dict(json.loads(render_json(mixed_run)))) == page


@pytest.mark.parametrize("result", ["PASSED", "FAILED", "INCOMPLETE", "ERROR"])
def test_run_without_items_has_a_page(run, result):
    assert f"certification {result}: nothing was run" in Page(render_html(run(result=result))).text
