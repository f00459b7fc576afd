#include "driver.h"

#include <stdio.h>

bool facts_job_end(facts_job *job, facts_verdict verdict, const char *reason_class,
                   const char *text)
{
    job->result.verdict = verdict;
    job->result.reason_class = reason_class;
    snprintf(job->result.text, sizeof job->result.text, "%s", text);
    return false;
}

bool facts_job_refuse(facts_job *job, const char *reason_class, const char *text)
{
    job->result.refused = true;
    return facts_job_end(job, FACTS_VERDICT_UNSUPPORTED, reason_class, text);
}

void facts_put_text(json_t *object, const char *key, const char *text)
{
    if (!text || text[0] == '\0')
        return;
    json_t *value = json_string(text);
    if (!value) /* not UTF-8: the text of a library may be any bytes */
        value = json_string("(text that is not UTF-8)");
    json_object_set_new(object, key, value);
}

void facts_put_reason(json_t *row, const char *key, const char *text)
{
    json_t *reason = json_object_get(row, "reason");
    if (!reason) {
        reason = json_object();
        json_object_set_new(row, "reason", reason);
    }
    facts_put_text(reason, key, text);
}
