#include "merge.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case/words/verdict.h"
#include "reader.h"
#include "text.h"
#include "writer.h"

/* Rows are known by where they lie: a record may be larger than memory. `place` orders them as they came. */
static const char schema[] =
    "create table run(id text primary key, suite text, started text, cases int, shard int, shards int,"
    " file int, offset int, length int);"
    "create table pair(run text, suite text, build text, device text, shard int, shards int);"
    "create table alias(run text, build text, device text, planned text);"
    "create table other(place integer primary key, file int, offset int, length int);"
    "create table start(name text, build text, device text, unique(name, build, device));"
    "create table row(place integer primary key, name text, build text, device text, backend text, config int,"
    " run text, asked int, started text, attempt int, file int, offset int, length int);"
    "create index row_key on row(name, build, device, backend, config);";

/* A GPU is planned by its number and answers by its name: its target line says both. Where that line says no number (records of
 * 0.1.0's first days), it is the one device of its build that the plan does not name. */
static const char named[] =
    "update pair set device = coalesce("
    "(select a.device from alias a where a.run = pair.run and a.build = pair.build and a.planned = pair.device),"
    "(select min(a.device) from alias a where a.run = pair.run and a.build = pair.build and a.planned = '' and not exists"
    " (select 1 from pair p where p.run = a.run and p.build = a.build and p.device = a.device)"
    " having count(distinct a.device) = 1),"
    " device) where device glob 'gpu[0-9]*'";

/* Of the rows with one key, the one that was asked (not_run is a row of last resort), in the latest run, at the latest attempt. */
static const char ranked[] = "create table kept as select place, name, build, device, run, file, offset, length from ("
                             " select *, row_number() over (partition by name, build, device, backend, config"
                             "  order by asked desc, started desc, attempt desc, place desc) as nth from row) where nth = 1;"
                             "create index kept_key on kept(name, build, device);";

typedef struct merging {
    const facts_merge_request *request;
    facts_merge_result *result;
    sqlite3 *db;
    sqlite3_stmt *insert_run, *insert_pair, *insert_alias, *insert_other, *insert_start, *insert_row;
    char *error;
    size_t capacity;
    int file;
    char run[64], started[40], suite[40], first_suite[40]; /* of the run at hand; of the first */
    bool stop;
    int status;
} merging;

static bool refuse(merging *m, int status, const char *path, const char *why)
{
    snprintf(m->error, m->capacity, "%s: %s", path, why);
    m->status = status;
    m->stop = true;
    return false;
}

static const char *here(const merging *m)
{
    return m->request->in[m->file];
}

static void bind(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static bool step(merging *m, sqlite3_stmt *statement)
{
    int status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return status == SQLITE_DONE || refuse(m, 3, here(m), sqlite3_errmsg(m->db));
}

static void bind_place(merging *m, sqlite3_stmt *statement, int at, const facts_line *line)
{
    sqlite3_bind_int(statement, at, m->file);
    sqlite3_bind_int64(statement, at + 1, (sqlite3_int64)line->offset);
    sqlite3_bind_int64(statement, at + 2, (sqlite3_int64)line->length);
}

/* Every (build, device) of a run has to have all its cases. */
static bool add_pairs(merging *m, const facts_line *line, int64_t shard, int64_t shards)
{
    facts_span elements[256];
    size_t count;
    facts_span targets = facts_line_get(line, "targets");
    if (!targets.at || !facts_scan_array(targets.at, targets.length, elements, 256, &count))
        return true;
    for (size_t i = 0; i < count && i < 256; i++) {
        facts_member members[8];
        size_t n;
        char build[64], device[128];
        if (!facts_scan_object(elements[i].at, elements[i].length, members, 8, &n))
            continue;
        n = n < 8 ? n : 8;
        if (!facts_json_string(facts_member_find(members, n, "build"), build, sizeof build) ||
            !facts_json_string(facts_member_find(members, n, "device"), device, sizeof device))
            continue;
        bind(m->insert_pair, 1, m->run);
        bind(m->insert_pair, 2, m->suite);
        bind(m->insert_pair, 3, build);
        bind(m->insert_pair, 4, device);
        sqlite3_bind_int64(m->insert_pair, 5, shard);
        sqlite3_bind_int64(m->insert_pair, 6, shards);
        if (!step(m, m->insert_pair))
            return false;
    }
    return true;
}

static bool take_run(merging *m, const facts_line *line)
{
    int64_t cases = 0, shard = 1, shards = 1;
    facts_span parts[2];
    size_t count;
    snprintf(m->run, sizeof m->run, "?");
    m->suite[0] = m->started[0] = '\0';
    facts_json_string(facts_line_get(line, "id"), m->run, sizeof m->run);
    facts_json_string(facts_line_get(line, "started"), m->started, sizeof m->started);
    facts_json_string(facts_line_get(line, "suite_hash"), m->suite, sizeof m->suite);
    facts_json_int(facts_line_get(line, "cases"), &cases);
    facts_span sharding = facts_line_get(line, "shard");
    if (sharding.at && facts_scan_array(sharding.at, sharding.length, parts, 2, &count) && count == 2) {
        facts_json_int(parts[0], &shard);
        facts_json_int(parts[1], &shards);
    }
    if (!m->first_suite[0])
        memcpy(m->first_suite, m->suite, sizeof m->first_suite);
    else if (strcmp(m->first_suite, m->suite) != 0 && !m->request->force)
        return refuse(m, 2, here(m), "is of another suite than the records before it; --force joins them all the same");
    bind(m->insert_run, 1, m->run);
    bind(m->insert_run, 2, m->suite);
    bind(m->insert_run, 3, m->started);
    sqlite3_bind_int64(m->insert_run, 4, cases);
    sqlite3_bind_int64(m->insert_run, 5, shard);
    sqlite3_bind_int64(m->insert_run, 6, shards);
    bind_place(m, m->insert_run, 7, line);
    return step(m, m->insert_run) && add_pairs(m, line, shard, shards);
}

static bool take_key(sqlite3_stmt *statement, const facts_line *line, char name[1500])
{
    char build[64], device[128];
    if (!facts_json_string(facts_line_get(line, "case"), name, 1500) ||
        !facts_json_string(facts_line_get(line, "build"), build, sizeof build) ||
        !facts_json_string(facts_line_get(line, "device"), device, sizeof device))
        return false;
    bind(statement, 1, name);
    bind(statement, 2, build);
    bind(statement, 3, device);
    return true;
}

static bool take_row(merging *m, const facts_line *line)
{
    char name[1500], backend[32] = "cudnn";
    int64_t config = -1, attempt = 0;
    sqlite3_stmt *s = m->insert_row;
    if (!take_key(s, line, name)) {
        m->result->bad_lines++;
        return true;
    }
    facts_json_string(facts_line_get(line, "backend"), backend, sizeof backend);
    facts_json_int(facts_line_get(line, "attempt"), &attempt);
    if (strstr(name, "engine=all"))
        facts_json_int(facts_line_get(line, "config"), &config);
    bind(s, 4, backend);
    sqlite3_bind_int64(s, 5, config);
    bind(s, 6, m->run);
    sqlite3_bind_int(s, 7, !facts_json_is(facts_line_get(line, "verdict"), "not_run"));
    bind(s, 8, m->started);
    sqlite3_bind_int64(s, 9, attempt);
    bind_place(m, s, 10, line);
    return step(m, s);
}

static bool take_target(merging *m, const facts_line *line)
{
    static const char *const keys[] = { "run", "build", "device", "planned" };
    bool whole = true;
    for (int i = 0; i < 4 && whole; i++) {
        char text[128] = "";
        whole = facts_json_string(facts_line_get(line, keys[i]), text, sizeof text) || i == 3;
        bind(m->insert_alias, i + 1, text);
    }
    bind_place(m, m->insert_other, 1, line);
    return (!whole || step(m, m->insert_alias)) && step(m, m->insert_other);
}

static bool take_line(void *context, const facts_line *line)
{
    merging *m = context;
    char name[1500];
    switch (line->kind) {
    case FACTS_LINE_RUN:
        return take_run(m, line);
    case FACTS_LINE_ROW:
        return take_row(m, line);
    case FACTS_LINE_TARGET:
        return take_target(m, line);
    case FACTS_LINE_START:
        return !take_key(m->insert_start, line, name) || step(m, m->insert_start);
    case FACTS_LINE_END:
        return true; /* the whole gets its own */
    case FACTS_LINE_BAD:
        m->result->bad_lines++;
        return true;
    default:
        bind_place(m, m->insert_other, 1, line);
        return step(m, m->insert_other);
    }
}

static bool prepare(merging *m)
{
    struct {
        sqlite3_stmt **statement;
        const char *text;
    } const all[] = {
        { &m->insert_run, "insert or ignore into run values(?,?,?,?,?,?,?,?,?)" },
        { &m->insert_pair, "insert into pair values(?,?,?,?,?,?)" },
        { &m->insert_alias, "insert into alias values(?,?,?,?)" },
        { &m->insert_other, "insert into other(file, offset, length) values(?,?,?)" },
        { &m->insert_start, "insert or ignore into start values(?,?,?)" },
        { &m->insert_row,
          "insert into row(name, build, device, backend, config, run, asked, started, attempt, file, offset, length)"
          " values(?,?,?,?,?,?,?,?,?,?,?,?)" },
    };
    if (sqlite3_open(":memory:", &m->db) != SQLITE_OK || sqlite3_exec(m->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return refuse(m, 3, "merge", m->db ? sqlite3_errmsg(m->db) : "out of memory");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (sqlite3_prepare_v2(m->db, all[i].text, -1, all[i].statement, NULL) != SQLITE_OK)
            return refuse(m, 3, "merge", sqlite3_errmsg(m->db));
    return sqlite3_exec(m->db, "begin", NULL, NULL, NULL) == SQLITE_OK || refuse(m, 3, "merge", sqlite3_errmsg(m->db));
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool read_inputs(merging *m)
{
    for (size_t i = 0; i < m->request->in_count && !m->stop; i++) {
        facts_read_counts counts;
        m->file = (int)i;
        if (same_file(m->request->in[i], m->request->out))
            return refuse(m, 2, m->request->in[i], "is also the output");
        snprintf(m->run, sizeof m->run, "?");
        m->started[0] = '\0';
        errno = 0;
        if (!facts_record_read(m->request->in[i], take_line, m, &counts)) {
            char why[160];
            facts_record_trouble(&counts, why, sizeof why);
            return refuse(m, 2, m->request->in[i], why);
        }
        if (!m->stop && counts.lines == counts.bad)
            return refuse(m, 2, m->request->in[i], "is not a record (no line could be read)");
    }
    if (!m->stop &&
        (sqlite3_exec(m->db, named, NULL, NULL, NULL) != SQLITE_OK || sqlite3_exec(m->db, ranked, NULL, NULL, NULL) != SQLITE_OK))
        return refuse(m, 3, "merge", sqlite3_errmsg(m->db));
    return !m->stop;
}

typedef struct copying {
    merging *m;
    facts_writer *writer;
    int *files;
    char *buffer;
    size_t capacity;
} copying;

static bool copy_line(copying *c, int file, int64_t offset, int64_t length)
{
    size_t n = (size_t)length;
    if (n > c->capacity) {
        char *larger = realloc(c->buffer, n);
        if (!larger)
            return refuse(c->m, 3, "merge", "out of memory");
        c->buffer = larger;
        c->capacity = n;
    }
    if (pread(c->files[file], c->buffer, n, (off_t)offset) != (ssize_t)n)
        return refuse(c->m, 3, c->m->request->in[file], "changed while it was read");
    return facts_writer_line(c->writer, c->buffer, n) || refuse(c->m, 3, "merge", facts_writer_error(c->writer));
}

static bool copy_query(copying *c, const char *query, uint64_t *copied)
{
    sqlite3_stmt *s;
    bool ok = true;
    if (sqlite3_prepare_v2(c->m->db, query, -1, &s, NULL) != SQLITE_OK)
        return refuse(c->m, 3, "merge", sqlite3_errmsg(c->m->db));
    while (ok && sqlite3_step(s) == SQLITE_ROW) {
        ok = copy_line(c, sqlite3_column_int(s, 0), sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2));
        *copied += ok;
    }
    sqlite3_finalize(s);
    return ok;
}

static int64_t count_of(const merging *m, const char *query)
{
    sqlite3_stmt *s;
    int64_t n = 0;
    if (sqlite3_prepare_v2(m->db, query, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void say(facts_merge_result *result, const char *text)
{
    size_t used = strlen(result->what);
    snprintf(result->what + used, sizeof result->what - used, "%s%s", used ? "; " : "", text);
}

/* Shards that no file holds, by (build, device). */
static void find_missing_shards(merging *m)
{
    sqlite3_stmt *s;
    const char *query = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000),"
                        " part as (select suite, build, device, max(shards) as shards from pair group by suite, build, device)"
                        " select n.i, part.shards, part.build, part.device from part join n on n.i <= part.shards where not exists"
                        " (select 1 from pair p where p.suite = part.suite and p.build = part.build and p.device = part.device"
                        "  and (p.shards = 1 or (p.shards = part.shards and p.shard = n.i))) limit 5";
    if (sqlite3_prepare_v2(m->db, query, -1, &s, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(s) == SQLITE_ROW) {
        char text[200];
        snprintf(text, sizeof text, "shard %d/%d of %.40s on %.40s", sqlite3_column_int(s, 0), sqlite3_column_int(s, 1),
                 (const char *)sqlite3_column_text(s, 2), (const char *)sqlite3_column_text(s, 3));
        say(m->result, text);
    }
    sqlite3_finalize(s);
}

static void find_missing(merging *m)
{
    char text[200];
    facts_merge_result *r = m->result;
    find_missing_shards(m);
    r->unfinished =
        (uint64_t)count_of(m, "select count(*) from start where not exists (select 1 from kept where kept.name = start.name"
                              " and kept.build = start.build and kept.device = start.device)");
    int64_t missing =
        count_of(m, "select sum(max(0, planned - there)) from (select k.build, k.device, count(distinct k.name) as there,"
                    " max(run.cases) as planned from kept k join run on run.id = k.run group by run.suite, k.build, k.device)");
    missing += count_of(
        m,
        "select sum(cases) from (select distinct p.suite, p.build, p.device, (select max(cases) from run where run.suite = p.suite)"
        " as cases from pair p where not exists (select 1 from kept where kept.build = p.build and kept.device = p.device))");
    r->missing =
        missing > 0 && !(m->request->force && count_of(m, "select count(distinct suite) from run") > 1) ? (uint64_t)missing : 0;
    if (r->missing) {
        snprintf(text, sizeof text, "%llu planned row%s", (unsigned long long)r->missing, r->missing == 1 ? "" : "s");
        say(r, text);
    }
    if (r->unfinished) {
        snprintf(text, sizeof text, "%llu cases were started and have no row", (unsigned long long)r->unfinished);
        say(r, text);
    }
    if (r->bad_lines) {
        snprintf(text, sizeof text, "%llu lines could not be parsed", (unsigned long long)r->bad_lines);
        say(r, text);
    }
    r->complete = !r->what[0];
}

static bool write_end(copying *c)
{
    facts_text line = { 0 };
    facts_merge_result *r = c->m->result;
    facts_text_format(&line, "{\"end\":{\"run\":\"merge\",\"complete\":%s,", r->complete ? "true" : "false");
    facts_text_member_int(&line, "rows", (int64_t)r->rows);
    if (!r->complete)
        facts_text_member(&line, "missing", r->what);
    facts_text_close(&line);
    facts_text_puts(&line, "}");
    bool ok = !line.failed && facts_writer_line(c->writer, line.data, line.length);
    facts_text_free(&line);
    return ok || refuse(c->m, 3, c->m->request->out, "cannot be written");
}

static bool write_output(merging *m)
{
    uint64_t ignored = 0;
    copying c = { .m = m };
    facts_open_mode mode = m->request->overwrite ? FACTS_OPEN_REPLACE : FACTS_OPEN_NEW;
    m->status = facts_writer_open(&c.writer, m->request->out, mode, m->error, m->capacity);
    if (m->status != 0)
        return false;
    c.files = calloc(m->request->in_count, sizeof *c.files);
    bool ok = c.files != NULL;
    for (size_t i = 0; ok && i < m->request->in_count; i++)
        c.files[i] = open(m->request->in[i], O_RDONLY | O_CLOEXEC);
    ok = ok && copy_query(&c, "select file, offset, length from run order by started, id", &ignored) &&
         copy_query(&c, "select file, offset, length from other order by place", &ignored) &&
         copy_query(&c, "select file, offset, length from kept order by place", &m->result->rows);
    find_missing(m);
    m->result->older = (uint64_t)count_of(m, "select count(*) from row") - m->result->rows;
    ok = ok && write_end(&c);
    for (size_t i = 0; c.files && i < m->request->in_count; i++)
        if (c.files[i] >= 0)
            close(c.files[i]);
    free(c.files);
    free(c.buffer);
    if (!facts_writer_close(c.writer, m->error, m->capacity) && ok)
        m->status = 3;
    return ok && m->status == 0;
}

int facts_merge(const facts_merge_request *request, facts_merge_result *result, char *error, size_t capacity)
{
    merging m = { .request = request, .result = result, .error = error, .capacity = capacity };
    *result = (facts_merge_result){ 0 };
    if (prepare(&m) && read_inputs(&m) && write_output(&m))
        m.status = result->complete ? 0 : 4;
    sqlite3_stmt *all[] = { m.insert_run, m.insert_pair, m.insert_alias, m.insert_other, m.insert_start, m.insert_row };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sqlite3_finalize(all[i]);
    sqlite3_close(m.db);
    return m.status;
}
