/* A worker that misbehaves on demand. It speaks PROTOCOL.md; the target's "fault" says where it
 * goes wrong: rules joined by ';', each WHAT or WHAT@PART, where PART is a piece of a case's name
 * ("" fits all). Deterministic: the same case goes wrong in every process. */
#include <glob.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONFIGS 4

static char fault[1024], alive[64], version[32];
static FILE *replies;
static int gpu;
static long ordinal; /* of this worker among those of its GPU */

/* Is there a rule WHAT (for this case)? */
static bool has_rule(const char *what, const char *name)
{
    char copy[sizeof fault];
    memcpy(copy, fault, sizeof copy);
    char *rest = copy;
    for (char *rule; (rule = strsep(&rest, ";")) != NULL;) {
        char *part = strchr(rule, '@');
        if (part)
            *part++ = '\0';
        if (strcmp(rule, what) == 0 && (!part || (name && strstr(name, part))))
            return true;
    }
    return false;
}

static void nap(double seconds)
{
    nanosleep(
        &(struct timespec){ (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) },
        NULL);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(replies, format, args);
    va_end(args);
    fflush(replies);
}

static void hang(void)
{
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
}

/* Hangs as where a driver is stuck: nobody learns of its end while a tracer does not look. */
static void be_undead(void)
{
    pid_t tracer = fork(), me = getppid();
    if (tracer == 0) {
        setsid(), close_range(0, ~0U, 0);
        nap(ptrace(PTRACE_SEIZE, me, NULL, NULL) ? 0 : 60);
        _exit(0);
    }
    prctl(PR_SET_PTRACER, tracer);
    hang();
}

static void die_by(int number)
{
    fputs("fake worker: about to die\n", stderr);
    fflush(stderr);
    signal(number, SIG_DFL);
    raise(number);
    pause();
}

static void be_gone(void)
{
    unlink(alive);
}

static bool is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

static void touch(const char *name)
{
    FILE *file = fopen(name, "a");
    if (file)
        fclose(file);
}

/* Tests wait for moments and not for times. What waits here for another worker gives up after a
 * minute, and the test fails. */
#define MINUTE(condition)                                                                          \
    for (int waited = 0; waited < 12000 && !(condition); waited++)                                 \
    nap(0.005)

/* A GPU with room for one worker: each has a file while it lives. One that was killed leaves it,
 * and takes no room. */
static void be_alive(void)
{
    atexit(be_gone);
    snprintf(alive, sizeof alive, "alive.%d.%d", gpu, (int)getpid());
    touch(alive);
}

static bool has_company(void)
{
    char pattern[32];
    glob_t found = { 0 };
    size_t living = 0;
    snprintf(pattern, sizeof pattern, "alive.%d.*", gpu);
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        living += kill((pid_t)atol(strrchr(found.gl_pathv[i], '.') + 1), 0) == 0;
    globfree(&found);
    return living > 1;
}

/* A file with a character for each time. The number of them, this one included. */
static long count_in(const char *word, int of)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%d", word, of);
    FILE *file = fopen(name, "a+");
    if (!file)
        return 0;
    fputc('.', file);
    const long count = ftell(file);
    fclose(file);
    return count;
}

static long counted(const char *word, int of)
{
    char name[32];
    struct stat info;
    snprintf(name, sizeof name, "%s.%d", word, of);
    return stat(name, &info) == 0 ? (long)info.st_size : 0;
}

/* Another process takes the GPU's memory when the first worker has ended; the third that starts
 * then finds room. */
static bool is_taken(void)
{
    const long count = count_in("starts", gpu);
    return count == 2 || count == 3;
}

static void start(const json_t *target)
{
    snprintf(fault, sizeof fault, "%s", json_string_value(json_object_get(target, "fault")));
    snprintf(version, sizeof version, "%s", json_string_value(json_object_get(target, "version")));
    gpu = (int)json_integer_value(json_object_get(json_object_get(target, "device"), "ordinal"));
    if (has_rule("exit_before_ready", NULL)) {
        fputs("fake worker: no library\n", stderr);
        exit(9);
    }
    if (has_rule("failed", NULL)) {
        say("{\"failed\":{\"class\":\"environment\",\"text\":\"no driver\",\"remedy\":\"install "
            "one\"}}\n");
        exit(3);
    }
    if (has_rule("room_for_one", NULL) || has_rule("start_for_one", NULL) ||
        strstr(fault, "refuse_late"))
        be_alive();
    ordinal = count_in("born", gpu);
    if (has_rule("start_for_none", NULL) || (has_rule("start_after_pauses", NULL) && is_taken()) ||
        (has_rule("start_for_one", NULL) && has_company())) {
        say("{\"failed\":{\"class\":\"no_memory\",\"text\":\"no GPU 0: out of "
            "memory\",\"remedy\":\"\"}}\n");
        exit(3);
    }
    if (has_rule("noise_at_start", NULL))
        say("cuDNN says hello\n\xff\xfe\n");
    if (has_rule("gpu1_late", NULL) && gpu == 1)
        nap(0.5);
    const bool later = is_there("ready.once");
    say("{\"ready\":{\"cudnn\":\"%s\",\"sm\":90,\"driver\":0,\"device_name\":\"Fake "
        "%s\",\"uuid\":\"\","
        "\"multiprocessors\":1,\"libraries\":[{\"path\":\"/a/libcudnn.so.9\",\"bytes\":1,"
        "\"in_build\":true,\"file\":\"%s\"}],%s\"start_ms\":1.0,\"calibration\":\"9.19.0\"}}\n",
        later && has_rule("later_version", NULL) ? "9.19.1" : "9.20.0",
        gpu == 1 && has_rule("gpu1_other", NULL) ? "80" : "90",
        later && has_rule("later_file", NULL) ? "2" : "1",
        has_rule("small_gpu", NULL) ? "\"memory_free\":6000000000,"
                                    : ""); /* one worker and a half */
    if (has_rule("later_version", NULL) || has_rule("later_file", NULL))
        touch("ready.once");
}

static void flood(void)
{
    for (int i = 0; i < 20000; i++)
        fprintf(
            stderr,
            "line %d of a flood that nobody asked for, and that must not fill anybody's memory\n",
            i);
}

/* The first case of a worker waits until two workers of one GPU are in a case. With meet_later the
 * very first worker does not. */
static void meet(void)
{
    static bool met;
    if (met || (has_rule("meet_later", NULL) && ordinal == 1))
        return;
    met = true;
    count_in("met", gpu);
    MINUTE(counted("met", 0) > 1 || counted("met", 1) > 1);
}

/* Two GPUs, each with one worker: rules say which of them takes the next case. */
static void take_the_case(void)
{
    if (has_rule("in_step", NULL)) { /* neither is a case ahead of the other */
        count_in("asked", gpu);
        MINUTE(counted("asked", 1 - gpu) >= counted("asked", gpu));
    }
    if (has_rule("gpu1_last",
                 NULL)) { /* GPU 1 is busy with one of twelve cases until GPU 0 has the others */
        count_in("asked", gpu);
        MINUTE(gpu == 0 || counted("asked", 0) == 11);
    }
}

/* FOLDER/held has the names of these cases. Each waits until the test makes FOLDER/go, or kills
 * this worker. */
static void hold(const char *name)
{
    FILE *file = fopen("held", "a");
    if (file) {
        fprintf(file, "%s.\n", name);
        fclose(file);
    }
    while (!is_there("go"))
        nap(0.005);
}

static void misbehave(const char *name, int64_t id, int served)
{
    if (has_rule("slow", name))
        nap(0.02);
    if (has_rule("slow_first", name) && served == 0)
        nap(0.5);
    if (strstr(fault, "meet"))
        meet();
    take_the_case();
    if (has_rule("hold", name))
        hold(name);
    if (has_rule("noise", name))
        say("{\"id\":1,\n]]]\n\n{\"id\":-1,\"row\":{\"verdict\":\"pass\"},\"last\":true}\nabc\n");
    if (has_rule("flood", name))
        flood();
    if (has_rule("crash", name))
        die_by(SIGSEGV);
    if (has_rule("kill", name))
        die_by(SIGKILL);
    if (has_rule("exit", name))
        exit(7);
    if (has_rule("hang", name))
        hang();
    if (has_rule("undead", name))
        be_undead();
    if (has_rule("nonsense", name)) {
        say("{\"id\":%lld,\"row\":{\"colour\":\"blue\"},\"last\":true}\n", (long long)id);
    }
    if (has_rule("long", name)) {
        for (int i = 0; i < 6 << 20; i++)
            fputc('x', replies);
        say("\n");
    }
    if (has_rule("partial", name)) {
        say("{\"id\":%lld,\"row\":{\"verdict\":\"pa", (long long)id);
        die_by(SIGABRT);
    }
}

/* Waits until it has company, and until it is alone again. Once. */
static bool lost_company(void)
{
    if (is_there("lost"))
        return false;
    MINUTE(counted("born", gpu) > 1);
    const bool had = counted("born", gpu) > 1;
    MINUTE(!has_company());
    touch("lost");
    return had;
}

/* The request in hand has "fresh". */
static bool fresh;

static void answer(const char *name, int64_t id, int config, bool last, bool bye)
{
    if (has_rule("no_room", name) || (has_rule("room_for_one", name) && has_company()) ||
        (config == 0 && has_rule("refuse_late", name) && lost_company())) {
        say("{\"id\":%lld,\"row\":{\"verdict\":\"inconclusive\",\"reason\":{\"class\":\"no_"
            "memory\",\"text\":\"no "
            "memory\"}}%s%s}\n",
            (long long)id, last ? ",\"last\":true" : "", bye ? ",\"bye\":true" : "");
        return;
    }
    const bool refuses = has_rule("refuse", name) || (fresh && has_rule("refuse_fresh", name));
    const char *verdict = has_rule("wrong", name) ? "wrong" : refuses ? "unsupported" : "pass";
    say("{\"id\":%lld,\"row\":{\"backend\":\"cudnn\",\"verdict\":\"%s\",\"supported\":true,"
        "\"engine\":%d,\"config\":%d,"
        "\"engines\":[{\"mode\":"
        "\"A\",\"index\":6,\"config\":0}],\"reason\":{\"class\":\"%s\",\"text\":\"because\"}}%"
        "s%s}\n",
        (long long)id, verdict, config, config,
        strcmp(verdict, "unsupported") == 0 ? "unsupported" : "none", last ? ",\"last\":true" : "",
        bye ? ",\"bye\":true" : "");
}

/* One turn: every configuration takes 100 us, 2 % more or less from launch to launch; with
 * slow_build@VERSION those of that version half as much again. */
static void take_turn(const char *name, int64_t id)
{
    static unsigned state = 1;
    const double base = has_rule("slow_build", version) ? 150 : 100;
    if (has_rule("crash_turn", name))
        die_by(SIGSEGV);
    if (has_rule("no_turn", name)) {
        say("{\"id\":%lld,\"none\":true,\"last\":true}\n", (long long)id);
        return;
    }
    fprintf(replies, "{\"id\":%lld,\"time\":{\"configs\":[", (long long)id);
    for (int config = 0; config < (strstr(name, "engine=all") ? CONFIGS : 1); config++) {
        fprintf(replies, "%s{\"config\":%d,\"launches\":3,\"us\":[", config ? "," : "", config);
        for (int i = 0; i < 5; i++) {
            state = state * 1664525u + 1013904223u;
            fprintf(replies, "%s%.3f", i ? "," : "", base + (double)(state >> 16) / 16384 - 2);
        }
        fputs("]}", replies);
    }
    fputs("],\"flops\":1e9},\"last\":true}\n", replies);
    fflush(replies);
}

static void all_configs(const char *name, int64_t id, int from)
{
    for (int config = from; config < CONFIGS; config++) {
        char rule[32];
        say("{\"id\":%lld,\"stage\":\"exec\",\"config\":%d}\n", (long long)id, config);
        snprintf(rule, sizeof rule, "late_config%d", config);
        if (has_rule(rule, name)) {
            say("{\"id\":%lld,\"stage\":\"judge\",\"config\":%d}\n", (long long)id, config);
            hang();
        }
        snprintf(rule, sizeof rule, "crash_config%d", config);
        if (has_rule(rule, name))
            die_by(SIGSEGV);
        snprintf(rule, sizeof rule, "bye_config%d", config);
        const bool bye = has_rule(rule, name);
        answer(name, id, config, config == CONFIGS - 1, bye);
        if (bye)
            exit(0);
    }
    if (from >= CONFIGS) {
        say("{\"id\":%lld,\"none\":true,\"last\":true}\n", (long long)id);
    }
}

static void serve(const json_t *request)
{
    static int served;
    const char *name = json_string_value(json_object_get(request, "case"));
    int64_t id = json_integer_value(json_object_get(request, "id"));
    int from = (int)json_integer_value(json_object_get(request, "from_config"));
    bool bye = has_rule("bye", name);
    fresh = json_is_true(json_object_get(request, "fresh"));
    served = fresh ? 0 : served; /* facts-worker starts itself again */
    if (strcmp(json_string_value(json_object_get(request, "do")), "time") == 0) {
        take_turn(name, id);
        return;
    }
    if (has_rule("long_start", name) || has_rule("crash_start", name)) {
        say("{\"id\":%lld,\"stage\":\"start\"}\n", (long long)id);
        if (has_rule("crash_start", name))
            die_by(SIGSEGV);
        nap(4);
    }
    fprintf(replies, "{\"id\":%lld,\"stage\":\"decide\"}\n", (long long)id);
    if (has_rule("late_reference", name)) {
        say("{\"id\":%lld,\"stage\":\"reference\"}\n", (long long)id);
        hang();
    }
    if (has_rule("no_memory", name)) /* as facts-worker ends: words/worker_exit.h */
        exit(71);
    if (has_rule("no_channel", name))
        exit(74);
    if (has_rule("long_reference", name)) {
        say("{\"id\":%lld,\"stage\":\"reference\"}\n", (long long)id);
        nap(4);
        say("{\"id\":%lld,\"stage\":\"exec\"}\n", (long long)id);
        nap(4);
    }
    fflush(replies);
    misbehave(name, id, served);
    if (served++ && has_rule("again", name)) {
        say("{\"id\":%lld,\"again\":true}\n", (long long)id);
        exit(0);
    }
    if (strstr(name, "engine=all"))
        all_configs(name, id, from);
    else
        answer(name, id, 0, true, bye);
    if (bye)
        exit(0);
}

int main(void)
{
    static char line[1 << 20];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    replies = fdopen(dup(1), "w");
    if (!replies)
        return 1;
    dup2(2, 1);
    while (fgets(line, sizeof line, stdin)) {
        json_t *request = json_loads(line, 0, NULL);
        json_t *target = json_object_get(request, "target");
        if (target)
            start(target);
        else if (request)
            serve(request);
        json_decref(request);
    }
    if (has_rule("exit_crash", NULL))
        die_by(SIGSEGV);
    if (has_rule("exit_hang", NULL))
        hang();
    if (has_rule("exit_status", NULL))
        return 5;
    return 0;
}
