"""Limits of one's own for a shipped architecture, without repeating it."""

import pytest

from pytest_cre.catalog.lint import lint_files
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.errors import CatalogProblem

SITE = """\
architecture: h100
limits:
  - {metric: busbw, operator: ">=", value: 370, unit: GB/s, statistic: at-size, size: 8G,
     entry: communication/nccl-all-reduce, minNodes: 8, maxNodes: 8, tier: site,
     source: our own runs, date: 2026-11}
"""


def loaded(*profiles):
    return load_catalog(suites=(shipped_suites(),), profiles=(shipped_profiles(), *profiles))


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(text, name="limits/site.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return put


def test_limits_are_added_to_those_of_the_architecture(write, tmp_path):
    write(SITE)
    shipped, own = loaded().architecture("h100"), loaded(tmp_path).architecture("h100")

    assert own.limits[:-1] == shipped.limits
    assert (own.limits[-1].tier, own.limits[-1].architecture) == ("site", "h100")
    assert own.limits[-1].place == "limits/site.yaml:3:5"
    assert own.product_labels == shipped.product_labels


def test_a_file_in_place_of_a_folder_is_one_of_limits(write):
    own = loaded(write(SITE, "site.yaml")).architecture("h100")

    assert own.limits[-1].value == 370


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("h100", "h1000", "limits/site.yaml:1:15: architecture 'h1000' is unknown; did you mean 'h100'"),
        ("tier: site", "tier: given", "limits/site.yaml:4:76: limits[0].tier given belongs to"),
        ("architecture:", "architectures:", "limits/site.yaml:1:1: architectures is an unknown key"),
    ],
)  # fmt: skip
def test_mistake_is_refused_with_its_place(write, tmp_path, old, new, line):
    path = write(SITE.replace(old, new))

    with pytest.raises(CatalogProblem) as raised:
        loaded(tmp_path)
    assert str(raised.value).startswith(line)
    assert any(each.startswith(line) for each in lint_files([path])[1])


def test_lint_is_silent_on_a_right_file_and_tells_what_can_judge_nothing(write):
    assert lint_files([write(SITE, "site.yaml")]) == (1, (), ())

    _, (line,), _ = lint_files([write(SITE.replace("nccl-all-reduce", "nccl-reduce"), "site.yaml")])
    assert "matches none" in line
