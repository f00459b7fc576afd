/* What a build is by the content of its libraries. */
#include "cudnn/backend/build_id.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An ELF file of a head, one note segment and a note with `hash`. */
typedef struct elf_file {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    Elf64_Nhdr other, note;
    char name[4];
    unsigned char hash[20];
    char rest[64];
} elf_file;

static elf_file made(int seed)
{
    elf_file f;
    memset(&f, 0, sizeof f);
    memcpy(f.head.e_ident, ELFMAG, SELFMAG);
    f.head.e_ident[EI_CLASS] = ELFCLASS64;
    f.head.e_phoff = offsetof(elf_file, part);
    f.head.e_phentsize = sizeof f.part;
    f.head.e_phnum = 1;
    f.part.p_type = PT_NOTE;
    f.part.p_offset = offsetof(elf_file, other);
    f.part.p_filesz = offsetof(elf_file, rest) - offsetof(elf_file, other);
    f.other = (Elf64_Nhdr){ .n_type = NT_GNU_ABI_TAG };
    f.note = (Elf64_Nhdr){ .n_namesz = 4, .n_descsz = sizeof f.hash, .n_type = NT_GNU_BUILD_ID };
    memcpy(f.name, "GNU", 4);
    for (size_t i = 0; i < sizeof f.hash; i++)
        f.hash[i] = (unsigned char)(seed + (int)i);
    return f;
}

Test(build_id, the_linkers_hash_is_found_among_notes)
{
    elf_file f = made(1);
    size_t length = 0;
    const unsigned char *hash = fattn__linker_hash((unsigned char *)&f, sizeof f, &length);
    cr_assert_not_null(hash);
    cr_expect_eq(length, sizeof f.hash);
    cr_expect_eq(hash, f.hash);
}

/* On the heap, so that a sanitizer sees a byte too many. */
Test(build_id, no_cut_or_changed_file_is_read_beyond_its_end)
{
    const elf_file f = made(1);
    size_t length;
    for (size_t count = 0; count < sizeof f; count++) {
        unsigned char *cut = malloc(count + 1);
        memcpy(cut, &f, count);
        const unsigned char *hash = fattn__linker_hash(cut, count, &length);
        cr_expect(hash == NULL || hash + length <= cut + count, "%zu", count);
        free(cut);
    }
    for (size_t at = 0; at < sizeof f; at++)
        for (int byte = 0; byte < 256; byte += 51) {
            unsigned char *bent = malloc(sizeof f);
            memcpy(bent, &f, sizeof f);
            bent[at] = (unsigned char)byte;
            const unsigned char *hash = fattn__linker_hash(bent, sizeof f, &length);
            cr_expect(hash == NULL || hash + length <= bent + sizeof f, "byte %zu", at);
            free(bent);
        }
}

static void put(const char *dir, const char *name, const void *bytes, size_t count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static void take_away(const char *dir)
{
    static const char *const names[] = { "libcudnn.so.9", "libcudnn_graph.so.9", "libother.so.9", "libcudnn_heuristic.so.9" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    cr_expect_eq(rmdir(dir), 0);
}

Test(build_id, is_of_the_libraries_and_not_of_their_folder)
{
    char one[] = "/tmp/fattn-build-XXXXXX", two[] = "/tmp/fattn-build-XXXXXX";
    cr_assert(mkdtemp(one) != NULL && mkdtemp(two) != NULL);
    cr_expect_eq(fattn__build_id(one), 0);
    elf_file a = made(1), b = made(2);
    for (int i = 0; i < 2; i++) {
        put(i ? two : one, "libcudnn.so.9", &a, sizeof a);
        put(i ? two : one, "libcudnn_graph.so.9", "no ELF file", 11);
        put(i ? two : one, "libother.so.9", i ? "x" : "y", 1);
    }
    const uint64_t id = fattn__build_id(one);
    cr_expect_neq(id, 0);
    cr_expect_eq(fattn__build_id(two), id);
    a.rest[0] = 1;
    put(two, "libcudnn.so.9", &a, sizeof a);
    cr_expect_eq(fattn__build_id(two), id, "the linker's hash stands for the content");
    put(two, "libcudnn.so.9", &b, sizeof b);
    cr_expect_neq(fattn__build_id(two), id);
    put(two, "libcudnn.so.9", &a, sizeof a);
    put(two, "libcudnn_graph.so.9", "no ELF fine", 11);
    cr_expect_neq(fattn__build_id(two), id, "without it every byte counts");
    put(two, "libcudnn_graph.so.9", "no ELF file", 11);
    put(two, "libcudnn_heuristic.so.9", &b, sizeof b);
    cr_expect_neq(fattn__build_id(two), id, "a library more");
    cr_expect_eq(fattn__build_id("/nowhere"), 0);
    take_away(one);
    take_away(two);
}
