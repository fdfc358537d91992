"""How long nothing has been answered."""

import pytest

from pytest_cre.cluster.client import ApiProblem
from pytest_cre.cluster.contact import Contact
from pytest_cre.errors import ClusterProblem


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def contact(clock):
    return Contact("https://server", clock)


def test_nothing_asked_is_no_silence(contact, clock):
    clock.now_s = 100

    assert contact.silence is None


def test_request_without_an_answer_is_silence_since_it_was_sent(contact, clock):
    clock.now_s = 100
    contact.sent()
    clock.now_s = 112

    assert contact.silence.lasted_s == 12
    assert contact.silence.words == "https://server: does not answer"


def test_failures_are_silence_since_the_first_of_them_in_the_words_of_the_last(contact, clock):
    contact.failed(contact.sent(), "refused")
    clock.now_s = 5
    contact.failed(contact.sent(), "timed out")
    clock.now_s = 11

    assert contact.silence.lasted_s == 11
    assert contact.silence.words == "timed out"


def test_answer_ends_the_silence(contact, clock):
    contact.failed(contact.sent(), "refused")
    clock.now_s = 5
    contact.answered(contact.sent())

    assert contact.silence is None


def test_slow_request_beside_answered_ones_is_silence_only_since_the_last_answer(contact, clock):
    contact.sent()
    clock.now_s = 20
    contact.answered(contact.sent())
    clock.now_s = 23

    assert contact.silence.lasted_s == 3


@pytest.mark.parametrize(
    ("status", "is_silent"), [(503, True), (403, False), (404, False)], ids=str
)
def test_refusal_is_an_answer_unless_it_says_later(serve, quick, status, is_silent):
    client = serve(lambda _, reply: reply.refuse(status, "Reason")).client(quick(0.0))

    with pytest.raises(ClusterProblem):
        client.version()

    assert (client.silence is not None) is is_silent


def test_server_is_recovering_for_a_while_after_the_last_failure(contact, clock):
    assert not contact.is_recovering
    contact.failed(contact.sent(), "refused")
    contact.answered(contact.sent())
    clock.now_s = 29
    assert contact.is_recovering
    clock.now_s = 30
    assert not contact.is_recovering


@pytest.mark.parametrize("status", [401, 403])
def test_refusal_of_our_rights_right_after_an_outage_is_not_believed(serve, quick, status):
    answers = iter(["drop", status, status, status, "answer"])

    def answer(_, reply):
        match next(answers):
            case "drop":
                reply.drop()
            case "answer":
                reply.json({"gitVersion": "v1.37.2"})
            case refused:
                reply.refuse(refused, "Reason")

    assert serve(answer).client(quick(5.0)).version() == "v1.37.2"


def test_refusal_of_our_rights_without_an_outage_is_believed_at_once(serve, quick):
    server = serve(lambda _, reply: reply.refuse(403, "Forbidden"))

    with pytest.raises(ApiProblem, match="403 Forbidden"):
        server.client(quick(5.0)).version()
    assert len(server.requests) == 1
