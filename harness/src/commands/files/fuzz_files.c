#include "fuzz_files.h"

#include <string.h>

#include "commands/session/report_package.h"

void facts_fuzz_files_folder(char out[FACTS_PATH], const char *record)
{
    size_t length = strlen(record), suffix = strlen(".jsonl");
    if (length > suffix && strcmp(record + length - suffix, ".jsonl") == 0)
        length -= suffix;
    snprintf(out, FACTS_PATH, "%.*s.findings", (int)length, record);
}

static void add_form(facts_text *out, const facts_form *form, bool explained)
{
    const facts_evidence_text *e = &form->evidence;
    const char *const members[][2] = { { "cudnn", e->cudnn },   { "build", e->build },
                                       { "device", e->device }, { "sm", e->sm },
                                       { "ratio", e->ratio },   { "index", e->index },
                                       { "got", e->got },       { "want", e->want },
                                       { "bound", e->bound },   { "counts", e->counts },
                                       { "reason", e->reason } };
    char name[FACTS_NAME_MAX];
    facts_text_puts(out, "{");
    facts_text_member(out, "best", facts_case_name(&form->best, name));
    facts_text_member(out, "start", facts_case_name(&form->start, name));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        facts_text_member(out, members[i][0], members[i][1]);
    facts_text_member_int(out, "failed", form->failed);
    facts_text_member_int(out, "asked", form->asked);
    if (explained)
        facts_text_member(out, "known_as", facts_case_name(&form->known, name));
    if (explained)
        facts_text_member(out, "link", form->link);
    facts_text_puts(out, "\"controls\":[");
    for (size_t i = 0; i < form->controls; i++)
        facts_text_format(out, "%s\"%s\"", i ? "," : "",
                          facts_case_name(&form->control[i], name)); /* needs no escape */
    facts_text_format(out, "],\"unfinished\":%s}", form->unfinished ? "true" : "false");
}

void facts_fuzz_files_finding(facts_text *out, const facts_bucket *bucket, size_t rank)
{
    const facts_symptom *s = &bucket->symptom;
    char what[FACTS_SYMPTOM_TEXT];
    facts_text_member_int(out, "rank", (int64_t)rank);
    facts_text_format(out, "\"ordinary\":%s,\"explained\":%s,", bucket->ordinary ? "true" : "false",
                      bucket->explained ? "true" : "false");
    facts_text_member(out, "verdict", facts_verdict_name(s->verdict));
    facts_text_member(out, "text", facts_symptom_text(s, what));
    facts_text_member(out, "tensors", s->tensors);
    facts_text_member(out, "gate", s->gate);
    facts_text_member(out, "backend", s->backend);
    facts_text_member(out, "class", s->class_word);
    facts_text_member_int(out, "engine", s->engine);
    facts_text_member_int(out, "cases", (int64_t)bucket->cases);
    facts_text_format(out, "\"known\":%s,\"forms\":[", s->known ? "true" : "false");
    for (size_t i = 0; i < bucket->forms; i++) {
        facts_text_puts(out, i ? "," : "");
        add_form(out, &bucket->form[i], bucket->explained);
    }
    facts_text_puts(out, "]");
}

static void add_bucket(facts_text *out, const facts_bucket *bucket, size_t rank)
{
    facts_text_puts(out, "{");
    facts_fuzz_files_finding(out, bucket, rank);
    facts_text_puts(out, "}\n");
}

static void write_all(const void *subject, FILE *out)
{
    const facts_fuzz_files *files = subject;
    facts_text text = { 0 };
    char flags[FACTS_PATH + 64] = "";
    facts_search_flags(files->search, flags, sizeof flags);
    facts_text_puts(&text, "{");
    facts_text_member(&text, "version", FACTS_VERSION);
    facts_text_member(&text, "origin", files->origin);
    facts_text_member(&text, "flags", flags);
    facts_text_member(&text, "folder", files->folder);
    facts_text_close(&text);
    facts_text_puts(&text, "\n");
    if (files->bucket)
        add_bucket(&text, files->bucket, 0);
    for (size_t i = 0; files->findings && i < facts_findings_count(files->findings); i++)
        add_bucket(&text, facts_findings_at(files->findings, i), i + 1);
    fwrite(text.data, 1, text.length, out);
    facts_text_free(&text);
}

int facts_fuzz_files_write(const facts_fuzz_files *files)
{
    return facts_run_view("fuzz", write_all, files);
}
