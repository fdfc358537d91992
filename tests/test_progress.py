import pytest

from pytest_cre.progress import PLAIN_S, REDRAW_S, ProgressBoard, ProgressDisplay
from pytest_cre.run.progress import GroupProgress


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


class Paper:
    width = 100

    def __init__(self):
        self.written = []

    def fresh_line(self):
        self.written.append("|")

    def write(self, text):
        self.written.append(text)


def progress(group="group-0", phase="running", **changes):
    facts = {
        "entry": "communication/nccl-all-reduce",
        "scale": "intra-node",
        "attempt": 0,
        "nodes": ("n1",),
    }
    return GroupProgress(group=group, phase=phase, **(facts | changes))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def board(clock):
    return ProgressBoard(clock)


def test_board_line_tells_phase_nodes_figure_and_time_left(board, clock):
    board.tell(progress(remaining_s=600.0))
    board.note("group-0", "1 GiB 380.1 GB/s")
    clock.now_s += 25

    assert board.lines(200) == [
        "communication/nccl-all-reduce@intra-node group-0, running, 1 node, 1 GiB 380.1 GB/s, "
        "9:35 left"
    ]


def test_board_figure_of_an_earlier_attempt_is_dropped(board):
    board.tell(progress())
    board.note("group-0", "step 10")
    board.tell(progress(attempt=1))

    [line] = board.lines(200)
    assert "step 10" not in line
    assert "attempt 2" in line


def test_board_shows_hostile_words_of_the_cluster_on_one_safe_line(board):
    board.tell(progress(phase="queued", detail="0/8 nodes\n\x1b[2Jfit"))

    [line] = board.lines(200)
    assert line.endswith("queued, 1 node, 0/8 nodes fit")


def test_board_of_many_groups_is_cut_and_counted(board):
    for index in range(20):
        board.tell(progress(f"group-{index}", "done" if index < 4 else "running"))

    lines = board.lines(80)

    assert len(lines) == 13
    assert lines[0].split(",")[0].endswith("group-4")
    assert lines[-1] == "4 more groups, 4 of 20 groups done"
    assert all(len(line) <= 80 for line in lines)


def test_board_of_groups_that_are_done_says_nothing(board):
    board.tell(progress(phase="done"))

    assert (board.lines(80), board.summary()) == ([], "")


def test_display_on_a_terminal_redraws_its_block_and_takes_it_away(board, clock):
    screen = Paper()
    display = ProgressDisplay(screen.write, clock)
    display.screen = screen
    board.tell(progress("group-0"))
    board.tell(progress("group-1"))

    display.show(board)
    assert screen.written == []  # a quick run says nothing
    clock.now_s += REDRAW_S
    display.show(board)
    display.show(board)
    clock.now_s += REDRAW_S
    display.show(board)
    display.clear()
    display.clear()

    fresh, first, second, last = screen.written
    assert fresh == "|"
    assert first.count("\n") == 2
    assert second == f"\x1b[2F\x1b[J{first}"
    assert last == "\x1b[2F\x1b[J"


def test_display_elsewhere_writes_one_plain_line_a_minute(board, clock):
    told = []
    display = ProgressDisplay(told.append, clock)
    for index in range(3):
        board.tell(progress(f"group-{index}", "running" if index else "queued"))

    for _ in range(int(PLAIN_S * 2)):
        clock.now_s += 1
        display.show(board)
    display.clear()

    line = "communication/nccl-all-reduce@intra-node: 3 groups: 1 queued, 2 running"
    assert told == [line, line]
