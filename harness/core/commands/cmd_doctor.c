/* facts doctor: what is here and what can be run with it. Each line says what was found, or what is
 * missing and how to get it. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

#include "builds/print_line.h"
#include "builds/python.h"
#include "commands.h"
#include "record/text.h"

static void line(bool json, const char *what, bool ok, const char *text, const char *remedy)
{
    facts_text out = { 0 };
    if (!json) {
        facts_print_line(stdout, "  %-10s %-3s %s%s%s", what, ok ? "ok" : "NO", text,
                         *remedy ? "; " : "", remedy);
    } else {
        facts_text_puts(&out, "{");
        facts_text_member(&out, "what", what);
        facts_text_member_bool(&out, "ok", ok);
        facts_text_member(&out, "text", text);
        facts_text_member_if(&out, "remedy", remedy);
        facts_text_close(&out);
        puts(out.data ? out.data : "");
        facts_text_free(&out);
    }
    fflush(stdout);
}

static void list_builds(bool json, const facts_builds *builds)
{
    for (size_t i = 0; i < builds->count; i++) {
        const facts_build *b = &builds->at[i];
        bool blind = b->needs_nvrtc && !b->nvrtc[0];
        char text[2 * FACTS_PATH + 64], remedy[160] = "";
        snprintf(text, sizeof text, "%s  %s (%s)%s%s", b->name, b->dir,
                 facts_origin_name(b->origin), b->needs_nvrtc && !blind ? "  NVRTC " : "",
                 b->needs_nvrtc && !blind ? b->nvrtc : "");
        if (blind)
            snprintf(remedy, sizeof remedy,
                     "it needs libnvrtc.so.%d: facts cudnn install %s brings one", b->cuda_major,
                     b->version);
        line(json, "cudnn", !blind, text, remedy);
    }
    if (!builds->count)
        line(json, "cudnn", false, "no build found", "facts cudnn install 9.20.0");
}

typedef struct proof {
    bool json;
    char text[512];
    char description[2048]; /* of a GPU, as a file of lib/devices would say it */
    char math[128];         /* what compiled our own kernels, or why there are none */
    bool has_math;
} proof;

static void on_proof_ready(facts_session *s, size_t target, const facts_line *ready)
{
    char name[128] = "";
    int64_t driver = 0, sm = 0, processors = 0;
    proof *p = s->context;
    facts_json_string(facts_line_get(ready, "device_name"), name, sizeof name);
    facts_json_int(facts_line_get(ready, "driver"), &driver);
    facts_json_int(facts_line_get(ready, "sm"), &sm);
    facts_json_int(facts_line_get(ready, "multiprocessors"), &processors);
    facts_json_string(facts_line_get(ready, "math_about"), p->math, sizeof p->math);
    (void)facts_json_bool(facts_line_get(ready, "math_kernels"), &p->has_math);
    facts_span description = facts_line_get(ready, "description");
    if (description.at && description.length < sizeof p->description)
        snprintf(p->description, sizeof p->description, "%.*s", (int)description.length,
                 description.at);
    if (s->targets.at[target].kind == FACTS_TARGET_GPU)
        snprintf(p->text, sizeof p->text, "%s, sm_%d, %d multiprocessors, driver %d.%d", name,
                 (int)sm, (int)processors, (int)(driver / 1000), (int)(driver % 1000 / 10));
}

/* Asks a worker for the case; what it says is one line. */
static bool prove(const facts_invocation *call, const char *what, const char *cudnn,
                  const char *device, facts_task task)
{
    const char *const words[] = { call->driver->proof };
    facts_options options = *call->options;
    proof p = { .json = options.json };
    bool json = options.json, ok = false;
    char text[1024];
    options.json = false;
    facts_session s = {
        .options = &options, .task = task, .call = call, .on_ready = on_proof_ready, .context = &p
    };
    int status = facts_session_ask(&s, words, 1, cudnn, device);
    if (status == 0) {
        const facts_cell *cell = facts_tally_cell(&s.tally, 0, 0);
        const char *why = facts_intern_text(s.tally.texts, cell->reason);
        ok = facts_verdict_is_good(cell->verdict);
        const facts_target *t = &s.targets.at[0];
        snprintf(text, sizeof text, "%s%s%s on %s: %s%s%s", p.text, p.text[0] ? "; " : "",
                 t->kind == FACTS_TARGET_CPU ? "our own backend" : t->build.name, t->device,
                 ok ? (task == FACTS_TASK_RUN ? "computed, and right" : "decided and compiled")
                    : facts_verdict_name(cell->verdict),
                 *why ? ": " : "", why);
        line(json, what, ok, text, "");
        if (p.description[0])
            line(json, "device", true, p.description, "");
        if (t->kind == FACTS_TARGET_CPU &&
            p.math[0]) { /* the library is the same for every target: printed once */
            snprintf(text, sizeof text, "%s%s",
                     p.has_math ? "our kernels by " : "the math backend is missing: ", p.math);
            line(json, "math", p.has_math, text, p.has_math ? "" : "./facts setup tries again");
        }
    }
    facts_session_free(&s);
    return ok;
}

static void list_parts(bool json)
{
    char path[FACTS_PATH], names[1024];
    const char *const parts[] = { "cases", "devices", "reports", "nulldriver" };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!facts_home_path(parts[i], path))
            line(json, parts[i], false, "not found",
                 "set FACTS_HOME to the project's folder, or build with ./facts");
    if (facts_cache_path("", path))
        line(json, "cache", true, path, "");
    else
        line(json, "cache", false, "no place for it", "set XDG_CACHE_HOME or HOME");
    line(json, "described", true, facts_device_names(names, sizeof names), "");
}

static bool check_reports(bool json)
{
    facts_error message = { 0 };
    const char *const words[] = { "-c", "import facts_reports, jinja2", NULL };
    bool ok = facts_python_run(words, &message) == 0;
    line(json, "reports", ok,
         ok ? "Python and Jinja2 are installed" : "the report package cannot be loaded",
         ok ? "" : "./facts sets up its own Python environment, or set FACTS_PYTHON");
    return ok;
}

/* The newest glibc that a program of this folder asks for. */
static int newest_glibc(void)
{
    static const char *const PROGRAMS[] = { "facts", "facts-worker" };
    char folder[FACTS_PATH], path[FACTS_PATH];
    int newest = 0;
    for (size_t i = 0; facts_program_dir(folder) && i < sizeof PROGRAMS / sizeof *PROGRAMS; i++) {
        int needed = facts_join(path, folder, PROGRAMS[i]) ? facts_glibc_needed(path) : 0;
        newest = needed > newest ? needed : newest;
    }
    return newest;
}

static bool can_load(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY);
    return handle && dlclose(handle) == 0;
}

/* For one who copies the programs to another machine. What is missing here is marked. */
static int list_needs(bool json)
{
    char text[160];
    bool libraries = can_load("libstdc++.so.6") && can_load("libz.so.1");
    line(json, "machine", true, FACTS_MACHINE " Linux", "");
    snprintf(text, sizeof text, "2.%d or newer; here: %s", newest_glibc(), gnu_get_libc_version());
    line(json, "glibc", true, text, "");
    line(json, "cudnn", libraries, "cuDNN needs libstdc++.so.6 and libz.so.1",
         libraries ? "" : "install libstdc++ and zlib");
    line(json, "python", true,
         "Python 3.9 or newer prints reports; with pip it installs cuDNN builds", "");
    bool reports = check_reports(json);
    line(
        json, "driver", true,
        "NVIDIA's driver 580 or newer runs cases on a GPU; described devices and the cpu need none",
        "");
    return libraries && reports ? FACTS_EXIT_OK : FACTS_EXIT_ENVIRONMENT;
}

int facts_command_doctor(const facts_invocation *call)
{
    if (call->options->bundle)
        return list_needs(call->options->json);
    bool json = call->options->json, numbers = false, decisions = false;
    facts_builds builds = { 0 };
    char index[16];
    facts_error message;
    if (facts_builds_discover(&builds, &message) != 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts doctor: %s", message.text);
    list_parts(json);
    list_builds(json, &builds);
    bool reports = check_reports(json);
    int gpus = facts_gpus_here();
    for (int i = 0; i < gpus && builds.count; i++) {
        snprintf(index, sizeof index, "%d", i);
        numbers |= prove(call, "gpu", "default", index, FACTS_TASK_RUN);
    }
    if (!gpus)
        line(json, "gpu", true,
             "none here: cuDNN can decide and compile for described devices; numbers need a GPU",
             "");
    if (builds.count)
        decisions = prove(call, "decide", "default", "h100-sxm", FACTS_TASK_PLAN);
    bool cpu = prove(call, "cpu", "default", "cpu", FACTS_TASK_RUN);
    char text[200];
    snprintf(text, sizeof text, "decide %s, run on a GPU %s, run on the CPU backend %s, report %s",
             decisions ? "yes" : "no", numbers ? "yes" : "no", cpu ? "yes" : "no",
             reports ? "yes" : "no");
    line(json, "can", decisions, text, decisions ? "" : "facts cudnn install 9.20.0");
    facts_builds_free(&builds);
    return decisions && cpu ? FACTS_EXIT_OK : FACTS_EXIT_ENVIRONMENT;
}
