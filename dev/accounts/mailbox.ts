import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { poll } from '../poll.js';

/** A mail as its server has taken it. */
export interface ReceivedMail {
  readonly to: string;
  readonly from: string;
  /** As it was sent: headers and both parts. */
  readonly raw: string;
  readonly text: string;
  readonly html: string;
}

/** A mail server that keeps what it takes, for who signs in. */
export interface Mailbox {
  /** For `SMTP_URL`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly mails: readonly ReceivedMail[];
  /** What it answers the next mails with, instead of taking them: a number each. */
  readonly refusals: number[];
  /** Waits until so many mails have come to the address. @returns the last one of them. */
  mailTo(address: string, count?: number): Promise<ReceivedMail>;
  close(): Promise<void>;
}

/**
 * On loopback, where nothing is encrypted.
 *
 * @param options.port any free one, when it is left out.
 * @param options.onMail is told of each mail that it takes.
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
      else callback(new Error('Not this one'));
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
      if (!last) throw new Error(`${come().length} mails have come to ${address}, not ${count}`);
      return last;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** One of a mail's two parts, without its encoding for the way. */
function part(raw: string, type: 'plain' | 'html'): string {
  const [, rest = ''] = raw.split(new RegExp(`Content-Type: text/${type}[^]*?\r\n\r\n`, 'i'));
  const [encoded = ''] = rest.split(/\r\n--/);
  const bytes = encoded
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString().replace(/\r\n/g, '\n');
}

/** The token of the link in what a mail says. */
export function tokenIn({ text }: { readonly text: string }): string {
  const token = /\?token=([\w-]{43})\n/.exec(text)?.[1];
  if (token === undefined) throw new Error(`There is no link in:\n${text}`);
  return token;
}
