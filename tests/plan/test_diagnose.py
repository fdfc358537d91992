"""Fault isolation against an oracle that knows what is broken: found, and nothing else blamed."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cre.evidence.model import DiagnosisSetup
from pytest_cre.plan.diagnose.course import Diagnosis, most_trials, replayed
from pytest_cre.plan.diagnose.topology import diagnosis_setup, halves, natural

FLEET = (18,) * 12 + (16,)  # 232 nodes in 13 racks


def racks(sizes):
    return {f"n-{rack}-{slot}": f"rack-{rack}" for rack, size in enumerate(sizes) for slot in range(size)}  # fmt: skip


def setup_of(domains, *, nvlink=False, **given):
    names = tuple(sorted(set(domains.values()))) if nvlink else ()
    return DiagnosisSetup(domains=domains, nvlink_domains=names, can_switch_nvlink=nvlink, **given)


def oracle(domains, *, faulty=(), fabric=(), nvlink=(), paths=(), uplinks=()):
    """Return what a test of a group comes to: it fails whenever something broken takes part."""

    def outcome(trial):
        at = Counter(domains[node] for node in trial.nodes)
        is_far = len(trial.nodes) > 1 and (len(at) > 1 or trial.without_nvlink)
        neighbours = {node for node in trial.nodes if at[domains[node]] > 1}
        fails = (
            any(node in trial.nodes for node in faulty)
            or (is_far and any(node in trial.nodes for node in fabric))
            or (not trial.without_nvlink and any(node in neighbours for node in nvlink))
            or any(one in at and other in at for one, other in paths)
            or (len(at) > 1 and any(each in at for each in uplinks))
        )
        return "failed" if fails else "passed"

    return outcome


def diagnosed(setup, outcome):
    diagnosis = Diagnosis(setup)
    while (conclusion := diagnosis.conclusion) is None:
        for trial in diagnosis.current:
            diagnosis.tell(trial.name, outcome(trial))
    return conclusion


def names(conclusion, state):
    return {each.node for each in conclusion.of(state)}


def reasons(conclusion):
    return {each.node: each.reason for each in conclusion.of("faulty")}


@st.composite
def fleets(draw, most=3, smallest=1):
    sizes = draw(st.lists(st.integers(smallest, 9), min_size=1, max_size=6).filter(lambda all_: sum(all_) > 1))  # fmt: skip
    domains = racks(sizes)
    count = draw(st.integers(0, most))
    bad = draw(st.lists(st.sampled_from(sorted(domains)), max_size=count, unique=True))
    return domains, frozenset(bad)


@given(fleet=fleets(), nvlink=st.booleans(), size=st.integers(1, 6))
@settings(max_examples=150)
def test_diagnosis_finds_exactly_the_faulty_nodes(fleet, nvlink, size):
    domains, bad = fleet
    setup = setup_of(domains, nvlink=nvlink, min_group_size=size)

    found = diagnosed(setup, oracle(domains, faulty=bad))

    assert names(found, "faulty") == bad
    assert names(found, "infrastructure") == set()
    assert [each.node for each in found.findings] == sorted(domains, key=natural)
    assert all(each.reason == "untested" for each in found.of("undetermined"))
    healthy = names(found, "healthy")
    if len(set(domains) - bad) > 1 and min(Counter(domains[n] for n in set(domains) - bad).values()) > 1:  # fmt: skip
        assert healthy == set(domains) - bad
    assert len(found.trials) <= most_trials(len(domains))


@given(fleet=fleets(most=2, smallest=4), kind=st.sampled_from(["fabric", "nvlink", "faulty"]))
@settings(max_examples=100)
def test_diagnosis_of_nvlink_racks_tells_what_of_a_node_is_broken(fleet, kind):
    domains, bad = fleet
    found = diagnosed(setup_of(domains, nvlink=True), oracle(domains, **{kind: bad}))
    cause = {"faulty": "workload"}.get(kind, kind)

    assert names(found, "faulty") | names(found, "infrastructure") >= bad
    assert not names(found, "faulty") - bad
    if all(count == 1 for count in Counter(domains[node] for node in bad).values()):
        assert reasons(found) == dict.fromkeys(bad, cause)


@given(
    fleet=fleets(most=2, smallest=2),
    answers=st.lists(
        st.sampled_from(["passed", "unjudged", "slow", "failed", "undetermined"]), max_size=60
    ),
    nvlink=st.booleans(),
    alone=st.booleans(),
)
@settings(max_examples=200)
def test_any_answers_end_in_one_state_for_every_node_and_drop_no_failure(
    fleet, answers, nvlink, alone
):
    domains, _ = fleet
    setup = setup_of(domains, nvlink=nvlink, may_run_alone=alone)
    given_ = iter(answers)

    found = diagnosed(setup, lambda _: next(given_, "passed"))

    assert [each.node for each in found.findings] == sorted(domains, key=natural)
    assert len(found.trials) <= most_trials(len(domains))
    assert replayed(setup, found.outcomes) == found
    assert all(len(trial.nodes) > 1 or alone for trial in found.trials)
    assert all(len(set(trial.nodes)) == len(trial.nodes) for trial in found.trials)
    if not {"slow", "failed", "undetermined"}.isdisjoint(found.outcomes.values()):
        assert len(found.of("healthy")) < len(domains)


@given(fleet=fleets(most=0, smallest=2), data=st.data(), nvlink=st.booleans())
@settings(max_examples=100)
def test_broken_path_between_two_racks_is_infrastructure(fleet, data, nvlink):
    domains, _ = fleet
    all_racks = sorted(set(domains.values()))
    if len(all_racks) < 2:
        return
    pair = tuple(sorted(data.draw(st.permutations(all_racks))[:2]))

    found = diagnosed(setup_of(domains, nvlink=nvlink), oracle(domains, paths=[pair]))

    (fault,) = found.infrastructure
    assert (fault.domains, fault.cause, fault.is_of_domains) == (pair, "fabric", True)
    assert names(found, "infrastructure") == {n for n, rack in domains.items() if rack in pair}
    assert names(found, "faulty") == names(found, "undetermined") == set()


def test_rack_that_no_other_reaches_is_infrastructure_as_a_whole():
    domains = racks((4, 4, 4))
    found = diagnosed(setup_of(domains), oracle(domains, uplinks=["rack-1"]))

    (fault,) = found.infrastructure
    assert (fault.domains, fault.is_of_domains) == (("rack-1",), True)
    assert names(found, "infrastructure") == {n for n, rack in domains.items() if rack == "rack-1"}


def test_node_whose_network_fails_between_racks_is_faulty_and_not_its_rack():
    domains = racks((4, 4, 4))

    def outcome(
        trial,
    ):  # without the stage that switches NVLink off only the racks' first nodes show it
        is_far = len({domains[node] for node in trial.nodes}) > 1
        return "failed" if is_far and "n-1-0" in trial.nodes else "passed"

    assert reasons(diagnosed(setup_of(domains), outcome)) == {"n-1-0": "fabric"}


def test_both_fault_classes_of_two_racks_are_kept():
    domains = racks((6, 6, 6))
    outcome = oracle(domains, nvlink=["n-0-4"], fabric=["n-1-2", "n-0-1"])

    found = reasons(diagnosed(setup_of(domains, nvlink=True), outcome))

    assert found == {"n-0-4": "nvlink", "n-1-2": "fabric", "n-0-1": "fabric"}


def test_node_that_fails_only_with_others_is_told_from_one_that_fails_alone():
    domains = racks((6, 6))
    outcome = oracle(domains, faulty=["n-0-4"])
    by_fabric = lambda trial: "failed" if len(trial.nodes) > 1 and "n-0-4" in trial.nodes else "passed"  # noqa: E731  # fmt: skip

    assert reasons(diagnosed(setup_of(domains), outcome)) == {"n-0-4": "workload"}
    assert reasons(diagnosed(setup_of(domains), by_fabric)) == {"n-0-4": "fabric"}


@pytest.mark.parametrize(
    ("nvlink", "faulty", "paths", "trials", "rounds"),
    [
        (True, (), (), 27, 3),  # published for 232 nodes: 28 tests in 3 rounds
        (False, (), (), 14, 2),
        (False, ("n-3-7",), (), 25, 9),  # about 22 in 7
        (True, ("n-3-7",), (), 39, 11),
        (False, ("n-3-7", "n-3-8", "n-5-0", "n-7-1", "n-9-9"), (), 63, 9),  # about 55 in 7
        (False, (), (("rack-3", "rack-7"),), 30, 8),  # about 23 in 7
    ],
)
def test_tests_for_232_nodes_are_of_the_order_that_is_published(
    nvlink, faulty, paths, trials, rounds
):
    domains = racks(FLEET)
    found = diagnosed(setup_of(domains, nvlink=nvlink), oracle(domains, faulty=faulty, paths=paths))

    assert names(found, "faulty") == set(faulty)
    assert (len(found.trials), found.rounds) == (trials, rounds)


def test_three_faults_without_topology_take_about_57_tests():
    nodes = {f"n{index:03}": "" for index in range(232)}
    setup = without_labels(nodes)
    found = diagnosed(setup, oracle(setup.domains, faulty=["n010", "n100", "n200"]))

    assert names(found, "faulty") == {"n010", "n100", "n200"}
    assert len(set(setup.domains.values())) == 15
    assert len(found.trials) <= 57


def without_labels(names_):
    from pytest_cre.evidence.model import NodeFacts

    facts = [
        NodeFacts(name=name, uid=name, labels={}, gpus_allocatable=8, is_ready=True, is_cordoned=False)
        for name in names_
    ]  # fmt: skip
    return diagnosis_setup(
        facts, rack_label="rack", has_rack_nvlink=True, can_switch_nvlink=True, may_run_alone=True
    )


@given(count=st.integers(2, 300))
def test_chunks_without_labels_have_two_nodes_at_least(count):
    setup = without_labels([f"n{index}" for index in range(count)])
    sizes = Counter(setup.domains.values()).values()

    assert min(sizes) >= 2
    assert max(sizes) <= count**0.5 + 2
    assert not setup.can_switch_nvlink


def test_screening_and_halves_share_no_node_within_a_round():
    domains = racks((9, 9, 9))
    found = diagnosed(setup_of(domains, nvlink=True), oracle(domains, faulty=["n-0-0", "n-2-8"]))

    for stage in ("intra-screening", "intra-screening-no-nvl", "bisection"):
        for round_ in range(1, found.rounds + 1):
            taken = [n for t in found.trials if (t.stage, t.round) == (stage, round_) for n in t.nodes]  # fmt: skip
            assert len(taken) == len(set(taken))


def test_halves_part_where_a_domain_ends():
    domains = {**dict.fromkeys(("a1", "a2", "a3"), "a"), **dict.fromkeys(("b1", "b2"), "b")}
    domains |= dict.fromkeys(("b3", "b4"), "b")

    assert halves(tuple(domains), domains) == (("a1", "a2", "a3"), ("b1", "b2", "b3", "b4"))


def test_suspect_is_tested_with_a_node_of_its_own_domain_first_and_a_second_before_the_verdict():
    domains = racks((6, 6))
    found = diagnosed(setup_of(domains), oracle(domains, faulty=["n-0-0"]))
    pairs = [t for t in found.trials if t.stage == "confirmation" and "n-0-0" in t.nodes and len(t.nodes) == 2]  # fmt: skip

    assert len(pairs) == 2
    assert all(domains[node] == "rack-0" for trial in pairs for node in trial.nodes)
    assert pairs[0].nodes != pairs[1].nodes


def test_reference_that_alone_fails_with_a_suspect_blames_neither():
    domains = racks((8, 8))

    def outcome(trial):  # one link, between two nodes of the same rack
        return "failed" if {"n-0-1", "n-0-6"} <= set(trial.nodes) else "passed"

    found = diagnosed(setup_of(domains), outcome)

    assert names(found, "faulty") == set()
    assert names(found, "infrastructure") == {"n-0-1", "n-0-6"}


def test_failure_that_does_not_come_again_leaves_its_nodes_undetermined():
    domains = racks((8, 8))
    found = diagnosed(
        setup_of(domains),
        lambda trial: "failed" if trial.name == "intra-screening-r1-0" else "passed",
    )

    assert {each.reason for each in found.of("undetermined")} == {"intermittent"}
    assert names(found, "undetermined") == {n for n, rack in domains.items() if rack == "rack-0"}


def test_parts_without_a_limit_say_nothing_of_a_missed_limit():
    domains = racks((8, 8))
    found = diagnosed(
        setup_of(domains),
        lambda trial: (
            {8: "slow", 2: "passed"}.get(len(trial.nodes), "unjudged")
            if trial.stage == "intra-screening" and "n-0-0" in trial.nodes
            else "unjudged"
        ),
    )

    assert {each.reason for each in found.of("undetermined")} == {"no-limit"}
    assert len(found.of("undetermined")) == 8


def test_test_that_is_not_of_this_round_is_refused():
    with pytest.raises(ValueError, match="not a test of this round"):
        Diagnosis(setup_of(racks((2, 2)))).tell("bisection-r9-0", "passed")
