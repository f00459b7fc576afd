"""Each program that a script or a test starts is in a listed package, also what only the night or a user starts.

It collects the words in the place of a command of every shell script, and the programs that Python starts. Each has to be a file of a package that
a minimal Debian has, that a list of ours names (ci/packages*.txt, ci/package/packages.txt), or that ci/requirements*.txt installs into build/venv.
A line of a list may name the programs of a package that is not installed here: `slurm-wlm  # programs: sbatch squeue`.
"""

import ast
import pathlib
import re
import subprocess

try:
    import tree_sitter
    import tree_sitter_bash
except ImportError:
    tree_sitter = None

HOME = pathlib.Path(__file__).resolve().parents[2]
LISTS = ("packages.txt", "packages-quick.txt", "packages-test.txt", "package/packages.txt")
FIRST = {"ca-certificates", "git", "python3"}  # what README's first line needs
FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/")

# Not of a package: why.
ELSEWHERE = {
    "nvidia-smi nvcc compute-sanitizer": "of NVIDIA's driver, toolkit, or packages in FACTS's cache",
    "cc c++": "Debian's alternatives: gcc, g++",
    "chromium chromium-browser chromium-headless-shell google-chrome": "ci/test.sh installs one",
    "facts facts-worker facts-self build-FACTS": "ours",
    "awk": "Debian's alternatives: mawk, which base-files needs",
    "sudo": "where the user is not root: the machine has it, or ./facts prints the command",
    "kubectl": "of the cluster; the test has a stub",
    "python": "of a virtual environment",
    "groff": "only where it is",
}
BUILTIN = set(
    """alias bg break builtin cd command compgen complete continue declare dirs disown echo enable eval exec exit export false fg getopts hash help history jobs
kill let local if then else elif fi logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source test time times trap true type typeset ulimit umask unalias
unset wait""".split()
)
WORD = re.compile(r"^[A-Za-z][\w.+-]*$")
STARTERS = set(  # an argument of these is a program too
    "exec env sudo nice nohup command timeout xargs setsid unshare chroot".split()
)


def of_shell(source):
    """Names of the commands of a script, without its functions and what a variable names."""
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(source)
    words, functions, nodes = set(), set(), [tree.root_node]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.type == "function_definition":
            functions.add(node.child_by_field_name("name").text.decode())
        elif node.type == "command":
            name = node.child_by_field_name("name")
            arguments = [n.text.decode() for n in node.children_by_field_name("argument")]
            words.add(name.text.decode())
            # the first argument that is no option, no option's value, no number and no variable
            if name.text.decode() in STARTERS:
                both = [two for two in zip(["", *arguments], arguments) if two[0][:1] != "-"]
                following = [word for _, word in both if not re.match(r"-|\d|\w+=", word)]
                words.update(following[:1])
    return {word for word in words if WORD.match(word)}, functions


STARTS = set("run Popen call check_call check_output execvp execvpe execv which".split())


def of_python(text):
    """First words of what subprocess and os start, of shutil.which, and of functions that take *command: the file's own, and those of ci/test/scripts.py."""
    tree, words = ast.parse(text), set()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    own = {node.name for node in functions if getattr(node.args.vararg, "arg", "") == "command"}
    if any(isinstance(node, ast.ImportFrom) and node.module == "scripts" for node in tree.body):
        own |= {"run", "start"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        owner = getattr(getattr(node.func, "value", None), "id", "")
        first = node.args[0]
        if name in STARTS and owner in ("subprocess", "os", "shutil"):
            first = (getattr(first, "elts", None) or [first])[0]
        elif name not in own or owner not in ("", "self", "cls"):
            continue
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            words.update(filter(WORD.match, first.value.split()[:1]))
    return words


def files():
    command = ["git", "-C", HOME, "ls-files", "-co", "--exclude-standard"]
    names = subprocess.check_output(command, text=True).splitlines()
    return [HOME / name for name in names if (HOME / name).is_file()]


def named():
    """{program: files that start it}, of the project."""
    found, functions = {}, set()
    for path in files():
        if path.suffix == ".py":
            words = of_python(path.read_text(encoding="utf-8"))
        elif path.suffix == ".sh" or path.name in ("facts", "run"):
            words, own_functions = of_shell(path.read_bytes())
            words -= BUILTIN
            functions |= own_functions
        else:
            continue
        for word in words:
            found.setdefault(word, set()).add(str(path.relative_to(HOME)))

    def is_shell(where):
        return all(name.endswith(".sh") or name == "facts" for name in where)

    return {w: where for w, where in found.items() if w not in functions or not is_shell(where)}


def listed():
    """({package}, {program of a package that need not be installed here})."""
    packages, programs = set(FIRST), set()
    for name in LISTS:
        for line in (HOME / "ci" / name).read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.startswith("#"):
                package, _, said = line.partition("#")
                packages.add(package.strip())
                if " programs:" in said:
                    programs.update(said.removeprefix(" programs:").split())
    return packages, programs


def provided():
    """Every program of a minimal Debian, of the listed packages that are installed here and of what these depend on, and of build/venv."""
    packages, programs = listed()
    form = "${db:Status-Status}\t${Package}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    said = subprocess.check_output(["dpkg-query", "-W", "-f", form], text=True)
    rows = [line.split("\t") for line in said.splitlines()]
    here = {row[1]: row[2:] for row in rows if row[0] == "installed"}

    def names(text):
        return {re.split(r"[ :(]", one.strip())[0] for one in re.split(r"[,|]", text)} - {""}

    asked, new = set(), {"apt"} & set(here) | packages & set(here)
    new |= {name for name, about in here.items() if about[0] == "yes" or about[1] == "required"}
    while new:
        asked |= new
        needs = set().union(*(names(here[one][2]) for one in new))
        needs |= {name for name, about in here.items() if needs & names(about[3])}
        new = needs & set(here) - asked
    for path in subprocess.check_output(["dpkg", "-L", *sorted(asked)], text=True).splitlines():
        folder, _, name = path.rpartition("/")
        if folder + "/" in FOLDERS:
            programs.add(name)
    return programs | {path.name for path in (HOME / "build/venv/bin").glob("*")}


def elsewhere():
    return {name for names in ELSEWHERE for name in names.split()}


def missing():
    """{program that no listed package has: files that start it}."""
    have = provided() | elsewhere()
    return {word: where for word, where in named().items() if word not in have}
