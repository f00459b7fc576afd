#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builds.h"

typedef struct image {
    const unsigned char *at;
    size_t bytes;
} image;

static const void *part(const image *file, size_t offset, size_t bytes)
{
    return offset <= file->bytes && bytes <= file->bytes - offset ? file->at + offset : NULL;
}

/* The newest "GLIBC_2.N" among the versions that one section asks for. Names lie in `texts`, which
 * ends in a zero byte. */
static int newest_in(const image *file, const Elf64_Shdr *section, const Elf64_Shdr *texts)
{
    int newest = 0;
    size_t at = section->sh_offset;
    for (unsigned i = 0; i < section->sh_info; i++) {
        const Elf64_Verneed *library = part(file, at, sizeof *library);
        size_t below = library ? at + library->vn_aux : 0;
        for (unsigned j = 0; library && j < library->vn_cnt; j++) {
            const Elf64_Vernaux *version = part(file, below, sizeof *version);
            const char *name = version && version->vna_name < texts->sh_size
                                   ? part(file, texts->sh_offset + version->vna_name, 1)
                                   : NULL;
            if (!name)
                return newest;
            int minor = strncmp(name, "GLIBC_2.", 8) == 0 ? (int)strtol(name + 8, NULL, 10) : 0;
            newest = minor > newest ? minor : newest;
            below += version->vna_next;
        }
        at += library ? library->vn_next : 0;
    }
    return newest;
}

static int newest_of(const image *file)
{
    const Elf64_Ehdr *head = part(file, 0, sizeof *head);
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64)
        return 0;
    const Elf64_Shdr *sections =
        part(file, head->e_shoff, (size_t)head->e_shnum * sizeof *sections);
    for (unsigned i = 0; sections && i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_GNU_verneed || sections[i].sh_link >= head->e_shnum)
            continue;
        const Elf64_Shdr *texts = &sections[sections[i].sh_link];
        const char *all = texts->sh_size ? part(file, texts->sh_offset, texts->sh_size) : NULL;
        return all && all[texts->sh_size - 1] == 0 ? newest_in(file, &sections[i], texts) : 0;
    }
    return 0;
}

int facts_glibc_needed(const char *program)
{
    struct stat info;
    int newest = 0, file = open(program, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    if (fstat(file, &info) == 0 && info.st_size > 0) {
        void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (at != MAP_FAILED) {
            newest = newest_of(&(image){ at, (size_t)info.st_size });
            (void)munmap(at, (size_t)info.st_size);
        }
    }
    (void)close(file);
    return newest;
}
