"""``torch.monitor``: refused."""

from taeda._refuse import refused_class, refused_function

_WHY = "there is no event log; write to tensorboard's SummaryWriter or to a logger"
Aggregation, Event, Stat, TensorboardEventHandler = (
    refused_class(f"torch.monitor.{name}", _WHY) for name in ("Aggregation", "Event", "Stat", "TensorboardEventHandler")
)
log_event, register_event_handler, unregister_event_handler = (
    refused_function(f"torch.monitor.{name}", _WHY)
    for name in ("log_event", "register_event_handler", "unregister_event_handler")
)
