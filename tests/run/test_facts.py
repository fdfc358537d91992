from pytest_cre.run.facts import event_facts


def event(uid="u", **fields):
    return {"involvedObject": {"uid": uid, "kind": "Pod", "name": "p"}, "reason": "R"} | fields


def test_events_of_other_objects_are_left_out():
    assert event_facts([event("other"), {}, {"involvedObject": None}], {"u"}) == ()


def test_events_of_every_shape_have_count_and_time():
    events = [
        event(type="Warning", message="m", count=3, lastTimestamp="2026-01-01T00:00:03Z"),
        event(series={"count": 7, "lastObservedTime": "2026-01-01T00:00:02Z"}, eventTime="2025-01-01T00:00:00Z"),
        event(eventTime="2026-01-01T00:00:01Z", lastTimestamp=None, count=None, series=None),
        event(metadata={"creationTimestamp": "2026-01-01T00:00:04Z"}),
        event(),
    ]  # fmt: skip

    found = event_facts(events, {"u"})

    assert [(each["time"][-3:], each["count"]) for each in found] == [
        ("", "1"), ("01Z", "1"), ("02Z", "7"), ("03Z", "3"), ("04Z", "1"),
    ]  # fmt: skip
    assert found[3] == {
        "type": "Warning", "reason": "R", "message": "m", "object": "Pod/p", "count": "3",
        "time": "2026-01-01T00:00:03Z",
    }  # fmt: skip


def test_events_order_does_not_depend_on_the_api():
    events = [event(reason=reason, lastTimestamp="2026-01-01T00:00:00Z") for reason in "cab"]

    assert event_facts(events, {"u"}) == event_facts(events[::-1], {"u"})
