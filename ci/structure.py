"""Who includes and who calls whom: the graphs that ci/check_layers.py checks, of files, of header families and of folders.

A header family is a header with the source of the same name. A folder stands for the C and CUDA files that lie in it.
"""

import collections
import os
import pathlib
import re
import subprocess

SOURCE = re.compile(r"\.(c|h|cu|cuh|cpp)$")
PRODUCTION = re.compile(r"^(lib|reference|harness)/(?!(.*/)?(test|bench|fuzz)/)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def sources(names):
    return [name for name in names if SOURCE.search(name)]


def includes(home, names):
    """{(file, included file): True} among `names`, each include resolved as the compiler does: beside the file, then by its path's end."""
    known = set(names)
    by_end = collections.defaultdict(list)
    for name in names:
        by_end[name.rsplit("/", 1)[-1]].append(name)
    found = set()
    for name in names:
        for text in INCLUDE.findall((home / name).read_text(errors="replace")):
            beside = os.path.normpath(os.path.join(os.path.dirname(name), text))
            if beside in known:
                found.add((name, beside))
                continue
            top = name.split("/")[0]
            ends = [
                other for other in by_end[text.rsplit("/", 1)[-1]] if other.endswith("/" + text)
            ]
            ends.sort(key=lambda other: (other.split("/")[0] != top, other))
            if ends:
                found.add((name, ends[0]))
    return found


def links(build, names):
    """{(file, file whose symbol it uses): one such symbol}, out of the object files of a build folder."""
    known, defined, used, objects = set(names), {}, collections.defaultdict(set), {}
    plan = (build / "build.ninja").read_text()  # objects of earlier builds may still lie there
    for path in build.rglob("*.o"):
        if f"build {path.relative_to(build)}:" not in plan:
            continue
        match = re.search(
            r"^([^/]+)/(?:[^/]+/)*?CMakeFiles/[^/]+\.dir/(.*)\.o$", str(path.relative_to(build))
        )
        if match and f"{match[1]}/{match[2]}" in known:
            objects[str(path)] = f"{match[1]}/{match[2]}"
    listed = ""
    if objects:
        listed = subprocess.run(
            ["nm", "-A", *sorted(objects)], capture_output=True, text=True, check=False
        ).stdout
    for line in listed.splitlines():
        path, _, rest = line.partition(".o:")
        *_, kind, symbol = rest.split()
        name = objects[path + ".o"]
        if kind == "U":
            used[name].add(symbol)
        elif kind.isupper():
            defined.setdefault(symbol, name)
    return {
        (name, defined[symbol]): symbol
        for name, symbols in used.items()
        for symbol in sorted(symbols)
        if defined.get(symbol, name) != name
    }


def family(name):
    return SOURCE.sub("", name)


def folder(name):
    return str(pathlib.PurePath(name).parent)


def grouped(edges, group):
    """{group: {other group: one edge that makes it depend on it}}."""
    graph = collections.defaultdict(dict)
    for edge in sorted(edges):
        a, b = group(edge[0]), group(edge[1])
        if a != b:
            graph[a].setdefault(b, edge)
    return graph


def circles(graph):
    """The strongly connected parts of more than one node (Tarjan), each sorted."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def one_circle(graph, part):
    """The edges of a shortest circle within a part, as text: a reader wants one way round, not all of them."""
    start, seen, queue = part[0], {part[0]: None}, [part[0]]
    while queue:
        node = queue.pop(0)
        for other in sorted(graph.get(node, ())):
            if other == start:
                way = [node, start]
                while seen[way[0]] is not None:
                    way.insert(0, seen[way[0]])
                return " -> ".join(way)
            if other in part and other not in seen:
                seen[other] = node
                queue.append(other)
    return " <-> ".join(part)
