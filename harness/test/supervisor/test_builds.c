/* Builds: what a folder holds, what a user's words mean, whether a file is what its package
 * shipped. */
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../answer_lines.h"
#include "builds/builds.h"
#include "builds/described_device.h"
#include "builds/digest.h"
#include "builds/integrity.h"

static char root[64];

static char *at(const char *format, ...)
{
    static char ring[8][FACTS_PATH];
    static int next;
    char *out = ring[next++ % 8], tail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(tail, sizeof tail, format, args);
    va_end(args);
    snprintf(out, FACTS_PATH, "%s/%s", root, tail);
    return out;
}

static void put(const char *path, const char *text)
{
    char folder[FACTS_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *c = folder + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(folder, 0755);
            *c = '/';
        }
    FILE *file = fopen(path, "w");
    cr_assert(file, "%s", path);
    fputs(text, file);
    fclose(file);
}

/* A cuDNN as a toolkit has it: no metadata, the engines library's own texts say what it is. */
static void make_bare(const char *folder, int minor, int patch, int cuda, bool full)
{
    char engines[512];
    snprintf(engines, sizeof engines,
             "\x7f"
             "ELF... cudnn_version != (9 * 10000 + %d * 100 + %d) ... "
             "--ext-desc-file=\"/usr/local/cuda-%d.1/bin/ptxExtDesc.txt\" "
             "%0100d",
             minor, patch, cuda, 0);
    put(at("%s/libcudnn.so.9", folder), "main");
    put(at("%s/libcudnn_graph.so.9", folder), "graph");
    put(at("%s/libcudnn_engines_runtime_compiled.so.9", folder), engines);
    if (full)
        put(at("%s/libcudnn_engines_precompiled.so.9", folder), "precompiled");
}

/* A cuDNN as FACTS installs it: METADATA and RECORD beside lib/. */
static void make_installed(const char *name, const char *package, const char *version)
{
    char text[512], lib[256];
    snprintf(lib, sizeof lib, "cache/facts/cudnn/%s/lib", name);
    make_bare(lib, 1, 0, 13, false);
    struct stat info;
    cr_assert_eq(stat(at("%s/libcudnn_engines_runtime_compiled.so.9", lib), &info), 0);
    snprintf(text, sizeof text,
             "Metadata-Version: 2.1\nName: %s\nVersion: %s\n\nText\nVersion: 1.0.0\n", package,
             version);
    put(at("cache/facts/cudnn/%s/METADATA", name), text);
    snprintf(text, sizeof text,
             "nvidia/cudnn_jit/lib/libcudnn.so.9,sha256=%s,4\nnvidia/cudnn_jit/lib/"
             "libcudnn_engines_runtime_compiled.so.9,sha256=x,%ld\n",
             "DW5AeeNnA-vTfAByL1iR0osOKBHcEUsSkhUSOtzONgU", (long)info.st_size);
    put(at("cache/facts/cudnn/%s/RECORD", name), text);
}

static void make_nvrtc(const char *folder, const char *version)
{
    put(at("%s/libnvrtc.so.%.2s", folder, version), "nvrtc");
    put(at("%s/libnvrtc-builtins.so.%s", folder, version), "builtins");
}

static int unlink_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static void set_up(void)
{
    strcpy(root, "/tmp/facts-builds-XXXXXX");
    cr_assert(mkdtemp(root));
    setenv("XDG_CACHE_HOME", at("cache"), 1);
    setenv("FACTS_HOME", at("home"), 1);
    setenv("HOME", at("nowhere"), 1);
    setenv("PATH", at("nowhere"), 1);
    setenv("CUDA_HOME", at("toolkit"), 1);
    unsetenv("VIRTUAL_ENV");
    unsetenv("FACTS_PYTHON");
    put(at("home/ci/cudnn.lock"),
        "# comment\n"
        "nvidia-cudnn-jit-cu13 9.27.0.42 "
        "4d6d7ab6b6bb7bb1ee9a4dfe2a1d5a9e5b5d7e3f7c9d2b4a6c8e0f1a3b5c7d9e 74360782 w.whl\n"
        "nvidia-cudnn-jit-cu13 9.21.1.3 "
        "4d6d7ab6b6bb7bb1ee9a4dfe2a1d5a9e5b5d7e3f7c9d2b4a6c8e0f1a3b5c7d9e 65027521 w.whl\n"
        "nvidia-cudnn-cu12 9.9.0.52 "
        "4d6d7ab6b6bb7bb1ee9a4dfe2a1d5a9e5b5d7e3f7c9d2b4a6c8e0f1a3b5c7d9e 781418458 w.whl\n");
}

static void tear_down(void)
{
    nftw(root, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(builds, .init = set_up, .fini = tear_down);

static void make_three(void)
{
    make_installed("9.20.0-jit-cu13", "nvidia-cudnn-jit-cu13", "9.20.0.48");
    make_installed("9.20.0-jit-cu12", "nvidia-cudnn-jit-cu12", "9.20.0.48");
    make_installed("9.24.1-jit-cu13", "nvidia-cudnn-jit-cu13", "9.24.1.1");
    make_nvrtc("cache/facts/nvrtc/12.9.86/lib", "12.9");
    make_nvrtc("cache/facts/nvrtc/13.0.88/lib", "13.0");
}

Test(builds, a_bare_folder_is_known_by_its_engines_library)
{
    facts_build b;
    facts_error m;
    make_bare("jit", 26, 1, 13, false);
    make_bare("full", 8, 0, 12, true);
    cr_assert_eq(facts_build_identify(&b, at("jit"), &m), 0, "%s", m.text);
    cr_expect_str_eq(b.name, "9.26.1-jit-cu13");
    cr_expect(b.three_libraries);
    cr_expect_not(b.needs_nvrtc);
    cr_expect_str_eq(b.nvrtc, "");
    cr_assert_eq(facts_build_identify(&b, at("full"), &m), 0, "%s", m.text);
    cr_expect_str_eq(b.name, "9.8.0-full-cu12");
    cr_expect_not(b.three_libraries);
    cr_expect(b.needs_nvrtc);
}

Test(builds, metadata_is_believed_only_when_its_record_names_the_library_that_is_there)
{
    facts_build b;
    facts_error m;
    make_installed("x", "nvidia-cudnn-cu12", "9.11.0.98");
    cr_assert_eq(facts_build_identify(&b, at("cache/facts/cudnn/x"), &m), 0);
    cr_expect_str_eq(b.name, "9.11.0-full-cu12");
    cr_expect_str_eq(b.full_version, "9.11.0.98");
    cr_expect(b.three_libraries, "a full build kept for attention only has three libraries");
    make_bare("cache/facts/cudnn/x/lib", 15, 1, 13,
              false); /* replaced behind the metadata's back: other bytes, other size */
    FILE *file = fopen(at("cache/facts/cudnn/x/lib/libcudnn_engines_runtime_compiled.so.9"), "a");
    fputs("more", file);
    fclose(file);
    cr_assert_eq(facts_build_identify(&b, at("cache/facts/cudnn/x"), &m), 0);
    cr_expect_str_eq(b.name, "9.15.1-jit-cu13");
    cr_expect_str_eq(b.record, "");
}

Test(builds, a_folder_that_is_none_gets_one_line)
{
    facts_build b;
    facts_error m;
    cr_expect_eq(facts_build_identify(&b, at("absent"), &m), 2);
    cr_expect(strstr(m.text, "absent"));
    put(at("half/libcudnn.so.9"), "");
    cr_expect_eq(facts_build_identify(&b, at("half"), &m), 2);
    cr_expect(strstr(m.text, "not a whole cuDNN 9"), "%s", m.text);
    put(at("half/libcudnn_graph.so.9"), "");
    put(at("half/libcudnn_engines_runtime_compiled.so.9"), "nothing in it");
    cr_expect_eq(facts_build_identify(&b, at("half"), &m), 2);
    cr_expect(strstr(m.text, "the version of this cuDNN is not known"), "%s", m.text);
}

Test(builds, discovery_orders_newest_first_and_jit_before_full)
{
    facts_builds found;
    facts_error m;
    make_three();
    make_bare("toolkit/lib64", 20, 0, 13, true);
    cr_assert_eq(facts_builds_discover(&found, &m), 0, "%s", m.text);
    const char *expected[] = { "9.24.1-jit-cu13", "9.20.0-jit-cu13", "9.20.0-jit-cu12",
                               "9.20.0-full-cu13" };
    size_t seen = 0;
    for (size_t i = 0; i < found.count; i++)
        if (strncmp(found.at[i].dir, root, strlen(root)) ==
            0) { /* the machine's own builds lie elsewhere */
            cr_assert_lt(seen, 4);
            cr_expect_str_eq(found.at[i].name, expected[seen]);
            seen++;
        }
    cr_expect_eq(seen, 4);
    facts_builds_free(&found);
}

Test(builds, nvrtc_is_of_the_build_s_cuda_major_and_has_its_builtins)
{
    char path[FACTS_PATH];
    make_nvrtc("cache/facts/nvrtc/12.4.127/lib", "12.4");
    cr_expect_null(facts_nvrtc_find(12, NULL, path),
                   "12.4 decides yes for Blackwell and cannot compile");
    put(at("cache/facts/nvrtc/none/lib/libnvrtc.so.12"), "");
    cr_expect_null(facts_nvrtc_find(12, NULL, path), "no builtins: every compile fails");
    make_nvrtc("cache/facts/nvrtc/12.9.86/lib", "12.9");
    cr_assert_not_null(facts_nvrtc_find(12, NULL, path));
    cr_expect_str_eq(path, at("cache/facts/nvrtc/12.9.86/lib/libnvrtc.so.12"));
    setenv(FACTS_NVRTC, "12.4", 1);
    cr_assert_not_null(facts_nvrtc_find(12, NULL, path));
    cr_expect_str_eq(path, at("cache/facts/nvrtc/12.4.127/lib/libnvrtc.so.12"), "as given");
    setenv(FACTS_NVRTC, "12.6", 1);
    cr_expect_null(facts_nvrtc_find(12, NULL, path), "another is no replacement");
    unsetenv(FACTS_NVRTC);
    make_nvrtc("venv/cuda_nvrtc/lib", "12.4");
    put(at("venv/cudnn/lib/libcudnn.so.9"), "");
    cr_assert_not_null(facts_nvrtc_find(12, at("venv/cudnn/lib"), path));
    cr_expect(strstr(path, "venv/cuda_nvrtc/lib"), "its own, not a newer one: %s", path);
}

static int resolve(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                   facts_error *m)
{
    *note = *m = (facts_error){ 0 };
    return facts_builds_resolve(out, spec, flags, note, m);
}

/* The exit and the names, or the error; what is noted stands behind them. */
static const char *answer_of(const char *words, unsigned flags)
{
    static char answer[2 * sizeof(facts_error)];
    facts_builds b;
    facts_error note, m;
    const int status = resolve(&b, words, flags, &note, &m);
    int n = snprintf(answer, sizeof answer, "%d:", status);
    for (size_t i = 0; i < b.count; i++)
        n += snprintf(answer + n, sizeof answer - (size_t)n, " %s%s", b.at[i].name,
                      b.at[i].origin == FACTS_ORIGIN_LOCK ? " (lock)" : "");
    if (status != 0)
        n += snprintf(answer + n, sizeof answer - (size_t)n, " %s", m.text);
    if (note.text[0])
        snprintf(answer + n, sizeof answer - (size_t)n, "; %s", note.text);
    facts_builds_free(&b);
    return answer;
}

static const char *answer_of_build(const char *words)
{
    return answer_of(words, 0);
}

static const char *answer_of_installable(const char *words)
{
    return answer_of(words, FACTS_RESOLVE_INSTALLABLE);
}

static const char *answer_of_lock_only(const char *words)
{
    return answer_of(words, FACTS_RESOLVE_LOCK_ONLY);
}

static const char *answer_of_pinned(const char *words)
{
    return answer_of(words, FACTS_RESOLVE_PINNED);
}

static const char *error_of_device(const char *text)
{
    static facts_error m;
    facts_described_device d;
    put(at("device.json"), text);
    m = (facts_error){ 0 };
    cr_expect_eq(facts_device_load(&d, at("device.json"), &m), 2, "%s", text);
    cr_expect_null(strchr(m.text, '\x1b'));
    return m.text;
}

Test(builds, words_are_answered_as_their_file_says)
{
    static const answerer kinds[] = { { "build", answer_of_build },
                                      { "installable", answer_of_installable },
                                      { "lock", answer_of_lock_only },
                                      { "pinned", answer_of_pinned },
                                      { "device", error_of_device } };
    make_three();
    make_installed("9.21.1-jit-cu13", "nvidia-cudnn-jit-cu13", "9.21.1.4"); /* the lock: 9.21.1.3 */
    check_answers("builds.test", kinds, sizeof kinds / sizeof *kinds, 30);
}

Test(builds, folders_and_nvrtc_are_found)
{
    facts_builds b;
    facts_error note, m;
    char spec[FACTS_PATH + 64];
    make_three();
    make_bare("mine", 27, 0, 13, false);
    snprintf(spec, sizeof spec, "9.20.0-jit-cu12,%s", at("mine"));
    cr_assert_eq(resolve(&b, spec, 0, &note, &m), 0, "%s", m.text);
    cr_assert_eq(b.count, 2);
    cr_expect_str_eq(b.at[0].nvrtc, at("cache/facts/nvrtc/12.9.86/lib/libnvrtc.so.12"));
    cr_expect_str_eq(b.at[1].name, "9.27.0-jit-cu13");
    cr_expect_str_eq(note.text, "", "a full name leaves no choice");
    facts_builds_free(&b);
    make_installed("9.27.0-jit-cu13", "nvidia-cudnn-jit-cu13", "9.27.0.42");
    cr_expect_eq(resolve(&b, "9.27.0.42", FACTS_RESOLVE_PINNED, &note, &m), 0,
                 "as the lock has it: %s", m.text);
    facts_builds_free(&b);
}

Test(builds, a_build_without_its_nvrtc_is_refused_before_anything_is_asked)
{
    facts_builds b;
    facts_error note, m;
    make_installed("9.20.0-jit-cu12", "nvidia-cudnn-jit-cu12", "9.20.0.48");
    cr_expect_eq(resolve(&b, "9.20.0-jit-cu12", 0, &note, &m), 3);
    cr_expect(strstr(m.text, "libnvrtc.so.12"), "%s", m.text);
}

Test(builds, a_broken_lock_file_is_named_with_its_line)
{
    facts_builds b;
    facts_error m;
    put(at("home/ci/cudnn.lock"), "# fine\nnvidia-cudnn-jit-cu13 9.27.0.42 xyz 1 w\n");
    cr_expect_eq(facts_builds_installable(&b, &m), 3);
    cr_expect(strstr(m.text, "cudnn.lock:2"), "%s", m.text);
}

Test(builds, a_library_is_compared_with_its_package_s_record)
{
    facts_build b;
    facts_error m;
    facts_digest digest;
    char library[FACTS_PATH];
    make_installed("9.20.0-jit-cu13", "nvidia-cudnn-jit-cu13", "9.20.0.48");
    cr_assert_eq(facts_build_identify(&b, at("cache/facts/cudnn/9.20.0-jit-cu13"), &m), 0);
    facts_join(library, b.dir, "libcudnn.so.9");
    cr_assert(facts_digest_file(library, &digest));
    cr_expect_eq(facts_library_check(&b, library, digest.sha256), FACTS_INTEGRITY_OK);
    put(library, "Main");
    cr_assert(facts_digest_file(library, &digest));
    cr_expect_eq(facts_library_check(&b, library, digest.sha256), FACTS_INTEGRITY_MISMATCH);
    facts_join(library, b.dir, "libcudnn_graph.so.9");
    cr_expect_eq(facts_library_check(&b, library, digest.sha256), FACTS_INTEGRITY_UNKNOWN,
                 "the RECORD does not name it");
    unlink(library);
    cr_expect(!facts_digest_file(library, &digest));
}
