/* agent/comm/mail.h - persistent messages (letters) over our own TCP connections, progressing while
 * the ranks compute. Data is received directly into its buffer; waiting ranks sleep. Independent of
 * contents. */
#ifndef HPCT_AGENT_COMM_MAIL_H
#define HPCT_AGENT_COMM_MAIL_H

#include "agent/comm/comm.h"

#include <stdint.h>

typedef struct hpct_comm_mail hpct_comm_mail;

/* Connects to the ranks that are true in wanted[size], as hpct_comm_peers_open does. */
hpct_status hpct_comm_mail_open(hpct_comm_mail **out, hpct_comm *comm, const bool *wanted,
                                int seconds);
void hpct_comm_mail_close(hpct_comm_mail *mail); /* NULL is allowed; no letter in flight */
bool hpct_comm_mail_reaches(const hpct_comm_mail *mail, int rank); /* mail may be NULL */
int hpct_comm_mail_fd(const hpct_comm_mail *mail); /* readable when progress is possible */

/* One end of a message in the caller's memory. Letters between two ranks in one direction have
 * different tags. */
typedef struct hpct_comm_letter {
    int rank; /* rank of the peer */
    bool receives;
    /* The buffer may be written before the receive is started: from hpct_comm_mail_renew on. */
    bool early;
    bool up_to; /* a receiver also accepts fewer bytes */
    uint32_t tag;
    char *data;
    size_t bytes; /* 1 or more */
    /* internal: bytes sent or received */
    size_t moved;
    bool asked, through;
    struct hpct_comm_letter *next; /* internal: next letter to be sent */
} hpct_comm_letter;

/* A receiving letter must be registered before the peer starts its own; otherwise it blocks other
 * data from that peer. */
hpct_status hpct_comm_mail_expect(hpct_comm_mail *mail, hpct_comm_letter *letter);
/* Unregisters a letter; if it is in flight, only close may follow. */
void hpct_comm_mail_forget(hpct_comm_mail *mail, hpct_comm_letter *letter);

/* Starts sending or receiving. Until completion the data must not be accessed. */
hpct_status hpct_comm_mail_start(hpct_comm_mail *mail, hpct_comm_letter *letter);

/* Call when the data of a completed letter is not needed any more: it may be received or sent
 * again. */
void hpct_comm_mail_renew(hpct_comm_letter *letter);

/* Whether data has arrived for a letter that was renewed since; hpct_comm_mail_fd does not signal
 * that. */
bool hpct_comm_mail_can_move(hpct_comm_mail *mail);

/* Progresses messages; sleeps up to the timeout if there is no progress. Returns HPCT_ERR_PEER if a
 * connection broke and the watch has not ended the process within some seconds. */
hpct_status hpct_comm_mail_move(hpct_comm_mail *mail, int wait_ms);

#endif
