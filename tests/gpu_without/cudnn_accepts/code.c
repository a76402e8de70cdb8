/* Machine code is in "fat binaries": a header, then entries, each with a header of its own that
 * says its kind, sizes and compute capability (as fatbinary_section.h of CUDA and cuobjdump show).
 */
#include "tests/gpu_without/cudnn_accepts/code.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUBIN 2 /* kind of an entry; 1 is PTX */

typedef struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of all entries */
} fat_header;

typedef struct fat_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t unused[3], capability;
} fat_entry;

static const uint32_t magic = 0xba55ed50;

/* Of the entries in `bytes` of memory. */
static int count_entries(const char *memory, size_t bytes, int major, int minor)
{
    fat_entry entry;
    int count = 0;
    for (size_t at = 0; bytes - at >= sizeof entry; at += entry.header_bytes + entry.bytes) {
        memcpy(&entry, memory + at, sizeof entry);
        int capability = (int) entry.capability;
        if (entry.header_bytes < sizeof entry || entry.header_bytes > bytes - at ||
            entry.bytes > bytes - at - entry.header_bytes)
            break;
        count +=
            entry.kind == CUBIN && capability >= 10 * major && capability <= 10 * major + minor;
    }
    return count;
}

int accepts_count_cubins(const void *memory, size_t bytes, int major, int minor)
{
    const char *at = memory, *end = at + bytes;
    fat_header header;
    int count = 0;
    while ((at = memmem(at, (size_t) (end - at), &magic, sizeof magic)) != NULL) {
        size_t left = (size_t) (end - at);
        if (left < sizeof header)
            break;
        memcpy(&header, at, sizeof header);
        at += sizeof magic;
        if (header.header_bytes != sizeof header || header.bytes > left - sizeof header)
            continue; /* other bytes that look like it */
        at += sizeof header - sizeof magic;
        count += count_entries(at, (size_t) header.bytes, major, minor);
        at += header.bytes;
    }
    return count;
}

int accepts_count_code(const char *library, int major, int minor)
{
    Dl_info info;
    struct stat about;
    char path[4096];
    if (dladdr((const void *) (uintptr_t) cudnnGetVersion, &info) == 0)
        return -1;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash != NULL ? (int) (slash - info.dli_fname) : 0;
    snprintf(path, sizeof path, "%.*s/%s.so.%d", length, info.dli_fname, library, CUDNN_MAJOR);
    int file = open(path, O_RDONLY | O_CLOEXEC), count = -1;
    if (file < 0 || fstat(file, &about) != 0 || about.st_size == 0) {
        if (file >= 0)
            close(file);
        return -1;
    }
    size_t bytes = (size_t) about.st_size;
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED)
        count = accepts_count_cubins(memory, bytes, major, minor);
    if (memory != MAP_FAILED)
        munmap(memory, bytes);
    close(file);
    return count;
}
