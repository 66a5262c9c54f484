"""Learning rates of torch's schedulers, and factors of schedules."""

import torch


def torch_rates(make_scheduler, steps, values=None):
    """Return the learning rate of each step, from 1, with a scheduler that torch steps after it."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make_scheduler(optimiser)
    rates = []
    for step in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step(*([] if values is None else [values[step]]))
    return rates


def factors(schedule, steps):
    return [schedule.factor(step) for step in range(1, steps + 1)]
