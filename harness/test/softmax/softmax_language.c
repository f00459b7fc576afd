#include <stdlib.h>

#include "language/simpler.h"
#include "softmax.h"

#define AS_ROW(symbol, word_, allowed_, otherwise_, help_)                                         \
    { .word = word_, .allowed = allowed_, .otherwise = otherwise_, .help = help_ },
static const facts_key_row keys[] = { SOFTMAX_KEY_LIST(AS_ROW) };
#undef AS_ROW

/* The place of a value among those that its key allows. */
static int place(const facts_case *c, facts_key key)
{
    char text[FACTS_CASE_TEXT];
    return facts_template_match(keys[key].allowed, facts_span_of(facts_case_get(c, key)), text);
}

static int64_t number(const facts_case *c, facts_key key)
{
    return strtoll(facts_case_get(c, key), NULL, 10);
}

const char *softmax_resolve(softmax_problem *out, const facts_case *c)
{
    const int engine = place(c, SOFTMAX_ENGINE);
    *out = (softmax_problem){ .bf16 = place(c, SOFTMAX_TYPE) == 1,
                              .log = place(c, SOFTMAX_LOG) == 1,
                              .rows = number(c, SOFTMAX_ROWS),
                              .columns = number(c, SOFTMAX_COLUMNS),
                              .engine = engine == 0   ? SOFTMAX_AUTO
                                        : engine == 1 ? SOFTMAX_ALL
                                                      : number(c, SOFTMAX_ENGINE),
                              .scale = strtod(facts_case_get(c, SOFTMAX_SCALE), NULL),
                              .data = place(c, SOFTMAX_DATA),
                              .seed = (uint64_t)number(c, SOFTMAX_SEED) };
    return out->rows > 1 << 20      ? "rows: at most 1048576"
           : out->columns > 1 << 20 ? "columns: at most 1048576"
           : out->scale <= 0        ? "scale: must be above 0"
                                    : NULL;
}

static bool resolves(const facts_case *c, double *work)
{
    softmax_problem problem;
    const bool done = softmax_resolve(&problem, c) == NULL;
    *work = (double)problem.rows * (double)problem.columns;
    return done;
}

static unsigned kernels(const facts_case *c)
{
    return 1U << place(c, SOFTMAX_TYPE);
}

static const facts_size sizes[] = { { SOFTMAX_ROWS, 1, false }, { SOFTMAX_COLUMNS, 1, false } };
static const struct facts_numbered numbered[] = { { SOFTMAX_SEED, 0 } };
static const facts_simpler simpler = { .engine = SOFTMAX_ENGINE,
                                       .sizes = sizes,
                                       .size_count = 2,
                                       .numbered = numbered,
                                       .numbered_count = 1,
                                       .kernels = kernels };

const facts_language softmax_language = { .keys = keys,
                                          .count = SOFTMAX_KEYS,
                                          .always = 1,
                                          .backends = "cpu",
                                          .resolves = resolves,
                                          .simpler = &simpler };
