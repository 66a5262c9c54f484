"""Functions that run in several threads at once."""

import sys
import threading


def run_in_threads(functions, times):
    """Return the results of each function, which its own thread calls several times.

    The interpreter switches between the threads as often as it can.
    """
    results = [[] for _ in functions]

    def work(index):
        for _ in range(times):
            results[index].append(functions[index]())

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(functions))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert [len(each) for each in results] == [times] * len(functions), "a thread has failed"
    return results
