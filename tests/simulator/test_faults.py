import pytest

from pytest_cre.simulator.faults import After, Fault, FaultBook, Match, Subject


def subject(node="n1", uid="u1", **more):
    return Subject(
        node=node,
        namespace="default",
        pod="p",
        pod_uid=uid,
        container="main",
        labels={"cre.pytest.org/entry": "training.nemotron5-8b", "team": "a"},
        **more,
    )


@pytest.mark.parametrize(
    ("match", "is_met"),
    [
        ({}, True),
        ({"node": "n*"}, True),
        ({"node": "m*"}, False),
        ({"entry": "training/*"}, True),
        ({"entry": "communication/*"}, False),
        ({"labels": {"team": "a"}}, True),
        ({"labels": {"team": "b"}}, False),
        ({"labels": {"none": "?*"}}, False),
        ({"index": 2}, True),
        ({"index": 1}, False),
        ({"command": "*pretrain*"}, True),
        ({"node": "n1", "container": "other"}, False),
    ],
)
def test_match_needs_every_pattern(match, is_met):
    assert Match(**match).matches(subject(index=2, command="torchrun pretrain_gpt.py")) == is_met


def test_event_at_a_step_happens_once_per_pod():
    book = FaultBook([Fault(action="crash", match=Match(), after=After(step=5))])
    assert list(book.due(subject(), step=4)) == []
    assert [fault.action for fault in book.due(subject(), step=5)] == ["crash"]
    assert list(book.due(subject(), step=6)) == []
    assert len(list(book.due(subject(uid="u2"), step=7))) == 1


def test_event_with_times_is_used_up():
    book = FaultBook([Fault(action="crash", match=Match(), after=After(step=5), times=1)])
    assert len(list(book.due(subject(uid="u1"), step=5))) == 1
    assert list(book.due(subject(uid="u2"), step=5)) == []


def test_event_at_a_size_waits_for_it():
    book = FaultBook([Fault(action="hang", match=Match(), after=After(size_bytes=64))])
    assert list(book.due(subject(), size_bytes=32)) == []
    assert list(book.due(subject(), step=99)) == []
    assert len(list(book.due(subject(), size_bytes=128))) == 1


def test_condition_holds_for_as_many_pods_as_times():
    book = FaultBook([Fault(action="slow-link", match=Match(), factor=0.5, times=1)])
    for _ in range(3):
        assert len(list(book.holding("slow-link", subject(uid="u1")))) == 1
    assert list(book.holding("slow-link", subject(uid="u2"))) == []


def test_condition_after_seconds_begins_then():
    book = FaultBook([Fault(action="straggler", match=Match(), factor=2.0, after=After(seconds=3))])
    assert list(book.holding("straggler", subject(), elapsed_s=2.9)) == []
    assert len(list(book.holding("straggler", subject(), elapsed_s=3.0))) == 1


def test_timed_events_come_soonest_first():
    book = FaultBook(
        [
            Fault(action="hang", match=Match(), after=After(seconds=2)),
            Fault(action="log-stuck", match=Match()),
            Fault(action="crash", match=Match(), after=After(step=1)),
            Fault(action="slow-link", match=Match(), factor=0.5),
        ]
    )
    assert book.timed(subject()) == [(0.0, 1), (2, 0)]
    assert book.happen(1, subject()).action == "log-stuck"
    assert book.happen(1, subject()) is None


def test_crash_after_seconds_ends_a_container(machines):
    world = machines.world(
        "extends: h100-2\nfaults: [{action: crash, exitCode: 9, message: Xid 79, after: {seconds: 0.05}}]"
    )
    played = machines.play(world, [machines.pod(["sleep", "9"], node="h100-0")])[0]
    assert (played.code, played.text) == (9, "Xid 79\n")


def test_hang_of_one_node_stops_the_whole_table(machines):
    world = machines.world(
        "extends: h100-2\nfaults:\n"
        "- {match: {node: h100-1}, action: hang, after: {size: 1M}}\n"
        "- {match: {node: h100-0}, action: crash, exitCode: 137, after: {seconds: 0.3}}\n"
    )
    script = "/cre/collective.py --collective all_reduce -b 8 -e 1G -f 2"
    first, second = machines.play(world, machines.torchrun(world, script))
    assert first.code == 137
    assert "524288" in first.text
    assert "Avg bus bandwidth" not in first.text
    assert second.code == 1


def test_slow_way_holds_only_where_both_ends_take_part():
    book = FaultBook(
        [Fault(action="slow-link", match=Match(node="a*"), to=Match(node="b*"), factor=0.5)]
    )
    a, b, c = (subject(node=name, uid=name) for name in ("a1", "b1", "c1"))

    assert book.way_factors([a, b, c]) == [0.5, 0.5, 1.0]
    assert book.way_factors([a, c]) == [1.0, 1.0]
    assert book.way_factors([a]) == [1.0]
    assert list(book.holding("slow-link", a)) == []


def test_slow_way_to_itself_needs_two_nodes():
    book = FaultBook(
        [Fault(action="slow-link", match=Match(node="a*"), to=Match(node="a*"), factor=0.5)]
    )
    a, other = (subject(node=name, uid=name) for name in ("a1", "a2"))

    assert book.way_factors([a]) == [1.0]
    assert book.way_factors([a, other]) == [0.5, 0.5]
