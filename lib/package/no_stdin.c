/* Stands in for stdin in the jansson that is packed into the library: distributions compile its
 * archive in a way that a shared library cannot take when it names a variable of libc's. It is only
 * compared with, in a function that the library does not call. */
#include <stdio.h>

extern FILE *const fattn__no_stdin;
FILE *const fattn__no_stdin = NULL;
