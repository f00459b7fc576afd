"""Each rule finds what it is there for, and nothing else."""

import importlib.util
import pathlib
import tempfile
import unittest

CI = pathlib.Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("check_layers", CI / "check_layers.py")
layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layers)

BAD = {
    "reference/src/a.c": '#include "fattn/fattn.h"\n',
    "reference/src/b.c": "int x = fattn_decide();\n",
    "reference/cuda/test/a.h": '#include "../../../lib/src/context.h"\n',
    "lib/gpu/a.c": "#include <fattn/fattn.h>\n",
    "lib/gpu/b.c": 'void f(void) { fprintf(e, "x"); }\n',
    "lib/src/a.c": "#include <fref/fref.h>\n",
    "lib/src/b.c": 'void f(void) { printf("x"); }\n',
    "lib/src/cudnn/c.c": "const char *p = getenv(name);\n",
    "lib/include/fattn/x.h": "#include <cuda.h>\n",
    "harness/attention/numbers/a.c": "FILE *f = fopen(a, b);\n",
    "harness/core/supervisor/a.c": '#include "fattn/fattn.h"\n',
    "harness/core/commands/a.c": '#include "worker/memory/case_memory.h"\n',
    "reports/facts_reports/a.py": "import subprocess\n",
    "reports/facts_reports/read/a.py": "from ..known import known\n",
    "reports/facts_reports/page/a.py": "from ..commands import asking\n",
    "lib/python/fattn/a.py": "import numpy as np\n",
    "README.md": "see /ro" + "ot/x\n",
}
GOOD = {
    "lib/src/d.c": '/* printf("x") */ int n = snprintf(b, 3, "exit(1)"); // getenv(x)\n',
    "reference/src/d.c": '#include <math.h>\n#include "fref/fref.h"\n',
    "reference/src/e.c": "#include <gpu/gpu_module.h>\n",
    "lib/gpu/c.c": "#include <gpu/gpu_driver.h>\n#include <dlfcn.h>\n",
    "reports/facts_reports/commands/a.py": "from ..page import site\n",
    "reports/facts_reports/page/b.py": "from ..compare import diff\n",
    "lib/python/test/test_b.py": "import numpy as np\n",
    "harness/attention/worker/a.c": '#include "fattn/fattn.h"\n#include "fref/fref.h"\n',
}


class Rules(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as folder:
            layers.HOME = pathlib.Path(folder)
            for name, text in files.items():
                (layers.HOME / name).parent.mkdir(parents=True, exist_ok=True)
                (layers.HOME / name).write_text(text)
            return list(layers.check_sources(files)) + list(layers.check_texts(files))

    def test_each_violation_is_found_once(self):
        for name, text in BAD.items():
            found = self.findings({name: text})
            self.assertEqual(len(found), 1, (name, found))
            self.assertTrue(found[0].startswith(f"{name}:1:"))

    def test_a_page_of_a_folder_has_nine_lines_at_most(self):
        for lines, found in ((9, 0), (10, 1)):
            with tempfile.TemporaryDirectory() as folder:
                layers.HOME = pathlib.Path(folder)
                page = layers.HOME / "harness/core/worker/README.md"
                page.parent.mkdir(parents=True)
                page.write_text("x\n" * lines)
                said = list(layers.check_pages(["harness/core/worker/a.c"]))
            self.assertEqual(len(said), found, said)

    def test_the_core_knows_no_operation(self):
        core, attention = "harness/core/worker/a.c", "harness/attention/worker/b.h"
        files = {core: '#include "worker/b.h"\n', attention: "", "lib/include/fattn/f.h": ""}
        with tempfile.TemporaryDirectory() as folder:
            layers.HOME = pathlib.Path(folder)
            for name, text in files.items():
                (layers.HOME / name).parent.mkdir(parents=True, exist_ok=True)
                (layers.HOME / name).write_text(text)
            included = layers.structure.includes(layers.HOME, list(files))
        found = list(layers.check_rooms(included | {(core, "lib/include/fattn/f.h")}))
        self.assertEqual(
            [line.split(": ")[1] for line in found], [attention, "lib/include/fattn/f.h"]
        )
        self.assertEqual(list(layers.check_rooms({(attention, core), (core, core)})), [])

    def test_what_is_allowed_is_not_found(self):
        self.assertEqual(self.findings(GOOD), [])


if __name__ == "__main__":
    unittest.main()
