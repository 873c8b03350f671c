import type { MailSender } from '../src/accounts/mail-delivery/mail-sender.js';
import { asApplicationFailure } from './failures.js';

/** What sends mails. Asked for again it sends one again that nobody heard of being sent. */
export function createMailActivities(mails: Pick<MailSender, 'send'>) {
  return {
    /** The mail is named by its row: neither its address nor its token is in any history. */
    deliverMail: (mailId: string) => asApplicationFailure(() => mails.send(mailId)),
  };
}

export type MailActivities = ReturnType<typeof createMailActivities>;
