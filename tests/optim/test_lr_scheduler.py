"""Schedules of the learning rate that go on with an earlier run."""

import pytest

import taeda
from taeda.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR, StepLR


@pytest.mark.parametrize("last_epoch", [-1, 0, 1, 2, 3, 4, 9])
def test_sequential_schedules_go_on_where_they_were(last_epoch):
    def made(last_epoch):
        optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        optimizer.param_groups[0]["initial_lr"] = 1.0
        parts = [ConstantLR(optimizer, 0.1), ExponentialLR(optimizer, 0.5), StepLR(optimizer, 2)]
        return optimizer, SequentialLR(optimizer, parts, milestones=[3, 8], last_epoch=last_epoch)

    def rates(optimizer, schedule, n):
        found = []
        for _ in range(n):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return found

    whole = rates(*made(-1), 16)
    assert rates(*made(last_epoch), 3) == pytest.approx(whole[last_epoch + 1 : last_epoch + 4])
