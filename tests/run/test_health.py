import pytest

from pytest_cre.catalog.entry import NODE_HEALTH as DEFAULT_RULE
from pytest_cre.formats.cel import CelProblem
from pytest_cre.run.health import NodeHealth, compile_rule


def node(name="n1", *, version=1, uid="u1", boot="b1", gpus=8, cordoned=False, **more):
    conditions = [{"type": "Ready", "status": "True"}, *more.pop("conditions", [])]
    return {
        "metadata": {"name": name, "uid": uid, "resourceVersion": str(version), **more},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus)},
            "nodeInfo": {"bootID": boot},
            "conditions": conditions,
        },
    }


def seen(*views, rule=DEFAULT_RULE):
    health = NodeHealth(["n1"], compile_rule(rule))
    for view in views:
        health.look({view["metadata"]["name"]: view})
    return health


def found(health):
    return [(each.code, each.node, each.message) for each in health.problems]


def test_health_of_a_node_that_stays_as_it_was_has_no_findings():
    health = seen(node(), node(version=2))

    assert found(health) == []
    assert not health.has_failed
    assert health.before == health.after
    assert (health.before[0].boot_id, health.before[0].gpus_allocatable) == ("b1", 8)


def test_cordon_while_it_runs_is_a_hardware_failure_by_the_default_rule():
    health = seen(node(), node(version=2, cordoned=True))

    assert health.has_failed
    assert found(health) == [
        ("hardware-failed", "n1", f"node n1: it has failed by the rule {DEFAULT_RULE}")
    ]


def test_node_that_recovers_keeps_its_finding():
    health = seen(node(), node(version=2, cordoned=True), node(version=3))

    assert health.has_failed


@pytest.mark.parametrize(
    ("after", "code", "words"),
    [
        (node(version=2, uid="u2"), "node-changed", "replaced by another node"),
        (node(version=2, boot="b2"), "node-changed", "it was rebooted while it ran"),
        (node(version=2, gpus=7), "hardware-failed", "8 GPUs were allocatable, 7 are now"),
        (
            node(version=2, conditions=[{"type": "GpuFallenOffBus", "status": "True"}]),
            "hardware-failed",
            "its condition GpuFallenOffBus became True",
        ),
    ],
    ids=["replaced", "rebooted", "gpu-lost", "problem-detector"],
)
def test_change_of_a_node_while_it_runs_is_found(after, code, words):
    [(got, name, message)] = found(seen(node(), after))

    assert (got, name) == (code, "n1")
    assert words in message


def test_condition_that_was_bad_before_is_not_a_change():
    bad = [{"type": "KernelDeadlock", "status": "True"}]

    assert found(seen(node(conditions=bad), node(version=2, conditions=bad))) == []


def test_rule_sees_empty_values_where_a_node_lacks_them():
    rule = (
        "'gone' in node.metadata.labels || node.spec.taints.exists(t, t.key == 'bad') || "
        "node.status.conditions.exists(c, c.type == 'XidError' && c.status == 'True')"
    )

    bare = {"metadata": {"name": "n1", "resourceVersion": "1"}}
    assert found(seen(bare, rule=rule)) == []
    assert seen(bare, node(version=2, labels={"gone": ""}), rule=rule).has_failed


def test_rule_that_cannot_be_evaluated_is_its_own_finding():
    [(code, name, message)] = found(seen(node(), rule="node.metadata.labels['rack'] == 'a'"))

    assert (code, name) == ("health-unknown", "n1")
    assert "its health is unknown" in message


@pytest.mark.parametrize("text", ["node.", "1 + 1", "", "other == 1"])
def test_rule_that_is_none_is_refused(text):
    with pytest.raises(CelProblem):
        compile_rule(text)


def test_unchanged_version_is_not_evaluated_again():
    assert found(seen(node(), node(cordoned=True))) == []


def test_nodes_of_others_are_not_looked_at():
    health = NodeHealth(["n1"], compile_rule(DEFAULT_RULE))
    health.look({"n2": node("n2", cordoned=True)})

    assert (health.problems, health.before) == ((), ())
