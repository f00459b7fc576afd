#include "progress.h"

#include "words/clock.h"
#include <stdio.h>
#include <unistd.h>

#define BAR 24
#define LINE_EVERY_S 20.0

void facts_progress_start(facts_progress *progress, bool quiet)
{
    *progress = (facts_progress){ .terminal = isatty(2) == 1,
                                  .quiet = quiet,
                                  .started_ms = facts_now_ms() };
    progress->last_ms = progress->started_ms;
}

static void clock_text(char *out, size_t capacity, double seconds)
{
    long s = (long)seconds;
    if (s >= 3600)
        snprintf(out, capacity, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(out, capacity, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, capacity, "%ld s", s);
}

void facts_progress_show(facts_progress *p, size_t done, size_t planned, int live)
{
    double now = facts_now_ms();
    double since_line = (now - p->last_ms) / 1e3, elapsed = (now - p->started_ms) / 1e3;
    char bar[BAR + 1], left[32] = "";
    if (p->quiet || !planned || (!p->terminal && since_line < LINE_EVERY_S))
        return;
    p->last_ms = now;
    double rate = elapsed > 0 ? (double)(done - p->first_done) / elapsed : 0;
    if (rate > 0)
        clock_text(left, sizeof left, (double)(planned - done) / rate);
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < done * BAR / planned ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr,
            "%s[%s] %zu/%zu  %.0f/s  %s%s  yes %zu  no %zu  findings %zu  workers %d  %.48s%s",
            p->terminal ? "\r\033[K" : "", bar, done, planned, rate, *left ? "left " : "", left,
            p->yes, p->no, p->findings, live, p->group ? p->group : "", p->terminal ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
}

void facts_progress_say(facts_progress *p, const char *text)
{
    double now = facts_now_ms();
    if (p->quiet || (!p->terminal && (now - p->last_ms) / 1e3 < LINE_EVERY_S))
        return;
    p->last_ms = now;
    fprintf(stderr, "%s%s%s", p->terminal ? "\r\033[K" : "", text, p->terminal ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
}

void facts_progress_end(facts_progress *p)
{
    if (p->terminal && p->drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
}
