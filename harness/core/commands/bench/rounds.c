#include "commands/bench/rounds.h"

#include "words/clock.h"
#include <stdlib.h>
#include <string.h>

#define MOST_CONFIGS 64
#define MOST_SAMPLES 16
#define NARROW 0.003 /* of the median */
#define MOST_MS 20e3 /* of one case */

/* Medians of the turns of one configuration of one target. */
typedef struct series {
    int count;
    double us[FACTS_ROUNDS_MOST];
} series;

struct facts_rounds {
    series *of; /* MOST_CONFIGS for each target */
    size_t target_count, turns;
    int wanted;      /* rounds of each case; 0: until the intervals are narrow */
    double since_ms; /* start of this case's first round */
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many values lie outside of the interval on each side: the largest k with P(fewer than k of n
 * coins show heads) <= 2.5 %. */
static int outside(int count)
{
    double term = 1, sum = 0;
    int k = 0;
    for (int i = 0; i < count; i++)
        term /= 2;
    for (sum = term; sum <= 0.025 && k < count; k++) {
        term *= (double)(count - k) / (k + 1);
        sum += term;
    }
    return k;
}

double facts_median_uncertainty(double *values, int count)
{
    const int k = outside(count);
    if (k < 1 || count < 1)
        return 1;
    qsort(values, (size_t)count, sizeof *values, by_value);
    const double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
    return median > 0 ? (values[count - k] - values[k - 1]) / 2 / median : 1;
}

/* {"config":0,"us":[...]}: the median of its samples. */
static void add_config(series *of, facts_span text)
{
    facts_span samples[MOST_SAMPLES];
    double us[MOST_SAMPLES];
    size_t n = 0;
    int64_t config;
    if (!facts_json_int(facts_json_member(text, "config"), &config) || config < -1 ||
        config + 1 >= MOST_CONFIGS)
        return;
    const facts_span list = facts_json_member(text, "us");
    if (!list.at || !facts_scan_array(list.at, list.length, samples, MOST_SAMPLES, &n) || n == 0 ||
        n > MOST_SAMPLES)
        return;
    for (size_t i = 0; i < n; i++)
        us[i] = strtod(samples[i].at, NULL);
    qsort(us, n, sizeof *us, by_value);
    series *s = &of[config + 1];
    if (s->count < FACTS_ROUNDS_MOST)
        s->us[s->count++] = (us[(n - 1) / 2] + us[n / 2]) / 2;
}

static void on_turn(facts_session *session, size_t target, size_t work, facts_span turn)
{
    facts_rounds *r = session->context;
    facts_span configs[MOST_CONFIGS];
    size_t n;
    (void)work;
    if (r->since_ms == 0)
        r->since_ms = facts_now_ms();
    r->turns++;
    const facts_span list = facts_json_member(turn, "configs");
    if (!list.at || !facts_scan_array(list.at, list.length, configs, MOST_CONFIGS, &n))
        return;
    for (size_t i = 0; i < n && i < MOST_CONFIGS; i++)
        add_config(r->of + target * MOST_CONFIGS, configs[i]);
}

static bool is_narrow(const facts_rounds *r)
{
    for (size_t i = 0; i < r->target_count * MOST_CONFIGS; i++) {
        series copy = r->of[i];
        if (copy.count && facts_median_uncertainty(copy.us, copy.count) > NARROW)
            return false;
    }
    return true;
}

static bool another_round(facts_session *session, size_t work, int round)
{
    facts_rounds *r = session->context;
    const int made = round + 1;
    const bool even = made % 2 == 0; /* each order equally often */
    (void)work;
    if (made < (r->wanted ? r->wanted : FACTS_ROUNDS_LEAST))
        return true;
    if (!r->wanted && made < FACTS_ROUNDS_MOST &&
        (!even || (!is_narrow(r) && facts_now_ms() - r->since_ms < MOST_MS)))
        return true;
    memset(r->of, 0, r->target_count * MOST_CONFIGS * sizeof *r->of);
    r->since_ms = 0;
    return false;
}

static void double_targets(facts_targets *targets)
{
    const size_t count = targets->count;
    for (size_t i = 0; i < count; i++) {
        const facts_target copy = targets->at[i];
        facts_targets_add(targets, &copy);
    }
}

facts_rounds *facts_rounds_begin(facts_session *session, bool twice)
{
    facts_rounds *r = calloc(1, sizeof *r);
    if (twice)
        double_targets(&session->targets);
    r->target_count = session->targets.count;
    r->wanted = session->options->rounds;
    r->of = calloc(r->target_count * MOST_CONFIGS, sizeof *r->of);
    session->another_round = another_round;
    session->on_turn = on_turn;
    session->context = r;
    return r;
}

size_t facts_rounds_turns(const facts_rounds *rounds)
{
    return rounds->turns;
}

void facts_rounds_free(facts_rounds *rounds)
{
    free(rounds->of);
    free(rounds);
}
