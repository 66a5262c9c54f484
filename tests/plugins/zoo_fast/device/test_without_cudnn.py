"""The context without the attention of cuDNN."""

import threading

import pytest
import torch

from zoo_fast.device.without_cudnn import WithoutCudnn


def enabled() -> bool:
    return torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize("before", [True, False])
def test_the_setting_comes_back(before):
    saved = enabled()
    torch.backends.cuda.enable_cudnn_sdp(before)
    try:
        with WithoutCudnn():
            assert not enabled()
            with WithoutCudnn():
                assert not enabled()
            assert not enabled()
        assert enabled() == before
        with pytest.raises(ValueError, match="a test"), WithoutCudnn():
            raise ValueError("a test")
        assert enabled() == before
    finally:
        torch.backends.cuda.enable_cudnn_sdp(saved)


def test_the_setting_comes_back_with_the_end_of_the_last_thread():
    before, opened, may_end = enabled(), threading.Event(), threading.Event()

    def other():
        with WithoutCudnn():
            opened.set()
            may_end.wait()

    thread = threading.Thread(target=other)
    with WithoutCudnn():
        thread.start()
        opened.wait()
    after_this_thread = enabled()
    may_end.set()
    thread.join()
    assert not after_this_thread
    assert enabled() == before
