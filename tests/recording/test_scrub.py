"""Names and addresses in logs give way to pseudonyms; figures do not notice."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_cre.evidence.model import LogStream
from pytest_cre.measure.measurement import measure_streams
from pytest_cre.recording import finding, scrub
from pytest_cre.recording.save import figures
from pytest_cre.recording.scrub import Names
from tests.measure import tables
from tests.measure.histories import SECOND
from tests.measure.megatron import EPOCH_NS, step_line


def scrubbed(text, **known):
    names = Names()
    for kind, given_names in known.items():
        for name in given_names:
            names.add(kind, name)
    names.read(text.encode())
    return names.scrubber().scrub(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eth0:10.1.2.3<0> and 10.1.2.4:29500", "eth0:198.18.0.0<0> and 198.18.0.1:29500"),
        ("via fd00:12::7 and fe80::1ff:fe23:4567:890a%eth0", "via 2001:db8::0:0 and 2001:db8::0:1%eth0"),
        ("link/ether 0c:42:a1:00:11:22", "link/ether 02:00:00:00:00:00"),
        ("node_guid 1070:fd03:00b8:a1c2", "node_guid 0000:0000:0000:0000"),
        (
            "GPU-3f0a2b1c-1111-2222-3333-444455556666 ok",
            "GPU-00000000-0000-0000-0000-000000000000 ok",
        ),
        ('"serial_num": "1320123456789"', '"serial_num": "0000000000000"'),
        ("connect to db.site.example.com now", "connect to host-0 now"),
        ("GET https://metrics/x?y=1", "GET https://host-0/x?y=1"),
        ("s3://falcon-bucket/run/100", "s3://host-0/run/100"),
        ("mail alice@example.org", "mail user-0@host-0"),
        ('File "/home/alice/falcon/train.py", line 3, in main',
         'File "/home/user-0/folder-0/folder-1.py", line 3, in main'),
        ("saved to /home/alice/ckpt/iter_0000100", "saved to /home/user-0/folder-0/iter_0000100"),
        ("USER=alice alice's job", "USER=user-0 user-0's job"),
        ("gpu-9:12:34 [0] NCCL INFO peer gpu-9", "host-0:12:34 [0] NCCL INFO peer host-0"),
        ("PID 7 on node gpu-9 exited on signal 9", "PID 7 on node host-0 exited on signal 9"),
        ("at ip-10-0-1-2.ec2.internal or ip-10-0-1-2", "at host-1 or host-0"),
        ("HF_TOKEN=abcdefgh1", "HF_TOKEN=(not kept)"),
    ],
)  # fmt: skip
def test_what_tells_of_a_site_gives_way_to_a_pseudonym(text, expected):
    assert scrubbed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "12:00:00.123 iteration 10/ 100",
        "2026-01-01T00:00:00.000000001Z x",
        "NCCL version 2.27.7+cuda13.0, driver 570.124.06",
        "cuDNN version 9.1.0.70",
        "busId 0000:1b:00 [0000:1b:00.0]",
        "c10::Error at std::vector",
        "listening on 127.0.0.1:29500 and [::1]:29500, host localhost",
        "torch.distributed.elastic.multiprocessing: failed",
        "model.layers.0.self_attn.weight",
        "image nvcr.io/nvidia/pytorch:25.01-py3",
        "/home/ubuntu/run_100 /root/x",
        "[1,0]<stdout>: 0.5 0.25",
        "ranks 0:1:2:3",
        "mlx5_0:1/IB rank 3 nranks 16",
    ],
)
def test_what_tells_of_no_site_stays(text):
    assert scrubbed(text) == text


def test_known_names_give_way_wherever_they_stand_as_words():
    text = "falcon-1, falcon-10 and falcon-1.; pod-falcon-1x stays"
    assert scrubbed(text, node=["falcon-1", "falcon-10"]) == (
        "node-0, node-1 and node-0.; pod-falcon-1x stays"
    )


def test_same_name_has_the_same_pseudonym_and_order_is_kept():
    names = Names()
    for node in ("n-b", "n-a", "n-c"):
        names.add("node", node)
    scrubber = names.scrubber()
    assert [scrubber.name("node", each) for each in ("n-a", "n-b", "n-c")] == [
        "node-0",
        "node-1",
        "node-2",
    ]
    assert scrubber.scrub(b"n-c n-a n-c") == b"node-2 node-0 node-2"


def test_names_too_short_or_mere_numbers_are_told_and_stay():
    names = Names()
    for node in ("a", "17", "10.5", "n-1"):
        names.add("node", node)
    assert names.kept == {"a", "17", "10.5"}
    assert names.scrubber().scrub(b"a 17 10.5 n-1") == b"a 17 10.5 node-0"


def test_namespace_that_is_a_word_stays_one():
    assert scrubbed("default stream", namespace=["default"]) == "default stream"
    assert scrubbed("in team-x", namespace=["team-x"]) == "in namespace-0"


names = st.from_regex(r"\A[a-z]{2,8}-[a-z]{1,8}[0-9]{1,3}\Z")
addresses = st.builds("10.{}.{}.{}".format, *(st.integers(0, 255),) * 3)


@st.composite
def sites(draw):
    """Nodes, a user, an address, and a log of a benchmark and one of a training that name them."""
    nodes = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    user, address = draw(names), draw(addresses)
    chatter = [
        f"{nodes[0]}:120:160 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:{address}<0>",
        f"WARN connecting {nodes[1]} ({address}:29500) as {user}@{nodes[0]}",
        f'  File "/home/{user}/{nodes[1]}/train.py", line 10, in main',
        f"{nodes[1]}: hello from {nodes[-1]}.cluster.local",
    ]
    bench = tables.table(ranks=4)
    steps = [
        step_line(number, EPOCH_NS + number * SECOND, SECOND)
        for number in range(1, draw(st.integers(3, 9)))
    ]
    for lines in (bench, steps):
        for line in draw(st.lists(st.sampled_from(chatter), max_size=8)):
            lines.insert(draw(st.integers(0, len(lines))), line)
    return nodes, user, address, ["\n".join(lines) + "\n" for lines in (bench, steps)]


def measured(text):
    log = LogStream(pod="pod-0", data=text, is_complete=True)
    return figures(
        measure_streams([log], window_start_ns=EPOCH_NS, window_end_ns=EPOCH_NS + 60 * SECOND)
    )


@settings(max_examples=60)
@given(sites())
def test_any_site_is_gone_and_every_figure_stays(site):
    nodes, user, address, logs = site
    # A name that is itself of the form of a pseudonym, or part of what programs print, proves nothing.
    assume(not any(re.match(r"(node|host|user|folder|pod|job)-", each) for each in (*nodes, user)))
    known = Names()
    for node in nodes:
        known.add("node", node)
    for text in logs:
        known.read(text.encode())
    scrubber = known.scrubber()
    for text in logs:
        left = scrubber.scrub(text.encode())
        for name in (*nodes, user, address):
            pattern = rb"(?<![A-Za-z0-9.])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9]|\.\d)"
            assert not re.search(pattern, left)
        assert measured(left) == measured(text.encode())
        assert left.count(b"\n") == text.count("\n")


@given(st.binary(max_size=400), st.lists(names, max_size=3))
def test_any_bytes_keep_their_lines_and_scrub_the_same_twice(data, nodes):
    known = Names()
    for node in nodes:
        known.add("node", node)
    known.read(data)
    scrubber = known.scrubber()
    assert scrubber.scrub(data).count(b"\n") == data.count(b"\n")
    assert known.scrubber().scrub(data) == scrubber.scrub(data)


fragments = st.sampled_from(
    [
        *("10.1.2.3", "fd00::1", "1:2:3:4:5:6:7:8", "aa:bb:cc:dd:ee:ff", "1070:fd03:00b8:a1c2"),
        *("3f0a2b1c-1111-2222-3333-444455556666", '"1320123456789"', "db.site.example.com", "x.in"),
        *("https://metrics/x", "s3://falcon", "alice@example.org", "/home/alice/falcon/t.py"),
        *("gpu-9:12:34 [0] NCCL", "Pid 7 on gpu-9 device", "on node gpu-9", "hostname=gpu-9"),
        *("ip-10-0-1-2", "USER=alice", "logname='alice'", "HF_TOKEN=abcdefgh1", "sk-" + "a" * 20),
        *("Authorization: Basic abc", "AKIAIOSFODNN7EXAMPLE", "://a:b@c", '"password": "hunter22"'),
        *(" ", "\n", ":", ".", "/", "@", "-", "a", "0", "é", "\x00"),
    ]
)


@given(st.lists(fragments, max_size=12).map(lambda parts: "".join(parts).encode()))
def test_lines_passed_over_quickly_hold_nothing_to_be_replaced(text):
    by_line = {
        (found.kind, found.name) for line in text.split(b"\n") for found in finding._addresses(line)
    }
    assert {(found.kind, found.name) for found in finding.addresses(text)} == by_line
    told = {each for line in text.split(b"\n") for each in finding._told_names(line)}
    assert set(finding.told_names(text)) == told
    whole = b"\n".join(scrub._masked(line) for line in text.split(b"\n"))
    assert scrub.masked(text) == whole
