import pytest


@pytest.mark.parametrize(
    ("script", "code", "text"),
    [
        ("echo a; echo b", 0, "a\nb\n"),
        ("echo a && false && echo b", 1, "a\n"),
        ("false || echo b", 0, "b\n"),
        ("true || echo b", 0, ""),
        ("exit 3", 3, ""),
        ("set -e\nfalse\necho never", 1, ""),
        ("export A=5; echo $A ${A} ${B:-d}", 0, "5 5 d\n"),
        ("echo -n x; printf 'RESULT %s' 4", 0, "xRESULT 4"),
        ("echo 'a;b' # note", 0, "a;b\n"),
        ("no-such-program", 127, None),
        ("echo 'open", 2, None),
        ("echo \\\n  joined", 0, "joined\n"),
    ],
)
def test_shell_runs_simple_scripts(machines, script, code, text):
    world = machines.world("extends: h100-2")
    played = machines.play(world, [machines.pod(["sh", "-c", script], node="h100-0")])[0]
    assert played.code == code
    assert text is None or played.text == text


def test_shell_runs_a_mounted_script_that_launches_a_program(machines):
    world = machines.world("extends: h100-2")
    script = (
        "set -ex\nexport NCCL_DEBUG=INFO\nSIZE=1M\nall_reduce_perf -b $SIZE -e ${SIZE} \\\n  -g 8\n"
    )
    pod = machines.pod(["bash", "/cre/run.sh"], node="h100-0", files=["run.sh"])
    played = machines.play(world, [pod], {"run.sh": script})[0]
    assert played.code == 0
    assert "NCCL INFO Using network IB" in played.text
    assert "minBytes 1048576 maxBytes 1048576" in played.text


def test_unknown_program_says_what_is_known(machines):
    world = machines.world("extends: h100-2")
    played = machines.play(world, [machines.pod(["nvidia-smi", "-L"], node="h100-0")])[0]
    assert played.code == 127
    assert "no model of 'nvidia-smi'" in played.text
