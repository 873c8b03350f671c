import { pino } from 'pino';
import type { Database } from '../../src/platform/database/database.js';
import type { MailKind } from '../../src/types/mail-kinds.js';
import { MailSender } from '../../src/accounts/mail-delivery/mail-sender.js';
import type { MailMessage } from '../../src/accounts/mail/messages.js';

/** A sent mail. */
export interface SentMail extends MailMessage {
  readonly kind: MailKind;
  readonly to: string;
}

/** Sends all requested mails, as a worker does. @returns the sent mails, in no particular order. */
export async function sendWaitingMails(
  database: Database,
  webUrl = 'https://platform.example',
): Promise<SentMail[]> {
  const sent: Omit<SentMail, 'kind'>[] = [];
  const transport = {
    send(to: string, message: MailMessage) {
      sent.push({ ...message, to });
      return Promise.resolve();
    },
  };
  const sender = new MailSender({ database, transport, webUrl, log: pino({ level: 'silent' }) });
  const waiting = await database
    .asPlatform()
    .query<{ id: string; kind: MailKind }>(
      'SELECT id, kind FROM mails WHERE settled_at IS NULL ORDER BY requested_at',
    );
  const mails: SentMail[] = [];
  for (const { id, kind } of waiting) {
    await sender.send(id);
    mails.push(...sent.splice(0).map((mail) => ({ ...mail, kind })));
  }
  return mails;
}
