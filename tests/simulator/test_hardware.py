import pytest

from pytest_cre.simulator.hardware import (
    Participant,
    SimulatedNode,
    bus_factor,
    group_speed,
    training_speed,
)
from pytest_cre.simulator.models import MODELS
from pytest_cre.simulator.noise import gauss, unit

H100 = MODELS["h100"]


def node(name, domain=None):
    return SimulatedNode(name=name, model=H100, gpus=8, domain=domain or name, labels={})


def group(count, **slow):
    members = [Participant(node=node(f"n{index}"), ranks=8) for index in range(count - 1)]
    return [*members, Participant(node=node("last"), ranks=8, **slow)]


@pytest.mark.parametrize(
    ("collective", "factor"),
    [
        ("all_reduce", 2 * 15 / 16),
        ("all_gather", 15 / 16),
        ("reduce_scatter", 15 / 16),
        ("alltoall", 15 / 16),
        ("broadcast", 1),
        ("sendrecv", 1),
    ],
)
def test_bus_factor_of_collective_is_that_of_nccl_tests(collective, factor):
    assert bus_factor(collective, 16) == pytest.approx(factor)


def test_group_speed_of_one_node_is_its_nvlink():
    assert group_speed("all_reduce", group(1)).busbw_gbs == 480.0


def test_group_speed_of_eight_h100_nodes_is_near_the_published_387():
    # 50 GB/s x 0.96 x 63 / 7, times 0.9 for the hierarchy
    assert group_speed("all_reduce", group(8)).busbw_gbs == pytest.approx(388.8)


def test_group_speed_with_one_slow_network_is_that_of_the_slow_node():
    slow = group_speed("all_reduce", group(8, network_factor=0.6))
    assert slow.busbw_gbs == pytest.approx(0.6 * 388.8)


def test_group_speed_with_one_slow_nvlink_is_bounded_by_it():
    assert group_speed("all_reduce", group(1, nvlink_factor=0.5)).busbw_gbs == 240.0


def test_group_speed_inside_a_rack_needs_no_network():
    rack = [
        Participant(node=node(f"n{index}", domain="rack"), ranks=8, network_factor=0.01)
        for index in range(4)
    ]
    assert group_speed("all_reduce", rack).busbw_gbs == 480.0


def test_group_speed_on_sockets_is_a_fraction_of_the_network():
    assert group_speed("all_reduce", group(2, is_on_sockets=True)).busbw_gbs < 40


def test_group_speed_of_alltoall_is_what_crosses_the_network():
    # of 16 ranks each sends to 8 across: 50 x 0.96 x 15 / 8 x 0.9
    assert group_speed("alltoall", group(2)).busbw_gbs == pytest.approx(81.0)


def test_group_speed_time_grows_by_size_over_bandwidth():
    speed = group_speed("all_reduce", group(1))
    assert speed.seconds(2**30) - speed.seconds(0) == pytest.approx(2**30 * 1.75 / 480e9)


def test_training_speed_of_straggler_is_the_groups():
    healthy, slow = training_speed(group(4)), training_speed(group(4, step_factor=2.0))
    assert slow.step_time_s == pytest.approx(2 * healthy.step_time_s)
    assert slow.tflops_per_gpu == pytest.approx(healthy.tflops_per_gpu / 2)


def test_training_speed_with_slow_link_loses_the_share_of_communication():
    slow = training_speed(group(4, network_factor=0.5))
    assert slow.step_time_s == pytest.approx(H100.step_time_s * (0.8 + 0.2 / 0.5))


def test_noise_of_the_same_key_is_the_same_and_of_another_is_not():
    assert gauss(1, "a", 8) == gauss(1, "a", 8) != gauss(2, "a", 8)


def test_noise_is_normal_enough():
    values = [gauss("key", number) for number in range(2000)]
    assert abs(sum(values) / 2000) < 0.1
    assert 0.9 < sum(value * value for value in values) / 2000 < 1.1
    assert max(map(abs, values)) <= 3.0
    assert all(0 <= unit("key", number) < 1 for number in range(100))
