import pytest

from pytest_cre.simulator.commandline import UsageExit, take_apart


def apart(line, **env):
    return take_apart(line.split(), env)


def test_torchrun_static_rendezvous_gives_nodes_rank_and_master():
    launch = apart(
        "torchrun --nnodes=4 --nproc-per-node=8 --node-rank=2 --master-addr=j-0.j "
        "--master-port=29511 /cre/collective.py -b 8"
    )
    assert (launch.nodes, launch.processes, launch.node_rank) == (4, 8, 2)
    assert (launch.master, launch.port) == ("j-0.j", 29511)
    assert launch.argv == ("/cre/collective.py", "-b", "8")
    assert launch.program == "collective.py"


def test_torchrun_takes_underscores_and_separate_values():
    launch = apart("torchrun --nnodes 2 --nproc_per_node 4 --node_rank 1 a.py")
    assert (launch.nodes, launch.processes, launch.node_rank) == (2, 4, 1)


def test_torchrun_takes_the_environment_that_kubeflow_sets():
    launch = apart("torchrun a.py", PET_NNODES="3", PET_NPROC_PER_NODE="2", PET_NODE_RANK="1")
    assert (launch.nodes, launch.processes, launch.node_rank) == (3, 2, 1)


def test_torchrun_c10d_leaves_the_rank_open():
    launch = apart("torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=j-0.j:1234 a.py")
    assert (launch.node_rank, launch.master, launch.port) == (None, "j-0.j", 1234)


@pytest.mark.parametrize("count", ["auto", "gpu"])
def test_torchrun_with_processes_by_gpu_leaves_the_number_open(count):
    assert apart(f"torchrun --nproc-per-node={count} a.py").processes is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("torchrun --nnodes=2", 2),
        ("torchrun --no-such-flag a.py", 2),
        ("torchrun --node-rank=x a.py", 2),
        ("torchrun --nproc-per-node=many a.py", 1),
        ("torchrun --nnodes=few a.py", 1),
    ],
)
def test_torchrun_with_mistakes_ends_as_the_real_one(line, code):
    with pytest.raises(UsageExit) as ending:
        apart(line)
    assert ending.value.code == code
    assert "error" in ending.value.text.lower()


def test_mpirun_options_and_values_come_before_the_program():
    launch = apart(
        "timeout 3600 mpirun -N 8 --allow-run-as-root --mca plm_rsh_args -oX=no -x NCCL_DEBUG=INFO "
        "-x LD_LIBRARY_PATH --tag-output /opt/all_reduce_perf_mpi -b 8 -N 2"
    )
    assert launch.argv == ("/opt/all_reduce_perf_mpi", "-b", "8", "-N", "2")
    assert (launch.launcher, launch.processes, launch.is_tagged) == ("mpirun", 8, True)
    assert launch.env["NCCL_DEBUG"] == "INFO"


def test_mpirun_options_stay_known_behind_wrappers_of_the_program():
    launch = apart("mpirun --hostfile /h stdbuf -oL python3 -u a.py -x")
    assert launch.argv == ("a.py", "-x")
    assert launch.options["--hostfile"] == "/h"
    assert launch.launcher == "mpirun"


def test_mpirun_total_and_mapping_are_read():
    assert apart("mpirun -np 16 a").total_processes == 16
    assert apart("mpirun --map-by ppr:4:node a").processes == 4


@pytest.mark.parametrize(
    "line",
    [
        "python3 -m torch.distributed.run --nnodes=2 a.py",
        "env A=B torchrun --nnodes=2 a.py",
        "stdbuf -oL timeout -k 5 60s torchrun --nnodes=2 a.py",
        "exec torchrun --nnodes=2 a.py",
    ],
)
def test_wrappers_around_a_launcher_are_taken_off(line):
    launch = apart(line)
    assert (launch.launcher, launch.nodes, launch.argv) == ("torchrun", 2, ("a.py",))


def test_python_with_a_script_is_the_script():
    assert apart("python3 -u /cre/a.py -x").argv == ("/cre/a.py", "-x")


@pytest.mark.parametrize("line", ["", "timeout", "mpirun", "env"])
def test_command_line_without_a_program_is_empty(line):
    assert apart(line).argv == ()
