import threading
from datetime import UTC, datetime

import pytest

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.errors import UnmetNeed
from pytest_cre.run.leases import LeaseTerms, held_lease, release_lease

QUICK = LeaseTerms(renew_s=0.02, poll_s=0.02, duration_s=60.0)


def lease(cluster):
    found = cluster.find("Lease")
    return found[0] if found else None


def held_by(cluster, holder, **spec):
    return cluster.put(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "pytest-cre", "namespace": "ns", "labels": {"cre.pytest.org/run": "other"}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60, "leaseTransitions": 4} | spec,
        },
        "ADDED",
    )  # fmt: skip


@pytest.fixture
def hold(client):
    def hold_it(holder="me", stop=None, **arguments):
        arguments = {"terms": QUICK, "stop": stop or threading.Event()} | arguments
        return held_lease(client, "k3f2a", holder, **arguments)

    return hold_it


def await_(condition):
    ticker = threading.Event()
    for _ in range(500):
        if condition():
            return True
        ticker.wait(0.01)
    return False


def test_lease_is_ours_while_held_and_gone_after(cluster, hold):
    with hold():
        assert lease(cluster)["spec"]["holderIdentity"] == "me"
        assert lease(cluster)["metadata"]["labels"]["cre.pytest.org/run"] == "k3f2a"
        assert lease(cluster)["spec"]["leaseDurationSeconds"] == 60

    assert lease(cluster) is None


def test_lease_is_renewed_while_held(cluster, hold):
    with hold():
        acquired = lease(cluster)["spec"]["renewTime"]
        assert await_(lambda: lease(cluster)["spec"]["renewTime"] != acquired)
        assert lease(cluster)["spec"]["acquireTime"] == acquired
        assert lease(cluster)["spec"]["leaseTransitions"] == 0


def test_lease_of_somebody_else_is_waited_for_and_its_holder_told(cluster, hold):
    theirs = held_by(cluster, "them")
    told = []

    def on_wait(words):
        told.append(words)
        cluster.remove(theirs)

    with hold(on_wait=on_wait):
        assert lease(cluster)["spec"]["holderIdentity"] == "me"
    assert told == ["lease pytest-cre in namespace ns is held by them"]


def test_lease_that_its_holder_renews_is_never_taken(cluster, hold):
    theirs = held_by(cluster, "them", leaseDurationSeconds=1)
    clock = iter(range(1000))

    def renew(_):
        theirs["spec"]["renewTime"] = datetime.now(UTC).isoformat()
        cluster.put(theirs)

    terms = LeaseTerms(poll_s=0.001, tell_s=0, patience_s=20, clock=lambda: float(next(clock)))
    with (
        pytest.raises(UnmetNeed, match="held by them; gave up after 20 s"),
        hold(on_wait=renew, terms=terms),
    ):
        pass
    assert lease(cluster)["spec"]["holderIdentity"] == "them"


def test_lease_that_is_not_renewed_is_taken_over(cluster, hold):
    held_by(cluster, "dead", leaseDurationSeconds=5)
    clock = iter(range(1000))
    terms = LeaseTerms(poll_s=0.001, renew_s=60, clock=lambda: float(next(clock)))

    with hold(terms=terms):
        assert lease(cluster)["spec"]["holderIdentity"] == "me"
        assert lease(cluster)["spec"]["leaseTransitions"] == 5
        assert lease(cluster)["metadata"]["labels"]["cre.pytest.org/run"] == "k3f2a"
    assert lease(cluster) is None


def test_lease_that_was_released_without_deletion_is_taken_at_once(cluster, hold):
    held_by(cluster, "")

    with hold():
        assert lease(cluster)["spec"]["holderIdentity"] == "me"


def test_lease_wait_is_told_at_once_and_then_once_a_minute(cluster, hold):
    held_by(cluster, "them", leaseDurationSeconds=10**6)
    clock, told = iter(range(10**6)), []
    terms = LeaseTerms(poll_s=0.0, patience_s=170, clock=lambda: float(next(clock)))

    with pytest.raises(UnmetNeed), hold(on_wait=told.append, terms=terms):
        pass

    assert told == ["lease pytest-cre in namespace ns is held by them"] * 3


def test_lease_of_another_process_of_the_same_run_is_waited_for_in_silence(hold):
    told = []
    terms = LeaseTerms(poll_s=0.01, patience_s=0.05)
    with hold("k3f2a-gw0"), pytest.raises(UnmetNeed), hold("k3f2a-gw1", on_wait=told.append, terms=terms):  # fmt: skip
        pass

    assert told == []


def test_lease_wait_ends_with_an_interrupt(cluster, hold):
    held_by(cluster, "them")
    stop = threading.Event()

    with (
        pytest.raises(UnmetNeed, match="held by them; interrupted"),
        hold(stop=stop, on_wait=lambda _: stop.set()),
    ):
        pass
    assert lease(cluster)["spec"]["holderIdentity"] == "them"


def test_lease_taken_by_somebody_else_is_told_and_left_to_them(cluster, hold):
    lost = threading.Event()
    with hold(on_lost=lost.set) as held:
        mine = lease(cluster)
        mine["spec"]["holderIdentity"] = "them"
        cluster.put(mine)
        assert lost.wait(5)
        assert held.loss == "lease pytest-cre in namespace ns was taken by them"

    assert lease(cluster)["spec"]["holderIdentity"] == "them"


def test_lease_deleted_by_hand_is_told(cluster, hold):
    lost = threading.Event()
    with hold(on_lost=lost.set) as held:
        cluster.remove(lease(cluster))
        assert lost.wait(5)
        assert held.loss == "lease pytest-cre in namespace ns was deleted"


def test_lease_deleted_since_the_last_renewal_is_known_at_the_end(cluster, hold):
    with hold(terms=LeaseTerms(renew_s=60)) as held:
        cluster.remove(lease(cluster))

    assert held.loss == "lease pytest-cre in namespace ns was deleted"


def test_lease_given_back_is_not_lost(hold):
    with hold() as held:
        pass

    assert held.loss is None


def test_lease_of_a_dead_process_is_released_and_that_of_a_live_one_is_not(cluster, client, hold):
    with hold("k3f2a-gw0"):
        release_lease(client, "k3f2a-gw1")
        assert lease(cluster) is not None
    held_by(cluster, "k3f2a-gw1")
    release_lease(client, "k3f2a-gw1")

    assert lease(cluster) is None


def test_lease_survives_an_api_that_fails_for_a_while(cluster, hold):
    with hold() as held:
        cluster.fail("replace", "Lease", ApiProblem("down", status=503, reason=""))
        assert await_(lambda: ("get", "Lease", "pytest-cre") in cluster.requests[3:])
        cluster.faults.clear()
        before = lease(cluster)["spec"]["renewTime"]
        assert await_(lambda: lease(cluster)["spec"]["renewTime"] != before)
        assert held.loss is None


def test_lease_release_with_a_dead_api_does_not_hide_the_result(cluster, hold):
    with hold():
        cluster.fail("get", "Lease", ApiProblem("down", status=403, reason=""))
    assert lease(cluster) is not None  # the sweep finds it by its label


def test_two_processes_of_one_run_never_hold_the_lease_together(cluster, hold):
    with hold("k3f2a-1"):
        terms = LeaseTerms(poll_s=0.01, patience_s=0.05)
        with pytest.raises(UnmetNeed, match="held by k3f2a-1"), hold("k3f2a-2", terms=terms):
            pass
