import type { Logger } from 'pino';
import { isOfDeletedAccount } from '../accounts/account-deletions.js';
import { isMailbox } from '../accounts/email.js';
import { isResetMailBlocked } from '../accounts/reset-mail-blocks.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { MailKind } from '../../types/mail-kinds.js';
import { MailServerError, type MailTransport } from './mail-transport.js';
import { makeMailToken } from '../mail/mail-tokens.js';
import { messageOf, tokenKindOf, type MailMessage } from '../mail/messages.js';

/** The outcome of a mail: `nobody` without a recipient, `refused` if the server rejected it permanently. */
export type MailOutcome = 'sent' | 'nobody' | 'refused';

interface Requested {
  readonly kind: MailKind;
  readonly address: string;
  readonly userId: string | null;
}

/** Queries for the account of each kind of mail with a link, evaluated at sending time. */
const OWNERS: Readonly<Partial<Record<MailKind, string>>> = {
  'verify-email': `SELECT id FROM users
     WHERE id = $userId AND email = $address AND email_verified_at IS NULL`,
  'change-email': `SELECT id FROM users WHERE id = $userId AND pending_email = $address
     AND NOT EXISTS (SELECT FROM users WHERE email = $address)`,
  'reset-password': 'SELECT id FROM users WHERE email = $address',
};

interface MailSenderParts {
  readonly database: Database;
  readonly transport: MailTransport;
  readonly webUrl: string;
  readonly log: Logger;
}

/** A sender of requested mails, which makes tokens at sending time: no plain text is stored. */
export class MailSender {
  readonly #parts: MailSenderParts;

  constructor(parts: MailSenderParts) {
    this.#parts = parts;
  }

  /**
   * Sends a mail. If the outcome of an earlier attempt is unknown, sends the mail again with a new token,
   * which invalidates the earlier token.
   * @throws MailServerError if another attempt may succeed.
   */
  async send(mailId: string): Promise<MailOutcome> {
    const { database, log, transport } = this.#parts;
    const preparing = database.asPlatform().transaction((db) => this.#prepare(db, mailId));
    const prepared = await preparing.catch((error: unknown) => {
      if (isOfDeletedAccount(error)) return undefined;
      throw error;
    });
    let outcome: MailOutcome = 'nobody';
    if (prepared) {
      try {
        await transport.send(prepared.address, prepared.message);
        outcome = 'sent';
      } catch (error) {
        if (!(error instanceof MailServerError) || !error.isFinal) throw error;
        log.warn({ err: error, mailId, kind: prepared.kind }, 'the mail server refused a mail');
        outcome = 'refused';
      }
    }
    await settleMail(database, mailId);
    return outcome;
  }

  /** Returns the mail to send. @returns undefined if the mail is settled or has no recipient. */
  async #prepare(
    db: TenantTransaction,
    mailId: string,
  ): Promise<(Requested & { readonly message: MailMessage }) | undefined> {
    const [requested] = await db.query<Requested>(
      `SELECT kind, address, user_id AS "userId" FROM mails
        WHERE id = $mailId AND settled_at IS NULL`,
      { mailId },
    );
    if (!requested || !isMailbox(requested.address)) return undefined;
    const { address, kind } = requested;
    const tokenKind = tokenKindOf(kind);
    const owner = OWNERS[kind];
    if (tokenKind === undefined || owner === undefined) {
      return { ...requested, message: messageOf(kind, this.#parts.webUrl, undefined) };
    }
    const { userId } = requested;
    if (kind === 'reset-password' && (await isResetMailBlocked(db, address))) return undefined;
    const named = kind === 'reset-password' ? { address } : { address, userId };
    const [user] = await db.query<{ id: string }>(owner, named);
    if (!user) return undefined;
    const token = await makeMailToken(db, tokenKind, { userId: user.id, email: address });
    return { ...requested, message: messageOf(kind, this.#parts.webUrl, token) };
  }
}

/** Marks a mail as settled, so that no further attempt is made. */
export async function settleMail(database: Database, mailId: string): Promise<void> {
  await database
    .asPlatform()
    .query('UPDATE mails SET settled_at = now() WHERE id = $mailId AND settled_at IS NULL', {
      mailId,
    });
}
