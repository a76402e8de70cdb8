/* agent/comm/mail.h - messages of many kinds at once over connections of our own: letters, each
 * prepared once and sent many times, which move while the ranks compute. What arrives goes straight
 * to its place; whoever waits sleeps. Knows nothing of what is in them. */
#ifndef HPCT_COMM_MAIL_H
#define HPCT_COMM_MAIL_H

#include "agent/comm/comm.h"

#include <stdint.h>

typedef struct hpct_mail hpct_mail;

/* Connects to the ranks whose entry in wanted[size] is true, as hpct_peers_open does. */
hpct_status hpct_mail_open(hpct_mail **out, hpct_comm *comm, const bool *wanted, int seconds);
void hpct_mail_close(hpct_mail *mail); /* allows NULL; no letter may be under way */
bool hpct_mail_reaches(const hpct_mail *mail, int rank); /* mail may be NULL */
int hpct_mail_fd(const hpct_mail *mail);                 /* readable when something can move */

/* One end of a message, the caller's memory. Letters between two ranks in one direction have
 * different tags. */
typedef struct hpct_letter {
    int rank; /* the other end */
    bool receives;
    /* A receiver's place may be written to before it has asked: from when the letter was renewed
     * on.
     */
    bool early;
    bool up_to; /* a receiver takes fewer bytes, too */
    uint32_t tag;
    char *data;
    size_t bytes; /* 1 or more */
    /* the mail's own */
    size_t moved;
    bool asked, through;
    struct hpct_letter *next; /* to be sent behind this one */
} hpct_letter;

/* A letter that receives must be known before the other end starts its own, or what else comes from
 * there waits behind it. */
hpct_status hpct_mail_expect(hpct_mail *mail, hpct_letter *letter);
/* Drops a letter; where it is under way, nothing but close may follow. */
void hpct_mail_forget(hpct_mail *mail, hpct_letter *letter);

/* Sends it, as far as that goes now; or asks for it. Until it is through its data are the mail's.
 */
hpct_status hpct_mail_start(hpct_mail *mail, hpct_letter *letter);

/* Of one that is through: what it brought has been read, and it may come, or go, again. */
void hpct_mail_renew(hpct_letter *letter);

/* Whether a letter has come whose place is now free, which hpct_mail_fd does not tell. */
bool hpct_mail_can_move(hpct_mail *mail);

/* Moves what can be moved; sleeps, for at most so long, while nothing can. HPCT_ERR_PEER when a
 * connection broke and the watch has not said why for some seconds. */
hpct_status hpct_mail_move(hpct_mail *mail, int wait_ms);

#endif
