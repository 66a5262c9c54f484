"""Warnings of operations that wait for the device."""

import threading
import warnings

import pytest
import torch

from zoo_fast.device.synchronisation import find_synchronisation


def warn_of_sync():
    warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the test with a GPU is that below")
def test_warnings_of_this_thread_are_found_and_others_are_raised_again(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    thread = threading.Thread(target=warn_of_sync)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        with find_synchronisation() as found:
            thread.start()
            thread.join()
            assert not found
            warn_of_sync()
            warnings.warn("another one", UserWarning, stacklevel=1)
            warnings.warn("a prototype feature", UserWarning, stacklevel=1)
    assert len(found) == 1
    assert found[0].endswith("waits for the device")
    assert [str(warning.message) for warning in raised] == ["another one"]
