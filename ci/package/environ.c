/* The environment's three names as one variable. The lists of symbols that zig links with do not
 * say that they are one: a program that copied `environ` alone would find NULL there, as libc fills
 * `__environ`. */
char **__environ;
extern char **environ __attribute__((alias("__environ")));
extern char **_environ __attribute__((alias("__environ")));
