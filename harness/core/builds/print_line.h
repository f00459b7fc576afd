/* Prints text from files, folders and the command line without control characters, so that a
 * terminal does not obey it. */
#ifndef FACTS_PRINT_LINE_H
#define FACTS_PRINT_LINE_H

#include <stdio.h>

/* Prints the line and its end. */
void facts_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
