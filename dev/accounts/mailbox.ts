import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { poll } from '../poll.js';

/** A mail as the server received it. */
export interface ReceivedMail {
  readonly to: string;
  readonly from: string;
  /** The mail as it was sent: headers and both parts. */
  readonly raw: string;
  readonly text: string;
  readonly html: string;
}

/** A mail server that keeps received mails, for people who sign in. */
export interface Mailbox {
  /** The value for `SMTP_URL`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly mails: readonly ReceivedMail[];
  /** SMTP codes with which the server refuses the next mails: one code for each mail. */
  readonly refusals: number[];
  /** Waits until `count` mails for the address were received. @returns the last of them. */
  mailTo(address: string, count?: number): Promise<ReceivedMail>;
  close(): Promise<void>;
}

/**
 * Starts the mail server on loopback, without encryption.
 *
 * @param options.port any free port by default.
 * @param options.onMail is called with each received mail.
 */
export async function startMailbox({
  port: wanted = 0,
  onMail = () => undefined,
}: {
  readonly port?: number;
  readonly onMail?: (mail: ReceivedMail) => void;
} = {}): Promise<Mailbox> {
  const mails: ReceivedMail[] = [];
  const refusals: number[] = [];
  const password = randomBytes(8).toString('hex');
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth({ username, password: shown }, _session, callback) {
      if (username === 'platform' && shown === password) callback(null, { user: username });
      else callback(new Error('This mail is refused'));
    },
    onData(stream, { envelope }, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const refusal = refusals.shift();
        if (refusal !== undefined) {
          callback(Object.assign(new Error('Not now'), { responseCode: refusal }));
          return;
        }
        const raw = Buffer.concat(chunks).toString();
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const read = { from, raw, text: part(raw, 'plain'), html: part(raw, 'html') };
        for (const { address: to } of envelope.rcptTo) {
          const mail = { to, ...read };
          mails.push(mail);
          onMail(mail);
        }
        callback();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://platform:${password}@127.0.0.1:${port}`,
    host: '127.0.0.1',
    port,
    mails,
    refusals,
    async mailTo(address, count = 1) {
      const come = () => mails.filter(({ to }) => to === address);
      const last = await poll(() => Promise.resolve(come()[count - 1]), {
        timeoutMs: 60_000,
        everyMs: 50,
      });
      if (!last)
        throw new Error(`${come().length} mails were received for ${address}, not ${count}`);
      return last;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Returns one of a mail's two parts, without its transfer encoding. */
function part(raw: string, type: 'plain' | 'html'): string {
  const [, rest = ''] = raw.split(new RegExp(`Content-Type: text/${type}[^]*?\r\n\r\n`, 'i'));
  const [encoded = ''] = rest.split(/\r\n--/);
  const bytes = encoded
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString().replace(/\r\n/g, '\n');
}

/** Returns the token of the link in a mail's text. */
export function tokenIn({ text }: { readonly text: string }): string {
  const token = /\?token=([\w-]{43})\n/.exec(text)?.[1];
  if (token === undefined) throw new Error(`There is no link in:\n${text}`);
  return token;
}
