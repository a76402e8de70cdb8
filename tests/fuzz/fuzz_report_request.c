/* Fuzz target: what the server of `hpc-train report --watch` is sent. */
#include "agent/report/request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PORT 8080

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *) data;
    size_t most = size < HPCT_REPORT_REQUEST_BYTES ? size : HPCT_REPORT_REQUEST_BYTES;
    int code = hpct_report_request(text, most, PORT);
    if (code != 0 && code != 200 && (code < 400 || code > 431))
        abort();
    if (code == 0 && most == HPCT_REPORT_REQUEST_BYTES)
        abort(); /* it would be waited for without an end */
    if (code == 200 && (memmem(text, most, "\r\n\r\n", 4) == NULL ||
                        memcmp(text, "GET / ", 6) != 0 || memmem(text, most, ":8080", 5) == NULL))
        abort();
    /* an answer that was given stays the same, however much follows */
    for (size_t bytes = 1; bytes < most; bytes += 1 + bytes / 16) {
        int early = hpct_report_request(text, bytes, PORT);
        if (early != 0 && early != code)
            abort();
        if (early != 0)
            break;
    }
    return 0;
}
