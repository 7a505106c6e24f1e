"""Schedules of the learning rate that go on with an earlier run."""

import io

import pytest

import taeda
from taeda.optim.lr_scheduler import ConstantLR, ExponentialLR, OneCycleLR, SequentialLR, StepLR


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


def test_states_of_old_files_name_the_function_that_anneals():
    """PyTorch 1.x wrote the function itself, which a file finds as an attribute of the class."""

    def made():
        optimizer = taeda.optim.SGD([taeda.zeros(1, requires_grad=True)], lr=1.0)
        return optimizer, OneCycleLR(optimizer, max_lr=2.0, total_steps=5, cycle_momentum=False)

    (first, schedule), (second, again) = made(), made()
    state = {**schedule.state_dict(), "anneal_func": OneCycleLR._annealing_cos}
    del state["_anneal_func_type"]
    file = io.BytesIO()
    taeda.save(state, file)
    file.seek(0)
    again.load_state_dict(taeda.load(file, weights_only=False))
    for _ in range(3):
        for optimizer, one in ((first, schedule), (second, again)):
            optimizer.step()
            one.step()
        assert first.param_groups[0]["lr"] == second.param_groups[0]["lr"]
    assert OneCycleLR._annealing_linear(1.0, 3.0, 0.25) == 1.5
