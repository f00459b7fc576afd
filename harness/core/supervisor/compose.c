#include "compose.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AS_WORD(symbol, word, seconds) [FACTS_TASK_##symbol] = word,
static const char *const task_words[FACTS_TASK_COUNT] = { FACTS_TASK_LIST(AS_WORD) };
#undef AS_WORD

/* Members that the supervisor writes in every row: a worker's values of them are dropped. */
static const char *const own_keys[] = {
    "case",    "cudnn",   "build", "device", "sm",    "grade", "expectation",   "known",
    "wall_ms", "attempt", "run",   "group",  "calls", "more",  "verdict_before"
};

static bool is_ours(facts_span key)
{
    for (size_t i = 0; i < sizeof own_keys / sizeof own_keys[0]; i++)
        if (key.length == strlen(own_keys[i]) && memcmp(key.at, own_keys[i], key.length) == 0)
            return true;
    return false;
}

static bool key_is(facts_span key, const char *word)
{
    return key.length == strlen(word) && memcmp(key.at, word, key.length) == 0;
}

static void add_raw(facts_text *out, facts_span key, facts_span value)
{
    facts_text_add(out, "\"", 1);
    facts_text_add(out, key.at, key.length);
    facts_text_add(out, "\":", 2);
    facts_text_add(out, value.at, value.length);
    facts_text_add(out, ",", 1);
}

void facts_compose_row(facts_text *out, const facts_line *row, const facts_frame *frame)
{
    facts_text_puts(out, "{");
    facts_text_member(out, "case", frame->name);
    facts_text_member_if(out, "cudnn", frame->cudnn);
    facts_text_member(out, "build", frame->build);
    facts_text_member(out, "device", frame->device);
    if (frame->sm)
        facts_text_member_int(out, "sm", frame->sm);
    facts_text_member_if(out, "grade", frame->grade);
    if (!facts_line_get(row, "backend").at)
        facts_text_member_if(out, "backend", frame->backend);
    for (size_t i = 0; i < row->count; i++) {
        facts_member m = row->members[i];
        if (is_ours(m.key))
            continue;
        if (*frame->verdict && key_is(m.key, "verdict")) {
            facts_text_member(out, "verdict", frame->verdict);
            m.key = (facts_span){ "verdict_before", 14 };
        }
        add_raw(out, m.key, m.value);
    }
    if (*frame->verdict)
        facts_text_member(out, "note", frame->note);
    if (*frame->expectation)
        facts_text_format(out, "\"expectation\":%s,", frame->expectation);
    facts_text_puts(out, frame->known ? frame->known : "");
    if (frame->wall_ms >= 0)
        facts_text_format(out, "\"wall_ms\":%.3f,", frame->wall_ms);
    facts_text_member_int(out, "attempt", frame->attempt);
    facts_text_member_if(out, "run", frame->run);
    facts_text_member_if(out, "group", frame->group);
    if (frame->calls)
        facts_text_member_int(out, "calls", (int64_t)frame->calls);
    if (frame->more)
        facts_text_puts(out, "\"more\":true,");
    facts_text_close(out);
}

void facts_compose_request(facts_text *out, const facts_order *order, int64_t id, const char *name,
                           int from_config, bool fresh)
{
    facts_text_puts(out, "{");
    facts_text_member_int(out, "id", id);
    facts_text_member(out, "case", name);
    facts_text_member(out, "do", task_words[order->task]);
    facts_text_member_bool(out, "explain", order->explain);
    facts_text_member_int(out, "from_config", from_config);
    facts_text_member(out, "plan_dir", order->plan_dir);
    facts_text_member(out, "dump", order->dump);
    facts_text_member(out, "standalone", order->standalone ? order->standalone : "");
    if (order->expected)
        facts_text_member_bool(out, "expected", true);
    if (order->unguarded)
        facts_text_member_bool(out, "unguarded", true);
    facts_text_member_bool(out, "trace", order->trace);
    facts_text_member_bool(out, "first_bad_only", order->first_bad_only);
    if (order->another_round)
        facts_text_member_bool(out, "keep", true);
    if (fresh)
        facts_text_member_bool(out, "fresh", true);
    facts_text_close(out);
    facts_text_puts(out, "\n");
}

void facts_compose_turn(facts_text *out, int64_t id, const char *name)
{
    facts_text_puts(out, "{");
    facts_text_member_int(out, "id", id);
    facts_text_member(out, "case", name);
    facts_text_member(out, "do", "time");
    facts_text_close(out);
    facts_text_puts(out, "\n");
}

void facts_compose_time(facts_text *out, const facts_frame *frame, size_t target, int round,
                        facts_span turn)
{
    facts_text_puts(out, "{\"time\":{");
    facts_text_member(out, "run", frame->run);
    facts_text_member(out, "case", frame->name);
    facts_text_member(out, "build", frame->build);
    facts_text_member(out, "device", frame->device);
    facts_text_member_int(out, "side", (int64_t)target);
    facts_text_member_int(out, "round", round);
    facts_text_puts(out, "\"turn\":");
    facts_text_add(out, turn.at, turn.length);
    facts_text_puts(out, "}}");
}

void facts_compose_target(facts_text *out, const facts_order *order, const facts_target *target,
                          int gpu, const char *driver, int threads)
{
    static const char *const kinds[] = { "gpu", "described", "cpu" };
    facts_text_puts(out, "{\"target\":{");
    facts_text_member(out, "cudnn_dir", target->build.dir);
    facts_text_member(out, "nvrtc", target->build.needs_nvrtc ? target->build.nvrtc : "");
    facts_text_member(out, "driver", target->kind == FACTS_TARGET_DESCRIBED ? driver : "");
    facts_text_member(out, "version", target->build.version);
    facts_text_member(out, "build", target->build.name);
    facts_text_puts(out, "\"device\":{");
    facts_text_member(out, "kind", kinds[target->kind]);
    facts_text_member_int(out, "ordinal", target->kind == FACTS_TARGET_GPU ? gpu : 0);
    facts_text_member(out, "name", target->device);
    facts_text_member(out, "json", target->described.json);
    facts_text_close(out);
    facts_text_puts(out, ",");
    facts_text_member_int(out, "threads", threads);
    facts_text_member_int(out, "supervisor", getpid());
    facts_text_member(out, "fault", order->fault);
    if (order->plan_dir && order->plan_dir[0])
        facts_text_member_bool(out, "plans", true);
    if (order->oracle && order->oracle[0])
        facts_text_member(out, "oracle", order->oracle);
    facts_text_close(out);
    facts_text_puts(out, "}\n");
}

void facts_compose_start(facts_text *out, const char *run, const char *name, const char *build,
                         const char *device, int gpu, int attempt, int from_config)
{
    facts_text_puts(out, "{\"start\":{");
    facts_text_member(out, "run", run);
    facts_text_member(out, "case", name);
    facts_text_member(out, "build", build);
    facts_text_member(out, "device", device);
    if (gpu >= 0)
        facts_text_member_int(out, "gpu", gpu);
    facts_text_member_int(out, "attempt", attempt);
    facts_text_member_int(out, "config", from_config);
    facts_text_close(out);
    facts_text_puts(out, "}");
}

/* The last line that is not blank. */
static facts_span last_line(const char *text)
{
    size_t end = strlen(text);
    while (end && (text[end - 1] == '\n' || text[end - 1] == '\r' || text[end - 1] == ' '))
        end--;
    size_t start = end;
    while (start && text[start - 1] != '\n')
        start--;
    return (facts_span){ text + start, end - start };
}

/* sigabbrev_np() needs glibc 2.32. */
static const char *signal_name(int signal)
{
#define AS_NAME(name) [SIG##name] = #name,
    static const char *const names[] = {
        AS_NAME(HUP) AS_NAME(INT) AS_NAME(QUIT) AS_NAME(ILL) AS_NAME(TRAP) AS_NAME(ABRT)
            AS_NAME(BUS) AS_NAME(FPE) AS_NAME(KILL) AS_NAME(USR1) AS_NAME(SEGV) AS_NAME(USR2)
                AS_NAME(PIPE) AS_NAME(ALRM) AS_NAME(TERM) AS_NAME(XCPU) AS_NAME(XFSZ) AS_NAME(SYS)
    };
#undef AS_NAME
    return signal > 0 && (size_t)signal < sizeof names / sizeof *names && names[signal]
               ? names[signal]
               : "?";
}

void facts_describe_death(char *out, size_t capacity, const facts_death *death)
{
    char how[96];
    if (death->too_long)
        snprintf(how, sizeof how, "the worker's reply was longer than %zu bytes", FACTS_REPLY_MAX);
    else if (death->late)
        snprintf(how, sizeof how, "the worker did not answer in time%s",
                 death->abandoned ? ", and could not be killed" : "");
    else if (death->signal)
        snprintf(how, sizeof how, "the worker died of SIG%s", signal_name(death->signal));
    else
        snprintf(how, sizeof how, "the worker exited with status %d", death->status);
    facts_span last = last_line(death->stderr_tail ? death->stderr_tail : "");
    if (last.length > 300)
        last.length = 300;
    snprintf(out, capacity, "%s%s%.*s", how, last.length ? ": " : "", (int)last.length, last.at);
}

void facts_compose_evidence(facts_text *out, const facts_evidence *evidence)
{
    const facts_death *death = evidence->death;
    char status[32] = "", text[512] = "";
    if (death && death->signal)
        snprintf(status, sizeof status, "SIG%s", signal_name(death->signal));
    else if (death)
        snprintf(status, sizeof status, "EXIT_%d", death->status);
    if (death && !evidence->text)
        facts_describe_death(text, sizeof text, death);
    facts_text_puts(out, "{");
    facts_text_member(out, "verdict", evidence->verdict);
    if (evidence->config >= 0)
        facts_text_member_int(out, "config", evidence->config);
    facts_text_puts(out, "\"reason\":{");
    facts_text_member_if(out, "class", evidence->class_word);
    facts_text_member_if(out, "status", status);
    facts_text_member(out, "text", evidence->text ? evidence->text : text);
    facts_text_member_if(out, "remedy", evidence->remedy);
    facts_text_close(out);
    facts_text_puts(out, ",");
    facts_text_member_if(out, "stage", evidence->stage);
    if (death && death->signal)
        facts_text_member_int(out, "signal", death->signal);
    if (death)
        facts_text_member_if(out, "stderr", death->stderr_tail);
    facts_text_close(out);
}
