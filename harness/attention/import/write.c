#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"

__attribute__((format(printf, 2, 3))) static bool refuse(facts_error *error, const char *format,
                                                         ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool has(const facts_import_attention *a, facts_import_role role)
{
    return a->has[role];
}

static const facts_import_tensor *part(const facts_import_attention *a, facts_import_role role)
{
    return &a->part[role];
}

/* The word of a type, NULL when a case has none. */
static const char *type_word(facts_import_type type, bool mx)
{
    switch (type) {
    case FACTS_IMPORT_BF16:
        return "bf16";
    case FACTS_IMPORT_F16:
        return "f16";
    case FACTS_IMPORT_F32:
        return "f32";
    case FACTS_IMPORT_E4M3:
        return mx ? "mxe4m3" : "e4m3";
    case FACTS_IMPORT_E5M2:
        return mx ? "mxe5m2" : "e5m2";
    default:
        return NULL;
    }
}

static bool write_types(tokens *w, const facts_import_attention *a, facts_error *error)
{
    const char *io = type_word(part(a, FACTS_IMPORT_ROLE_Q)->type, a->mx);
    if (io == NULL || (a->mx && strncmp(io, "mx", 2) != 0))
        return refuse(error, "a type of Q that no case has");
    add(w, "pass=%s dtype=%s", a->backward ? "bwd" : "fwd", io);
    const char *out =
        has(a, FACTS_IMPORT_ROLE_O) ? type_word(part(a, FACTS_IMPORT_ROLE_O)->type, a->mx) : io;
    if (out != NULL && strcmp(out, io) != 0 && !(a->mx && strcmp(out, "bf16") == 0))
        add(w, "out=%s", out);
    const char *grad =
        has(a, FACTS_IMPORT_ROLE_DQ) ? type_word(part(a, FACTS_IMPORT_ROLE_DQ)->type, a->mx) : io;
    if (grad != NULL && strcmp(grad, io) != 0 && !(a->mx && strcmp(grad, "bf16") == 0))
        add(w, "grad=%s", grad);
    if (has(a, FACTS_IMPORT_ROLE_STATS)) {
        const char *stats = type_word(part(a, FACTS_IMPORT_ROLE_STATS)->type, false);
        if (stats == NULL)
            return refuse(error, "a type of Stats that no case has");
        add(w, "stats_dtype=%s", stats);
    }
    const char *usual = a->mx ? io : out,
               *d_o = has(a, FACTS_IMPORT_ROLE_DO)
                          ? type_word(part(a, FACTS_IMPORT_ROLE_DO)->type, a->mx)
                          : usual;
    if (d_o != NULL && usual != NULL && strcmp(d_o, usual) != 0)
        add(w, "do_dtype=%s", d_o);
    return out != NULL && grad != NULL && d_o != NULL
               ? true
               : refuse(error, "a type of O, dO or dQ that no case has");
}

static int64_t keys_of(const facts_import_attention *a, facts_import_notes *notes)
{
    const facts_import_tensor *k = part(a, FACTS_IMPORT_ROLE_K), *v = part(a, FACTS_IMPORT_ROLE_V);
    if (a->seq_kv > 0)
        return a->seq_kv;
    if (!has(a, FACTS_IMPORT_ROLE_TABLE_K))
        return k->dim[2];
    if (!has(a, FACTS_IMPORT_ROLE_TABLE_V))
        return v->dim[2];
    int64_t keys = part(a, FACTS_IMPORT_ROLE_TABLE_K)->dim[2] * k->dim[2];
    facts_import_note(notes, "assuming that a page table is full: %" PRId64 " keys", keys);
    return keys;
}

static void write_sizes(tokens *w, const facts_import_attention *a, facts_import_notes *notes)
{
    const facts_import_tensor *q = part(a, FACTS_IMPORT_ROLE_Q), *k = part(a, FACTS_IMPORT_ROLE_K),
                              *v = part(a, FACTS_IMPORT_ROLE_V);
    add(w,
        "b=%" PRId64 " h=%" PRId64 "/%" PRId64 "/%" PRId64 " s=%" PRId64 "/%" PRId64 " d=%" PRId64
        "/%" PRId64,
        q->dim[0], q->dim[1], k->dim[1], v->dim[1], q->dim[2], keys_of(a, notes), q->dim[3],
        v->dim[3]);
}

static void write_band(tokens *w, const facts_import_attention *a, int64_t keys,
                       facts_import_notes *notes)
{
    int64_t left = a->left.value, right = a->right.value;
    if (a->left.given && !a->left.known) {
        left = keys > 2 ? keys / 2 : 1;
        facts_import_note(notes, "the log does not contain the left bound; assuming %" PRId64,
                          left);
    }
    if (a->right.given && !a->right.known) {
        right = 1;
        facts_import_note(notes, "the log only says that the right bound is not 0; assuming 1");
    }
    if (a->left.given && !a->left.known && !a->right.given && !has(a, FACTS_IMPORT_ROLE_LEN_Q))
        facts_import_note(
            notes, "the log does not contain the corner of the left bound; assuming top-left");
    if (!a->left.given && !a->right.given)
        return;
    if (!a->left.given && right == 0) {
        add(w, "mask=%s", a->bottom_right ? "causal_br" : "causal");
        return;
    }
    char l[24] = "inf", r[24] = "inf";
    if (a->left.given)
        snprintf(l, sizeof l, "%" PRId64, left);
    if (a->right.given)
        snprintf(r, sizeof r, "%" PRId64, right);
    add(w, "window=%s:%s align=%s", l, r, a->bottom_right ? "br" : "tl");
}

static bool packed(const facts_import_attention *a)
{
    for (facts_import_role role = FACTS_IMPORT_ROLE_Q; role <= FACTS_IMPORT_ROLE_DV; role++)
        if (has(a, role) && part(a, role)->ragged != -1)
            return true;
    return false;
}

static bool multiplied(const facts_import_attention *a)
{
    for (facts_import_role role = FACTS_IMPORT_ROLE_Q; role <= FACTS_IMPORT_ROLE_DV; role++)
        if (has(a, role) && part(a, role)->multiplier > 1)
            return true;
    return false;
}

static void write_lengths(tokens *w, const facts_import_attention *a)
{
    bool cu_q = has(a, FACTS_IMPORT_ROLE_CU_Q), cu_kv = has(a, FACTS_IMPORT_ROLE_CU_KV),
         paged = has(a, FACTS_IMPORT_ROLE_TABLE_K) || has(a, FACTS_IMPORT_ROLE_TABLE_V);
    bool lengths = a->padding || has(a, FACTS_IMPORT_ROLE_LEN_Q) ||
                   has(a, FACTS_IMPORT_ROLE_LEN_KV) || cu_q || cu_kv;
    if (lengths || packed(a) || paged)
        add(w, "padding=random");
    if (cu_q || cu_kv)
        add(w, "cu=%s", cu_q && cu_kv ? "both" : cu_q ? "q" : "kv");
    facts_import_role side =
        has(a, FACTS_IMPORT_ROLE_LEN_KV) ? FACTS_IMPORT_ROLE_LEN_KV : FACTS_IMPORT_ROLE_LEN_Q;
    const facts_import_tensor *shape = part(a, side);
    if (has(a, side) && shape->rank == 1)
        add(w, "lens_shape=b");
    else if (has(a, side) && part(a, FACTS_IMPORT_ROLE_Q)->dim[0] > 1 &&
             (shape->dim[0] == 1 || shape->stride[0] == 0))
        add(w, "lens_shape=bcast");
    if (packed(a) && a->totals)
        add(w, "total=declared");
    if (packed(a) && a->offsets == FACTS_IMPORT_I64)
        add(w, "offsets=i64");
    if (multiplied(a))
        add(w, "rmult=tokens");
}

static bool write_bias(tokens *w, const facts_import_attention *a, facts_error *error)
{
    if (!has(a, FACTS_IMPORT_ROLE_BIAS))
        return true;
    const facts_import_tensor *bias = part(a, FACTS_IMPORT_ROLE_BIAS),
                              *q = part(a, FACTS_IMPORT_ROLE_Q);
    const char *type = type_word(bias->type, false), *io = type_word(q->type, a->mx);
    bool one_row = bias->dim[2] == 1 || facts_import_bias_row(a);
    char shape[5] = { bias->dim[0] > 1 ? 'b' : '1', bias->dim[1] > 1 ? 'h' : '1',
                      one_row ? '1' : 's', 's', '\0' };
    if (!a->bool_mask && type == NULL)
        return refuse(error, "a type of the bias that no case has");
    add(w, "bias=%s%s", a->bool_mask ? "bool:" : "", shape);
    if (!a->bool_mask && strcmp(type, io) != 0)
        add(w, "bias_dtype=%s", type);
    if (has(a, FACTS_IMPORT_ROLE_DBIAS))
        add(w, "dbias=1");
    return true;
}

static void write_dropout(tokens *w, const facts_import_attention *a, facts_import_notes *notes)
{
    if (has(a, FACTS_IMPORT_ROLE_DROPOUT_MASK)) {
        add(w, "dropout=0.1 dropout_mask=1");
        facts_import_note(notes,
                          "the log does not contain how much the given mask drops; assuming 0.1");
    } else if (has(a, FACTS_IMPORT_ROLE_SEED)) {
        double p = a->dropout_known ? a->dropout : 0.1;
        char text[32];
        if (!a->dropout_known)
            facts_import_note(notes,
                              "the log does not contain the dropout probability; assuming 0.1");
        snprintf(text, sizeof text, "%.6g", p); /* the log has it as a float, or as one minus it */
        add(w, "dropout=%s", text);
        if (part(a, FACTS_IMPORT_ROLE_SEED)->type == FACTS_IMPORT_I32)
            add(w, "rng_dtype=i32");
    }
}

static bool write_paged(tokens *w, const facts_import_attention *a, facts_error *error)
{
    bool k = has(a, FACTS_IMPORT_ROLE_TABLE_K), v = has(a, FACTS_IMPORT_ROLE_TABLE_V);
    if (!k && !v)
        return true;
    int64_t size_k = part(a, FACTS_IMPORT_ROLE_K)->dim[2],
            size_v = part(a, FACTS_IMPORT_ROLE_V)->dim[2];
    if (k && v && size_k != size_v)
        return refuse(error,
                      "pages of %" PRId64 " rows of K and of %" PRId64
                      " rows of V: a case has one size",
                      size_k, size_v);
    add(w, "paged=%s%" PRId64, k && v ? "" : k ? "k:" : "v:", k ? size_k : size_v);
    if (a->table_packed_k || a->table_packed_v)
        add(w, "table=packed");
    return true;
}

static void write_scale(tokens *w, const facts_import_attention *a, facts_import_notes *notes)
{
    double usual = 1.0 / sqrt((double)part(a, FACTS_IMPORT_ROLE_Q)->dim[3]);
    if (a->scale_tensor) {
        add(w, "scale=tensor");
    } else if (!a->has_scale) {
        add(w, "scale=1");
    } else if (!a->scale_known) {
        notes->scale_missing = true;
    } else if (fabs(a->scale - usual) > 1e-6 * usual) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", a->scale);
        add(w, "scale=%s", text);
    }
}

static void write_want(tokens *w, const facts_import_attention *a)
{
    const struct {
        facts_import_role role;
        const char *word;
    } rows[] = { { FACTS_IMPORT_ROLE_STATS, a->stats_log2 ? "stats2" : "stats" },
                 { FACTS_IMPORT_ROLE_MAX, "max" },
                 { FACTS_IMPORT_ROLE_SUM_EXP, "sum_exp" },
                 { FACTS_IMPORT_ROLE_RNG_DUMP, "rng_dump" } };
    char text[64] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has(a, rows[i].role))
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s",
                                       length > 0 ? "+" : "", rows[i].word);
    if (length > 0)
        add(w, "want=%s", text);
}

static void write_mod(tokens *w, const facts_import_attention *a, facts_import_notes *notes)
{
    switch (a->mod) {
    case FACTS_IMPORT_MOD_SOFTCAP:
        add(w, "mod=softcap:30");
        facts_import_note(notes, "the log does not contain the cap of the scores; assuming 30");
        break;
    case FACTS_IMPORT_MOD_TEMPERATURE:
        add(w, "mod=temperature:2");
        facts_import_note(notes, "the log does not contain the temperature; assuming 2");
        break;
    case FACTS_IMPORT_MOD_RELPOS:
        add(w, "mod=relpos");
        break;
    case FACTS_IMPORT_MOD_DOCUMENT:
        add(w, "mod=document:3");
        facts_import_note(notes, "the log does not contain the number of documents; assuming 3");
        break;
    case FACTS_IMPORT_MOD_PREFIX:
        add(w, "mod=prefix:64");
        facts_import_note(notes, "the log does not contain the length of the prefix; assuming 64");
        break;
    default:
        break;
    }
}

static bool write_options(tokens *w, const facts_import_attention *a, facts_import_notes *notes,
                          facts_error *error)
{
    if (a->half_accumulation)
        return refuse(error, "the log has sums in half precision (compute_data_type HALF); a case "
                             "cannot express them");
    if (a->right.value < 0 || a->left.value < 0)
        return refuse(error,
                      "a bound of the band below 0 (%" PRId64 ":%" PRId64 "): no case says it",
                      a->left.value, a->right.value);
    if (!write_bias(w, a, error) || !write_paged(w, a, error))
        return false;
    write_band(w, a, part(a, FACTS_IMPORT_ROLE_K)->dim[2], notes);
    write_lengths(w, a);
    write_mod(w, a, notes);
    write_dropout(w, a, notes);
    write_scale(w, a, notes);
    write_want(w, a);
    if (a->alibi)
        add(w, "alibi=1");
    if (has(a, FACTS_IMPORT_ROLE_BLOCK_MASK))
        add(w, "blockmask=random");
    if (has(a, FACTS_IMPORT_ROLE_SINK))
        add(w, "softmax=sink");
    if (has(a, FACTS_IMPORT_ROLE_DSINK))
        add(w, "dsink=1");
    facts_import_type io =
        part(a, FACTS_IMPORT_ROLE_Q)->type; /* 8 bit types have one form of the backward */
    bool one_form = io == FACTS_IMPORT_E4M3 || io == FACTS_IMPORT_E5M2 || a->unified ||
                    has(a, FACTS_IMPORT_ROLE_DBIAS);
    if (a->backward && (a->deterministic || (a->dq_direct && !one_form)))
        add(w, "deterministic=1");
    if (a->rope)
        add(w, "rope=%" PRId64,
            a->rope_dim == 0 || a->rope_dim == part(a, FACTS_IMPORT_ROLE_Q)->dim[3] ? 1
                                                                                    : a->rope_dim);
    if (a->unified)
        add(w, "impl=unified");
    else if (a->single)
        add(w, "spelling=single");
    if (a->unfuse_fma)
        add(w, "knob=unfuse_fma:1");
    if (a->rescale >= 0)
        add(w, "rescale=%" PRId64, a->rescale);
    if (a->score_hidden)
        facts_import_note(
            notes,
            "cuDNN's JSON does not contain masks and bias of a unified backward; assuming none");
    return true;
}

bool facts_import_case(facts_case *out, facts_import_notes *notes, const facts_import_attention *a,
                       facts_error *error)
{
    tokens w = { .between = ' ' };
    if (!write_types(&w, a, error))
        return false;
    write_sizes(&w, a, notes);
    return write_options(&w, a, notes, error) && facts_import_layouts(out, notes, a, w.text, error);
}
