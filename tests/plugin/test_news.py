from pytest_cre.news import TerminalNews


def test_line_is_told_again_only_after_a_minute():
    told, now_s = [], [0.0]
    news = TerminalNews(told.append, clock=lambda: now_s[0])

    for now_s[0] in (0.0, 1.0, 59.0, 61.0):
        news.tell("held by them")

    assert told == ["held by them", "held by them"]


def test_subject_stands_for_lines_that_differ_by_their_numbers():
    told = []
    news = TerminalNews(told.append, clock=lambda: 0.0)

    news.tell("silent for 10 s", subject="silence")
    news.tell("silent for 11 s", subject="silence")
    news.tell("held by them")

    assert told == ["silent for 10 s", "held by them"]
