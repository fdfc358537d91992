import re
import subprocess
from pathlib import Path

import pytest

from pytest_cre import workloads

SCRIPT = Path(workloads.__file__).parent / "gemm.py"
TIMEOUT_S = 60
SMALL = ("--device", "cpu", "--dtype", "float", *("-m", "48", "-n", "32", "-k", "64"))
ROW = re.compile(
    r"gemm gpu=(\d+) sample=(\d+) dtype=(\w+) m=(\d+) n=(\d+) k=(\d+) products=(\d+) "
    r"seconds=([0-9.e-]+) tflops=([0-9.e-]+) wrong=(\d+)"
)


@pytest.fixture(scope="module")
def burn(torch_python, environment):
    """Run the script; return its lines and exit code."""

    def run(*arguments):
        done = subprocess.run(
            [torch_python, str(SCRIPT), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return (done.stdout + done.stderr).splitlines(), done.returncode

    return run


@pytest.fixture(scope="module")
def healthy(burn):
    return burn(*SMALL, "--gpus", "2", "--samples", "2", "--seconds", "0.01")


@pytest.fixture(scope="module")
def spoilt(burn):
    return burn(
        *SMALL, *("--gpus", "2", "--samples", "1", "--seconds", "0.01"), "--plant-wrong=1:7"
    )


def rows_of(lines):
    return [found.groups() for line in lines if (found := ROW.fullmatch(line))]


def test_gemm_every_gpu_prints_a_row_per_sample_and_all_values_are_right(healthy):
    lines, code = healthy
    rows = rows_of(lines)

    assert code == 0
    assert sorted((row[0], row[1]) for row in rows) == [
        *(("0", "1"), ("0", "2")),
        *(("1", "1"), ("1", "2")),
    ]
    assert {row[2:6] for row in rows} == {("float", "48", "32", "64")}
    assert {row[9] for row in rows} == {"0"}
    assert lines[0].startswith("# gemm starting: gpus=2 samples=2 dtype=float m=48 n=32 k=64 ")
    assert lines[-1] == "# gemm concluded: gpus=2 of 2 OK"
    assert {"# gemm gpu=0 name=CPU", "# gemm gpu=1 name=CPU"} <= set(lines)


def test_gemm_throughput_follows_sizes_products_and_seconds(healthy):
    for row in rows_of(healthy[0]):
        m, n, k, products = map(int, row[3:7])
        assert products % 10 == 0
        assert float(row[8]) == pytest.approx(
            2 * m * n * k * products / float(row[7]) / 1e12, rel=1e-4
        )


def test_gemm_planted_wrong_value_is_found_on_its_gpu_alone_and_fails(spoilt):
    lines, code = spoilt
    found = {row[0]: (int(row[6]), int(row[9])) for row in rows_of(lines)}

    assert code == 1
    assert found["0"][1] == 0
    assert found["1"][1] == found["1"][0] // 10  # once in each check, one check per 10 products
    assert "# gemm problem: gpu=1 ended with exit code 1" in lines
    assert lines[-1] == "# gemm concluded: gpus=2 of 2 FAILED"


MISTAKES = {
    "--device cpu --dtype bfloat16": "--device cpu takes --dtype float or double",
    "--device cpu --dtype float -m 4 -n 4 --plant-wrong 0:16": (
        "--plant-wrong must name an element of the 4 x 4 product"
    ),
    "-k 70000": "must be a whole number of 1 to 65536, got '70000'",
    "--seconds 0": "must be seconds such as 10 or 0.5, got '0'",
    "--plant-wrong 3": "must be GPU:INDEX such as 3:0, got '3'",
}
PARSE_EACH = """
import contextlib, io, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import gemm
for arguments in sys.argv[2:]:
    error = io.StringIO()
    try:
        with contextlib.redirect_stderr(error):
            gemm.parse_arguments(arguments.split())
    except SystemExit as end:
        print(end.code, error.getvalue().strip().splitlines()[-1])
"""


def test_gemm_mistakes_end_with_code_2_and_one_line_each(torch_python, environment):
    done = subprocess.run(
        [torch_python, "-c", PARSE_EACH, str(SCRIPT), *MISTAKES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    told = done.stdout.splitlines()

    assert len(told) == len(MISTAKES)
    for line, words in zip(told, MISTAKES.values(), strict=True):
        assert line.startswith("2 gemm.py: error: ")
        assert line.endswith(words)


def test_gemm_without_a_gpu_fails_and_says_so(burn):
    lines, code = burn("--gpus", "2", "--samples", "1", "--seconds", "0.01")

    assert code == 1
    assert "# gemm problem: 0 of 2 GPUs are visible" in lines
    assert lines[-1] == "# gemm concluded: gpus=0 of 2 FAILED"
    assert rows_of(lines) == []
