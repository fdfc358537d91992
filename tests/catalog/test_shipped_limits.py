"""The shipped limits are those of their publications, and nothing that cannot be defended."""

import math
import re
from decimal import Decimal
from pathlib import Path

import pytest

from pytest_cre.catalog.limit_document import LEDGER_CATEGORIES
from pytest_cre.catalog.loader import load_catalog, shipped_profiles, shipped_suites
from pytest_cre.measure import model

MIB, GIB = 1024**2, 1024**3
LIMITS_PAGE = Path(__file__).parents[2] / "docs/reference/limits.md"


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(suites=[shipped_suites()], profiles=[shipped_profiles()])


@pytest.fixture(scope="module")
def limits(catalog):
    return [limit for each in catalog.architectures.values() for limit in each.limits]


def floors(limits, architecture, nodes, fabric=None, entry="communication/nccl-all-reduce"):
    return {
        limit.size_bytes // MIB: limit.value
        for limit in limits
        if (limit.architecture, limit.min_nodes, limit.max_nodes) == (architecture, nodes, nodes)
        and (limit.fabric, limit.entry, limit.metric) == (fabric, entry, "busbw")
        and limit.size_bytes
    }


def test_every_floor_is_the_stated_part_of_its_anchor_rounded_down(limits):
    assert len(limits) > 80
    for limit in limits:
        part, anchor = re.match(r"([0-9.]+) x ([0-9.]+)[,;]", limit.note).groups()
        value = Decimal(part) * Decimal(anchor)
        if limit.metric == "busbw":
            assert part in ("0.90", "1.00"), limit.place
            value = Decimal(math.floor(value * 10)) / 10
        assert limit.value == pytest.approx(float(value), abs=0.051), limit.place


def test_every_limit_names_publication_date_and_confidence(limits):
    for limit in limits:
        assert limit.tier == "published"
        assert re.search(r"/|modal-labs", limit.source), limit.place
        assert re.fullmatch(r"2026-\d\d-\d\d|unknown, read 2026-11", limit.date), limit.place
        assert limit.confidence in ("high", "medium", "low")


def test_a_figure_of_few_nodes_judges_no_other_number_of_nodes(limits):
    for limit in limits:
        if limit.metric == "dip":
            continue
        span = (limit.min_nodes, limit.max_nodes)
        assert span[0] == span[1] or (limit.architecture, span) == ("rtxpro6000", (2, 4))


def test_floors_of_one_node_are_those_of_the_publications(limits):
    assert floors(limits, "h100", 1) == {
        64: 325.5,  # 361.75, the median of 361.8 and 361.7
        256: 380.5,  # 422.85
        1024: 419.7,  # 466.35
        4096: 428.7,  # 476.35
        8192: 431.5,  # 479.55
        16384: 431.9,  # 479.9
    }
    assert floors(limits, "h200", 1)[16384] == 434.0  # 482.3
    assert floors(limits, "b200", 1) == {
        64: 360.5, 256: 581.4, 1024: 650.9, 4096: 666.5, 8192: 755.1, 16384: 761.1,
    }  # fmt: skip
    assert floors(limits, "a100", 1)[8192] == 209.7  # 233.1


def test_floors_of_several_nodes_are_those_of_the_publications(limits):
    gather, alltoall = "communication/nccl-all-gather", "communication/nccl-alltoall"
    assert floors(limits, "h100", 2, "efa") == {16384: 439.0}  # 487.87
    assert floors(limits, "h100", 2, "efa", gather) == {16384: 304.7}  # 338.57
    assert floors(limits, "h100", 2, "efa", alltoall) == {16384: 71.1}  # 79.11
    assert floors(limits, "h100", 2, "tcpxo") == {16384: 303.3, 8192: 305.1}  # 337.09, 338-340
    assert floors(limits, "h100", 2, "roce") == {4096: 305.1}  # 339.0
    assert floors(limits, "h100", 8, "infiniband") == {
        512: 320.4, 1024: 329.3, 2048: 342.6, 4096: 344.8, 8192: 347.9,
    }  # fmt: skip
    assert floors(limits, "h200", 4, "efa") == {4096: 328.4}  # 364.9
    assert floors(limits, "b200", 4, "efa")[16384] == 343.6  # 381.8
    assert floors(limits, "a100", 2, "roce")[8192] == 170.6  # 189.6
    assert floors(limits, "gb200", 4, "nvlink") == {16384: 794.2}  # 882.51
    assert floors(limits, "gb200", 4, "efa") == {16384: 172.2}  # 191.40
    assert floors(limits, "gb200", 18, "nvlink")[8192] == 762.1  # 846.8
    assert floors(limits, "gb200", 36, "infiniband")[16384] == 738.3  # 820.4
    assert floors(limits, "gb200", 360, "infiniband")[1024] == 196.6  # 218.5
    assert floors(limits, "gb300", 8, "nvlink", alltoall) == {16384: 610.7}  # 678.57
    assert floors(limits, "gb300", 8, "roce") == {16384: 338.4}  # 376.01
    assert floors(limits, "gb300", 16, "nvlink") == {16384: 838.8}  # 932.1


def test_small_messages_have_a_wide_ceiling_of_latency(limits):
    ceilings = {each.architecture: each.value for each in limits if each.metric == "latency"}
    # 1.5 x 1.75 x 1 MiB / busbw at 1 MiB: 43.7, 53.0, 36.1 and 36.2 GB/s
    assert ceilings == {"h100": 63.0, "h200": 51.9, "b200": 76.2, "a100": 76.0}


def test_floors_of_the_aws_health_checks_are_not_used(limits):
    assert not {200.0, 300.0, 500.0, 600.0, 800.0, 900.0} & {limit.value for limit in limits}


def test_only_guards_judge_what_has_no_published_figure(catalog):
    for name in ("b300", "l40", "l40s"):
        assert all(limit.is_guard for limit in catalog.architecture(name).limits)


def test_no_training_limit_is_taken_from_another_model(limits):
    assert not [limit for limit in limits if limit.entry.startswith("training/")]


def test_page_of_limits_holds_every_shipped_one(catalog):
    text = LIMITS_PAGE.read_text(encoding="utf-8")
    in_docs = [
        line.split("|")[1:] for line in text.splitlines() if re.match(r"\| [a-z0-9]+ \|", line)
    ]
    rows = sorted((row[0].strip(), row[5].strip()) for row in in_docs)
    shipped = sorted(
        (name, f"{limit.operator} {limit.value:g} {limit.unit}")
        for name, architecture in catalog.architectures.items()
        for limit in architecture.limits
    )
    assert rows == shipped


def test_categories_of_limits_are_those_of_the_ledger():
    assert LEDGER_CATEGORIES == model.LEDGER_CATEGORIES
