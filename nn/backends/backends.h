/* nn/backends/backends.h - the backends by name. */
#ifndef HPCT_NN_BACKENDS_BACKENDS_H
#define HPCT_NN_BACKENDS_BACKENDS_H

#include "nn/backend/backend.h"

/* All built-in backends, NULL-terminated; the first is the default. */
extern const hpct_backend *const hpct_backend_table[];

/* Finds a backend by name, ready for use. "cuda" is loaded on demand (nn/backend/module.h). Returns
 * HPCT_ERR_USAGE, listing the names, if unknown; HPCT_ERR_CONFIG, in one line, if its module, a
 * library or a device is missing. */
hpct_status hpct_backend_find(const hpct_backend **out, const char *name);

/* The device table of a backend, loaded but not opened: for information only. */
hpct_status hpct_backend_find_device(const hpct_backend_device **out, const char *name);

/* "auto": cuda if available, else cpu; or by name. */
hpct_status hpct_backend_choose(const hpct_backend **out, const char *name);

#endif
