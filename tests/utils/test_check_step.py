"""``taeda.utils.check_step``: each silent mistake is found, and steps without one give no finding."""

import linecache

import pytest

import taeda
import taeda.nn.functional as F
from taeda import nn
from taeda.utils import check_step


class Net(nn.Module):
    def __init__(self, **changes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
        self.end = changes.get("end", nn.Identity())
        self.middle = changes.get("middle", lambda h: h)

    def forward(self, x):
        return self.end(self.body[3](self.middle(self.body[:3](x))))


@pytest.fixture(autouse=True)
def _seed():
    taeda.manual_seed(0)


X = taeda.linspace(-1, 1, 32).reshape(8, 4)
Y = taeda.tensor([0, 1, 2, 0, 1, 2, 0, 1])


def train(model, loss=F.cross_entropy, clear="before", optimizer=None, x=X, y=Y):
    optimizer = optimizer or taeda.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        if clear == "before":
            optimizer.zero_grad()
        if clear == "zeros":
            optimizer.zero_grad(set_to_none=False)
        if clear == "by hand":
            for p in model.parameters():
                p.grad = None
        made = loss(model(x), y)
        made.backward()
        optimizer.step()
        if clear == "after":
            optimizer.zero_grad()
        return made.detach()

    return step, model, optimizer


def only(report, kind):
    assert report.kinds == [kind], str(report)
    return report.findings[0]


def source(finding):
    name, _, number = finding.line.rpartition(":")
    return linecache.getline(name, int(number)).strip()


@pytest.mark.parametrize("clear", ["before", "zeros", "by hand", "after"])
def test_a_good_step(clear):
    step, model, optimizer = train(Net(), clear=clear)
    for _ in range(3):
        report = check_step(step, model, optimizer)
        assert report.kinds == [], str(report)
        assert report.result.shape == ()
    assert str(report) == "check_step: nothing was found"


def test_it_is_a_step_as_any_other():
    losses = []
    for checked in (False, True):
        taeda.manual_seed(1)
        step, model, optimizer = train(Net())
        losses.append([(check_step(step, model, optimizer).result if checked else step()).item() for _ in range(4)])
    assert losses[0] == losses[1]
    assert not taeda._core.mode_stack()
    assert not nn.modules._hooks.forward_hooks


def test_softmax_before_cross_entropy():
    for end in (nn.Softmax(1), nn.Sequential(nn.Softmax(-1), nn.Flatten())):
        finding = only(check_step(*train(Net(end=end))), "softmax before loss")
        assert "without softmax" in finding.mend
        assert source(finding) == "made = loss(model(x), y)"


def test_sigmoid_before_its_loss():
    step = train(Net(end=nn.Sigmoid()), F.binary_cross_entropy_with_logits, y=F.one_hot(Y).float())
    only(check_step(*step), "sigmoid before loss")


def test_probabilities_into_nll_loss():
    finding = only(check_step(*train(Net(end=nn.Softmax(1)), F.nll_loss)), "probabilities into nll_loss")
    assert "log_softmax" in finding.mend
    assert check_step(*train(Net(end=nn.LogSoftmax(1)), F.nll_loss)).kinds == []


def test_zero_grad_forgotten():
    step = train(Net(), clear="")
    only(check_step(*step), "no zero_grad")
    finding = only(check_step(*step), "no zero_grad")
    assert "optimizer.zero_grad() before backward()" in finding.mend


def test_accumulation_over_batches_is_no_mistake():
    model = Net()
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)

    def micro():
        F.cross_entropy(model(X), Y).backward()

    def step():
        optimizer.zero_grad()
        micro()
        micro()
        optimizer.step()

    for _ in range(2):
        assert check_step(micro, model, optimizer).kinds == []
    assert check_step(step, model, optimizer).kinds == []


def test_evaluation_in_train_mode():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def evaluate():
        with taeda.no_grad():
            return model(X)

    report = check_step(evaluate, model)
    assert report.kinds == ["batch norm in evaluation", "dropout in evaluation"]
    assert [f.module for f in report.findings] == ["1", "2"]
    model.eval()
    assert check_step(evaluate, model).kinds == []

    def functional():
        with taeda.no_grad():
            return F.dropout(model(X))

    assert "self.training" in only(check_step(functional, model), "dropout in evaluation").mend


def test_first_nan_of_the_forward_pass():
    def middle(h):
        return (h - 10).log()

    finding = only(check_step(*train(Net(middle=middle))), "NaN")
    assert finding.module == ""
    assert "log() gives the first NaN of the forward pass, from finite values" in finding.text
    assert source(finding) == "return (h - 10).log()"

    class Root(nn.Module):
        def forward(self, x):
            return x.sqrt()

    finding = only(check_step(*train(Net(end=Root()))), "NaN")
    assert finding.module == "end" and source(finding) == "return x.sqrt()"


def test_nan_in_the_data_and_from_infinities():
    x = X.clone()
    x[3, 2] = float("nan")
    finding = only(check_step(*train(Net(), x=x)), "NaN")
    assert "came in from outside" in finding.text and finding.module == "body.0"
    finding = only(check_step(*train(Net(middle=lambda h: (h.abs() + 1) / 0 * 0))), "NaN")
    assert finding.text == "mul() gives the first NaN of the forward pass, from infinite values"
    assert "div()" in only(check_step(*train(Net(middle=lambda h: h * 0 / 0))), "NaN").text


def test_infinities_alone_are_no_nan():
    mask = taeda.zeros(8, 3).masked_fill(taeda.tensor([False, False, True]), float("-inf"))
    assert check_step(*train(Net(), lambda out, y: F.cross_entropy(out + mask, y % 2))).kinds == []


def test_first_nan_of_the_backward_pass():
    class Norm(nn.Module):
        def forward(self, x):
            return (x * 0).square().sum(1, keepdim=True).sqrt() + x

    finding = check_step(*train(Net(end=Norm()))).findings[0]
    assert finding.kind == "NaN gradient"
    assert "SqrtBackward0, the derivative of sqrt()" in finding.text
    assert finding.module == "end"
    assert "(x * 0).square()" in source(finding)


def test_writes_through_data():
    def middle(h):
        kept = h.exp()
        kept.data.mul_(2)
        return kept

    finding = only(check_step(*train(Net(middle=middle))), "written behind autograd")
    assert "exp()" in finding.text and "[8, 8]" in finding.text
    assert source(finding) == "kept.data.mul_(2)"

    def harmless(h):
        kept = h + 1  # keeps nothing
        kept.data.mul_(2)
        return kept.sin()

    assert check_step(*train(Net(middle=harmless))).kinds == []


def test_views_and_writes_that_autograd_sees_are_no_mistake():
    for middle in (
        lambda h: h.exp().view(4, 16).view(8, 8),
        lambda h: (h + 1).mul_(2),
        lambda h: F.relu(h, inplace=True),
    ):
        assert check_step(*train(Net(middle=middle))).kinds == []


def test_writes_after_backward_are_none():
    model = nn.Linear(4, 3)

    def step():
        F.cross_entropy(model(X), Y).backward()
        for p in model.parameters():
            p.data.sub_(0.1 * p.grad)
            p.grad = None

    assert check_step(step, model).kinds == []


def test_parameters_that_no_optimizer_has():
    model = Net()
    optimizer = taeda.optim.SGD(model.body[0].parameters(), lr=0.1)
    finding = only(check_step(*train(model, optimizer=optimizer)), "parameters without optimizer")
    assert "body.3.weight, body.3.bias" in finding.text
    model.body[3].requires_grad_(False)
    assert check_step(*train(model, optimizer=optimizer)).kinds == []
    both = [optimizer, taeda.optim.SGD(model.body[3].parameters(), lr=0.1)]
    model.body[3].requires_grad_(True)
    assert check_step(train(model)[0], model, both).kinds == []
    other = taeda.optim.SGD(Net().parameters(), lr=0.1)
    kinds = check_step(*train(model, optimizer=other)).kinds
    assert "optimizer of another model" in kinds


def test_layers_without_gradient():
    model = Net(middle=lambda h: h.detach())
    finding = only(check_step(*train(model)), "no gradient")
    assert finding.module == "body.0" and "detach()" in finding.mend
    assert "weight, body.0.bias" in finding.text
    model = Net()
    model.spare = nn.Linear(2, 2)
    finding = only(check_step(*train(model)), "no gradient")
    assert finding.module == "spare" and "not called" in finding.text
    assert all(p.grad is None for p in model.spare.parameters())


def test_gradients_of_zeros():
    model = Net()
    with taeda.no_grad():
        model.body[0].bias.fill_(-100)
    finding = only(check_step(*train(model)), "gradient of zeros")
    assert "body.0.weight" in finding.text and "ReLU" in finding.mend


def test_squeeze_of_a_batch_of_one():
    def loss(out, y):
        return (out[:, :1].squeeze() - y.float()).square().mean()

    finding = only(check_step(*train(Net(), loss)), "squeeze without dim")
    assert "[8, 1] would remove the batch dimension" in finding.text
    assert "squeeze(-1)" in finding.mend
    assert source(finding) == "return (out[:, :1].squeeze() - y.float()).square().mean()"
    step = train(Net(), lambda out, y: out[:1, :1].squeeze().square().mean())
    assert "removed" in only(check_step(*step), "squeeze without dim").text
    assert check_step(*train(Net(), lambda out, y: out[:, :1].squeeze(-1).square().mean())).kinds == []


def test_reports():
    report = check_step(*train(Net(end=nn.Softmax(1)), clear=""))
    assert report.kinds == ["softmax before loss", "no zero_grad"]
    assert len(report) == 2
    assert "mend: give it the scores, without softmax\n  where: " in str(report)
    assert report._repr_html_().count("<tr>") == 3


def test_errors_of_the_step_pass():
    model = Net()
    with pytest.raises(RuntimeError, match="expects 4"):
        check_step(lambda: model(taeda.ones(2, 5)), model)
    assert not taeda._core.mode_stack()
