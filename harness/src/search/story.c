#include "story.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void add_word(char out[FACTS_STORY_ID], const char *word)
{
    size_t used = strlen(out);
    if (!*word || used + strlen(word) + 2 >= FACTS_STORY_ID)
        return;
    if (used)
        out[used++] = '-';
    for (; *word; word++)
        out[used++] = isalnum((unsigned char)*word) || *word == '_' ? *word : '-';
    out[used] = '\0';
}

const char *facts_story_id(const facts_bucket *bucket, char out[FACTS_STORY_ID])
{
    const facts_symptom *s = &bucket->symptom;
    char tensor[FACTS_TENSORS_TEXT], engine[32] = "";
    facts_symptom_tensor(s, tensor);
    if (s->engine >= 0)
        snprintf(engine, sizeof engine, "e%lld", (long long)s->engine);
    out[0] = '\0';
    add_word(out, facts_verdict_name(s->verdict));
    add_word(out, tensor);
    add_word(out, engine[0] ? engine : s->backend);
    add_word(out, s->gate);
    add_word(out, s->class_word);
    add_word(out, s->known ? "known" : "");
    return out;
}

static void add_where(facts_text *out, const facts_form *form)
{
    const facts_evidence_text *e = &form->evidence;
    if (e->cudnn[0])
        facts_text_format(out, "cuDNN %s (build %s)", e->cudnn, e->build);
    else
        facts_text_puts(out, "our own backend");
    facts_text_format(out, " on %s", e->device[0] ? e->device : "an unknown device");
    if (e->sm[0] && strcmp(e->sm, "0") != 0)
        facts_text_format(out, " (sm_%s)", e->sm);
}

static void add_worst(facts_text *out, const facts_bucket *bucket, const facts_form *form)
{
    const facts_evidence_text *e = &form->evidence;
    char tensor[FACTS_TENSORS_TEXT];
    facts_symptom_tensor(&bucket->symptom, tensor);
    if (tensor[0])
        facts_text_format(out, "The worst element is %s%s: got %s, want %s, bound %s (%s times what gate %s allows%s%s).", tensor,
                          e->index, e->got, e->want, e->bound, e->ratio, bucket->symptom.gate[0] ? bucket->symptom.gate : "?",
                          e->counts[0] ? "; " : "", e->counts);
    size_t said = strlen(e->reason);
    while (said > 0 && (e->reason[said - 1] == ' ' || e->reason[said - 1] == '.'))
        said--;
    if (said)
        facts_text_format(out, "%sWhat was said: %.*s.", tensor[0] ? " " : "", said < 300 ? (int)said : 300, e->reason);
}

static void add_cases(facts_text *out, size_t n)
{
    facts_text_format(out, "%zu drawn case%s", n, n == 1 ? "" : "s");
}

void facts_story_difference(facts_text *out, const facts_case *from, const facts_case *to)
{
    facts_key different = FACTS_KEY_ENGINE; /* told when nothing else differs: a control keeps the engine that fails */
    for (facts_key key = 0; key < FACTS_KEY_COUNT && different == FACTS_KEY_ENGINE; key++)
        if (key != FACTS_KEY_ENGINE && strcmp(facts_case_get(from, key), facts_case_get(to, key)) != 0)
            different = key;
    facts_text_format(out, "%s=%s instead of %s", facts_keys[different].word, facts_case_get(to, different),
                      facts_case_get(from, different));
}

/* Is it a failure of cuDNN, and not of another backend? */
static bool of_cudnn(const facts_bucket *bucket)
{
    const char *backend = bucket->symptom.backend;
    return bucket->form[0].evidence.cudnn[0] && (!*backend || strcmp(backend, "cudnn") == 0);
}

/* What fails where. `when` names the cases: a condition is a person's to find. */
static void add_failure(facts_text *out, const facts_bucket *bucket, const facts_story *story)
{
    const facts_evidence_text *e = &bucket->form[0].evidence;
    const facts_symptom *s = &bucket->symptom;
    char name[FACTS_NAME_MAX];
    facts_text_format(out, "\nfailure:\nverdict: %s\nwhen: ", facts_verdict_name(s->verdict));
    for (size_t i = 0; i < bucket->forms; i++)
        facts_text_format(out, "%scase=\"%s\"", i ? " | " : "", facts_case_name(&bucket->form[i].best, name));
    if (s->engine >= 0)
        facts_text_format(out, "\nengine: %lld", (long long)s->engine);
    facts_text_format(out, "\nsm: %s\nseen: %s; %s, %s\ndate: %s\n", e->sm[0] && strcmp(e->sm, "0") != 0 ? e->sm : "any", e->cudnn,
                      e->device[0] ? e->device : "an unknown device", story->origin, story->date);
    if (s->tensors[0])
        facts_text_format(out, "note: %s\n", s->tensors);
}

static void add_groups(facts_text *out, const facts_bucket *bucket)
{
    char name[FACTS_NAME_MAX];
    size_t controls = 0;
    facts_text_puts(out, "\ncases:\n");
    for (size_t i = 0; i < bucket->forms; i++) {
        facts_text_format(out, "%s\n", facts_case_name(&bucket->form[i].best, name));
        controls += bucket->form[i].controls;
    }
    if (controls)
        facts_text_puts(out, "\ncontrols:\nwhy: one key is different, and the result is right\n");
    for (size_t i = 0; i < bucket->forms; i++)
        for (size_t k = 0; k < bucket->form[i].controls; k++)
            facts_text_format(out, "%s\n", facts_case_name(&bucket->form[i].control[k], name));
}

static const char *kind_of(const facts_bucket *bucket)
{
    facts_verdict verdict = bucket->symptom.verdict;
    if (!of_cudnn(bucket))
        return "caller";
    bool asking = verdict == FACTS_VERDICT_CRASH || verdict == FACTS_VERDICT_BUILD_FAIL || verdict == FACTS_VERDICT_EXIT_CRASH;
    return asking ? "decision" : "number";
}

void facts_story_known(facts_text *out, const facts_bucket *bucket, const facts_story *story)
{
    char name[FACTS_NAME_MAX], what[FACTS_SYMPTOM_TEXT];
    facts_symptom_text(&bucket->symptom, what);
    facts_text_format(out, "# Found by `%s` (FACTS %s).\n# ", story->origin, story->version);
    add_worst(out, bucket, &bucket->form[0]);
    facts_text_puts(out, "\n# ");
    add_cases(out, bucket->cases);
    facts_text_format(out, " failed like this. The first one: %s\n", facts_case_name(&bucket->form[0].start, name));
    facts_text_puts(out, "# To do: write the title and what is expected; add the link of the report; replace the cases in `when` by a "
                         "condition.\n");
    if (bucket->symptom.known)
        facts_text_puts(out, "# Another file in cases/known already expects this failure.\n");
    facts_text_format(out, "title: %s, with ", what);
    add_where(out, &bucket->form[0]);
    facts_text_format(out, ".\nkind: %s\nverdict: %s\ndue: to be written\n", kind_of(bucket),
                      facts_verdict_name(bucket->symptom.verdict));
    if (of_cudnn(bucket))
        add_failure(out, bucket, story);
    add_groups(out, bucket);
}

/* The sizes in words, then what is not as usual. */
static void add_problem(facts_text *out, const facts_case *c)
{
    static const facts_key said[] = { FACTS_KEY_PASS, FACTS_KEY_DTYPE, FACTS_KEY_B, FACTS_KEY_H, FACTS_KEY_S, FACTS_KEY_D };
    facts_text_format(out, "%s, %s, batch %s, heads %s, queries/keys %s, head dim %s",
                      strcmp(facts_case_get(c, said[0]), "bwd") == 0 ? "backward" : "forward", facts_case_get(c, said[1]),
                      facts_case_get(c, said[2]), facts_case_get(c, said[3]), facts_case_get(c, said[4]),
                      facts_case_get(c, said[5]));
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        bool known = c->at[key] == 0;
        for (size_t i = 0; i < sizeof said / sizeof *said; i++)
            known |= said[i] == key;
        if (!known)
            facts_text_format(out, ", %s=%s", facts_keys[key].word, facts_case_get(c, key));
    }
}

static void add_form(facts_text *out, const facts_bucket *bucket, const facts_form *form, const facts_story *story)
{
    char name[FACTS_NAME_MAX];
    facts_text_puts(out, "The smallest case found (");
    add_problem(out, &form->best);
    facts_text_format(out, ") %s `%s`. ", form->unfinished ? "so far is" : "is", facts_case_name(&form->best, name));
    add_worst(out, bucket, form);
    facts_text_format(out, " It failed %d of %d times it was asked.", form->failed, form->asked);
    for (size_t k = 0; k < form->controls; k++) {
        facts_text_puts(out, k ? ", " : " It passes with ");
        facts_story_difference(out, &form->best, &form->control[k]);
    }
    facts_text_format(out, "%s Reproduce: `facts repro '%s' %s`.\n", form->controls ? "." : "", name, story->flags);
}

void facts_story_paragraph(facts_text *out, const facts_bucket *bucket, const facts_story *story)
{
    char what[FACTS_SYMPTOM_TEXT];
    facts_text_format(out, "**%s** with ", facts_symptom_text(&bucket->symptom, what));
    add_where(out, &bucket->form[0]);
    facts_text_puts(out, ". ");
    for (size_t i = 0; i < bucket->forms; i++)
        add_form(out, bucket, &bucket->form[i], story);
    facts_text_format(out, "Found by FACTS %s, `%s`", story->version, story->origin);
    if (bucket->cases) {
        facts_text_puts(out, "; ");
        add_cases(out, bucket->cases);
        facts_text_puts(out, " failed this way");
    }
    facts_text_puts(out, ".\n");
}
