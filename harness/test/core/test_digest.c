/* Digests of large files, kept in the cache: when are they used, and when is the file read? A test
 * cannot set a file's time of change. So the clock that the digest asks is moved, and a forged entry
 * shows whether the digest came from the cache. */
#include "builds/digest.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "builds/home.h"

#define LARGE (5 << 20)
#define NAME "libcudnn_graph.so.9"
#define FORGED "f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0"

static char folder[] = "/tmp/facts-digest-XXXXXX", library[64];
static time_t ahead; /* seconds from the real time to that of the digest */
static bool whole_seconds;

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec + ahead;
    return now.tv_sec + ahead;
}

/* The file system's clock, as an image has it. */
int fstat(int file, struct stat *out)
{
    const int failed = fstatat(file, "", out, AT_EMPTY_PATH);
    if (failed == 0 && whole_seconds)
        out->st_ctim.tv_nsec = 0;
    return failed;
}

static void put(const char *text)
{
    const int file = open(library, O_WRONLY | O_CREAT, 0644);
    cr_assert(file >= 0 && ftruncate(file, LARGE) == 0);
    cr_assert_eq(pwrite(file, text, strlen(text), LARGE / 2), (ssize_t)strlen(text));
    close(file);
}

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(library, sizeof library, "%s/" NAME, folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    put("one");
    ahead = 1000;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static void tear_down(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(digest, .init = set_up, .fini = tear_down);

/* In another process: this one would remember its answer. */
static facts_digest ask(void)
{
    facts_digest *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(!facts_digest_file(library, shared));
    cr_assert(waitpid(child, &status, 0) == child && status == 0);
    const facts_digest out = *shared;
    munmap(shared, sizeof *shared);
    return out;
}

static const char *bytes_of(void)
{
    static char bytes[LARGE];
    const int file = open(library, O_RDONLY);
    cr_assert_eq(read(file, bytes, LARGE), LARGE);
    close(file);
    return bytes;
}

/* The only file of the cache. False: there is none. */
static bool entry(char out[FACTS_PATH])
{
    const struct dirent *each;
    bool found = false;
    snprintf(out, FACTS_PATH, "%s/facts/digests", folder);
    DIR *open = opendir(out);
    while (open != NULL && (each = readdir(open)) != NULL)
        if (each->d_name[0] != '.') {
            cr_expect(!found, "one file for a library: %s", each->d_name);
            found = true;
            snprintf(out, FACTS_PATH, "%s/facts/digests/%.200s", folder, each->d_name);
        }
    if (open != NULL)
        closedir(open);
    return found;
}

/* An entry with another SHA-256. Only one that is made by the rules has a fitting check. */
static void forge(bool fits)
{
    char path[FACTS_PATH], text[512] = "";
    cr_assert(entry(path));
    const int file = open(path, O_RDWR);
    const ssize_t n = read(file, text, sizeof text - 1);
    cr_assert_gt(n, 100);
    memcpy(text + n - 17 - 65, FORGED, 64);
    if (fits)
        snprintf(text + n - 17, 18, "%016" PRIx64, XXH3_64bits(text, (size_t)n - 17));
    text[n - 1] = '\n';
    cr_assert_eq(pwrite(file, text, (size_t)n, 0), n);
    close(file);
}

static bool is_from_cache(void)
{
    return strcmp(ask().sha256, FORGED) == 0;
}

Test(digest, a_kept_digest_is_used_and_equals_that_of_the_bytes)
{
    char path[FACTS_PATH];
    ahead = 0;
    const facts_digest read = ask();
    cr_expect(!entry(path), "a file that was just written may change without a new time");
    ahead = 1000;
    const facts_digest kept = ask(), used = ask();
    cr_expect_str_eq(read.sha256,
                     "3e27ee9d55b8bd52a42e98d3d8ce6d1c1a06213e186a2a73766c9f52b54feac5");
    cr_expect_eq(read.xxh3,
                 XXH3_64bits_withSeed(bytes_of(), LARGE, XXH3_64bits(NAME, strlen(NAME))));
    cr_expect(memcmp(&read, &kept, sizeof read) == 0 && memcmp(&read, &used, sizeof read) == 0);
    forge(true);
    cr_expect(is_from_cache());
}

Test(digest, a_library_changed_in_place_has_another_content)
{
    const facts_digest one = ask();
    struct stat info;
    cr_assert_eq(stat(library, &info), 0);
    const struct timespec as_before[] = { info.st_atim, info.st_mtim };
    put("two");
    cr_assert_eq(utimensat(AT_FDCWD, library, as_before, 0), 0);
    const facts_digest two = ask();
    cr_expect_neq(one.xxh3, two.xxh3, "same size and time of writing");
    cr_expect_str_neq(one.sha256, two.sha256);
    forge(true);
    cr_expect(is_from_cache(), "the new one took its place");
}

Test(digest, a_broken_entry_is_computed_anew)
{
    char path[FACTS_PATH];
    const facts_digest one = ask();
    forge(false);
    cr_expect_str_eq(ask().sha256, one.sha256);
    cr_assert(entry(path));
    cr_assert_eq(truncate(path, 90), 0);
    cr_expect_str_eq(ask().sha256, one.sha256);
    cr_assert_eq(truncate(path, 0), 0);
    cr_expect_str_eq(ask().sha256, one.sha256);
    forge(true);
    cr_expect(is_from_cache(), "the broken entry was replaced");
    cr_assert_eq(chmod(path, 0620), 0);
    cr_expect(!is_from_cache(), "another user may have written it");
}

Test(digest, a_file_whose_time_of_change_says_little_is_read_each_time)
{
    char path[FACTS_PATH];
    whole_seconds = true;
    ask();
    cr_expect(!entry(path), "an image's own time");
    whole_seconds = false;
    ask();
    forge(true);
    cr_expect(is_from_cache());
    for (ahead = -1000; ahead <= 30; ahead += 1030)
        cr_expect(!is_from_cache(), "changed %ld s ago", (long)ahead);
}

Test(digest, without_a_folder_for_it_nothing_is_kept)
{
    char path[FACTS_PATH];
    const facts_digest one = ask();
    cr_assert(entry(path));
    *strrchr(path, '/') = '\0';
    cr_assert_eq(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    const int file = open(path, O_CREAT | O_WRONLY, 0644);
    cr_assert(file >= 0 && close(file) == 0);
    cr_expect_str_eq(ask().sha256, one.sha256, "a file in its place");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(chmod(dirname(path), 0500), 0); /* root may write all the same */
    cr_expect_str_eq(ask().sha256, one.sha256, "a folder that may only be read");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    cr_expect_str_eq(ask().sha256, one.sha256, "no folder");
}
