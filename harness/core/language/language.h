/* A language of cases: a table of keys and what follows from it. The grammar (case.h, pattern.h, suites) knows no key; an
 * operation gives its table. A language is constant and lives as long as the program. */
#ifndef FACTS_LANGUAGE_H
#define FACTS_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "words/case_text.h"

#define FACTS_KEYS_MOST 96 /* of one language */

typedef unsigned facts_key; /* the place of a key in its table: the order of a canonical name */
#define FACTS_NO_KEY ((facts_key) - 1)

struct facts_case;
struct facts_draft;
struct facts_simpler;

/* How the templates of a key are joined to a value. */
typedef enum facts_value_form {
    FACTS_FORM_WORD,  /* one template */
    FACTS_FORM_RATIO, /* one template; equal parts are written once: 8/8/8 is 8 */
    FACTS_FORM_SET    /* templates joined by +, in the order of `allowed` */
} facts_value_form;

/* What absence of a key means where another key decides it. The first entry of a key's list that fits counts; the table's default
 * ends the list. */
typedef struct facts_key_default {
    facts_key other;       /* FACTS_NO_KEY: the end */
    const char *when;      /* the value of `other`, or how it starts and *; NULL: any */
    const char *otherwise; /* NULL: as `other` */
} facts_key_default;

typedef struct facts_key_row {
    const char *word;
    /* Templates, separated by spaces. Lower-case letters stand for themselves; N an integer, M one above 0, L an integer or inf,
     * X a number, P a probability. */
    const char *allowed;
    const char *otherwise;             /* the default */
    const facts_key_default *defaults; /* where other keys decide it; NULL: nowhere */
    const char *help;
    facts_value_form form;
    bool alone;        /* a case with this key needs its GPU alone */
    const char *parts; /* of a ratio, for errors: "1 or more, or Q/KV: h=8/2" */
    const char *also;  /* what `read` takes, for the help */
    /* Reads a value that no template spells and writes its canonical spelling to out[FACTS_CASE_TEXT]. Returns false and fills
     * *fault if it is none; an empty fault says what is allowed. NULL: templates are all. */
    bool (*read)(const struct facts_key_row *row, facts_span value, char *out,
                 facts_value_fault *fault);
} facts_key_row;

/* A part of a key's value that predicates may ask about: s.kv of s=512/1024. */
typedef struct facts_key_part {
    const char *word;
    facts_key key;
    int index; /* among what / or : separates */
} facts_key_part;

typedef struct facts_language {
    const facts_key_row *keys;
    facts_key count;
    facts_key always; /* that many keys, from the first, are in every name */
    const facts_key_part *parts;
    size_t part_count;
    const char *backends; /* who may answer, for predicates; separated by blanks */
    bool known;           /* cases/known and cases/claims speak of its cases */
    /* What of the value of another key a key takes that follows it. NULL: all of it. */
    const char *(*follows)(facts_key key, const char *value);
    /* Replaces two spellings of one setting by one. Returns NULL, or why the values contradict each other, with the key in *at. */
    const char *(*normalise)(struct facts_draft *draft, facts_key *at);
    /* Before `key` gets a new value: sets apart what normalise() joined. */
    void (*unfold)(struct facts_draft *draft, const struct facts_case *c, facts_key key);
    /* Is the case one that can be asked? With its multiplications, about, in *work. */
    bool (*resolves)(const struct facts_case *c, double *work);
    /* A case that does not say whether the library's guards hold: they do not, unless it asks for the library's answer. */
    void (*unguard)(struct facts_case *c);
    const struct facts_simpler *simpler; /* what shrink may try (simpler.h) */
    /* The environment variable with the value of `process_key`, which must be set before a process
     * asks the first case with this value. NULL: none. */
    const char *process_variable;
    facts_key process_key;
} facts_language;

/* The key of a word of `length` letters; FACTS_NO_KEY when there is none. */
facts_key facts_key_find(const facts_language *language, const char *word, size_t length);
/* The key that a misspelled word probably means; NULL if none is similar. */
const char *facts_key_nearest(const facts_language *language, const char *word, size_t length);
/* Do its values have an order? One of its templates is a bare number. */
bool facts_key_is_number(const facts_key_row *row);
/* The values that are allowed, without the blank at their end. */
int facts_key_allowed_letters(const facts_key_row *row);
/* Prints one key for people, with its values, default and help, or all keys (FACTS_NO_KEY). */
void facts_keys_help(const facts_language *language, facts_key key, FILE *out);
/* The table for programs: an array with an object for each key, in the order of names. `key`, `default`; if there are any `values`
 * (the words that it may have), `parts` {word: index}, `when` [[other key, value or start*, default]], `follows` (another key);
 * `number` if its values have an order. */
json_t *facts_keys_json(const facts_language *language);

/* Writes the canonical spelling of `value` to out[FACTS_CASE_TEXT]. Returns false and fills *fault when it is not a value of the
 * key. */
bool facts_value_canonical(const facts_key_row *row, facts_span value, char *out,
                           facts_value_fault *fault);
/* Which of the templates spells `value`, counted from 0; -1: none. Writes the value canonically to out[FACTS_CASE_TEXT]. */
int facts_template_match(const char *templates, facts_span value, char *out);

#endif
