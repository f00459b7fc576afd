/* A session's store of answers. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session_parts.h"
#include "store/answers.h"

/* A script says nothing of the worker that it starts. */
static bool is_program(const char *path)
{
    char magic[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool elf = fd >= 0 && read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0;
    if (fd >= 0)
        close(fd);
    return elf;
}

/* $FACTS_STORE, else in the cache. */
static bool place(char out[FACTS_PATH])
{
    const char *given = getenv("FACTS_STORE");
    if (!given)
        return facts_cache_path("answers.sqlite", out) != NULL && facts_make_folders(out);
    snprintf(out, FACTS_PATH, "%s", given);
    return *given && strlen(given) < FACTS_PATH;
}

/* Only where an answer is all that is wanted, and it is the worker's own. */
void facts_session_open_store(facts_session *s)
{
    const facts_options *o = s->options;
    const char *fault = getenv("FACTS_FAULT");
    char path[FACTS_PATH];
    facts_error note;
    bool described = facts_targets_of(&s->targets, FACTS_TARGET_DESCRIBED) > 0;
    if (!described || (!s->keep_record && !s->more) || (fault && *fault) || o->dump || o->trace || o->plan_dir ||
        !is_program(s->worker) || !place(path))
        return;
    s->store = facts_answers_open(path, FACTS_STORE_BYTES, &note);
    if (note.text[0])
        fprintf(stderr, "facts: %s\n", note.text);
}

void facts_session_close_store(facts_session *s)
{
    facts_error note;
    facts_answers_close(s->store, &note);
    s->store = NULL;
    if (note.text[0])
        fprintf(stderr, "facts: %s\n", note.text);
}
