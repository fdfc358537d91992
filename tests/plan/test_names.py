import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.errors import UsageProblem
from pytest_cre.plan.names import MAX_RUN_ID, check_run_id, job_name, owner_name

IDENTITY = {
    "run_id": "k3f2a", "entry": "communication/nccl-all-reduce", "scale": "full-scale",
    "group": "group-0", "attempt": 0, "pod_suffix": "-99999-xxxxx",
}  # fmt: skip


def test_job_name_tells_run_variant_and_group():
    assert job_name(**IDENTITY).startswith("cre-k3f2a-nccl-all-reduce-g0-")


@pytest.mark.parametrize(
    "change",
    [
        {"entry": "other/nccl-all-reduce"},
        {"scale": "intra-node"},
        {"group": "group-1"},
        {"attempt": 1},
        {"run_id": "k3f2b"},
    ],
)
def test_job_name_differs_with_every_part_of_the_identity(change):
    assert job_name(**(IDENTITY | change)) != job_name(**IDENTITY)


def test_job_name_of_an_overflow_group_differs_from_its_namesake():
    overflow = job_name(**(IDENTITY | {"group": "group-0-overflow"}))

    assert overflow.startswith("cre-k3f2a-nccl-all-reduce-g0o-")


def test_job_name_of_a_diagnosis_tells_stage_round_and_number():
    name = job_name(**(IDENTITY | {"group": "intra-screening-no-nvl-r2-13"}))

    assert name.startswith("cre-k3f2a-nccl-all-redu-i2-13-")


def test_job_name_depends_on_the_run_only_where_the_run_id_stands():
    placeholder = job_name(**(IDENTITY | {"run_id": "run-id"}))

    assert placeholder.replace("run-id", "k3f2a") == job_name(**IDENTITY)


@given(
    entry=st.from_regex(r"[a-z0-9-]{1,80}/[a-zA-Z0-9._-]{1,80}", fullmatch=True),
    group=st.sampled_from(
        ["group-0", "group-12345", "group-12345-overflow", "cross-boundary-r12-103"]
    ),
    attempt=st.integers(0, 99),
    suffix=st.sampled_from(["-99999-xxxxx", "-launcher-xxxxx", "-node-0-99999-xxxxx"]),
)
def test_job_name_always_leaves_room_for_the_pods_suffix(entry, group, attempt, suffix):
    name = job_name(
        run_id="r" * MAX_RUN_ID,
        entry=entry,
        scale="intra-rack",
        group=group,
        attempt=attempt,
        pod_suffix=suffix,
    )

    assert len(f"{name}{suffix}") <= 63
    assert name[0].isalpha()
    assert name[-1].isalnum()
    assert all(
        each.isascii() and (each.islower() or each.isdigit() or each == "-") for each in name
    )


@pytest.mark.parametrize("run_id", ["", "-a", "a-", "A", "a.b", "r" * 21, "a\n"])
def test_run_id_that_cannot_be_a_name_is_refused(run_id):
    with pytest.raises(UsageProblem, match="run id"):
        check_run_id(run_id)


def test_owner_is_named_after_the_run():
    assert owner_name("k3f2a") == "cre-k3f2a"
