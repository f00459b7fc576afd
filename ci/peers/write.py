"""Writes cases/suites/peers-fe.cases and peers-te.cases: what two other suites ask, in the case language. No network, no clock: the same every time.

python3 ci/peers/write.py            writes both
python3 ci/peers/write.py --check    compares with what is there; exit 1 when it differs
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import fe  # noqa: E402
import te  # noqa: E402

SUITES = Path(__file__).resolve().parents[2] / "cases/suites"
HEADS = {
    "peers-fe": "# Every configuration of cudnn-frontend's test_mhas_v2; comments name its tests.",
    "peers-te": "# TransformerEngine's attention configurations; comments have their names.",
}
NOTE = (
    "# Made by ci/peers/write.py; docs/peers.md says what is not the same. Not to be edited here."
)


def suite(name, groups):
    """The text of one suite."""
    out = [HEADS[name], NOTE]
    for group, why, cases, lost in groups:
        out += ["", f"name: {group}", f"why: {why}"]
        out += [f"{case} # {comment}" for case, comment in cases]
        out += [f"# test{number}: {reason}" for number, reason in lost]
    return "\n".join(out) + "\n"


def texts():
    return {"peers-fe": suite("peers-fe", fe.groups()), "peers-te": suite("peers-te", te.groups())}


def main(arguments):
    if arguments not in ([], ["--check"]):
        print("usage: write.py [--check]", file=sys.stderr)
        return 2
    differ = 0
    for name, text in texts().items():
        path = SUITES / f"{name}.cases"
        if arguments:
            same = path.exists() and path.read_text(encoding="utf-8") == text
            differ |= not same
            print(
                f"{path.name}: {'as made' if same else 'differs; python3 ci/peers/write.py makes it again'}"
            )
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {text.count(chr(10))} lines")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
