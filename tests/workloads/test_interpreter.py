"""What stands for an interpreter here ends, fails and dies as one."""

import signal
import subprocess

import pytest

WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("pass", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit('no such GPU')", 1, "no such GPU"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.abort()", -signal.SIGABRT, ""),
    ],
)
def test_program_ends_with_its_own_code_and_words(torch_python, text, code, told):
    done = subprocess.run([torch_python, "-c", text], capture_output=True, text=True, check=False)

    assert done.returncode == code
    assert told in done.stderr
    assert done.stdout == ""


def test_script_has_the_folder_environment_and_arguments_of_whoever_starts_it(
    torch_python, tmp_path
):
    script = tmp_path / "there" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import os, sys\nprint(os.getcwd(), os.environ['OWN'], 'HOME' in os.environ, sys.argv, sys.path[0])\n"
    )

    told = subprocess.check_output(
        [torch_python, str(script), "-x", "a b"], cwd=tmp_path, env={"OWN": "1"}, text=True
    )

    assert told.strip() == f"{tmp_path} 1 False ['{script}', '-x', 'a b'] {script.parent}"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_signal_ends_the_program_too(torch_python, signum):
    with subprocess.Popen([torch_python, "-c", WAITS], stdout=subprocess.PIPE) as process:
        assert int(process.stdout.readline()) != process.pid
        process.send_signal(signum)

        assert process.wait(30) == -signum
        assert process.stdout.read() == b""  # its other end is closed: nobody has it any more
