"""What a comparison means for a model: its cases have the number of its calls (`calls N` in a file of cases)."""

from collections import Counter
from dataclasses import dataclass, field

_NAMED = 3  # known failures


@dataclass
class Model:
    """The calls of one pair of targets."""

    calls: int = 0
    refused: list = field(default_factory=lambda: [0, 0])  # by cuDNN, of each side
    touched: int = 0  # of the candidate: calls of which a known failure speaks
    known: Counter = field(default_factory=Counter)  # id: calls
    timed: int = 0
    us: list = field(default_factory=lambda: [0.0, 0.0])  # all calls that both sides timed

    def add(self, calls, ends, known, us):
        """A case. `ends`: the answer of each side, or None; `known`: ids; `us`: a time of each side, or nothing."""
        self.calls += calls
        self.refused = [n + calls * bool(e and e.kind == "no") for n, e in zip(self.refused, ends)]
        self.touched += calls * bool(known)
        self.known.update(dict.fromkeys(known, calls))
        if len(us) == 2 and all(us):
            self.timed += calls
            self.us = [total + calls * one for total, one in zip(self.us, us)]

    def sentence(self, device, old, new, how):
        """For people. `how`: how the times were measured."""
        old_no, new_no, touched = (percent(n, self.calls) for n in (*self.refused, self.touched))
        before = f" ({old}: {old_no})" * (old_no != new_no)
        some = [f"{name} ({percent(n, self.calls)})" for name, n in self.known.most_common(_NAMED)]
        some += [f"{len(self.known) - _NAMED} more"] * (len(self.known) > _NAMED)
        said = (
            f"{self.calls:,} calls of the model on {device}: cuDNN {new} refuses {new_no}{before}; "
        )
        said += f"known failures of {new} may touch {touched}{': ' * bool(some)}{', '.join(some)}."
        if self.timed:
            ms, after = (us / 1000 for us in self.us)
            said += (
                f" Attention of {percent(self.timed, self.calls)} of the calls takes {ms:,.4g} ms"
            )
            said += f" -> {after:,.4g} ms ({after / ms:.3f} times; {how})."
        return said


def percent(calls, of):
    """ "12.5 %": never 0 or 100 where it is not."""
    value = 100 * calls / of
    least = "less than 0.1 %" if 0 < value < 0.1 else ""
    return least or f"{min(value, 99.9) if calls < of else value:.3g} %"


def share(diff, word):
    """ " (12.5 % of the model's calls)" of a class of change; "": nothing counts calls."""
    pairs = {pair for found in diff.classes.get(word, {}).values() for pair in found}
    total, calls = sum(diff.calls), sum(diff.calls[pair] for pair in pairs)
    return f" ({percent(calls, total)} of the model's calls)" if total else ""
