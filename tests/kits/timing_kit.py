"""Limits on processor time, which does not depend on other processes."""

import time


def assert_fast(function, seconds=1.0, tries=3):
    """Return the result of the function; fail if every try takes longer than the limit."""
    took = []
    for _ in range(tries):
        start = time.thread_time()
        result = function()
        took.append(time.thread_time() - start)
        if took[-1] < seconds:
            return result
    raise AssertionError(f"took {took} s of processor time, but the limit is {seconds}")
