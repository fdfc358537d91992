"""Keep the genuine server's answers: `python -m tests.conformance.record [FOLDER]`.

FOLDER holds the genuine programs; without it those that `pytest-cre controlplane build` made are
taken. What has changed since the last time is seen by comparing the files.
"""

import os
import sys
import tempfile
from pathlib import Path

from pytest_cre.controlplane.plane import ControlPlane, PlaneSettings
from pytest_cre.controlplane.recipe import built_folder, read_recipe
from tests.conformance.api import Api
from tests.conformance.kubelet import serving_kubelet
from tests.conformance.table import run_table, write_records


def main(arguments):
    """Start a control plane, play the table against it and write down what it answers."""
    binaries = Path(arguments[0]) if arguments else built_folder(read_recipe(), os.environ)
    with ControlPlane(PlaneSettings(binaries=binaries, scenario=None)) as plane:
        api = Api(plane.admin_kubeconfig)
        with serving_kubelet(api) as kubelet, tempfile.TemporaryDirectory() as folder:
            transcripts = run_table(api, kubelet, Path(folder))
    failed = [found for named in transcripts.values() for found in named.values()]
    for error in failed:
        if isinstance(error, Exception):
            raise error
    write_records(transcripts)


if __name__ == "__main__":
    main(sys.argv[1:])
