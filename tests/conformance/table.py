"""The table: all exchanges, how they are run, and how transcripts are kept."""

import importlib
import pkgutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from tests.conformance import exchanges
from tests.conformance.play import Play

RECORDS = Path(__file__).parents[1] / "data" / "conformance"
# Most exchanges wait for the server most of the time.
_WORKERS = 8


class _Dumper(yaml.CSafeDumper):
    """Writes everything out, also what stands twice."""

    def ignore_aliases(self, data):
        return True


def all_exchanges():
    """Give the exchange functions by chapter and name."""
    chapters = {}
    for found in sorted(pkgutil.iter_modules(exchanges.__path__), key=lambda found: found.name):
        module = importlib.import_module(f"{exchanges.__name__}.{found.name}")
        chapters[found.name] = {
            name: value
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__
            and callable(value)
            and not name.startswith("_")
        }
    return chapters


def run_table(api, kubelet, folder, wanted=lambda _chapter, _name: True):
    """Play all exchanges against a server; gives the transcripts by chapter and name.

    In place of a transcript stands the error of an exchange that could not be played.
    """

    def play(task):
        chapter, name, exchange = task
        play = Play(api, kubelet, name, folder)
        try:
            play.open()
            exchange(play)
            found = play.transcript()
        except Exception as error:  # noqa: BLE001 - it is told where the transcript is looked at
            error.add_note(f"in the exchange {chapter}.{name}")
            found = error
        finally:
            play.close()
        return chapter, name, found

    tasks = [
        (chapter, name, exchange)
        for chapter, named in all_exchanges().items()
        for name, exchange in named.items()
        if wanted(chapter, name)
    ]
    result = {}
    with ThreadPoolExecutor(_WORKERS) as pool:
        for chapter, name, found in pool.map(play, tasks):
            result.setdefault(chapter, {})[name] = found
    api.close()
    return result


def read_records():
    """Give the kept answers of the genuine server, in the form of `run_table`."""
    return {
        path.stem: yaml.load(path.read_text(), yaml.CSafeLoader)
        for path in sorted(RECORDS.glob("*.yaml"))
        if path.stem != "differences"
    }


def write_records(transcripts):
    """Keep the answers of the genuine server."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    for chapter, named in transcripts.items():
        text = yaml.dump(named, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
        (RECORDS / f"{chapter}.yaml").write_text(text)
