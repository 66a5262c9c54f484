"""``zoo plan``: the memory and the communication of a training."""

from __future__ import annotations

from typing import Annotated

import typer

from zoo.cli.output import JsonOption, SetOption, SpecArgument, print_json, spec_errors


def command(
    spec: SpecArgument,
    devices: Annotated[
        str,
        typer.Option(
            metavar="single|ddp:N|fsdp:N",
            help="Number of devices, and whether the weights are replicated or sharded.",
        ),
    ] = "single",
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="ITEMSxLENGTH",
            help="The batch of one device; ITEMSxLENGTHxLENGTH for source and target. "
            "Default: its share of train.batch.",
        ),
    ] = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the memory of each device and the communication of training a spec.

    A training step runs on tensors without values, so no memory is allocated.
    """
    from zoo.cli.check import check_spec
    from zoo_lab.plan.memory_plan import make_plan
    from zoo_lab.plan.plan_options import parse_batch, parse_devices
    from zoo_lab.plan.plan_table import print_plan

    with spec_errors(as_json=as_json):
        report, start = check_spec(spec, overrides or ())
        plan = make_plan(
            spec,
            parse_devices(devices),
            batch=None if batch is None else parse_batch(batch),
            overrides=overrides or (),
            start=start.record() if start else None,
        )
    if as_json:
        print_json(report.as_json() | {"plan": plan.as_json()})
    else:
        print_plan(plan)
