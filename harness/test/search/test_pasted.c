/* What people paste: calls with shapes, TransformerEngine's configuration, exceptions. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

static facts_import *m;

static void tear_down(void)
{
    facts_import_destroy(m);
}

TestSuite(pasted, .fini = tear_down);

static size_t read_text(const char *text)
{
    facts_import_destroy(m);
    m = facts_import_create();
    facts_import_bytes(m, "text", text, strlen(text));
    return facts_import_count(m);
}

static const char *unread(void)
{
    size_t total;
    const char *first = facts_import_unread(m, 0, &total);
    return first ? first : "";
}

#define SDPA "F.scaled_dot_product_attention("
#define SIZE "[2,16,1000,64]"
#define QKV(size) "q: f16" size ", k: f16" size ", v: f16" size

Test(pasted, a_call_is_its_case)
{
    static const struct {
        const char *text, *name; /* behind "pass=fwd dtype=" */
    } rows[] = {
        { SDPA QKV(SIZE) ")", "f16 h=16 s=1000 d=64 layout=bhsd" },
        { SDPA QKV(SIZE) ", is_causal=True, scale=0.3)",
          "f16 h=16 s=1000 d=64 layout=bhsd mask=causal scale=0.3" },
        { SDPA "\"bf16" SIZE "cuda:0\", \"bf16" SIZE "\", \"bf16" SIZE "\", None, 0.25, True)",
          "bf16 h=16 s=1000 d=64 layout=bhsd mask=causal dropout=0.25" },
        { "y = " SDPA "\n  query=torch.randn(2, 16, 1000, 64, dtype=torch.half),\n"
          "  key=torch.randn(2, 16, 900, 64),\n  value=torch.randn(2, 16, 900, 64),\n"
          "  attn_mask=torch.ones((1000, 900), dtype=torch.bool))\n",
          "f16 h=16 s=1000/900 d=64 layout=bhsd stride=broadcast:bias.b bias=b1ss" },
        { SDPA QKV(SIZE) ", attn_mask=f32[2,1,1,1000])",
          "f16 h=16 s=1000 d=64 layout=bhsd stride=broadcast:bias.s bias=b1ss bias_dtype=f32" },
        { SDPA QKV(SIZE " stride (1024000, 64, 1024, 1)") ")", "f16 h=16 s=1000 d=64" },
        { ">>> b, h = 3, 2**2\n>>> t = torch.float16\n"
          "q, k, v = [torch.randn(b, h, 4 * 64, 64, dtype=t) for _ in range(3)]\n"
          "o = " SDPA "q, k, v, is_causal=True)\nFile \"x\", " SDPA "\n^^^^\n",
          "f16 b=3 h=4 s=256 d=64 layout=bhsd mask=causal" },
        { "q = torch.rand(2, 100, 4, 64,\n  dtype=torch.half).cuda().transpose(1, 2)\n"
          "k = torch.randn_like(q)\nv = k\n" SDPA "q, k, v)",
          "f16 h=4 s=100 d=64" },
        { "def f(q, k, v):\n  return " SDPA
          "q, k, v)\nq = k = v = torch.rand(2, 16, 1000, 64)\nf(q, "
          "k, v)",
          "bf16 h=16 s=1000 d=64 layout=bhsd" },
        { "x = jax.random.normal(jax.random.PRNGKey(42), (2, 1024, 4, 128), dtype=jnp.bfloat16)\n"
          "jax.nn.dot_product_attention(query=x, key=x, value=x, implementation='cudnn')",
          "bf16 h=4 s=1024" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(read_text(rows[i].text), 1, "%s: %s", rows[i].text, unread());
        cr_expect_str_eq(facts_import_at(m, 0)->name + strlen("pass=fwd dtype="), rows[i].name);
        cr_expect_eq(facts_import_at(m, 0)->notes.count, 0, "%s",
                     facts_import_at(m, 0)->notes.text[0]);
    }
}

Test(pasted, a_call_with_gradients_is_two_cases)
{
    const char *text = SDPA "q: bf16[2,8,512,128], k: [2,2,512,128], v: [2,2,512,128], "
                            "requires_grad=True)";
    cr_assert_eq(read_text(SDPA QKV(SIZE) ")\nout.backward(g)\n"), 3);
    cr_expect_str_eq(facts_import_at(m, 2)->name,
                     "pass=bwd dtype=f16 h=16 s=1000 d=64 layout=bhsd");
    cr_assert_eq(read_text(text), 2, "%s", unread());
    cr_expect_str_eq(facts_import_at(m, 0)->name,
                     "pass=fwd dtype=bf16 h=8/2 layout=bhsd want=stats");
    cr_expect_str_eq(facts_import_at(m, 1)->name, "pass=bwd dtype=bf16 h=8/2 layout=bhsd");
    cr_expect(strstr(facts_import_at(m, 0)->log_text[0], "enable_gqa=True"));
}

Test(pasted, a_call_that_is_no_case_has_its_reason)
{
    static const char *const rows[][2] = {
        { SDPA "q: f16[16,1000,64], k: f16[16,1000,64], v: f16[16,1000,64])",
          "text:1: query, key and value have four extents" },
        { SDPA QKV(SIZE) ", attn_mask=[1000,999])", "text:1: attn_mask: a shape is needed" },
        { SDPA "q, k, v, *args, **kwargs)", "" },
        { "x = torch.randn(2, 16, 100, 64)\nq = proj(x)\n" SDPA "q, q, q)", "" },
        { "q = torch.randn(2, 16, n, 64)\n" SDPA "q, q, q)", "" },
        { "q = torch.randn(2, 16, 100, 64).view(2, 100, 16, 64)\n" SDPA "q, q, q)", "" },
        { SDPA "q: f16[2,16,1000,64], k: f16[2,16,1000,64", "" },
        { SDPA "q: f16[9999999999999,9999999999999,1000,64], k: f16[1,1,1,1], v: f16[1,1,1,1])",
          "" },
        { SDPA ")", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(read_text(rows[i][0]), 0, "%s", rows[i][0]);
        cr_expect(strncmp(unread(), rows[i][1], strlen(rows[i][1])) == 0, "%s", unread());
    }
}

#define CONFIG(more)                                                                               \
    "DEBUG:2025-05-24 03:30:22,799:Running with config={'transformer_engine_version': '2.8.0', "   \
    "'compute_capability': 'sm100', 'cudnn_version': '9.10.1', 'qkv_dtype': torch.bfloat16, "      \
    "'batch_size': 1, 'num_heads': 64, 'num_gqa_groups': 8, 'max_seqlen_q': 8192, "                \
    "'max_seqlen_kv': 8192, 'head_dim_qk': 192, 'head_dim_v': 128, 'attention_dropout': "          \
    "0.0, " more "}\n"

Test(pasted, a_configuration_of_transformer_engine_is_its_cases)
{
    static const struct {
        const char *text;
        size_t count;
        const char *name; /* of the last, behind the sizes */
    } rows[] = {
        { CONFIG("'qkv_layout': 'thd_thd_thd', 'attn_mask_type': 'padding_causal', "
                 "'window_size': (-1, 0), 'deterministic': True, 'is_training': True"),
          2, "bwd layout=thd mask=causal padding=random deterministic=1" },
        { CONFIG("'qkv_layout': 'sbhd_sb2hd', 'attn_mask_type': 'causal', 'window_size': (127, 0), "
                 "'is_training': False, 'softmax_type': 'learnable'"),
          1, "fwd layout=sbhd_sb2hd window=128:0 softmax=sink" },
        { CONFIG("'qkv_layout': 'bshd_bshd_bshd', 'attn_mask_type': 'causal_bottom_right', "
                 "'core_attention_bias_type': 'post_scale_bias', "
                 "'core_attention_bias_shape': '1hss', 'window_size': (-1, 0)"),
          1, "fwd mask=causal_br bias=1hss" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[200];
        cr_assert_eq(read_text(rows[i].text), rows[i].count, "%s", unread());
        const facts_imported *p = facts_import_at(m, rows[i].count - 1);
        snprintf(name, sizeof name, "pass=%.3s dtype=bf16 b=1 h=64/8 s=8192 d=192/128%s",
                 rows[i].name, rows[i].name + 3);
        cr_expect_str_eq(p->name, name);
        cr_expect_eq(p->cudnn, 91001);
        cr_expect_eq(facts_import_named_count(m), 3);
        cr_expect_str_eq(facts_import_named_at(m, 1)->version, "sm_100");
    }
}

Test(pasted, the_cudnn_of_an_environment_is_named)
{
    static const char *const rows[][2] = {
        { "nvidia-cudnn-cu12==9.10.2.21 pypi_0\n", "9.10.2" },
        { " - cudnn_backend version: 9.12.0.46\n", "9.12.0" },
        { "still there with cuDNN 9.21.1\n", "9.21.1" },
        { "is not supported with cudnn version below 9.0.0\n", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        read_text(rows[i][0]);
        cr_assert_eq(facts_import_named_count(m), rows[i][1] ? 1 : 0, "%s", rows[i][0]);
        if (rows[i][1])
            cr_expect_str_eq(facts_import_named_at(m, 0)->version, rows[i][1]);
    }
}

Test(pasted, an_exception_is_an_error_without_a_graph)
{
    size_t total;
    cr_expect_eq(read_text("RuntimeError: cuDNN Frontend error: No valid engine configs\n"), 0);
    cr_expect(strstr(facts_import_orphan(m, 0, &total), "text:1: RuntimeError: cuDNN Frontend"));
    cr_expect_eq(read_text("XlaRuntimeError: INTERNAL: No valid engine configs for Matmul\n"), 0);
    cr_expect(strstr(facts_import_orphan(m, 0, &total), "engine configs for Matmul"));
    cr_expect_eq(read_text("RuntimeError: out of paper\n"), 0);
    cr_expect_null(facts_import_orphan(m, 0, &total));
}
