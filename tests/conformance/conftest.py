"""An embedded cluster for the table, played once for all tests that look at it."""

import select
import subprocess
import sys

import pytest

from tests.conformance.api import Api
from tests.conformance.kubelet import serving_kubelet
from tests.conformance.table import run_table

# Genuine controllers wait ten seconds after a first failure, and nothing in a transcript tells it.
_ARGUMENTS = ("serve", "--no-simulator", "--parent-pipe", "--job-backoff", "0.5")
_PLANTED = """
import sys
exec(sys.argv.pop(1))
from pytest_cre.embedded.__main__ import main
sys.exit(main())
"""


@pytest.fixture(scope="session")
def play_embedded(tmp_path_factory):
    """Play the table, or a part of it, against an embedded server with code planted in it."""

    def play(wanted=lambda _chapter, _name: True, planted=""):
        folder = tmp_path_factory.mktemp("conformance")
        kubeconfig = folder / "kubeconfig"
        command = [sys.executable, "-c", _PLANTED, planted, *_ARGUMENTS]
        process = subprocess.Popen(
            [*command, "--kubeconfig-out", str(kubeconfig)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            ready, _, _ = select.select([process.stdout], [], [], 30)
            assert ready
            assert process.stdout.readline()
            api = Api(kubeconfig)
            with serving_kubelet(api) as kubelet:
                return run_table(api, kubelet, folder, wanted)
        finally:
            process.terminate()
            process.communicate(timeout=10)

    return play


@pytest.fixture(scope="session")
def played(play_embedded):
    """Give the embedded server's answers, by chapter and name."""
    return play_embedded()
