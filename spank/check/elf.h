/* spank/check/elf.h - exported symbols of a shared object, read from the file, as a plugin cannot
 * be loaded outside its program. */
#ifndef HPCT_SPANK_CHECK_ELF_H
#define HPCT_SPANK_CHECK_ELF_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* *value is the exported 32-bit variable `name` of the 64-bit ELF file `path`, in this machine's
 * byte order. Returns HPCT_ERR_NO_INPUT if unreadable, HPCT_ERR_DATA if it is not such a file or
 * lacks the variable. */
hpct_status hpct_check_elf_number(const char *path, const char *name, uint32_t *value);

/* *has: the 64-bit ELF file `path` exports `name`. Returns HPCT_ERR_NO_INPUT if unreadable,
 * HPCT_ERR_DATA if it is not a shared object. */
hpct_status hpct_check_elf_exports(const char *path, const char *name, bool *has);

#endif
