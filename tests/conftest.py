"""Settings of all tests."""

import copy
import functools
import gc
import json
import logging
import os
import signal
import threading

import case_sample
import pytest
import torch
from browser_kit import Visit, chromium, screenshot_folder
from environment_kit import clear_variables

# Before libraries such as huggingface_hub read the variables when they are imported.
clear_variables(os.environ)

# Tests use small tensors and run in parallel processes; so do the processes that they start.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

# Tests of Triton kernels run in its interpreter if there is no GPU; set before Triton is imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Without a GPU, `torch.manual_seed` stores each call with a formatted stack for three absent types
# of devices, which takes longer than many tests.
if not torch.accelerator.is_available():
    torch.manual_seed = lambda seed: torch.default_generator.manual_seed(int(seed))

# Without a handler, Python prints warnings of all loggers to stderr.
logging.getLogger().addHandler(logging.NullHandler())

# A shell ignores SIGINT in background jobs, and child processes would inherit that.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    case_sample.add_option(parser)


def pytest_configure(config):
    if config.getoption("--record-costly") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(case_sample.CostlyTests())


@pytest.hookimpl(trylast=True)  # after tests are deselected by marks
def pytest_collection_modifyitems(config, items):
    case_sample.sample(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage during the collection of tests, and exclude all modules and tests later.

    Later collections are rare: with the default of 700 new objects they take 6 % of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def empty_plots():
    """Plots of trainings are empty pictures.

    Commands that tests start in processes, and ``tests/training/test_plot.py``, draw them.
    """
    from plot_kit import write_empty

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.training.run_log.write_png", write_empty)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_built_once():
    """Typer builds all commands for each call in a test, which takes longer than most commands."""
    from typer import main, testing

    build = functools.cache(main.get_command)

    def get_command(app):
        command = copy.copy(build(app))
        if hasattr(command, "commands"):
            command.commands = dict(command.commands)  # a call adds those of plugins
        return command

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", get_command)
        patch.setattr(main, "get_command", get_command)
        yield


@pytest.fixture(scope="session", autouse=True)
def index_built_once():
    """In a process that has imported the plugins, each command builds their index again."""
    from zoo.cli import index
    from zoo.cli.index.fingerprint import distributions, environment

    build, built = index._rebuild, {}

    def rebuild(file):
        key = json.dumps([environment(), distributions()])
        if key not in built:
            built[key] = build(file)
        return built[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_rebuild", rebuild)
        yield


@pytest.fixture(scope="module")
def browser():
    """Chromium; tests that use it are skipped where it is not installed.

    It is closed after each module, since playwright keeps an event loop running, in which other
    tests cannot run theirs.
    """
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser, tmp_path):
    """A function that opens a tab: ``visit("light", viewport=...)`` returns a `Visit`.

    At the end of the test, no tab may have logged an error or requested anything from a host other
    than this machine.
    """
    visits = []

    def open_tab(theme="light", **options):
        options["color_scheme"] = theme
        visits.append(Visit(browser, screenshot_folder(tmp_path), options))
        return visits[-1]

    yield open_tab
    for each in visits:
        each.context.close()
    assert [problem for each in visits for problem in each.problems] == []
    hosts = set().union(*(each.hosts() for each in visits))
    assert hosts <= {"file", "127.0.0.1", "localhost"}
