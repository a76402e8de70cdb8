/* base/alloc.h - lists that grow, and texts, on the heap. */
#ifndef HPCT_BASE_ALLOC_H
#define HPCT_BASE_ALLOC_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Makes room for `count` elements of `size` bytes in the array at *list, which has room for *room
 * of them; at least doubles it. The caller frees it. */
hpct_status hpct_alloc_room(void *list, size_t *room, size_t count, size_t size);

/* asprintf; *out is NULL after an error. The caller frees it. */
__attribute__((format(printf, 2, 3))) hpct_status hpct_alloc_text(char **out, const char *format,
                                                                  ...);

#endif
