#include "stored.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builds/sha256.h"
#include "case/words/case_text.h"
#include "store/answers.h"

#define FILES_MOST 64

/* ---- what an answer depends on ----------------------------------------------------------------------------------------------- */

static bool add_file(facts_supervision *run, facts_text *key, const char *what, const char *path)
{
    char content[33];
    if (!facts_answers_content(run->order->store, path, content))
        return false;
    facts_text_member(key, what, content);
    return true;
}

/* The libraries of a folder whose names begin so, by name: wherever the folder lies. False: none, or one cannot be read. */
static bool add_folder(facts_supervision *run, facts_text *key, const char *folder, const char *prefix)
{
    char *names[FILES_MOST], path[FACTS_PATH];
    size_t count = 0;
    bool ok = true;
    DIR *open = opendir(folder);
    if (!open)
        return false;
    for (struct dirent *entry; ok && (entry = readdir(open)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || !strstr(entry->d_name, ".so"))
            continue;
        ok = count < FILES_MOST && (names[count] = strdup(entry->d_name)) != NULL;
        count += ok;
    }
    closedir(open);
    qsort(names, count, sizeof *names, facts_by_text);
    for (size_t i = 0; i < count; i++) {
        ok = ok && facts_join(path, folder, names[i]) && add_file(run, key, names[i], path);
        free(names[i]);
    }
    return ok && count > 0;
}

static bool add_build(facts_supervision *run, facts_text *key, const facts_build *build)
{
    char folder[FACTS_PATH];
    facts_text_member(key, "version", build->version);
    facts_text_member_int(key, "jit", build->kind == FACTS_BUILD_JIT || build->three_libraries);
    if (!add_folder(run, key, build->dir, "libcudnn"))
        return false;
    if (!build->needs_nvrtc)
        return true;
    snprintf(folder, sizeof folder, "%s", build->nvrtc);
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return add_folder(run, key, folder, "libnvrtc");
}

/* All that an answer depends on, but the case. */
static bool add_all(facts_supervision *run, facts_text *key, const facts_target *target)
{
    const facts_order *order = run->order;
    facts_text_puts(key, "{");
    facts_text_member_int(key, "answers", 1); /* of this text and of how answers are kept */
    facts_text_member_int(key, "task", order->task);
    facts_text_member_int(key, "explain", order->explain);
    facts_text_member_int(key, "first_bad_only", order->first_bad_only);
    facts_text_member(key, "device", target->described.name);
    facts_text_member(key, "description", target->described.json);
    facts_text_member(key, "errata", run->errata ? run->errata : "");
    return add_file(run, key, "worker", order->worker) && add_file(run, key, "driver", run->driver) &&
           add_build(run, key, &target->build) && !key->failed;
}

void facts_stored_open(facts_supervision *run, size_t target)
{
    facts_target_state *state = &run->targets[target];
    facts_text key = { 0 };
    facts_sha256 hash;
    uint8_t digest[32];
    char hex[65];
    if (!run->order->store || state->target->kind != FACTS_TARGET_DESCRIBED)
        return;
    if (add_all(run, &key, state->target)) {
        facts_sha256_init(&hash);
        facts_sha256_update(&hash, key.data, key.length);
        facts_sha256_final(&hash, digest);
        for (int i = 0; i < 32; i++)
            snprintf(hex + 2 * i, 3, "%02x", digest[i]);
        state->scope = facts_answers_scope(run->order->store, hex);
    }
    facts_text_free(&key);
}

/* ---- answered from the store ------------------------------------------------------------------------------------------------- */

/* The target line, once, as its worker would have brought it. */
static bool tell_ready(facts_supervision *run, size_t target)
{
    facts_target_state *state = &run->targets[target];
    facts_text ready = { 0 };
    if (!state->told && facts_answers_ready(run->order->store, state->scope, &ready))
        facts_target_ready(run, target, (facts_span){ ready.data, ready.length }, true);
    facts_text_free(&ready);
    return state->told;
}

/* One line of what is kept: the milliseconds that it took, a blank, the worker's row. */
static bool write_kept(facts_supervision *run, size_t target, size_t work, const char *line, const char *end, const char *asked,
                       bool more)
{
    char *row;
    double wall_ms = strtod(line, &row);
    return row < end && *row == ' ' &&
           facts_write_row(run, target, work, row + 1, (size_t)(end - row - 1),
                           (facts_row_extra){ .wall_ms = wall_ms, .more = more, .stored = asked });
}

bool facts_stored_answer(facts_supervision *run, size_t target, size_t work)
{
    const facts_order *order = run->order;
    facts_target_state *state = &run->targets[target];
    facts_item *item = &state->items[work];
    char asked[24];
    if (!state->scope || order->fresh || order->work[work].fresh || order->work[work].alone || item->from_config > 0 ||
        run->stopping)
        return false;
    facts_text_clear(&run->kept);
    if (!facts_answers_get(order->store, state->scope, order->work[work].name, &run->kept, asked) || !tell_ready(run, target))
        return false;
    if (!item->attempts)
        item->attempts = 1;
    const char *line = run->kept.data, *end;
    for (; !run->counts->record_failed && (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (!write_kept(run, target, work, line, end, asked, end[1] != '\0'))
            return false; /* it was no row: a worker is asked */
    state->todo--;
    facts_item_done(run, target, work);
    return true;
}

/* ---- kept for the next time -------------------------------------------------------------------------------------------------- */

/* Says the same the next time: not what this machine lacked, and not what a worker's death left. */
static bool is_answer(facts_verdict verdict, const facts_line *row)
{
    facts_member members[16];
    size_t count;
    facts_span reason = facts_line_get(row, "reason");
    if (verdict != FACTS_VERDICT_PASS && verdict != FACTS_VERDICT_UNSUPPORTED && verdict != FACTS_VERDICT_WRONG &&
        verdict != FACTS_VERDICT_BUILD_FAIL)
        return false;
    if (!reason.at)
        return true;
    return facts_scan_object(reason.at, reason.length, members, 16, &count) &&
           !facts_json_is(facts_member_find(members, count < 16 ? count : 16, "class"), "environment");
}

void facts_stored_row(facts_text *keep, facts_verdict verdict, const facts_line *row, const char *text, size_t length,
                      double wall_ms)
{
    if (!is_answer(verdict, row) || memchr(text, '\n', length))
        keep->failed = true;
    facts_text_format(keep, "%.3f ", wall_ms);
    facts_text_add(keep, text, length);
    facts_text_puts(keep, "\n");
}

void facts_stored_whole(facts_supervision *run, size_t target, size_t work, facts_text *keep)
{
    if (keep && keep->length && !keep->failed)
        facts_answers_put(run->order->store, run->targets[target].scope, run->order->work[work].name, keep->data, keep->length);
}
