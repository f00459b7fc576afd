/* How an old entry point is kept when the question grows.
 *
 * `may_run` is the narrow question that a program has asked for years: 15 arguments, no batch, no layout of the output, one answer.
 * It is now a thin wrapper: it fills a fattn_problem and asks fattn_decide. Three rules keep its meaning:
 *   - A field that the old entry cannot say stays 0, so the library derives it: O has the layout of Q, dO that of O, each gradient
 * that of its input. A wrapper that fills in a value of its own would refuse tomorrow what ran yesterday.
 *   - Training asks the backward as well, and only training does. One backend must do both: the old entry has room for one answer.
 *   - The reason of a no is the sentence of the new decision.
 */
#include "common.h"

/* The old arguments, in a struct: 15 positional ones are easy to swap. */
typedef struct old_question {
    bool training;
    fattn_dtype dtype;
    fattn_format format; /* of Q, K and V; unset: b,s,h,d */
    int64_t heads_q, heads_kv, seq_q, seq_kv, dim_qk, dim_v;
    int64_t window_left, window_right; /* -1: no bound */
    bool deterministic, capture;
} old_question;

/* Q, K and V lie in the caller's format. */
static void place(int64_t strides[4], fattn_format format, int64_t batch, int64_t heads,
                  int64_t seq, int64_t dim)
{
    const int64_t bshd[4] = { seq * heads * dim, dim, heads * dim, 1 },
                  sbhd[4] = { heads * dim, dim, batch * heads * dim, 1 };
    const int64_t bhsd[4] = { heads * seq * dim, seq * dim, dim, 1 };
    const int64_t *chosen = format == FATTN_FORMAT_SBHD   ? sbhd
                            : format == FATTN_FORMAT_BHSD ? bhsd
                                                          : bshd;
    if (format != FATTN_FORMAT_UNSET)
        memcpy(strides, chosen, sizeof bshd);
}

/* A backend, or -1 and the sentence. */
static int ask(fattn_context *context, const fattn_problem *problem, char *message, size_t capacity)
{
    fattn_decision *decision;
    message[0] = '\0';
    if (fattn_decide(&decision, context, problem, FATTN_ASK_A) != FATTN_OK && decision == NULL) {
        snprintf(message, capacity, "%s", fattn_last_error());
        return -1;
    }
    const int backend =
        fattn_decision_supported(decision) ? (int)fattn_decision_backend(decision) : -1;
    if (backend < 0)
        snprintf(message, capacity, "%s: %s %s",
                 problem->pass == FATTN_BACKWARD ? "backward" : "forward",
                 fattn_decision_status(decision), fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    return backend;
}

/* The old entry. Returns a fattn_backend, or -1; `message` is then the reason. Nothing is compiled.
 */
static int may_run(fattn_context *context, const old_question *old, char *message, size_t capacity)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = 1;
    problem.dtype = (int32_t)old->dtype;
    problem.heads_q = old->heads_q, problem.heads_k = problem.heads_v = old->heads_kv;
    problem.seq_q = old->seq_q, problem.seq_kv = old->seq_kv;
    problem.dim_qk = old->dim_qk, problem.dim_v = old->dim_v;
    problem.has_left = old->window_left != -1, problem.window_left = old->window_left;
    problem.has_right = old->window_right != -1, problem.window_right = old->window_right;
    problem.training = old->training;
    problem.deterministic = old->deterministic;
    problem.capture = old->capture;
    place(problem.q_strides, old->format, 1, old->heads_q, old->seq_q, old->dim_qk);
    place(problem.k_strides, old->format, 1, old->heads_kv, old->seq_kv, old->dim_qk);
    place(problem.v_strides, old->format, 1, old->heads_kv, old->seq_kv, old->dim_v);
    const int forward = ask(context, &problem, message, capacity);
    if (forward < 0 || !old->training)
        return forward;
    problem.pass = FATTN_BACKWARD;
    const int backward = ask(context, &problem, message, capacity);
    if (backward >= 0 && backward != forward)
        snprintf(message, capacity,
                 "forward and backward would be computed by two backends, %d and %d", forward,
                 backward);
    return backward == forward ? forward : -1;
}

/* Calls that ran before still run: the library derives formats that the old caller never gave. */
static int check_formats(fattn_context *context)
{
    old_question old = { .heads_q = 8,
                         .heads_kv = 2,
                         .seq_q = 512,
                         .seq_kv = 512,
                         .dim_qk = 128,
                         .dim_v = 128,
                         .window_left = -1 };
    const fattn_dtype types[] = { FATTN_DTYPE_DEFAULT, FATTN_BF16, FATTN_F16 };
    char message[512];
    for (int format = FATTN_FORMAT_UNSET; format <= FATTN_FORMAT_BHSD; format++)
        for (size_t type = 0; type < sizeof types / sizeof *types; type++)
            for (int training = 0; training < 2; training++) {
                old.format = (fattn_format)format, old.dtype = types[type],
                old.training = training != 0;
                if (may_run(context, &old, message, sizeof message) < 0) {
                    printf("format %d, type %d, training %d: %s: WRONG\n", format, (int)types[type],
                           training, message);
                    return 1;
                }
            }
    printf("every format: yes\n");
    return 0;
}

/* The old entry refuses what the new question refuses, with its words. */
static int check_reason(fattn_context *context)
{
    const old_question old = { .heads_q = 8,
                               .heads_kv = 3,
                               .seq_q = 512,
                               .seq_kv = 512,
                               .dim_qk = 64,
                               .dim_v = 64,
                               .window_left = -1,
                               .window_right = -1 };
    char message[512];
    const int backend = may_run(context, &old, message, sizeof message);
    const bool right =
        backend == -1 && strstr(message, "heads_q: 8 is not a multiple of heads_k, 3") != NULL;
    printf("heads 8 and 3: no: %s%s\n", message, right ? "" : ": WRONG");
    return right ? 0 : 1;
}

int main(int argc, char **argv)
{
    example e = example_open(argc, argv);
    const int status = check_formats(e.context) | check_reason(e.context);
    fattn_context_destroy(e.context);
    return status;
}
