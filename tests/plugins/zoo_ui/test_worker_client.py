"""The client of a worker process: errors, and processes that end."""

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from zoo import ZooError
from zoo_ui.worker_client import WorkerClient


def _run(scenario):
    """Run a coroutine in a thread: playwright keeps an event loop in the main one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, scenario()).result()


def test_errors_of_jobs_are_raised_and_an_ended_process_starts_again():
    async def scenario():
        client = WorkerClient("is tested", max_seconds=60)
        with pytest.raises(ZooError, match="KeyError: 'absent'"):
            await client.call("absent")
        process = await client.start()
        process.send_signal(signal.SIGSTOP)
        waiting = asyncio.create_task(client.call("absent"))
        await asyncio.sleep(0)
        process.kill()
        with pytest.raises(ZooError, match="the process that is tested ended; try again"):
            await waiting
        with pytest.raises(ZooError, match="KeyError: 'absent'"):
            await client.call("absent")
        assert (await client.start()).pid != process.pid
        await client.stop()

    _run(scenario)


def test_a_job_that_takes_too_long_is_ended_with_its_process():
    async def scenario():
        client = WorkerClient("is tested", max_seconds=0.2)
        process = await client.start()
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(ZooError, match=r"took longer than 0.2 seconds and was ended"):
            await client.call("absent")
        assert process.returncode == -signal.SIGKILL

    _run(scenario)
