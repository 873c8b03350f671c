import type { MailSender } from '../src/accounts/mail-delivery/mail-sender.js';
import { asApplicationFailure } from './failures.js';

/** Creates the mail activities. A retry sends a mail again if its sending was not acknowledged. */
export function createMailActivities(mails: Pick<MailSender, 'send'>) {
  return {
    /** Names a mail by its row, so that neither its address nor its token is in any workflow history. */
    deliverMail: (mailId: string) => asApplicationFailure(() => mails.send(mailId)),
  };
}

export type MailActivities = ReturnType<typeof createMailActivities>;
