import pytest

from pytest_cre.simulator.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scenario", "nope"], "scenario 'nope' is unknown; choices: a100-4, "),
        (["--token-file", "/no/such/file"], "No such file"),
        (["--ca-file", "/no/such/file", "--scenario", "h100-2"], "No such file"),
    ],
)
def test_simulator_alone_with_a_mistake_says_so_in_one_line(capsys, arguments, words):
    assert main(["--server", "https://127.0.0.1:1", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
