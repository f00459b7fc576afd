"""Part memory: each allocation of a run fails once, and from there on for ever. `facts` ends at its own first one (harness/core/ending): one scene of it."""

from torture_calls import COLUMNS as COLUMNS
from torture_calls import MUST_BE_ZERO as MUST_BE_ZERO
from torture_calls import attempt as attempt
from torture_calls import counted

NAMES = ("run", "run, worker")


def points(scene, place):
    calls = range(1, counted(scene, place, "memory") + 1)
    return [("memory", do, at) for do in ("ENOMEM", "ENOMEM ever") for at in calls]
