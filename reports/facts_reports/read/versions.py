"""Order of versions and builds, and how a history is written as ranges."""

import re


def version_key(version):
    """9.10.2 > 9.9.0: by parts; missing parts are 0."""
    parts = [int(p) for p in re.findall(r"\d{1,9}", version.split("-")[0])[:6]]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def number(version):
    """9.14.0 as cuDNN counts: 91400."""
    major, minor, patch = (*version_key(version), 0, 0, 0)[:3]
    return major * 10000 + minor * 100 + patch


def build_key(build, version):
    return (version_key(version or build), build)


def range_words(labels, first, last):
    """labels[first..last] in words: 'all 3 builds', 'since 9.27.0', '9.14.0–9.20.0', '9.14.0'."""
    if first == 0 and last == len(labels) - 1:
        if len(labels) == 1:
            return labels[0]
        if len(labels) == 2:
            return "both builds"
        return f"all {len(labels)} builds"
    if first == last and last < len(labels) - 1:
        return labels[first]
    if last == len(labels) - 1:
        return f"since {labels[first]}"
    return f"{labels[first]}–{labels[last]}"


def segments(signatures):
    """[(first, last)] of equal neighbours. Signatures must identify rows, never totals: totals hide a swap."""
    out = []
    for i, signature in enumerate(signatures):
        if out and signature == signatures[i - 1]:
            out[-1] = (out[-1][0], i)
        else:
            out.append((i, i))
    return out
