import dataclasses

import pytest

from pytest_cre.catalog.entry import WorkloadCommand
from pytest_cre.plan.kinds import choose_kind

COMMAND = WorkloadCommand(command=("run",))


@pytest.fixture
def choose(entry):
    def choose_it(named, served, asked=None):
        each = dataclasses.replace(entry, workloads=dict.fromkeys(named, COMMAND))
        return choose_kind(each, served, asked)

    return choose_it


@pytest.mark.parametrize(
    ("named", "served", "asked", "kind", "reason"),
    [
        (["mpiJob", "indexedJob"], {"mpiJob", "indexedJob"}, None, "mpiJob", "the entry's first kind"),
        (["mpiJob", "indexedJob"], {"indexedJob"}, None, "indexedJob", "the cluster does not serve mpiJob"),
        (["trainJob", "mpiJob", "jobSet"], {"jobSet"}, None, "jobSet",
         "the cluster does not serve trainJob, mpiJob"),
        (["mpiJob", "indexedJob"], {"mpiJob", "indexedJob"}, "indexedJob", "indexedJob", "asked for"),
    ],
)  # fmt: skip
def test_kind_is_the_entrys_first_that_is_served_and_says_why(
    named, served, asked, kind, reason, choose
):
    choice = choose(named, served, asked)
    assert (choice.kind, choice.reason, choice.unmet) == (kind, reason, None)


def test_kind_that_is_not_served_is_unmet(choose):
    choice = choose(["mpiJob"], {"indexedJob"})
    assert choice.unmet == (
        "communication/nccl-all-reduce runs as mpiJob; the cluster serves indexedJob; "
        "mpiJob needs the MPI operator: --cre-cluster controlplane rehearses with it"
    )


def test_kind_that_was_asked_for_is_never_replaced_by_another(choose):
    choice = choose(["mpiJob", "indexedJob"], {"indexedJob"}, "mpiJob")
    assert choice.kind == "mpiJob"
    assert choice.unmet == (
        "communication/nccl-all-reduce runs as mpiJob, indexedJob; mpiJob was asked for; "
        "the cluster serves indexedJob; "
        "mpiJob needs the MPI operator: --cre-cluster controlplane rehearses with it"
    )


def test_kind_that_the_entry_does_not_name_is_unmet(choose):
    choice = choose(["mpiJob"], {"jobSet", "mpiJob"}, "jobSet")
    assert choice.unmet == (
        "communication/nccl-all-reduce runs as mpiJob, not as jobSet as was asked for"
    )
