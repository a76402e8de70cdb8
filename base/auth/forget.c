/* srun's environment is copied into messages and buffers that are freed as they are. Memory is read
 * through /proc/self/mem, as other threads may unmap it meanwhile. */
#include <config.h>

#include "base/auth/forget.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK 65536
#define PART                                                                                       \
    8 /* bytes of the key that are searched for: of freed memory some may be in use again */

/* Not in core dumps, and so not wiped itself. */
typedef struct search {
    int file; /* /proc/self/mem */
    hpct_auth_key key;
    char text[HPCT_AUTH_KEY_TEXT];
    uint8_t memory[CHUNK];
} search;

/* Only bytes that are still those that were found: another thread may have got the memory, or
 * unmapped it, which pread tells. */
static void wipe(const search *s, uintptr_t at, const uint8_t *found, size_t size)
{
    uint8_t now[2 * PART];
    if (pread(s->file, now, size, (off_t) at) != (ssize_t) size)
        return;
    explicit_bzero(now, sizeof now);
    union {
        uintptr_t address;
        uint8_t *byte;
    } place = {.address = at};
    for (size_t i = 0; i < size; i++) {
        uint8_t expected = found[i];
        __atomic_compare_exchange_n(place.byte + i, &expected, 0, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
}

static void wipe_all_of(const search *s, size_t got, uintptr_t at, const void *what, size_t size)
{
    const uint8_t *from = s->memory;
    for (const uint8_t *found;
         (found = memmem(from, got - (size_t) (from - s->memory), what, size)) != NULL;
         from = found + size)
        wipe(s, at + (uintptr_t) (found - s->memory), what, size);
}

static void search_range(search *s, uintptr_t low, uintptr_t high)
{
    const size_t overlap = 2 * PART - 1;
    while (low < high) {
        const size_t size = high - low < CHUNK ? high - low : CHUNK;
        ssize_t got = pread(s->file, s->memory, size, (off_t) low);
        if (got <= 0)
            return;
        for (size_t part = 0; part < sizeof s->key.bytes; part += PART) {
            wipe_all_of(s, (size_t) got, low, s->text + 2 * part, 2 * PART);
            wipe_all_of(s, (size_t) got, low, s->key.bytes + part, PART);
        }
        if ((size_t) got <= overlap)
            return;
        low += (uintptr_t) got - (low + (uintptr_t) got < high ? overlap : 0);
    }
}

/* Lines of smaps: "7f00-7f10 rw-p …", then properties, the last of them "VmFlags: rd wr … dd". */
static void search_all(search *s, FILE *ranges)
{
    char *line = NULL;
    size_t room = 0;
    unsigned long low = 0, high = 0, from = 0, to = 0;
    char mode[5] = "";
    while (getline(&line, &room, ranges) > 0) {
        char rights[5] = "";
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3) {
            low = from;
            high = to;
            memcpy(mode, rights, sizeof mode);
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strncmp(mode, "rw", 2) == 0 &&
                   strstr(line, " dd") == NULL) {
            search_range(s, low, high);
        }
    }
    free(line);
}

void hpct_auth_key_forget(const hpct_auth_key *key)
{
    search *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return;
    madvise(s, sizeof *s, MADV_DONTDUMP);
    s->key = *key;
    hpct_auth_key_to_text(s->text, key);
    FILE *ranges = fopen("/proc/self/smaps", "re");
    s->file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (ranges != NULL && s->file >= 0)
        search_all(s, ranges);
    if (ranges != NULL)
        fclose(ranges);
    if (s->file >= 0)
        close(s->file);
    explicit_bzero(s, sizeof *s);
    munmap(s, sizeof *s);
}
