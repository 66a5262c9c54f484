"""A context without the attention of cuDNN."""

import threading

import torch

_LOCK = threading.Lock()


class WithoutCudnn:
    """A context in which torch does not choose the attention of cuDNN.

    cuDNN takes 40 to 65 ms before its first call with each new shape (H200). The setting is that of
    the whole process: what it was comes back with the end of the last context of all threads, if
    nothing else changes it in between.
    """

    _open = 0
    _before = True

    def __enter__(self) -> None:
        with _LOCK:
            if not WithoutCudnn._open:
                before: bool = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
                WithoutCudnn._before = before
                torch.backends.cuda.enable_cudnn_sdp(False)
            WithoutCudnn._open += 1

    def __exit__(self, *error: object) -> None:
        with _LOCK:
            WithoutCudnn._open -= 1
            if not WithoutCudnn._open:
                torch.backends.cuda.enable_cudnn_sdp(WithoutCudnn._before)
