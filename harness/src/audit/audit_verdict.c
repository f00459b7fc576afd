#include "audit_verdict.h"

#include "case/words/verdict.h"

#define AS_WORD(symbol, word, meaning) word,
#define AS_MEANING(symbol, word, meaning) meaning,
static const char *const words[] = { FACTS_AUDIT_LIST(AS_WORD) };
static const char *const meanings[] = { FACTS_AUDIT_LIST(AS_MEANING) };
#undef AS_WORD
#undef AS_MEANING

const char *facts_audit_name(facts_audit_word word)
{
    return words[word];
}

const char *facts_audit_meaning(facts_audit_word word)
{
    return meanings[word];
}

facts_reply facts_reply_of(facts_verdict verdict, bool measured, bool by_cudnn)
{
    switch (verdict) {
    case FACTS_VERDICT_PASS:
        return measured ? FACTS_REPLY_PASSED : FACTS_REPLY_ACCEPTED;
    case FACTS_VERDICT_UNSUPPORTED:
        return by_cudnn ? FACTS_REPLY_REFUSED : FACTS_REPLY_OURS;
    case FACTS_VERDICT_BUILD_FAIL:
        return FACTS_REPLY_UNBUILT;
    default:
        return facts_verdict_is_finding(verdict) ? FACTS_REPLY_BROKEN : FACTS_REPLY_UNKNOWN;
    }
}

facts_reply facts_reply_join(facts_reply a, facts_reply b)
{
    static const facts_reply order[] = { FACTS_REPLY_BROKEN, FACTS_REPLY_UNKNOWN, FACTS_REPLY_OURS, FACTS_REPLY_REFUSED,
                                         FACTS_REPLY_ACCEPTED };
    if (a == FACTS_REPLY_NONE || a == b)
        return b;
    if (b == FACTS_REPLY_NONE)
        return a;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return FACTS_REPLY_ACCEPTED; /* right numbers, and an engine that does not build */
}

static facts_audit_word judge(const facts_trial *t)
{
    switch (t->reply) {
    case FACTS_REPLY_REFUSED:
    case FACTS_REPLY_UNBUILT:
    case FACTS_REPLY_BROKEN:
        return t->refused ? FACTS_AUDIT_AGREES : t->others ? FACTS_AUDIT_BLIND : FACTS_AUDIT_TOO_LOOSE;
    case FACTS_REPLY_ACCEPTED:
        return t->refused ? FACTS_AUDIT_ACCEPTED : FACTS_AUDIT_AGREES;
    case FACTS_REPLY_PASSED:
        return t->refused ? FACTS_AUDIT_TOO_STRICT : FACTS_AUDIT_AGREES;
    case FACTS_REPLY_OURS:
        return FACTS_AUDIT_OURS;
    default:
        return FACTS_AUDIT_UNKNOWN;
    }
}

/* What is said once and for all trials, where none of them disagrees: each side that the rule has here must have been answered as
 * it says. */
static facts_audit_word conclude(const facts_trial *trials, size_t count)
{
    bool refused = false, refused_held = false, let = false, let_held = false, blind = false;
    for (size_t i = 0; i < count; i++) {
        facts_audit_word word = judge(&trials[i]);
        bool held = word == FACTS_AUDIT_AGREES;
        blind |= word == FACTS_AUDIT_BLIND;
        *(trials[i].refused ? &refused : &let) = true;
        *(trials[i].refused ? &refused_held : &let_held) |= held;
    }
    if ((refused_held || !refused) && (let_held || !let))
        return FACTS_AUDIT_AGREES;
    return blind ? FACTS_AUDIT_BLIND : FACTS_AUDIT_OURS;
}

void facts_audit_judge(facts_audit_verdict *out, const facts_trial *trials, size_t count)
{
    bool any = false;
    *out = (facts_audit_verdict){ .refuses = false };
    for (size_t i = count; i-- > 0;) {
        facts_audit_word word = judge(&trials[i]);
        out->refuses |= trials[i].refused;
        out->shows[word] = i;
        out->said[word] = word < FACTS_AUDIT_AGREES;
        any |= out->said[word];
    }
    if (!any && count)
        out->said[conclude(trials, count)] = true;
}
