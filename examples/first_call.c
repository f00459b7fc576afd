/* The shortest whole use: one forward call on the CPU. The lines between the marks stand at the top
 * of fattn.h too. */
#include "common.h"

enum { QUERIES = 2 * 128 * 8 * 64, KEYS = 2 * 128 * 2 * 64 };
static _Alignas(16) float q[QUERIES], k[KEYS], v[KEYS], o[QUERIES];

int main(void)
{
    fattn_context *context;
    fattn_plan *plan;
    for (int i = 0; i < KEYS; i++)
        v[i] = 3.0f;
    /* begin */
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU; // a GPU: FATTN_DEVICE_GPU, options.cudnn_dir, and
                                            // addresses of device memory
    CHECK(fattn_context_create(&context, &options));
    fattn_problem problem = FATTN_PROBLEM_INIT; // a field that is 0 has its default: dense b,s,h,d,
                                                // scale 1/sqrt(dim_qk)
    problem.dtype = FATTN_F32, problem.batch = 2, problem.heads_q = 8, problem.heads_k = 2;
    problem.seq_q = problem.seq_kv = 128, problem.dim_qk = 64, problem.has_right = 1; // causal
    CHECK(fattn_plan_create(&plan, context, &problem, NULL));
    fattn_tensors tensors = FATTN_TENSORS_INIT;
    tensors.q = q, tensors.k = k, tensors.v = v, tensors.o = o;
    tensors.workspace_bytes = fattn_plan_workspace_bytes(plan),
    tensors.workspace = malloc(tensors.workspace_bytes);
    CHECK(fattn_forward(plan, &tensors, NULL));
    /* end */
    double worst = 0; /* every row of P sums to 1, so a constant V comes out as it went in */
    for (int i = 0; i < QUERIES; i++)
        worst = fmax(worst, fabs((double)o[i] - 3.0));
    free(tensors.workspace);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
    return example_verdict("first call", worst / 3.0);
}
