/* The softmax on the CPU, by two engines. From version 9.22 on the newer one comes first. Planted faults: it forgets the last
 * column where there are 16 n + 1, and it refuses long logarithms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "softmax.h"
#include "worker/answer_requests.h"

enum { IN_PASSES, ONLINE, ENGINES };
#define NEWER 922
#define LONGEST_LOG 1024

struct facts_worker {
    int version; /* 100 * major + minor of the build; 0: there is none */
    bool used;
};

typedef struct softmax_job {
    facts_job core;
    softmax_problem problem;
    bool decided, judged;
    int32_t engine;
    float *x, *y;
    double ratio, got, want, bound; /* the worst number */
    int64_t worst[2], wrong;
} softmax_job;

/* ---- the target ---- */

/* The version that the library of a build says of itself. */
static int version_of(const char *folder)
{
    char path[FACTS_REQUEST_PATH + 64], text[4096];
    int major = 0, minor = 0;
    snprintf(path, sizeof path, "%s/libcudnn_engines_runtime_compiled.so.9", folder);
    FILE *file = fopen(path, "re");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    const char *at = strstr(text, "cudnn_version != (");
    if (at)
        (void)sscanf(at, "cudnn_version != (%d * 10000 + %d", &major, &minor);
    if (file)
        (void)fclose(file);
    return 100 * major + minor;
}

static bool open_target(facts_worker **out, const facts_target_request *request, json_t **reply)
{
    *out = calloc(1, sizeof **out);
    if (request->device != FACTS_DEVICE_CPU)
        (*out)->version = version_of(request->cudnn_dir);
    if (request->device == FACTS_DEVICE_CPU || (*out)->version)
        return true;
    *reply = json_pack("{s:{s:s,s:s,s:s}}", "failed", "class", "environment", "text",
                       "this build says no version", "remedy", "give another build");
    return false;
}

static bool probe(facts_worker *worker, json_t **reply)
{
    char version[24] = "";
    if (worker->version)
        snprintf(version, sizeof version, "%d.%d.0", worker->version / 100, worker->version % 100);
    *reply = json_pack("{s:{s:s,s:i,s:[],s:f}}", "ready", "cudnn", version, "sm", 0, "libraries",
                       "start_ms", 1.0);
    return true;
}

static facts_health health(const facts_worker *worker)
{
    return worker->used ? FACTS_HEALTH_USED : FACTS_HEALTH_FRESH;
}

static void close_target(facts_worker *worker)
{
    free(worker);
}

/* ---- a case, up to its configurations ---- */

static int32_t first_engine(const softmax_job *j)
{
    const int version = j->core.worker->version;
    return version && version < NEWER ? IN_PASSES : ONLINE;
}

static bool begin(facts_job *job, const facts_case *c)
{
    softmax_job *j = (softmax_job *)job;
    const char *why = softmax_resolve(&j->problem, c);
    j->engine = -1;
    return why == NULL || facts_job_refuse(job, "bad_problem", why);
}

static bool decide(facts_job *job)
{
    softmax_job *j = (softmax_job *)job;
    if (first_engine(j) == ONLINE && j->problem.log && j->problem.columns > LONGEST_LOG)
        return facts_job_refuse(job, "unsupported", "log: more than 1024 columns");
    j->decided = true;
    return true;
}

static int32_t configurations(facts_job *job, int32_t *first)
{
    const softmax_job *j = (const softmax_job *)job;
    *first = j->problem.engine == SOFTMAX_ALL ? 0 : -1;
    if (j->problem.engine < ENGINES)
        return *first == 0 ? ENGINES : 1;
    facts_job_refuse(job, "unsupported", "engine: there is no such engine");
    return 0;
}

static bool choose(facts_job *job)
{
    softmax_job *j = (softmax_job *)job;
    const int32_t first = first_engine(j);
    j->engine = job->config >= 0         ? (job->config == 0 ? first : ENGINES - 1 - first)
                : j->problem.engine >= 0 ? (int32_t)j->problem.engine
                                         : first;
    return true;
}

/* ---- a configuration ---- */

static float rounded(const softmax_problem *p, double value)
{
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (p->bf16 && isfinite(number))
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* A sum of uniform numbers, as a normal one. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005U + 1442695040888963407U;
        sum += (double)(*state >> 11) * 0x1p-53;
    }
    return sum;
}

static bool prepare(facts_job *job)
{
    softmax_job *j = (softmax_job *)job;
    const softmax_problem *p = &j->problem;
    const size_t count = (size_t)(p->rows * p->columns);
    uint64_t state = p->seed;
    j->x = malloc(count * sizeof *j->x);
    j->y = malloc(count * sizeof *j->y);
    if (!j->x || !j->y)
        return facts_job_end(job, FACTS_VERDICT_INCONCLUSIVE, "no_memory",
                             "no memory for the case");
    for (size_t i = 0; i < count; i++) {
        const double drawn = normal(&state);
        const bool masked = p->data == SOFTMAX_MASKED && i % (size_t)p->columns != 0 && drawn < 0;
        j->x[i] = rounded(p, masked                     ? -INFINITY
                             : p->data == SOFTMAX_EQUAL ? 1
                             : p->data == SOFTMAX_LARGE ? 1000 * drawn
                                                        : drawn);
        j->y[i] = NAN;
    }
    return true;
}

static void one_row(const softmax_job *j, const float *x, float *y)
{
    const softmax_problem *p = &j->problem;
    const int64_t n = p->columns;
    const int64_t seen = j->engine == ONLINE && n > 1 && n % 16 == 1 ? n - 1 : n; /* planted */
    const float scale = (float)p->scale;
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; j->engine == IN_PASSES && i < n; i++)
        most = fmaxf(most, scale * x[i]);
    for (int64_t i = 0; i < seen; i++) {
        const float now = fmaxf(most, scale * x[i]);
        sum = (now > most ? sum * expf(most - now) : sum) + expf(scale * x[i] - now);
        most = now;
    }
    for (int64_t i = 0; i < n; i++) {
        const float above = scale * x[i] - most;
        y[i] = rounded(p, p->log ? above - logf(sum) : expf(above) / sum);
    }
}

static bool execute(facts_job *job)
{
    softmax_job *j = (softmax_job *)job;
    job->say(job, "exec");
    job->worker->used = true;
    for (int64_t row = 0; row < j->problem.rows; row++)
        one_row(j, j->x + row * j->problem.columns, j->y + row * j->problem.columns);
    return true;
}

/* A scaled number has an error of one rounding of its size; the difference from the largest and the
 * exponential have theirs, and a sum of n positive numbers n. */
static void judge_row(softmax_job *j, int64_t row)
{
    const softmax_problem *p = &j->problem;
    const float *x = j->x + row * p->columns, *y = j->y + row * p->columns;
    const double u = 0x1p-24, step = p->bf16 ? 0x1p-8 : u;
    double most = -INFINITY, size = 0, sum = 0;
    for (int64_t i = 0; i < p->columns; i++) {
        most = fmax(most, p->scale * x[i]);
        size = isfinite(x[i]) ? fmax(size, fabs(p->scale * x[i])) : size;
    }
    for (int64_t i = 0; i < p->columns; i++)
        sum += exp(p->scale * x[i] - most);
    const double relative = u * (6 * size + 2 * (double)p->columns + 8);
    for (int64_t i = 0; i < p->columns; i++) {
        const double above = p->scale * x[i] - most,
                     want = p->log ? above - log(sum) : exp(above) / sum, got = y[i],
                     bound =
                         (p->log ? relative : relative * want) + 2 * step * fabs(want) + 0x1p-126,
                     ratio = want == got ? 0 : fabs(got - want) / bound;
        j->wrong += !(ratio <= 1);
        if (ratio <= j->ratio)
            continue;
        j->ratio = ratio, j->got = got, j->want = want, j->bound = bound;
        j->worst[0] = row, j->worst[1] = i;
    }
}

static void judge(facts_job *job)
{
    softmax_job *j = (softmax_job *)job;
    job->say(job, "judge");
    j->ratio = j->got = j->want = j->bound = 0;
    j->wrong = j->worst[0] = j->worst[1] = 0;
    for (int64_t row = 0; row < j->problem.rows; row++)
        judge_row(j, row);
    j->judged = true;
    job->result.verdict = j->wrong ? FACTS_VERDICT_WRONG : FACTS_VERDICT_PASS;
}

/* ---- the row ---- */

static void describe(facts_job *job, json_t *row)
{
    const softmax_job *j = (const softmax_job *)job;
    json_object_set_new(row, "backend", json_string("cpu"));
    if (job->result.refused) /* the engines say no, not FACTS */
        facts_put_reason(row, "status", "SOFTMAX_NOT_SUPPORTED");
    if (!j->decided)
        return;
    json_t *engines = json_array();
    for (int i = 0; i < ENGINES; i++)
        json_array_append_new(engines,
                              json_pack("{s:s,s:i,s:i}", "mode", "A", "index",
                                        i == 0 ? first_engine(j) : ENGINES - 1 - first_engine(j),
                                        "config", i));
    json_object_set_new(row, "supported", json_true());
    json_object_set_new(row, "engines", engines);
    if (j->engine >= 0)
        json_object_set_new(row, "engine", json_integer(j->engine));
    if (job->config >= 0)
        json_object_set_new(row, "config", json_integer(job->config));
    if (j->judged)
        json_object_set_new(row, "errors",
                            json_pack("{s:{s:f,s:s,s:[i,i,I,I],s:f,s:f,s:f,s:I,s:I}}", "y", "ratio",
                                      j->ratio, "gate", "t1", "worst_index", 0, 0,
                                      (json_int_t)j->worst[0], (json_int_t)j->worst[1], "got",
                                      j->got, "want", j->want, "bound", j->bound, "checked",
                                      (json_int_t)(j->problem.rows * j->problem.columns), "wrong",
                                      (json_int_t)j->wrong));
}

static bool leave(facts_job *job, bool keep, bool last)
{
    softmax_job *j = (softmax_job *)job;
    (void)keep, (void)last;
    free(j->x);
    free(j->y);
    j->x = j->y = NULL;
    j->judged = false;
    return false;
}

static json_t *turn(facts_job *job)
{
    (void)job;
    return NULL;
}

static void end(facts_job *job)
{
    (void)job;
}

static const facts_worker_driver driver = { .language = &softmax_language,
                                            .job_bytes = sizeof(softmax_job),
                                            .open = open_target,
                                            .probe = probe,
                                            .health = health,
                                            .close = close_target,
                                            .begin = begin,
                                            .decide = decide,
                                            .configurations = configurations,
                                            .choose = choose,
                                            .prepare = prepare,
                                            .execute = execute,
                                            .judge = judge,
                                            .describe = describe,
                                            .leave = leave,
                                            .turn = turn,
                                            .end = end };

int main(void)
{
    return facts_worker_run(&driver);
}
