/* What a build is by the content of its libraries. */
#include "cudnn/backend/build_id.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char one[] = "/tmp/fattn-build-XXXXXX", two[] = "/tmp/fattn-build-XXXXXX";

static const char *path_of(const char *dir, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put(const char *dir, const char *name, const char *text)
{
    FILE *file = fopen(path_of(dir, name), "w");
    cr_assert_not_null(file, "%s", name);
    fputs(text, file);
    fclose(file);
}

static void make_both(void)
{
    cr_assert(mkdtemp(one) != NULL && mkdtemp(two) != NULL);
    for (int i = 0; i < 2; i++) {
        put(i ? two : one, "libcudnn.so.9", "small");
        put(i ? two : one, "libcudnn_graph.so.9", "large");
        put(i ? two : one, "libother.so.9", i ? "x" : "y");
        put(i ? two : one, "libnvrtc.so.13", "compiler");
    }
}

static void take_away(void)
{
    static const char *const names[] = { "libcudnn.so.9",  "libcudnn_graph.so.9",
                                         "libother.so.9",  "libcudnn_heuristic.so.9",
                                         "libnvrtc.so.13", "libnvrtc.so.13.0.88" };
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            unlink(path_of(i ? two : one, names[k]));
        cr_expect_eq(rmdir(i ? two : one), 0);
    }
}

TestSuite(build_id, .init = make_both, .fini = take_away);

Test(build_id, is_of_every_byte_of_the_libraries_and_not_of_their_folder)
{
    const uint64_t id = fattn__build_id(one, NULL);
    cr_expect_neq(id, 0);
    cr_expect_eq(fattn__build_id(two, NULL), id);
    put(two, "libcudnn.so.9", "smalk");
    cr_expect_neq(fattn__build_id(two, NULL), id);
    put(two, "libcudnn.so.9", "large");
    put(two, "libcudnn_graph.so.9", "small");
    cr_expect_neq(fattn__build_id(two, NULL), id, "which of them it is counts");
    put(two, "libcudnn.so.9", "small");
    put(two, "libcudnn_graph.so.9", "large");
    cr_expect_eq(fattn__build_id(two, NULL), id);
    put(two, "libcudnn_heuristic.so.9", "");
    cr_expect_neq(fattn__build_id(two, NULL), id, "a library more");
    cr_expect_eq(fattn__build_id("/nowhere", NULL), 0);
    cr_assert_eq(unlink(path_of(two, "libcudnn_heuristic.so.9")), 0);
    cr_assert_eq(symlink("/nowhere/libcudnn", path_of(two, "libcudnn_heuristic.so.9")), 0);
    cr_expect_eq(fattn__build_id(two, NULL), 0, "what cannot be read");
}

Test(build_id, the_compiler_counts_where_it_is_named)
{
    char compiler[512];
    snprintf(compiler, sizeof compiler, "%s", path_of(two, "libnvrtc.so.13"));
    const char *const also[] = { compiler, NULL }, *const missing[] = { "/nowhere/libnvrtc.so.13",
                                                                        NULL };
    const uint64_t id = fattn__build_id(one, also);
    cr_expect_neq(id, fattn__build_id(one, NULL));
    put(two, "libnvrtc.so.13", "computer");
    cr_expect_neq(fattn__build_id(one, also), id);
    cr_expect_eq(fattn__build_id(one, missing), 0);
}

/* A Debian package and a wheel name one compiler differently, as does a link to it. */
Test(build_id, the_name_of_a_compiler_does_not_matter)
{
    char plain[512], full[512];
    snprintf(plain, sizeof plain, "%s", path_of(one, "libnvrtc.so.13"));
    snprintf(full, sizeof full, "%s", path_of(two, "libnvrtc.so.13.0.88"));
    put(two, "libnvrtc.so.13.0.88", "compiler");
    put(two, "libnvrtc.so.13", "builtins");
    const char *const builtins = path_of(two, "libnvrtc.so.13"),
                      *const as_link[] = { plain, builtins, NULL },
                      *const as_file[] = { full, builtins, NULL },
                      *const reverse[] = { builtins, full, NULL };
    cr_expect_eq(fattn__build_id(one, as_link), fattn__build_id(one, as_file));
    cr_expect_neq(fattn__build_id(one, as_link), fattn__build_id(one, reverse),
                  "which of them it is counts");
}

/* Name, size, inode and time of writing are the same: the time of change is not. */
Test(build_id, the_stamp_sees_a_file_that_was_written_and_set_back)
{
    struct stat before;
    const char *path = path_of(one, "libcudnn.so.9");
    const uint64_t stamp = fattn__build_stamp(one, NULL), id = fattn__build_id(one, NULL);
    cr_expect_neq(stamp, 0);
    cr_expect_eq(fattn__build_stamp(one, NULL), stamp);
    cr_assert_eq(stat(path, &before), 0);
    usleep(20000); /* clocks of file systems tick each 4 ms */
    put(one, "libcudnn.so.9", "smalk");
    const struct timespec times[] = { before.st_atim, before.st_mtim };
    cr_assert_eq(utimensat(AT_FDCWD, path_of(one, "libcudnn.so.9"), times, 0), 0);
    cr_expect_neq(fattn__build_stamp(one, NULL), stamp);
    cr_expect_neq(fattn__build_id(one, NULL), id);
}
