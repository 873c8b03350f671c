import { isIPv4 } from 'node:net';
import nodemailer from 'nodemailer';
import type { Logger } from 'pino';
import { isLoopback } from '../../platform/environment/loopback.js';
import type { MailMessage } from '../mail/messages.js';
import type { MailSettings } from '../mail/settings.js';

/** Milliseconds for each step, and for all of a mail. The server is tried again when they are over. */
const STEP_TIMEOUT_MS = 15_000;
const MAIL_TIMEOUT_MS = 60_000;

/** What carries mails away. */
export interface MailTransport {
  /**
   * Resolves when somebody else is answerable for the mail.
   *
   * @throws MailServerError
   */
  send(to: string, message: MailMessage): Promise<void>;
}

/** The mail's server did not take it. Says no more of what the server said than its number. */
export class MailServerError extends Error {
  constructor(
    what: string,
    /** Whether it would not take the mail later either. */
    readonly isFinal: boolean,
  ) {
    super(`The mail server ${what}`);
    this.name = 'MailServerError';
  }
}

/** @param webUrl whose host mail is from where `MAIL_FROM` does not say it. */
export function configuredMail(
  { available, from, smtpUrl }: MailSettings,
  webUrl: string,
  log: Logger,
): MailTransport {
  if (smtpUrl !== undefined) return smtpTransport(smtpUrl, from ?? `no-reply@${hostOf(webUrl)}`);
  return available ? logTransport(log) : NO_TRANSPORT;
}

/** As an address of mail has it (RFC 5321). */
function hostOf(webUrl: string): string {
  const { hostname } = new URL(webUrl);
  if (hostname.startsWith('[')) return `[IPv6:${hostname.slice(1)}`;
  return isIPv4(hostname) ? `[${hostname}]` : hostname;
}

/** By SMTP, one connection a mail. */
export function smtpTransport(address: string, from: string): MailTransport {
  const { host, protocol, searchParams } = new URL(address);
  const mayBePlain = protocol === 'smtps:' || isLoopback(host) || searchParams.has('requireTLS');
  const transporter = nodemailer.createTransport({
    url: address,
    connectionTimeout: STEP_TIMEOUT_MS,
    greetingTimeout: STEP_TIMEOUT_MS,
    socketTimeout: STEP_TIMEOUT_MS,
    dnsTimeout: STEP_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
    // What is said before could have been made to leave STARTTLS out.
    ...(!mayBePlain && { requireTLS: true }),
  });
  return {
    async send(to, message) {
      try {
        await transporter.sendMail({
          ...message,
          from,
          // As an object it is not read as a list of addresses.
          to: { name: '', address: to },
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.timeout(MAIL_TIMEOUT_MS),
        });
      } catch (error) {
        throw asMailServerError(error);
      }
    },
  };
}

function asMailServerError(error: unknown): MailServerError {
  const status = error instanceof Error && 'responseCode' in error ? error.responseCode : undefined;
  if (typeof status === 'number') {
    return new MailServerError(`answered with ${status}`, status >= 500);
  }
  return new MailServerError('cannot be reached or did not answer in time', false);
}

/** For developers: what would be mailed is in the log, links with their tokens too. */
const logTransport = (log: Logger): MailTransport => ({
  send(to, { subject, text }) {
    log.info({ mail: { to, subject, text } }, 'a mail, which is only logged: SMTP_URL is not set');
    return Promise.resolve();
  },
});

/** Mails that were asked for while there was a server wait for it to be named again. */
const NO_TRANSPORT: MailTransport = {
  send: () => Promise.reject(new MailServerError('is not configured: SMTP_URL', false)),
};
