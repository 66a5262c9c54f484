"""Functions that read hostile files, run with limits on CPU time and memory."""

from functools import partial

from zoo.errors import ZooError
from zoo.testing.laws.cost import run_with_limits


def assert_cheap(cases, *, rejected=False, cpu_seconds=5):
    """Assert that each function takes at most this CPU time and 500 MB.

    The default is more than twice the 2 s that they take on an idle core, for slower machines.

    It may raise a ZooError with a short message; with `rejected`, it must.

    Args:
        cases: a function and its arguments, by label.
    """
    tasks = [partial(_problem, rejected, *case) for case in cases.values()]
    problems = zip(cases, run_with_limits(tasks, cpu_seconds=cpu_seconds), strict=True)
    found = {label: problem for label, problem in problems if problem}
    assert not found, found


def _problem(rejected, function, *arguments):
    try:
        function(*arguments)
    except ZooError as error:
        longest = max(map(len, str(error).splitlines()))
        return "" if longest < 2_000 else f"a line of {longest:,} characters"
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}"
    return "is accepted" if rejected else ""
