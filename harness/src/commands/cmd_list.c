/* facts list: what a suite, a file or a pattern expands to. */
#include "commands.h"
#include "record/text.h"
#include "case/suites/planned_cases.h"

static void print_json(const facts_session *s)
{
    facts_text line = { 0 };
    for (size_t i = 0, shown = 0; i < s->all_count && shown < s->work_count; i++) {
        const facts_planned planned = facts_cases_at(s->cases, i);
        if (planned.name != s->work[shown].name)
            continue; /* of another shard */
        shown++;
        facts_text_clear(&line);
        facts_text_puts(&line, "{");
        facts_text_member(&line, "case", planned.name);
        if (*planned.group)
            facts_text_member(&line, "group", planned.group);
        if (*planned.why)
            facts_text_member(&line, "why", planned.why);
        facts_text_close(&line);
        puts(line.data ? line.data : "");
    }
    facts_text_free(&line);
}

int facts_command_list(const facts_invocation *call)
{
    facts_session s = { .options = call->options };
    int status = facts_session_cases(&s, call->options->words, call->options->word_count);
    if (status == FACTS_EXIT_OK && call->options->count)
        printf("%zu\n", s.work_count);
    else if (status == FACTS_EXIT_OK && call->options->json)
        print_json(&s);
    else if (status == FACTS_EXIT_OK)
        for (size_t i = 0; i < s.work_count; i++)
            puts(s.work[i].name);
    facts_session_free(&s);
    return status;
}
