import { isIPv4 } from 'node:net';
import nodemailer from 'nodemailer';
import type { Logger } from 'pino';
import { isLoopback } from '../../platform/environment/loopback.js';
import { reportNotice } from '../../platform/process/process-lifecycle.js';
import type { MailMessage } from '../mail/messages.js';
import type { MailSettings } from '../mail/settings.js';

/** Milliseconds for each SMTP step, and for a whole mail. After a timeout the mail is retried. */
const STEP_TIMEOUT_MS = 15_000;
const MAIL_TIMEOUT_MS = 60_000;

export interface MailTransport {
  /** Resolves when the mail server has accepted responsibility for the mail. @throws MailServerError */
  send(to: string, message: MailMessage): Promise<void>;
}

/** An error: the mail server did not accept the mail. Only the status of the server's response is included. */
export class MailServerError extends Error {
  override readonly name = 'MailServerError';

  constructor(
    what: string,
    /** True if the failure is permanent. */
    readonly isFinal: boolean,
  ) {
    super(`The mail server ${what}`);
  }
}

/**
 * Makes the configured transport; without `MAIL_FROM` the sender's domain is the host of `webUrl`.
 *
 * @param report shows a sentence to the person who started the platform.
 */
export function configuredMail(
  { available, from, smtpUrl }: MailSettings,
  webUrl: string,
  log: Logger,
  report: (notice: string) => void = reportNotice,
): MailTransport {
  if (smtpUrl !== undefined) return smtpTransport(smtpUrl, from ?? `no-reply@${hostOf(webUrl)}`);
  return available ? logTransport(log, report) : NO_TRANSPORT;
}

/** Returns the host in the form of a mail address's domain (RFC 5321). */
function hostOf(webUrl: string): string {
  const { hostname } = new URL(webUrl);
  if (hostname.startsWith('[')) return `[IPv6:${hostname.slice(1)}`;
  return isIPv4(hostname) ? `[${hostname}]` : hostname;
}

/** Makes a transport over SMTP that opens one connection for each mail. */
export function smtpTransport(address: string, from: string): MailTransport {
  const transporter = transporterTo(address, STEP_TIMEOUT_MS);
  return {
    async send(to, message) {
      try {
        await transporter.sendMail({
          ...message,
          from,
          // An object, because a string would be parsed as a list of addresses.
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

/** Connects and signs in, and sends nothing. @throws MailServerError */
export async function checkMailServer(address: string, stepMs: number): Promise<void> {
  const transporter = transporterTo(address, stepMs);
  try {
    await transporter.verify();
  } catch (error) {
    throw asMailServerError(error);
  } finally {
    transporter.close();
  }
}

function transporterTo(address: string, stepMs: number) {
  const { host, protocol, searchParams } = new URL(address);
  const mayBePlain = protocol === 'smtps:' || isLoopback(host) || searchParams.has('requireTLS');
  return nodemailer.createTransport({
    url: address,
    connectionTimeout: stepMs,
    greetingTimeout: stepMs,
    socketTimeout: stepMs,
    dnsTimeout: stepMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    // An attacker could strip STARTTLS from the unencrypted greeting.
    ...(!mayBePlain && { requireTLS: true }),
  });
}

function asMailServerError(error: unknown): MailServerError {
  const status = error instanceof Error && 'responseCode' in error ? error.responseCode : undefined;
  if (typeof status === 'number') {
    return new MailServerError(`answered with status ${status}`, status >= 500);
  }
  return new MailServerError('is unreachable or did not answer in time', false);
}

/** A transport for development: mails go to the log, and their links to the terminal of `npm start`. */
const logTransport = (log: Logger, report: (notice: string) => void): MailTransport => ({
  send(to, { subject, text }) {
    log.info({ mail: { to, subject, text } }, 'mail logged instead of sent: SMTP_URL is not set');
    for (const [link] of text.matchAll(LINK)) {
      report(`A mail to ${to} is not sent, because SMTP_URL is not set. ${subject}: ${link}`);
    }
    return Promise.resolve();
  },
});

/** A link with a token. */
const LINK = /https?:\/\/\S+[?&]token=\S+/g;

/** A transport that always fails temporarily, so that stored mails wait until a server is configured again. */
const NO_TRANSPORT: MailTransport = {
  send: () => Promise.reject(new MailServerError('is not configured: set SMTP_URL', false)),
};
