/* How people are told what files, folders and the command line say: a line in which nothing is left that a terminal would obey. */
#ifndef FACTS_PRINT_LINE_H
#define FACTS_PRINT_LINE_H

#include <stdio.h>

/* Prints the line and its end. */
void facts_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
