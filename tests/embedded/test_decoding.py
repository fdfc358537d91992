"""Typed decoding: what is stored of what a client wrote, and what is refused."""

import pytest

from pytest_cre.embedded.amounts import canonical_quantity
from pytest_cre.embedded.bodies import parse_object
from pytest_cre.embedded.decoding import DecodingError, decode, rfc3339_time
from pytest_cre.embedded.indexes import format_indexes, parse_indexes
from pytest_cre.embedded.kinds import CONFIG_MAP, JOB
from pytest_cre.embedded.protobuf import ProtobufError, read_envelope, read_message
from pytest_cre.embedded.status import ApiError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5", "1500m"),
        ("0.1", "100m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("110", "110"),
        ("+5", "5"),
        ("0", "0"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1000Ki", "1000Ki"),
        ("512Gi", "512Gi"),
        ("1e3", "1e3"),
        ("3E", "3E"),
        ("0.0000000001", "1n"),
        ("-1500m", "-1500m"),
    ],
)
def test_quantity_is_stored_with_the_largest_suffix_that_needs_no_fraction(text, canonical):
    assert canonical_quantity(text) == canonical


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "Gi", "1.2.3", "1KI"])
def test_quantity_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="quantity"):
        canonical_quantity(text)


def test_nulls_and_empty_values_are_left_out_and_what_is_always_there_is_added():
    container = {"name": "c", "image": "", "args": [], "env": None, "stdin": False, "tty": True}
    obj = decode("Pod", {"metadata": {"labels": {}}, "spec": {"containers": [container]}}).obj
    assert obj == {
        "metadata": {},
        "spec": {"containers": [{"name": "c", "tty": True, "resources": {}}]},
        "status": {},
    }
    status = decode("Pod", {"status": {"containerStatuses": [{"name": "c"}]}}).obj["status"]
    assert status["containerStatuses"] == [
        {
            "name": "c",
            "state": {},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ]


def test_null_in_a_list_or_map_is_an_empty_value():
    container = {"name": "c", "args": [None, "x"], "env": [None]}
    obj = decode("Pod", {"spec": {"containers": [container], "nodeSelector": {"a": None}}}).obj
    assert obj["spec"]["nodeSelector"] == {"a": ""}
    assert obj["spec"]["containers"][0]["args"] == ["", "x"]
    assert obj["spec"]["containers"][0]["env"] == [{"name": ""}]


def test_empty_value_of_a_pointer_stays():
    spec = {"suspend": False, "completions": 0, "template": {}}
    assert decode("Job", {"spec": spec}).obj["spec"]["suspend"] is False
    assert decode("Job", {"spec": spec}).obj["spec"]["completions"] == 0


def test_field_that_no_kind_has_is_left_out_and_named_with_its_place():
    container = {"name": "c", "imagee": "i"}
    template = {"spec": {"containers": [container], "x": {}}}
    decoded = decode("Job", {"spec": {"template": template}, "kind": "Job", "y": 1})
    assert sorted(decoded.strays) == [
        'unknown field "spec.template.spec.containers[0].imagee"',
        'unknown field "spec.template.spec.x"',
        'unknown field "y"',
    ]
    assert decoded.obj["spec"]["template"]["spec"]["containers"][0]["name"] == "c"


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ({"spec": []}, "cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"spec": {"containers": [{"env": [{"name": "A", "value": 1}]}]}},
            "cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of "
            "type string",
        ),
        (
            {"spec": {"terminationGracePeriodSeconds": 1.5}},
            "cannot unmarshal number 1.5 into Go struct field "
            "PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            {"metadata": {"labels": {"a": 1}}},
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        ({"status": {"phase": 1}}, "of type v1.PodPhase"),
        ({"status": {"startTime": "soon"}}, 'cannot parse "soon" as "2006"'),
        ({"spec": {"overhead": {"cpu": []}}}, "quantities must match the regular expression"),
    ],
)
def test_value_of_the_wrong_type_is_refused_in_gos_words(obj, words):
    with pytest.raises(DecodingError) as refusal:
        decode("Pod", obj)
    assert words in str(refusal.value)


def test_time_is_stored_in_utc_to_the_second_and_of_leases_to_the_microsecond():
    assert rfc3339_time("2026-01-01T01:00:00.75+01:00") == "2026-01-01T00:00:00Z"
    assert rfc3339_time("2026-01-01T00:00:00.000001Z", is_micro=True).endswith("00.000001Z")
    with pytest.raises(DecodingError, match=r'cannot parse "Z" as ".000000"'):
        rfc3339_time("2026-01-01T00:00:00Z", is_micro=True)
    with pytest.raises(DecodingError, match="out of range"):
        rfc3339_time("2026-02-30T00:00:00Z")


def test_strict_reading_refuses_what_a_lenient_one_only_warns_of():
    text = b'{"metadata": {"name": "a"}, "data": {"k": "1", "k": "2"}, "dta": {}}'
    body = parse_object(text, "", CONFIG_MAP, "Warn")
    assert body.obj["data"] == {"k": "2"}
    assert sorted(body.warnings) == ['duplicate field "data.k"', 'unknown field "dta"']
    assert parse_object(text, "", CONFIG_MAP, "Ignore").warnings == ()
    with pytest.raises(ApiError) as refusal:
        parse_object(text, "", CONFIG_MAP, "Strict")
    assert refusal.value.code == 400
    assert "strict decoding error: " in refusal.value.message


def field(number, data):
    """A protobuf entry of bytes, or of a whole number."""
    if isinstance(data, int):
        return bytes([number << 3, data])
    return bytes([number << 3 | 2, len(data)]) + data


def test_job_in_protobuf_is_read_like_one_in_json():
    container = field(1, b"c") + field(2, b"i:1") + field(3, b"sh") + field(3, b"-c")
    limits = field(1, field(1, b"cpu") + field(2, field(1, b"1500m")))
    container += field(8, limits)
    volume = field(1, b"v") + field(2, field(2, field(1, b"Memory")))
    pod = field(2, container) + field(3, b"Never") + field(1, volume)
    # An unset creation time is an empty message.
    template = field(1, field(8, b"")) + field(2, pod)
    spec = field(1, 2) + field(6, template) + field(10, 0)
    metadata = field(1, b"j") + field(11, field(1, b"a") + field(2, b"b"))
    message = field(1, metadata) + field(2, spec)
    head = field(1, field(1, b"batch/v1") + field(2, b"Job"))
    data = b"k8s\0" + head + field(2, message)
    assert read_envelope(data)[:2] == ("batch/v1", "Job")
    obj = parse_object(data, "application/vnd.kubernetes.protobuf", JOB, "Strict").obj
    assert obj["metadata"] == {"name": "j", "labels": {"a": "b"}}
    assert (obj["spec"]["parallelism"], obj["spec"]["suspend"]) == (2, False)
    assert obj["spec"]["template"]["spec"] == {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "command": ["sh", "-c"],
                "resources": {"limits": {"cpu": "1500m"}},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
    }


@pytest.mark.parametrize("data", [b"", b"k8s", b"json", b"k8s\0\x0a\x05a"])
def test_bytes_that_are_no_protobuf_are_refused(data):
    with pytest.raises(ProtobufError):
        read_envelope(data)
    with pytest.raises(ProtobufError):
        read_message("Pod", b"\x0a\x7f")


@pytest.mark.parametrize("text", ["", "0", "0,1", "0-2", "0-2,5", "1,3,5-9"])
def test_indexes_are_written_as_they_are_read(text):
    assert format_indexes(parse_indexes(text)) == text


def test_indexes_that_cannot_be_read_are_left_out():
    assert parse_indexes("a,1-,2-b,٣,99999999999,4") == {1, 4}
