from contextlib import ExitStack

import pytest

from pytest_cre.controlplane.commands import Workshop, hold_ports
from pytest_cre.controlplane.credentials import make_credentials
from pytest_cre.controlplane.operators import install_jobset_certificate


@pytest.fixture
def ports():
    with ExitStack() as held:
        yield hold_ports(held)


@pytest.fixture
def workshop(tmp_path, ports):
    return Workshop(
        folder=tmp_path,
        binaries=tmp_path / "bin",
        ports=ports,
        credentials=make_credentials(tmp_path),
    )


@pytest.fixture
def parts(workshop):
    return (
        workshop.etcd(),
        workshop.apiserver(),
        workshop.controller_manager(),
        workshop.scheduler(),
        workshop.jobset(install_jobset_certificate(workshop)),
        workshop.trainer(),
        workshop.mpi_operator(),
        workshop.simulator("h100-8", 7),
    )


def test_no_secret_stands_in_an_argument_or_in_the_environment(workshop, parts):
    for part in parts:
        shown = " ".join((*part.command, *part._env.values()))
        assert not any(token in shown for token in workshop.credentials.tokens.values())


def test_every_server_listens_on_the_loopback_address_or_a_private_socket(workshop, parts):
    arguments = [argument for part in parts for argument in part.command]
    assert "--bind-address=127.0.0.1" in arguments
    listening = [each for each in arguments if "listen-" in each or "health-probe" in each]
    assert len(listening) == 3
    assert all("=unix://" in each or "=127.0.0.1:" in each for each in listening)
    assert "-monitoring-port=0" in arguments
    assert arguments.count("--secure-port=0") == 2


def test_each_part_has_a_home_and_a_temporary_folder_of_its_own(parts):
    homes = {part._env["HOME"] for part in parts}
    assert len(homes) == len(parts)
    assert all(part._env["TMPDIR"] == part._env["HOME"] for part in parts)


def test_ports_are_distinct_and_below_those_of_outgoing_connections(ports):
    numbers = [getattr(ports, name) for name in ports.__slots__]
    assert len(set(numbers)) == 6
    assert all(12000 <= number < 32000 for number in numbers)


def test_controllers_are_quick_enough_for_large_jobs(parts):
    for part in parts[2:4]:
        assert {"--kube-api-qps=300", "--kube-api-burst=500"} <= set(part.command)
