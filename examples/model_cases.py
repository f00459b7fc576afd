"""Three small models of `transformers`: their attention calls as files of cases, by fattn.watch and by a trace of PyTorch's profiler.

    python3 examples/model_cases.py OUT    # needs PyTorch, transformers, and the program facts

Writes OUT/MODEL.cases and OUT/MODEL.json, compares both, and exits with 1 if they differ. Then: facts gate OUT/*.cases --baseline 9.19.0 --candidate 9.28.1
"""

import pathlib
import sys

import fattn
import torch
import transformers as of
from fattn.case import facts
from torch.profiler import profile

DEVICE, TYPE = "cuda" if torch.cuda.is_available() else "cpu", torch.bfloat16
SIZES = dict(hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8)


def models():
    """(name, model, what a training step takes)"""
    words = torch.randint(3, 1000, (4, 512), device=DEVICE)
    mask = torch.arange(512, device=DEVICE) < torch.tensor([[100], [200], [300], [512]]).to(DEVICE)
    config = of.LlamaConfig(**SIZES, num_key_value_heads=2, vocab_size=1000)
    yield "llama", of.LlamaForCausalLM(config), {"input_ids": words, "labels": words}
    given = {"input_ids": words, "attention_mask": mask.long(), "labels": words[:, 0] % 2}
    config = of.BertConfig(**SIZES, vocab_size=1000, attention_probs_dropout_prob=0.0)
    yield "bert", of.BertForSequenceClassification(config), given
    pixels = torch.randn(4, 3, 224, 224, device=DEVICE, dtype=TYPE)
    given = {"pixel_values": pixels, "labels": words[:, 0] % 2}
    yield "vit", of.ViTForImageClassification(of.ViTConfig(**SIZES)), given


def run(model, given):
    """A training step, then an answer; 12 tokens of a decoder."""
    model(**given).loss.backward()
    with torch.no_grad():
        if model.can_generate():
            words = given["input_ids"][:2, :100]
            model.generate(words, attention_mask=words > 0, max_new_tokens=12, pad_token_id=0)
        else:
            model(**given)


def counted(text):
    return {line for line in text.splitlines() if line.startswith("calls ")}


def show(folder, name, model, given):
    """Are the cases of a trace those of watch()?"""
    model = model.to(DEVICE, TYPE)
    with fattn.watch(folder / f"{name}.cases") as seen:
        run(model, given)
    with profile(record_shapes=True) as trace:
        run(model, given)
    trace.export_chrome_trace(f"{folder / name}.json")
    both = counted(seen.cases()), counted(facts("import", f"{folder / name}.json")[1])
    print(f"{name}: {len(both[0])} cases, the trace", *(both[0] ^ both[1]) or ["agrees"])
    return both[0] == both[1]


if __name__ == "__main__":
    torch.manual_seed(0)
    (out := pathlib.Path(sys.argv[1])).mkdir(parents=True, exist_ok=True)
    sys.exit(not all([show(out, *one) for one in models()]))
