/* The file of answers: what is kept is found, what is not ours is set aside, and it stays within its bounds. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/answers.h"

static char folder[64], path[128];
static facts_error note;

static void set_up(void)
{
    strcpy(folder, "/tmp/facts-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/answers.sqlite", folder);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(store, .init = set_up, .fini = tear_down);

static facts_answers *open_store(int64_t most)
{
    facts_answers *store = facts_answers_open(path, most, &note);
    cr_assert_not_null(store, "%s", note.text);
    return store;
}

static void close_store(facts_answers *store)
{
    facts_answers_close(store, &note);
    cr_expect_str_empty(note.text);
}

static void put(facts_answers *store, int64_t scope, const char *name, const char *text)
{
    facts_answers_put(store, scope, name, text, strlen(text));
}

static bool has(facts_answers *store, int64_t scope, const char *name, const char *due)
{
    facts_text text = { 0 };
    char asked[24];
    bool same = facts_answers_get(store, scope, name, &text, asked) && strcmp(text.data, due) == 0 && strlen(asked) == 20;
    facts_text_free(&text);
    return same;
}

static void do_sql(const char *sql)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

Test(store, an_answer_is_found_under_its_scope_and_name)
{
    facts_answers *store = open_store(FACTS_STORE_BYTES);
    int64_t one = facts_answers_scope(store, "one"), two = facts_answers_scope(store, "two");
    cr_assert(one > 0 && two > 0 && one != two);
    put(store, one, "a", "first");
    put(store, one, "a", "second");
    put(store, one, "b", "gone");
    facts_answers_drop(store, one, "b");
    facts_answers_set_ready(store, one, "{}", 2);
    close_store(store);
    store = open_store(FACTS_STORE_BYTES);
    facts_text ready = { 0 };
    cr_expect_eq(facts_answers_scope(store, "one"), one);
    cr_expect(has(store, one, "a", "second"), "the later one stands");
    cr_expect_not(has(store, two, "a", "second"));
    cr_expect_not(has(store, one, "b", "gone"));
    cr_expect(facts_answers_ready(store, one, &ready) && strcmp(ready.data, "{}") == 0);
    cr_expect_not(facts_answers_ready(store, two, &ready));
    facts_text_free(&ready);
    close_store(store);
}

Test(store, the_file_is_the_users_alone)
{
    struct stat info;
    close_store(open_store(FACTS_STORE_BYTES));
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0600);
    chmod(path, 0644);
    close_store(open_store(FACTS_STORE_BYTES));
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0600);
}

static void is_set_aside(const char *why)
{
    char aside[160];
    snprintf(aside, sizeof aside, "%s.aside", path);
    facts_answers *store = open_store(FACTS_STORE_BYTES);
    cr_expect(strstr(note.text, why) != NULL && strchr(note.text, '\n') == NULL, "%s", note.text);
    struct stat info;
    cr_expect_eq(lstat(aside, &info), 0);
    int64_t scope = facts_answers_scope(store, "one");
    put(store, scope, "a", "text");
    close_store(store);
    store = open_store(FACTS_STORE_BYTES);
    cr_expect(has(store, scope, "a", "text"), "the new one serves");
    close_store(store);
}

Test(store, a_newer_one_is_set_aside)
{
    close_store(open_store(FACTS_STORE_BYTES));
    do_sql("pragma user_version = 2");
    is_set_aside("newer FACTS");
}

Test(store, what_is_no_store_is_set_aside)
{
    do_sql("create table other(x)");
    is_set_aside("no store of answers");
}

Test(store, a_folder_in_its_place_is_set_aside)
{
    cr_assert_eq(mkdir(path, 0700), 0);
    is_set_aside("no file of yours");
}

Test(store, a_link_is_not_followed)
{
    char elsewhere[128];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    cr_assert_eq(symlink(elsewhere, path), 0);
    is_set_aside("no file of yours");
    cr_expect_neq(access(elsewhere, F_OK), 0);
}

Test(store, garbage_is_set_aside)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fprintf(file, "this is no database %d\n", i);
    fclose(file);
    is_set_aside("is broken");
}

Test(store, what_breaks_under_a_run_is_set_aside_at_its_end)
{
    facts_answers *store = open_store(FACTS_STORE_BYTES);
    int64_t scope = facts_answers_scope(store, "one");
    for (int i = 0; i < 5000; i++) {
        char name[32];
        snprintf(name, sizeof name, "case %d", i);
        put(store, scope, name,
            "a text of some length, so that there are many pages ....................................................");
    }
    close_store(store);
    FILE *file = fopen(path, "r+");
    fseek(file, 16384, SEEK_SET);
    for (int i = 0; i < 40 * 16384; i++)
        fputc(i * 7 & 0xff, file);
    fclose(file);
    store = facts_answers_open(path, FACTS_STORE_BYTES, &note);
    for (int i = 0; store && i < 5000; i++) {
        char name[32];
        snprintf(name, sizeof name, "case %d", i);
        cr_expect_not(has(store, scope, name, "something else"));
    }
    facts_answers_close(store, &note);
    cr_expect(store == NULL || strstr(note.text, "is broken") != NULL, "%s", note.text);
}

Test(store, a_text_that_was_changed_is_no_answer)
{
    facts_answers *store = open_store(FACTS_STORE_BYTES);
    int64_t scope = facts_answers_scope(store, "one");
    put(store, scope, "a", "supported");
    close_store(store);
    do_sql("update answer set text = 'supportes'");
    store = open_store(FACTS_STORE_BYTES);
    cr_expect_not(has(store, scope, "a", "supportes"));
    close_store(store);
}

Test(store, nowhere_to_be_is_no_store_and_no_word)
{
    cr_expect_null(facts_answers_open("/proc/nothing/answers.sqlite", FACTS_STORE_BYTES, &note));
    cr_expect_str_empty(note.text);
}

Test(store, what_was_used_longest_ago_goes_first)
{
    static char text[100001];
    const int64_t most = 4 << 20;
    memset(text, 'x', sizeof text - 1);
    int64_t scopes[8];
    for (int round = 0; round < 8; round++) { /* 1 MB each, in runs of a second each */
        char key[32], sql[80], name[16];
        facts_answers *store = open_store(most);
        snprintf(key, sizeof key, "scope %d", round);
        scopes[round] = facts_answers_scope(store, key);
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof name, "%d", i);
            put(store, scopes[round], name, text);
        }
        if (round > 0)
            facts_answers_scope(store, "scope 0"); /* used in every run */
        close_store(store);
        snprintf(sql, sizeof sql, "update scope set used = used - 10"); /* so long ago was it */
        do_sql(sql);
    }
    struct stat info;
    facts_answers *store = open_store(most);
    cr_expect(has(store, scopes[0], "0", text), "used in every run");
    cr_expect(has(store, scopes[7], "0", text), "the last");
    cr_expect_not(has(store, scopes[1], "0", text), "used longest ago");
    close_store(store);
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_lt(info.st_size, most * 2, "%lld bytes", (long long)info.st_size);
}

Test(store, a_run_that_fills_it_keeps_what_it_has)
{
    static char text[100001];
    memset(text, 'x', sizeof text - 1);
    facts_answers *store = open_store(1 << 20);
    int64_t scope = facts_answers_scope(store, "one");
    put(store, scope, "first", text);
    facts_answers_close(store, &note);
    store = open_store(1 << 20);
    cr_assert_eq(facts_answers_scope(store, "one"), scope);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        put(store, scope, name, text);
    }
    close_store(store);
    store = open_store(1 << 20);
    cr_expect(has(store, scope, "first", text));
    close_store(store);
}

Test(store, two_runs_share_it)
{
    facts_answers *a = open_store(FACTS_STORE_BYTES), *b = open_store(FACTS_STORE_BYTES);
    int64_t one = facts_answers_scope(a, "one"), two = facts_answers_scope(b, "two");
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        put(a, one, name, "of a");
        put(b, two, name, "of b");
    }
    facts_answers_begin(a);
    cr_expect_not(has(a, two, "none", ""));
    facts_answers_end(a);
    close_store(a);
    close_store(b);
    a = open_store(FACTS_STORE_BYTES);
    cr_expect(has(a, one, "99", "of a"));
    cr_expect(has(a, two, "0", "of b"));
    close_store(a);
}

Test(store, a_file_is_known_until_it_changes)
{
    char file[128], before[33], after[33], sha[65], again[65];
    snprintf(file, sizeof file, "%s/lib", folder);
    facts_answers *store = open_store(FACTS_STORE_BYTES);
    for (int i = 0; i < 2; i++) {
        FILE *out = fopen(file, "w");
        fputs(i == 0 ? "abc" : "abd", out);
        fclose(out);
        cr_expect(facts_answers_content(store, file, i == 0 ? before : after));
        cr_expect(facts_answers_sha256(store, file, i == 0 ? sha : again));
    }
    cr_expect_str_neq(before, after);
    cr_expect_str_eq(sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cr_expect_str_neq(sha, again);
    cr_expect(facts_answers_content(store, file, before));
    cr_expect_str_eq(before, after, "remembered or read, the same");
    cr_expect_not(facts_answers_content(store, "/nothing/there", before));
    cr_expect(facts_answers_content(NULL, file, before));
    close_store(store);
}
