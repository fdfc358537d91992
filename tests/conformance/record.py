"""Keep the genuine server's answers: `python -m tests.conformance.record KUBECONFIG`."""

import sys
import tempfile
from pathlib import Path

from tests.conformance.api import Api
from tests.conformance.kubelet import serving_kubelet
from tests.conformance.table import run_table, write_records


def main(kubeconfig):
    """Play the table against a server and write down what it answers."""
    api = Api(kubeconfig)
    with serving_kubelet(api) as kubelet, tempfile.TemporaryDirectory() as folder:
        transcripts = run_table(api, kubelet, Path(folder))
    write_records(transcripts)


if __name__ == "__main__":
    main(sys.argv[1])
