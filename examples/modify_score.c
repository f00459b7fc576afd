/* A modification of the score, recorded once: soft cap, then a document mask.
 *
 * The callback runs once, while the plan's graph is written; the backend computes what it recorded.
 * Its tensors are given by address at each call. The gradient, for a backward plan, is derived from
 * the recording.
 */
#include "loops.h"
#include <fattn/policy.h>
#include <fattn/score_mod.h>

static naive shape = { .batch = 2, .heads = 4, .seq = 128, .dim = 64 };
static const double cap = 2.0;

/* Two documents, packed one after the other in every sequence. */
static int document_of(int position)
{
    return position < 80 ? 0 : 1;
}

/* What is recorded: cap * tanh(score / cap) where row and key are of one document, -inf elsewhere.
 */
static fattn_value record(fattn_recorder *r, fattn_value score, void *user)
{
    const double limit = *(const double *)user;
    const int64_t rows[4] = { shape.batch, 1, shape.seq, 1 },
                  keys[4] = { shape.batch, 1, 1, shape.seq }; /* broadcast where 1 */
    const fattn_value c = fattn_record_constant(r, limit),
                      hidden = fattn_record_constant(r, -INFINITY);
    const fattn_value row = fattn_record_tensor(r, "row_document", FATTN_F32, rows, NULL);
    const fattn_value key = fattn_record_tensor(r, "key_document", FATTN_F32, keys, NULL);
    const fattn_value inner =
        fattn_record(r, FATTN_MOD_TANH, fattn_record(r, FATTN_MOD_DIV, score, c, -1), -1, -1);
    const fattn_value capped = fattn_record(r, FATTN_MOD_MUL, c, inner, -1);
    return fattn_record(r, FATTN_MOD_SELECT, fattn_record(r, FATTN_MOD_EQ, row, key, -1), capped,
                        hidden); /* errors are kept */
}

/* The same for the loops that check it. */
static double modify(double score, int b, int h, int row, int key)
{
    (void)b, (void)h;
    return document_of(row) == document_of(key) ? cap * tanh(score / cap) : -INFINITY;
}

static void *upload_documents(example e)
{
    const size_t count = (size_t)(shape.batch * shape.seq);
    float *x = example_allocate(count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)document_of((int)i % shape.seq);
    void *buffer = example_buffer(e, count * sizeof *x);
    CHECK(fattn_buffer_write(e.context, buffer, x, count * sizeof *x));
    free(x);
    return buffer;
}

static int run(example e, const fattn_plan *plan)
{
    void *documents = upload_documents(e);
    const void *const mod_tensors[2] = { documents, documents }; /* in the order of the recording */
    naive_call call = naive_call_create(&shape, e, plan);
    call.tensors.mod_tensors = mod_tensors;
    struct CUstream_st *stream;
    CHECK(fattn_stream_create(&stream, e.context));
    CHECK(fattn_forward(plan, &call.tensors, stream));
    CHECK(fattn_stream_synchronize(e.context, stream));
    shape.modify = modify;
    const int status = naive_call_check(&shape, e, &call, "soft cap and documents");
    fattn_stream_destroy(e.context, stream);
    naive_call_destroy(e, &call);
    fattn_buffer_destroy(e.context, documents);
    return status;
}

int main(int argc, char **argv)
{
    example e = example_open(argc, argv);

    /* Two recordings are the same if their operations, constants and tensors' signatures are; then
     * they share a plan. */
    fattn_score_mod *mod, *same;
    double mine = cap, yours = cap;
    char text[2048];
    CHECK(fattn_score_mod_create(&mod, record, NULL, &mine));
    CHECK(fattn_score_mod_create(&same, record, NULL, &yours));
    fattn_score_mod_text(mod, text, sizeof text);
    printf("%ssame recording twice: %s\n", text,
           fattn_score_mod_same(mod, same) ? "one identity" : "two identities: WRONG");
    int status = fattn_score_mod_same(mod, same) ? 0 : 1;
    fattn_score_mod_destroy(same);

    /* If cuDNN refuses, the library's own kernels may run; a backend that the device does not have
     * is skipped. */
    fattn_policy policy = FATTN_POLICY_INIT;
    int depth;
    policy.order[policy.order_count++] = FATTN_BACKEND_CUDNN;
    policy.order[policy.order_count++] = FATTN_BACKEND_MATH;
    policy.order[policy.order_count++] = FATTN_BACKEND_CPU;
    CHECK(fattn_policy_push(&policy, &depth));

    fattn_problem problem = FATTN_PROBLEM_INIT;
    fattn_plan *plan;
    problem.batch = shape.batch;
    problem.heads_q = shape.heads;
    problem.seq_q = problem.seq_kv = shape.seq;
    problem.dim_qk = shape.dim;
    problem.score_mod = mod;
    CHECK(fattn_plan_create(&plan, e.context, &problem, NULL));
    fattn_score_mod_destroy(mod); /* the plan has its own reference */
    printf("planned on backend %d\n", (int)fattn_plan_backend(plan));
    if (e.kind == FATTN_DEVICE_DESCRIBED)
        printf("compiled for the described device; there is none to run on\n");
    else
        status |= run(e, plan);

    fattn_policy_pop(depth);
    fattn_plan_destroy(plan);
    fattn_context_destroy(e.context);
    return status;
}
