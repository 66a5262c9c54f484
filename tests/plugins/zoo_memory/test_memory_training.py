"""Training on synthetic data: copying bits, and answering where people went."""

from functools import partial

import pytest
import torch

import zoo

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("seed", [0, 1, 2])]


def _train(spec, changes, make_batch, steps, seed, rate):
    torch.manual_seed(seed)
    model = zoo.compose(spec, overrides=changes, seed=seed).train()
    objective = zoo.load_spec(spec, overrides=changes).sections.objective.build()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        loss = objective(model(make_batch(generator)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval(), torch.Generator().manual_seed(seed + 1000)


def _copy_batch(generator, batch=32, bits=4, longest=6):
    """Return rows of bits and a delimiter, then the rows again as targets."""
    length = int(torch.randint(1, longest + 1, (), generator=generator))
    rows = torch.randint(0, 2, (batch, length, bits), generator=generator).float()
    source = torch.zeros(batch, 2 * length + 1, bits + 1)
    source[:, :length, :bits] = rows
    source[:, length, bits] = 1
    target = torch.zeros(batch, 2 * length + 1, bits)
    target[:, length + 1 :] = rows
    mask = torch.zeros(batch, 2 * length + 1, dtype=torch.bool)
    mask[:, length + 1 :] = True
    return {"source": source, "target": target, "mask": mask}


@pytest.mark.parametrize("machine", ["ntm", "dnc"])
def test_copy_task(machine, seed):
    """97 % of the bits of sequences of up to 6 rows are correct (chance: 50 %)."""
    encoder = f"{{type: {machine}, hidden: 48, slots: 12, width: 8, read_heads: 1}}"
    changes = [
        "model.source={type: dense, width: 5, dim: 8}",
        f"model.encoder={encoder}",
        "model.labels=4",
    ]
    model, generator = _train("ntm-copy", changes, _copy_batch, 1200, seed, 1e-2)
    correct = total = 0
    with torch.no_grad():
        for _ in range(20):
            batch = _copy_batch(generator)
            outputs = model(batch)
            hit = (outputs.logits > 0) == (outputs.targets > 0.5)
            correct += hit[outputs.mask].sum().item()
            total += hit[outputs.mask].numel()
    assert correct / total >= 0.97, correct / total


PEOPLE, PLACES, WENT, WHERE = 4, 5, 1, 2


def _visits_batch(generator, batch=64, facts=5, *, labelled=False):
    """Return facts "Anna went garden" and questions "where Anna"; the answer is her last place.

    If `labelled`, the fact that answers is given for two episodes.
    """
    who = torch.randint(0, PEOPLE, (batch, facts), generator=generator)
    place = torch.randint(0, PLACES, (batch, facts), generator=generator)
    person = who.gather(1, torch.randint(0, facts, (batch, 1), generator=generator))
    last = ((who == person) * torch.arange(1, facts + 1)).argmax(dim=1, keepdim=True)
    story = torch.stack([who + 3, torch.full_like(who, WENT), place + 3 + PEOPLE], dim=-1)
    question = torch.cat([torch.full_like(person, WHERE), person + 3], dim=1)
    target = place.gather(1, last)[:, 0] + 3 + PEOPLE
    support = torch.nn.functional.one_hot(last[:, 0], facts)[..., None].expand(-1, -1, 2)
    given = {"story": story, "question": question, "target": target}
    return given | ({"support": support} if labelled else {})


@pytest.mark.parametrize(
    ("spec", "changes", "steps", "labelled"),
    [
        ("memory-network-tiny", ["model.source={vocab: 16, dim: 24}", "init.std=0.1"], 1500, False),
        ("dynamic-memory-tiny", ["model.source.dim=16", "model.encoder.hidden=32"], 400, True),
    ],
)
def test_last_location_task(spec, changes, steps, labelled, seed):
    """95 % of the answers are correct (chance: 20 %)."""
    make_batch = partial(_visits_batch, labelled=labelled)
    model, generator = _train(spec, changes, make_batch, steps, seed, 5e-3)
    with torch.no_grad():
        batch = make_batch(generator, batch=1000)
        predictions = model(batch).logits[:, 0].argmax(dim=-1)
    accuracy = (predictions == batch["target"]).float().mean().item()
    assert accuracy >= 0.95, accuracy


def test_linear_start_ends_when_the_validation_loss_stops_decreasing(seed):
    """A loop with linear start learns to answer as well as one without."""
    changes = ["model.source={vocab: 16, dim: 24, std: 0.1}", "model.linear_start=true"]
    model = zoo.compose("memory-network-tiny", overrides=changes, seed=seed)
    objective = zoo.objective("memory-network-tiny")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(seed)
    validation = _visits_batch(torch.Generator().manual_seed(seed + 1000), batch=1000)
    best, ended = float("inf"), None
    for step in range(2000):
        if step % 100 == 0 and model.is_linear:
            with torch.no_grad():
                loss = objective(model(validation)).item()
            if loss > 0.999 * best:
                model.end_linear_start()
                ended = step
            best = min(loss, best)
        optimizer.zero_grad()
        objective(model(_visits_batch(generator))).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert ended is not None
    predictions = model(validation).logits[:, 0].argmax(dim=-1)
    accuracy = (predictions == validation["target"]).float().mean().item()
    assert accuracy >= 0.95, (accuracy, ended)
