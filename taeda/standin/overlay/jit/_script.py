"""``torch.jit._script``: the classes of scripted code."""

from taeda.jit import RecursiveScriptModule, ScriptModule, script

__all__ = ["RecursiveScriptModule", "ScriptModule", "script"]
