/* What a command says when it ends: one line, and its exit code. */
#ifndef FACTS_COMPLAIN_H
#define FACTS_COMPLAIN_H

/* A line on stderr; returns `status`, as in: return facts_complain(FACTS_EXIT_BAD_INPUT, "facts run: …"). */
int facts_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
int facts_no_memory(void);

#endif
