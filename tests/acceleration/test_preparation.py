"""Accelerations prepare their first calls while a model goes to its device."""

import os
import sys
import threading
import unittest

import pytest
import torch
from torch import nn

import zoo
from zoo.acceleration import finish_preparation, preparation, prepare
from zoo.registry.component_registry import ComponentRegistry
from zoo.testing.tiny_acceleration import TinyAcceleration, TwoLayers

DEVICE = torch.device("cuda", 0)


def make_registry(log, error=None):
    class Preparing(TinyAcceleration):
        @classmethod
        def prepare(cls, device):
            log.append((device, threading.current_thread()))
            if error is not None:
                raise error

    return ComponentRegistry().with_components([Preparing, TinyAcceleration], plugin="test")


def wait():
    for thread in threading.enumerate():
        if thread.name.startswith("zoo-prepare"):
            thread.join()


def test_each_acceleration_prepares_once_for_a_device_in_a_thread():
    log = []
    registry = make_registry(log)
    model = nn.Sequential(TwoLayers(), TwoLayers())
    for device in (DEVICE, DEVICE, torch.device("cuda", 1)):
        prepare(model, device, registry)
        wait()
    assert [device.index for device, _ in log] == [0, 1]
    assert all(thread is not threading.main_thread() for _, thread in log)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_nothing_is_prepared_for(device):
    log = []
    prepare(TwoLayers(), torch.device(device), make_registry(log))
    wait()
    assert log == []


def test_nothing_is_prepared_without_the_accelerations(monkeypatch):
    log = []
    monkeypatch.setenv("ZOO_FAST", "off")
    prepare(TwoLayers(), DEVICE, make_registry(log))
    prepare(nn.Linear(1, 1), DEVICE, make_registry(log))
    wait()
    assert log == []


def test_an_error_is_logged():
    log = []
    with unittest.TestCase().assertLogs("zoo.acceleration.preparation", "INFO") as records:
        prepare(TwoLayers(), DEVICE, make_registry(log, ValueError("a test")))
        wait()
    assert len(log) == 1
    assert records.output[0].endswith("is not prepared: a test")


def begin_preparation():
    """Begin one that ends when the returned event is set."""
    begun, may_end = threading.Event(), threading.Event()

    class Waiting(TinyAcceleration):
        @classmethod
        def prepare(cls, device):
            begun.set()
            may_end.wait()

    registry = ComponentRegistry().with_components([Waiting], plugin="test")
    prepare(TwoLayers(), DEVICE, registry)
    begun.wait()
    return may_end


def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    names = [thread.name for thread in threading.enumerate() if "prepare" in thread.name]
    assert os.waitpid(child, 0)[1] == 0
    return names


def test_a_call_can_wait_for_the_preparation():
    may_end = begin_preparation()
    threading.Timer(0.3, may_end.set).start()
    finish_preparation()
    assert not [thread for thread in threading.enumerate() if thread.name == "zoo-prepare"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_the_preparation():
    may_end = begin_preparation()
    threading.Timer(0.3, may_end.set).start()
    assert fork() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_only_one_fork_waits_for_a_preparation_that_does_not_end(monkeypatch):
    monkeypatch.setattr(preparation, "_MAX_WAIT", 0.01)
    may_end = begin_preparation()
    assert fork() == ["zoo-prepare-late"]
    monkeypatch.setattr(preparation, "_MAX_WAIT", 1e6)
    assert fork() == ["zoo-prepare-late"]
    may_end.set()
    wait()


def test_a_model_is_loaded_without_a_thread(monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    log = []
    with unittest.TestCase().assertLogs("zoo.acceleration.preparation", "INFO") as records:
        prepare(TwoLayers(), DEVICE, make_registry(log))
    assert records.output[0].endswith("are not prepared: can't start new thread")
    assert log == []


@pytest.mark.gpu
def test_compose_prepares_the_kernels_of_generation():
    zoo.compose("transformer-tiny", device="cuda")
    wait()
    assert "zoo_fast.transformer.kernels.decode_step" in sys.modules
