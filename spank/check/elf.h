/* spank/check/elf.h - exported symbols of a shared object, read from the file: a plugin cannot be
 * loaded outside of the program that it belongs to. */
#ifndef HPCT_CHECK_ELF_H
#define HPCT_CHECK_ELF_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* *value is the exported 32-bit variable `name` of the 64-bit ELF file `path`, of this machine's
 * byte order. HPCT_ERR_NO_INPUT when it cannot be read, HPCT_ERR_DATA when it is no such file or
 * has no such variable. */
hpct_status hpct_elf_number(const char *path, const char *name, uint32_t *value);

/* *has is whether the 64-bit ELF file `path` exports `name`. HPCT_ERR_NO_INPUT when it cannot be
 * read, HPCT_ERR_DATA when it is no shared object. */
hpct_status hpct_elf_exports(const char *path, const char *name, bool *has);

#endif
