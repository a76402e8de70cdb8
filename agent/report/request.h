/* agent/report/request.h - the request of an HTTP/1.1 client: GET / alone. Foreign input. */
#ifndef HPCT_AGENT_REPORT_REQUEST_H
#define HPCT_AGENT_REPORT_REQUEST_H

#include <stddef.h>

#define HPCT_REPORT_REQUEST_BYTES 8192 /* at most */

/* What is to be answered to the first `size` bytes of a connection: 0 if they may be continued;
 * 200 for GET / with a Host that is this machine's loopback and this port, which a page of another
 * site cannot have (DNS rebinding); else 400, 403, 404, 405 or 431. */
int hpct_report_request(const char *data, size_t size, int port);

#endif
