"""Known failures of cuDNN in a comparison: those that still fail, those that no longer fail, those without an answer."""

from dataclasses import dataclass, field

from .sides import worst

_NEEDS_A_RUN = "wrong nan unwritten overrun nondeterministic graph_mismatch exec_fail".split()


@dataclass
class Failures:
    """Each name (the title or the link of a known failure) with one example: (slot, case)."""

    still: dict = field(default_factory=dict)
    right: dict = field(default_factory=dict)
    unasked: dict = field(default_factory=dict)

    def add(self, slot, case, first, second):
        failing = {b.known for b in second if b.known}
        for name in failing:
            self.still.setdefault(name, (slot, case))
        for a in first:
            if a.known and a.known not in failing:
                self._ended(slot, case, a, second)
        for b in second:
            if b.named and b.unmet and b.kind == "yes" and b.named not in failing:
                self.right.setdefault(b.named, (slot, case))

    def _ended(self, slot, case, a, second):
        """The baseline fails as known; nothing says so of the candidate."""
        b = worst(second) if second else None
        only_decided = b and b.grade == "decided" and a.outcome in _NEEDS_A_RUN
        if b is None or b.kind == "open" or b.ours or only_decided:
            found = self.unasked
        else:
            found = self.still if b.kind == "fail" else self.right
        found.setdefault(a.known, (slot, case))

    def groups(self):
        """(still fail, no longer fail, got no answer): every name is in one of them."""
        right = {name: at for name, at in self.right.items() if name not in self.still}
        return (
            self.still,
            right,
            {
                name: at
                for name, at in self.unasked.items()
                if name not in self.still and name not in right
            },
        )
