"""Requests to run models, whose bodies only the worker process parses."""

import json

import pytest

from zoo.errors import ZooError

pytest.importorskip("starlette", reason="starlette is not installed")
from zoo_ui.jobs.models import attend, run


@pytest.mark.parametrize("job", [run, attend])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the request is not valid JSON"),
        (b"[]", "the request should be a JSON object"),
        (rb'{"model": "gat-cora", "input": {"text": "\ud800"}}', "half of a surrogate pair"),
        (b'{"model": ["gat-cora"], "input": {}}', "'model' should be a text"),
        (b'{"model": "gat-cora", "input": "a"}', "'input' should be a mapping"),
        (b'{"model": "gat-cora"}', "the request has no key 'input'"),
    ],
)
def test_malformed_requests_are_rejected(job, body, message):
    with pytest.raises(ZooError, match=message):
        job({}, body=body)


def test_an_input_reaches_the_model():
    body = json.dumps({"model": "g2p-bahdanau", "input": {"text": "cat"}}).encode()
    assert run({}, body=body)["hypotheses"][0]["text"]
