import re

import pytest

ROW = re.compile(r"^ +\d+ ", re.MULTILINE)
ALL_REDUCE = "/cre/collective.py --collective all_reduce -b 8 -e 16G -f 2 -n 100 -w 5 -c 1 -d float"


def rows(played):
    return [line.split() for line in played.lines if ROW.match(line)]


def busbw(played):
    return {int(cells[0]): (float(cells[7]), float(cells[11])) for cells in rows(played)}


def test_table_is_printed_by_rank_zero_only(machines):
    world = machines.world("extends: h100-2")
    first, second = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    assert (first.code, second.code) == (0, 0)
    assert [int(cells[0]) for cells in rows(first)] == [8 << power for power in range(32)]
    assert second.text == ""


def test_table_of_two_nodes_is_near_the_model(machines):
    world = machines.world("extends: h100-2")
    first, _ = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    # 25 GB/s x 0.96 x 15, times 0.9 = 324 GB/s, less what latency takes
    assert busbw(first)[16 << 30] == pytest.approx((324.0, 324.0), rel=0.02)
    cells = rows(first)[-1]
    assert cells[1:5] == [str(4 << 30), "float", "sum", "-1"]
    assert (cells[8], cells[12]) == ("0", "0")


def test_table_footer_is_the_mean_of_both_halves(machines):
    world = machines.world("extends: h100-2")
    first, _ = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    halves = [value for pair in busbw(first).values() for value in pair]
    average = float(re.search(r"Avg bus bandwidth +: ([\d.]+)", first.text)[1])
    assert average == pytest.approx(sum(halves) / len(halves), abs=0.01)
    assert "# Out of bounds values : 0 OK\n" in first.text
    assert first.lines[-1] == "# Collective test concluded: all_reduce_perf"


def test_table_follows_sizes_factor_cycles_and_type(machines):
    world = machines.world("extends: h100-2")
    script = (
        "/cre/collective.py --collective all_reduce -b 1K -e 1M -f 4 -n 7 -w 2 -N 2 -d double -c 0"
    )
    first, _ = machines.play(world, machines.torchrun(world, script))
    assert [int(cells[0]) for cells in rows(first)] == [1024 << 2 * power for power in range(6)] * 2
    assert rows(first)[0][1:3] == ["128", "double"]
    assert rows(first)[0][8] == rows(first)[0][12] == "N/A"
    assert "step: 4(factor) warmup iters: 2 iters: 7 agg iters: 1 validation: 0" in first.text


def test_table_of_the_same_seed_is_the_same_and_of_another_is_not(machines):
    def text(seed):
        world = machines.world("extends: h100-2", seed)
        return machines.play(world, machines.torchrun(world, ALL_REDUCE))[0].text

    assert text(1) == text(1) != text(2)


def test_table_with_a_slow_link_is_that_much_slower(machines):
    world = machines.world("extends: h100-2\nlinks: [{match: {node: h100-1}, factor: 0.5}]")
    first, _ = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    assert busbw(first)[16 << 30][0] == pytest.approx(0.5 * 324.0, rel=0.02)


def test_table_with_wrong_values_fails_from_their_size_on(machines):
    world = machines.world(
        "extends: h100-2\nfaults: [{match: {node: h100-1}, action: wrong-values, count: 96, after: {size: 8G}}]"
    )
    first, second = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    wrong = {int(cells[0]): (cells[8], cells[12]) for cells in rows(first)}
    assert wrong[8 << 30] == wrong[16 << 30] == ("96", "96")
    assert wrong[4 << 30] == ("0", "0")
    assert "# Out of bounds values : 64 FAILED" in first.text
    assert (first.code, second.code) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "network"), [("", "IB"), ("faults: [{action: socket-fallback}]", "Socket")]
)
def test_nccl_info_names_the_network(machines, fault, network):
    world = machines.world(f"extends: h100-2\n{fault}\n")
    pods = machines.torchrun(world, ALL_REDUCE, env={"NCCL_DEBUG": "INFO"})
    first, second = machines.play(world, pods)
    assert set(re.findall(r"NCCL INFO Using network (\S+)", first.text + second.text)) == {network}
    assert (busbw(first)[16 << 30][0] > 100) == (network == "IB")


def test_nccl_is_silent_without_its_debug_variable(machines):
    world = machines.world("extends: h100-2")
    first, _ = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    assert "NCCL INFO" not in first.text


def test_crash_at_a_size_ends_the_node_and_then_the_others(machines):
    world = machines.world(
        "extends: h100-2\nfaults: [{match: {node: h100-1}, action: crash, exitCode: 137, after: {size: 1M}}]"
    )
    first, second = machines.play(world, machines.torchrun(world, ALL_REDUCE))
    assert second.code == 137
    assert first.code == 1
    assert max(busbw(first)) == 512 << 10
    assert "ncclRemoteError" in first.text
    assert "Avg bus bandwidth" not in first.text


def test_missing_peer_times_out_as_torch_does(machines):
    world = machines.world("extends: h100-2")
    only = machines.torchrun(world, ALL_REDUCE)[:1]
    played = machines.play(world, only)[0]
    assert played.code == 1
    assert "1/2 clients joined" in played.text


@pytest.mark.parametrize("words", ["--collective all", "-b 8X", "-q 3", "-b 16G -e 8", "-f 1"])
def test_collective_script_with_bad_arguments_prints_usage(machines, words):
    world = machines.world("extends: h100-2")
    first, second = machines.play(world, machines.torchrun(world, f"/cre/collective.py {words}"))
    assert "collective.py: error: " in first.text
    assert "exitcode  : 2" in first.text
    assert (first.code, second.code) == (1, 1)  # torchrun's own


def test_nccl_tests_binary_alone_uses_its_gpus(machines):
    world = machines.world("extends: h100-2")
    pod = machines.pod(
        ["/opt/all_reduce_perf", "-b", "8", "-e", "16G", "-f2", "-g", "8"], node="h100-0"
    )
    played = machines.play(world, [pod])[0]
    assert played.code == 0
    assert busbw(played)[16 << 30] == pytest.approx((480, 480), rel=0.02)
    assert played.text.startswith("# nccl-tests version ")
    assert len(re.findall(r"^#  Rank", played.text, re.MULTILINE)) == 8


def test_nccl_tests_shared_collectives_align_shares_to_16_bytes(machines):
    world = machines.world("extends: h100-2")
    words = ["all_gather_perf", "-b", "8", "-e", "1024", "-f", "2", "-g", "8"]
    played = machines.play(world, [machines.pod(words, node="h100-0")])[0]
    assert [cells[:5] for cells in rows(played)][:5] == [
        ["0", "0", "float", "none", "-1"],
        ["0", "0", "float", "none", "-1"],
        ["0", "0", "float", "none", "-1"],
        ["0", "0", "float", "none", "-1"],
        ["128", "4", "float", "none", "-1"],
    ]


def test_nccl_tests_in_place_alltoall_is_not_checked(machines):
    world = machines.world("extends: h100-2")
    words = ["alltoall_perf", "-b", "1M", "-e", "1M", "-g", "8"]
    cells = rows(machines.play(world, [machines.pod(words, node="h100-0")])[0])[0]
    assert (cells[8], cells[12]) == ("0", "N/A")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("-Q 1", 0, "USAGE: all_reduce_perf"),
        ("-b 8X", 255, "invalid size specified for 'minbytes'"),
        ("-g 16", 2, "invalid device ordinal"),
    ],
)
def test_nccl_tests_with_bad_arguments_end_as_the_real_ones(machines, words, code, text):
    world = machines.world("extends: h100-2")
    pod = machines.pod(["all_reduce_perf", *words.split()], node="h100-0")
    played = machines.play(world, [pod])[0]
    assert (played.code, rows(played)) == (code, [])
    assert text in played.text


def test_mpirun_starts_ranks_on_the_hosts_of_its_file(machines):
    world = machines.world("extends: h100-2")
    hostfile = b"w-0.w.default.svc slots=8\nw-1.w.default.svc slots=8\n"
    workers = [
        machines.pod(["sh", "-c", "sleep 0.4"], node=f"h100-{index}", index=index, job="w")
        for index in range(2)
    ]
    words = "timeout 60 mpirun -x NCCL_DEBUG=INFO --tag-output --hostfile /cre/hosts all_reduce_perf_mpi"
    launcher = machines.pod([*words.split(), "-e", "32M"], node="h100-0", files=["hosts"])
    played = machines.play(world, [*workers, launcher], {"hosts": hostfile.decode()})[-1]
    assert played.code == 0
    assert re.search(r"^\[1,0\]<stdout>:# Collective test concluded", played.text, re.MULTILINE)
    assert len(re.findall(r"#  Rank", played.text)) == 16
    assert "[1,15]<stdout>:" in played.text


def test_mpirun_without_its_worker_cannot_resolve_it(machines):
    world = machines.world("extends: h100-2")
    launcher = machines.pod(
        ["mpirun", "--hostfile", "/cre/hosts", "all_reduce_perf_mpi"],
        node="h100-0",
        files=["hosts"],
    )
    played = machines.play(world, [launcher], {"hosts": "w-0.w slots=8"})[0]
    assert played.code == 1
    assert "Could not resolve hostname w-0.w" in played.text


def test_mpirun_rank_that_crashes_ends_the_launcher_and_leaves_its_worker(machines):
    world = machines.world(
        "extends: h100-2\nfaults:\n- match: {node: h100-1, entry: a/b}\n  action: crash\n"
        "  exitCode: 7\n  after: {size: 1M}\n"
    )
    workers = [
        machines.pod(["sh", "-c", "sleep 1"], node=f"h100-{n}", index=n, job="w", entry="a/b")
        for n in range(2)
    ]
    words = "mpirun --hostfile /cre/hosts all_reduce_perf_mpi -b 1M -e 4M -f 2"
    launcher = machines.pod(words.split(), node="h100-0", files=["hosts"], entry="a/b")
    hosts = "w-0.w slots=8\nw-1.w slots=8\n"
    *hosting, launching = machines.play(world, [*workers, launcher], {"hosts": hosts})
    assert [each.code for each in hosting] == [0, 0]
    assert launching.code == 7
    assert "w-1: CUDA error" in launching.text
    assert "mpirun detected" in launching.text
    assert "Out of bounds" not in launching.text


def test_mpirun_gives_the_same_rows_as_torchrun(machines):
    world = machines.world("extends: h100-2")
    workers = [
        machines.pod(["sh", "-c", "sleep 0.4"], node=f"h100-{n}", index=n, job="w")
        for n in range(2)
    ]
    words = "mpirun --hostfile /cre/hosts all_reduce_perf_mpi -b 8 -e 32M -f 2"
    launcher = machines.pod(words.split(), node="h100-0", files=["hosts"])
    hosts = "w-0.w slots=8\nw-1.w slots=8\n"
    by_mpi = machines.play(world, [*workers, launcher], {"hosts": hosts})[-1]
    script = "/cre/collective.py --collective all_reduce -b 8 -e 32M -f 2"
    by_torch = machines.play(world, machines.torchrun(world, script))[0]
    assert len(rows(by_mpi)) > 20
    assert rows(by_mpi) == rows(by_torch)


def test_collective_script_under_mpirun_is_told_no_rank(machines):
    world = machines.world("extends: h100-2")
    played = machines.play(
        world, [machines.pod(["mpirun", "python3", "/cre/collective.py"], node="h100-0")]
    )[0]
    assert played.code == 2
    assert "RANK" in played.text
