"""facts import: the logs of real cuDNN builds, made here without a GPU, become the cases that made them; exit codes; bad files."""

import glob
import gzip
import json
import os
import re

import e2e

TRACES = os.path.join(e2e.SOURCE, "harness/test/data/traces")
DATA = os.path.join(e2e.SOURCE, "harness/test/data/import")
# libfattn takes cuDNN's log for itself (cudnnSetCallback), which ends the one that CUDNN_LOGDEST_DBG asks for. Without that call both are as in any program.
QUIET = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
static int nothing(unsigned mask, void *data, void *callback) { (void)mask; (void)data; (void)callback; return 0; }
void *dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);
    if (!next)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return strcmp(name, "cudnnSetCallback") == 0 ? (void *)nothing : next(handle, name);
}
"""
_, SAME, NEWER = (part.splitlines() for part in e2e.data("images.cases").split("\n\n"))


def imported(*files, **more):
    answer = e2e.facts("import", "--json", *files, **more)
    lines = [json.loads(line) for line in answer.out.splitlines()]
    return answer, lines[:-1], lines[-1]


class RoundTrip(e2e.TestCase):
    def log_of(self, name, cases, level="3"):
        """cuDNN's own log of these cases, asked of one worker."""
        log = self.path(name + ".log")
        env = {"HOME": self.folder, "LD_PRELOAD": e2e.library(self.folder, "quiet.so", QUIET)}
        env |= {"CUDNN_LOGLEVEL_DBG": level, "CUDNN_LOGDEST_DBG": log}
        answer = e2e.ask(e2e.need(name), *cases, env=env)
        self.assertEqual(answer.status, 0, answer.err[-500:])
        return log

    def back(self, name, cases):
        listed = e2e.facts("list", self.write("cases", "\n".join(cases) + "\n"))
        self.assertStatus(listed, 0)
        _, problems, rest = imported(self.log_of(name, cases))
        self.assertEqual(rest["unread"], [])
        notes = [(row["case"], note) for row in problems for note in row["stand_ins"]]
        self.assertEqual([one for one in notes if "not understood" in one[1]], [])
        found = [row["case"] for row in problems]
        self.assertEqual(found[0], e2e.CONTROL)
        self.assertEqual(found[1:], listed.out.splitlines())

    def test_a_case_is_what_its_log_says(self):
        self.back(e2e.OLD, SAME)
        self.back(e2e.NEW, SAME + NEWER)

    def test_bounds_that_a_graph_does_not_hold_and_reasons_are_said(self):
        case = "pass=fwd dtype=bf16 h=2 s=130 "
        answer, problems, _ = imported(
            self.log_of(e2e.OLD, [case + "d=64 window=33:3", case + "d=100"])
        )
        self.assertEqual(answer.status, 4)
        self.assertEqual(problems[1]["case"], case + "d=64 window=65:1")
        self.assertEqual(len(problems[1]["stand_ins"]), 2)
        self.assertEqual(problems[0]["log"], [])
        self.assertIn("not a multiple of 8", problems[2]["log"][0])

    def test_level_2_has_no_graphs(self):
        log = self.log_of(e2e.OLD, ["pass=fwd dtype=bf16 h=2 s=130 d=100"], level="2")
        answer = e2e.facts("import", log)
        self.assertStatus(answer, 5)
        self.assertIn("CUDNN_LOGLEVEL_DBG=3", answer.err)
        self.assertIn(f"names cuDNN {e2e.OLD.split('-')[0]}", answer.out)
        with open(log, "a") as more:
            more.write("E! CuDNN (v90100 70) function cudnnBackendFinalize() called:\n")
        self.assertIn("Two of them disagree: cuDNN", e2e.facts("import", log).out)
        self.assertIn("not a multiple of 8", answer.out)

    def test_a_plan_is_its_case(self):
        case = "pass=fwd dtype=bf16 h=4/2 s=130 d=64 mask=causal want=stats"
        for name in e2e.CI_BUILDS:
            plans = self.path("plans-" + name)
            os.mkdir(plans, 0o700)
            e2e.ask(e2e.need(name), case, do="plan", plan_dir=plans)
            answer, problems, _ = imported(*(os.path.join(plans, one) for one in os.listdir(plans)))
            self.assertStatus(answer, 0)
            self.assertEqual([row["case"] for row in problems], [case])


class Command(e2e.TestCase):
    def write(self, name, text):
        """Bytes, of any kind."""
        with open(self.path(name), "wb") as file:
            file.write(text)
        return self.path(name)

    def data(self, name):
        with open(os.path.join(DATA, name), "rb") as file:
            return file.read()

    def test_what_is_printed_is_a_file_of_cases(self):
        logs = [os.path.join(DATA, name) for name in sorted(os.listdir(DATA))]
        answer = e2e.facts("import", *logs)
        self.assertStatus(answer, 4)
        self.assertEqual(answer.out.count("could not be read: "), 1)
        self.assertIn("a bound of the band below 0 (0:-1): no case says it", answer.out)
        listed = e2e.facts("list", self.write("my.cases", answer.out.encode()))
        self.assertStatus(listed, 0)
        printed = [line for line in answer.out.splitlines() if not line.startswith("#")]
        self.assertEqual(listed.out.splitlines(), printed)
        tail = "layout=bhsd stride=broadcast:k.b+v.b impl=unified"
        self.assertIn(f"pass=fwd dtype=bf16 b=4 s=128/256 d=64 {tail}", listed.out)
        self.assertIn("fixed in 9.26.0 (bwd-nan-negative-lse-skv-mod128-eq-64)", answer.out)

    def test_traces_of_models(self):
        """What lies in data/traces: NAME.json (of PyTorch) or NAME.*.json (of FlashInfer), and what is printed of it."""
        for path in sorted(glob.glob(os.path.join(TRACES, "*.expected"))):
            files = sorted(glob.glob(path.replace("expected", "*json*")))
            answer = e2e.facts("import", *files)
            said = re.findall(r"^(?:calls .*|pass=.*|#   assumed: .*)\n", answer.out, re.M)
            self.assertEqual("".join(said), e2e.data(path), files)
            self.assertStatus(answer, 4 if "assumed" in answer.out else 0)

    def test_a_trace_is_read_in_pieces_and_each_call_is_counted_once(self):
        text = e2e.data("traces/cpu-2.11.json")
        call = next(line for line in text.splitlines() if "::scaled_dot" in line)
        when = re.compile('"ts": [0-9.]+, "dur": [0-9.]+')
        more = [when.sub(f'"ts": -{n}, "dur": 0.5', call) for n in range(1, 401)]
        filler = json.dumps({"ph": "X", "name": "aten::" + "x" * 50_000, "args": {}}) + ",\n"
        whole = "[\n".join([text.split("[\n")[0], filler.join([*more, ""]) + text.split("[\n")[1]])
        for name, data in (
            ("trace.json", whole.encode()),
            ("trace.json.gz", gzip.compress(whole.encode(), 1)),
        ):
            answer = e2e.facts("import", self.write(name, data))
            self.assertIn(
                "\ncalls 400 pass=fwd dtype=f32 h=8/2 s=64 d=32 layout", "\n" + answer.out
            )
        for data, said in (
            (whole[: len(whole) // 2].encode(), "cut off"),
            (text.replace("Input Dims", "x").encode(), "record_shapes=True"),
            (text.replace('"dur": ', '"dur": "x", "y": ').encode(), "broken: "),
            (
                b'{"name": "x", "op_type": "mla", "axes": {}, "inputs": {}}',
                "no case has the operation mla",
            ),
            (
                b'{"definition": "a", "workload": {"axes": {}}}',
                "give the file of its definition, too",
            ),
            (b"\x1f\x8b\x08", "end-of-stream"),
        ):
            answer = e2e.facts("import", self.write("bad.json", data))
            self.assertStatus(answer, 2)
            self.assertRegex(answer.err, f"^facts import: .*bad.json: .*{said}.*\n$")

    def test_calls_add_up_and_reach_the_record(self):
        text = b"calls 3 pass=fwd s=64,128\ncalls 4 pass=fwd s=64\npass=fwd s=256\n"
        out = self.path("r.jsonl")
        self.asked("decide", self.write("a.cases", text), "-o", out)
        with open(out, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if '"verdict"' in line]
        self.assertEqual([row.get("calls") for row in rows], [7, 3, None])

    def test_the_next_commands_are_for_the_gpu_of_the_text(self):
        call = "scaled_dot_product_attention(q: f16[2,16,100,64], k: f16[2,16,100,64], v: f16[2,16,100,64])"
        for said, device in (
            ("GPU 0: NVIDIA GeForce RTX 5090 (UUID: GPU-1)", "sm120-spec"),
            ('{"engineId":1,"smVersion":890}', "sm89-spec"),
            ("no GPU: NVIDIA", "h100-sxm"),
        ):
            path = self.path("pasted")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{said}\n{call}\n")
            done = e2e.facts("import", path)
            self.assertStatus(done, 0)
            self.assertEqual(done.out.count(f" --device {device}"), 2, done.out)

    def test_hlo_of_xla(self):
        shape = '"intermediate_tensor_shape":{"element_type":"BF16","dimensions":["1","40","2048","1024"]}'
        for name, mask, said in (
            ("Softmax", "NO_MASK", "pass=fwd dtype=bf16 b=1 h=40 s=2048/1024"),
            ("SoftmaxBackward", "CAUSAL", "pass=bwd dtype=bf16 b=1 h=40 s=2048/1024 mask=causal"),
        ):
            path = self.path("hlo")
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    "ROOT c = (bf16[1,40,2048,128]{3,1,2,0}, u8[0]{0}) custom-call(%q, %k, %v), "
                    f'custom_call_target="__cudnn$fmha{name}", backend_config={{"fmha_scale":'
                    f'0.08838834764831843,{shape},"mask_type":"{mask}"}}\n'
                )
            done = e2e.facts("import", path)
            self.assertStatus(done, 4)
            self.assertIn(f"\n{said}\n", done.out)

    def test_a_log_that_is_cut_off_is_not_called_whole(self):
        whole = self.data("frontend-1.18-train_gqa_bhsd.log")
        cut = self.write("cut.log", whole[: whole.rindex(b"tensors") + 40])
        answer, problems, rest = imported(cut)
        self.assertStatus(answer, 4)
        self.assertEqual(len(problems), 1)
        self.assertIn("cut.log:23: broken JSON", rest["unread"][0])

    def test_nothing_that_could_be_read_and_no_attention(self):
        self.assertStatus(e2e.facts("import", self.path("nowhere.log")), 2)
        for data, status in (
            (b'{"context": {"a\x00\x01\n', 2),
            (b"hello\n\xff\x00\x1b[31m\n", 5),
            (b"", 5),
        ):
            self.assertStatus(e2e.facts("import", self.write("x.log", data)), status)

    def test_ask_at_once(self):
        log = os.path.join(DATA, "frontend-1.18-fwd_broadcast_kv.log")
        answer = self.asked("import", log, "--decide", "-o", self.path("r"))
        self.assertStatus(answer, 0)
        self.assertIn(e2e.NEW + " on h100-sxm: supported", answer.out)


if __name__ == "__main__":
    e2e.main()
