/* More batch entries, or heads of the whole batch, than a grid has blocks in its second and third
 * dimension (65,535): inputs are filled, answers are compared and judged to the last one. */
#include "emulated.h"

#include "../../../test/numbers/numbers.h"

typedef struct large {
    facts_problem problem;
    const facts_tensor *tensor; /* Q, which stands for an answer */
    size_t bytes;
    int64_t count, last[4];
    unsigned char *storage;
    double *want, *bound;
} large;

static large *make_large(const char *text)
{
    large *x = calloc(1, sizeof *x);
    cr_assert(resolves_to(&x->problem, text), "%s", text);
    const facts_tensor *t = x->tensor = &x->problem.tensor[FACTS_TENSOR_Q];
    x->count = t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
    cr_assert(x->count == t->elements && t->dim[0] * t->dim[1] > 65536, "dense");
    for (int i = 0; i < 4; i++)
        x->last[i] = t->dim[i] - 1;
    x->bytes = (size_t)t->elements * facts_dtype_bytes(t->dtype);
    x->storage = malloc(x->bytes);
    x->want = malloc((size_t)x->count * sizeof *x->want);
    x->bound = malloc((size_t)x->count * sizeof *x->bound);
    cr_assert(facts_fill_tensor(&x->problem, FACTS_TENSOR_Q, x->storage));
    for (int64_t n = 0; n < x->count; n++) {
        const int64_t row = n / t->dim[3], bh = row / t->dim[2];
        x->want[n] =
            value_at(t, x->storage, bh / t->dim[1], bh % t->dim[1], row % t->dim[2], n % t->dim[3]);
        x->bound[n] = 1e-3;
    }
    return x;
}

static void free_large(large *x)
{
    free(x->storage), free(x->want), free(x->bound), free(x);
}

static void fill_and_compare(const large *x)
{
    unsigned char *there = malloc(x->bytes);
    facts_two_runs both = { .tensor = x->tensor, .a = x->storage, .b = there };
    uint64_t bits;
    cr_assert_eq(facts_gpu_fill(gpu, &x->problem, FACTS_TENSOR_Q, there), FATTN_OK);
    cr_expect(memcmp(x->storage, there, x->bytes) == 0);
    cr_assert_eq(facts_gpu_bits(gpu, x->tensor, there, &bits), FATTN_OK);
    cr_expect_eq(bits, facts_judge_bits(x->tensor, x->storage));
    there[x->bytes - 1] ^= 1;
    cr_assert_eq(facts_gpu_repeat(gpu, &both, 1), FATTN_OK);
    cr_expect_eq(both.different, 1);
    cr_expect_arr_eq(both.first, x->last, sizeof both.first);
    free(there);
}

/* The last element is wrong. */
static void judge(large *x)
{
    const facts_tensor *t = x->tensor;
    const facts_rule rule = { .expected = {
                                  .want = x->want, .sigma = x->bound, .bound = x->bound } };
    const int64_t count = t->dim[0] * t->dim[1] * t->dim[2];
    facts_judged_row *rows = calloc((size_t)count, sizeof *rows);
    facts_asked asked = { .tensor = t,
                          .storage = x->storage,
                          .lie = FACTS_LIE_COUNT,
                          .limits = facts_judge_limits(t, &rule) };
    asked.part = (facts_part){ .batches = t->dim[0],
                               .heads = t->dim[1],
                               .want = x->want,
                               .sigma = x->bound,
                               .bound = x->bound };
    x->want[x->count - 1] += 1;
    cr_assert_eq(facts_gpu_judge(gpu, &asked, rows), FATTN_OK);
    int64_t checked = 0, wrong = 0;
    for (int64_t n = 0; n < count; n++)
        checked += rows[n].checked, wrong += rows[n].wrong;
    cr_expect(checked == x->count && wrong == 1 && rows[count - 1].wrong == 1);
    const facts_judgement there = facts_judge_rows(t, &rule, rows),
                          here = facts_judge_tensor(t, x->storage, &rule);
    cr_expect(there.wrong == 1 && here.wrong == 1);
    cr_expect_arr_eq(there.worst, x->last, sizeof there.worst);
    cr_expect_arr_eq(here.worst, x->last, sizeof here.worst);
    free(rows);
}

TestSuite(emulated, .init = open_emulated, .fini = close_emulated);

Test(emulated, the_last_of_65537_entries_and_of_65568_heads_is_judged)
{
    static const char *const shapes[] = { "b=65537 h=1", "b=2049 h=32" };
    for (size_t i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text, "pass=fwd dtype=bf16 s=1 d=2 layout=bhsd %s", shapes[i]);
        large *x = make_large(text);
        fill_and_compare(x);
        judge(x);
        free_large(x);
    }
}
