/* Reads ELF files. Every offset and size in the file is checked against the file's size before
 * use. */
#include "spank/check/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

typedef struct image {
    unsigned char *bytes;
    size_t size;
} image;

static bool copy(const image *file, uint64_t offset, void *to, size_t size)
{
    if (offset > file->size || size > file->size - offset)
        return false;
    memcpy(to, file->bytes + offset, size);
    return true;
}

static bool is_called(const image *file, const Elf64_Shdr *names, uint32_t at, const char *name)
{
    size_t size = strlen(name) + 1;
    return at < names->sh_size && size <= names->sh_size - at && names->sh_offset < file->size &&
           at < file->size - names->sh_offset && size <= file->size - names->sh_offset - at &&
           memcmp(file->bytes + names->sh_offset + at, name, size) == 0;
}

/* File offset of a virtual address. */
static bool find_place(const image *file, const Elf64_Ehdr *head, uint64_t address, uint64_t *place)
{
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        if (!copy(file, head->e_phoff + i * sizeof part, &part, sizeof part))
            return false;
        if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
            address - part.p_vaddr < part.p_filesz) {
            *place = address - part.p_vaddr + part.p_offset;
            return true;
        }
    }
    return false;
}

/* Looks up an exported symbol of a shared object for this machine. False if the file is none or has
 * no symbol table; *found: the symbol exists. */
static bool find_symbol(const image *file, const char *name, Elf64_Ehdr *head, Elf64_Sym *symbol,
                        bool *found)
{
    Elf64_Shdr symbols, names;
    bool has_table = false;
    *found = false;
    if (!copy(file, 0, head, sizeof *head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_type != ET_DYN)
        return false;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        if (!copy(file, head->e_shoff + i * sizeof symbols, &symbols, sizeof symbols))
            return false;
        if (symbols.sh_type != SHT_DYNSYM ||
            !copy(file, head->e_shoff + symbols.sh_link * sizeof names, &names, sizeof names))
            continue;
        has_table = true;
        for (uint64_t at = 0; at + sizeof *symbol <= symbols.sh_size; at += sizeof *symbol) {
            if (!copy(file, symbols.sh_offset + at, symbol, sizeof *symbol))
                return false;
            *found =
                symbol->st_shndx != SHN_UNDEF && is_called(file, &names, symbol->st_name, name);
            if (*found)
                return true;
        }
    }
    return has_table;
}

/* Maps the file; the caller unmaps it. */
static hpct_status map(const char *path, image *file)
{
    struct stat info;
    void *bytes = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        bytes = mmap(NULL, (size_t) info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return hpct_fail(HPCT_ERR_DATA, "%s is not a shared object", path);
    *file = (image){.bytes = bytes, .size = (size_t) info.st_size};
    return HPCT_OK;
}

hpct_status hpct_check_elf_number(const char *path, const char *name, uint32_t *value)
{
    image file;
    Elf64_Ehdr head;
    Elf64_Sym symbol;
    uint64_t place;
    bool found = false;
    HPCT_TRY(map(path, &file));
    found = find_symbol(&file, name, &head, &symbol, &found) && found &&
            symbol.st_size == sizeof *value && find_place(&file, &head, symbol.st_value, &place) &&
            copy(&file, place, value, sizeof *value);
    munmap(file.bytes, file.size);
    return found ? HPCT_OK : hpct_fail(HPCT_ERR_DATA, "%s is not a plugin with a %s", path, name);
}

hpct_status hpct_check_elf_exports(const char *path, const char *name, bool *has)
{
    image file;
    Elf64_Ehdr head;
    Elf64_Sym symbol;
    HPCT_TRY(map(path, &file));
    hpct_status status = HPCT_OK;
    if (!find_symbol(&file, name, &head, &symbol, has))
        status = hpct_fail(HPCT_ERR_DATA, "%s is not a shared object with symbols", path);
    munmap(file.bytes, file.size);
    return status;
}
