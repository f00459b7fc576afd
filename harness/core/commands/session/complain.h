/* The line on stderr that ends a failed command. */
#ifndef FACTS_COMPLAIN_H
#define FACTS_COMPLAIN_H

/* Prints a line on stderr and returns `status`: return facts_complain(FACTS_EXIT_BAD_INPUT, "facts
 * run: …"). */
int facts_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
