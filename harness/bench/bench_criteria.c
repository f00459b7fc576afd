/* How many of the deliberately wrong forward kernels do the criteria of other suites detect? docs/numerics.md section 12.
 *
 * usage: bench_criteria [--quick] [--seed N]     --quick: only the first column; N: seed of the data (default 1)
 * Prints a Markdown table. Exit: 0 printed; 2 wrong usage or input; 3 out of memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "criteria.h"

static void print_head(const facts_comparison *c)
{
    printf("| criterion (fill) |");
    for (int at = 0; at < c->columns; at++)
        printf(" %s |", facts_column_headings[at]);
    printf(" fills where the right kernel failed |\n|");
    for (int at = 0; at < c->columns + 2; at++)
        printf("---|");
    putchar('\n');
}

static void print_row(const facts_comparison *c, facts_criterion k)
{
    int failed = 0, fills = 0;
    printf("| %s |", facts_criterion_names[k]);
    for (int at = 0; at < c->columns; at++) {
        if (c->accuses[at][k])
            printf(" fails the right kernel |");
        else
            printf(" %d %% |", (100 * c->killed[at][k] + c->liars[at] / 2) / c->liars[at]);
        failed += c->failed[at][k];
        fills += c->fills[at];
    }
    printf(" %d of %d |\n", failed, fills);
}

int main(int argc, char **argv)
{
    bool quick = false;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        char *end = "?";
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], &end, 10);
        else if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
            end = "";
        }
        if (*end != '\0') {
            fprintf(stderr, "usage: bench_criteria [--quick] [--seed N]\n");
            return 2;
        }
    }
    facts_error error = { 0 };
    facts_comparison c;
    int status = facts_compare(&c, quick, seed, &error);
    if (status != 0) {
        fprintf(stderr, "bench_criteria: %s\n", status == ENOMEM ? "out of memory" : error.text);
        return status == EINVAL ? 2 : 3;
    }
    print_head(&c);
    for (facts_criterion k = 0; k < FACTS_CRITERION_COUNT; k++)
        print_row(&c, k);
    return fflush(stdout) == 0 ? 0 : 3;
}
