import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { deliverEvent, signedEvent } from '../signed-webhooks.js';

/** Name of the mail server that receives for the stand-in. */
export const AUTHSERV_ID = 'mx.resend.test';

/** Maximum number of mails in memory. */
const MAX_MAILS = 10_000;

/** A mail that the stand-in sent. */
export interface SentMail {
  readonly id: string;
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tags: readonly { readonly name: string; readonly value: string }[];
}

/** A mail that the stand-in received, in the API's format. */
export interface StoredMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
  readonly message_id: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** Answers in place of the stand-in; returns false to keep the usual answer. */
type Fault = (response: ServerResponse, call: string) => boolean;

interface Options {
  /** Any free port by default. */
  readonly port?: number;
  readonly domain?: string;
  /** Address of the webhook; without one, no event is delivered. */
  readonly webhookUrl?: string;
}

/** A mail that a developer writes to an agent. */
type WrittenMail = Partial<StoredMail> & Pick<StoredMail, 'from' | 'to'>;

/**
 * A loopback stand-in of Resend in its wire format. `POST /inbox` accepts a mail to an agent, `GET /sent`
 * returns the answers; both are for developers, and no mail leaves the machine.
 */
export class ResendStandIn {
  readonly mails = new Map<string, StoredMail>();
  readonly sent: SentMail[] = [];
  /** All calls, as `GET /emails/receiving/<id>` and `POST /emails <key>`. */
  readonly calls: string[] = [];
  readonly apiKey = `re_${randomBytes(16).toString('hex')}`;
  readonly secret = `whsec_${randomBytes(24).toString('base64')}`;
  /** Runs before the call takes effect. */
  fault: Fault = () => false;
  /** Runs after the call took effect, in place of its answer. */
  loss: Fault = () => false;
  readonly #byKey = new Map<string, { readonly body: string; readonly id: string }>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #closing = new AbortController();
  readonly #options: Options;
  readonly domain: string;
  #url = '';

  private constructor(options: Options) {
    this.#options = options;
    this.domain = options.domain ?? 'agents.localhost';
  }

  static async open(options: Options = {}): Promise<ResendStandIn> {
    const standIn = new ResendStandIn(options);
    await once(standIn.#server.listen(options.port ?? 0, '127.0.0.1'), 'listening');
    const { port } = standIn.#server.address() as AddressInfo; // TCP: always an object
    standIn.#url = `http://127.0.0.1:${port}`;
    return standIn;
  }

  get env(): Record<string, string> {
    return {
      EMAIL_API_URL: this.#url,
      EMAIL_API_KEY: this.apiKey,
      EMAIL_WEBHOOK_SECRET: this.secret,
      EMAIL_DOMAIN: this.domain,
      EMAIL_AUTHSERV_ID: AUTHSERV_ID,
    };
  }

  /** Receives a mail, and returns its event. */
  receive(mail: WrittenMail) {
    const id = randomUUID();
    const domain = /@([^>]+)>?$/.exec(mail.from)?.[1] ?? '';
    const stored = {
      subject: 'A question',
      text: 'Is the shop open?',
      html: null,
      message_id: `<${id}@mail.example>`,
      headers: { 'authentication-results': `${AUTHSERV_ID}; dmarc=pass header.from=${domain}` },
      ...mail,
    };
    this.mails.set(id, stored);
    const { from, message_id, subject, to } = stored;
    const data = { email_id: id, from, to, cc: [], bcc: [], message_id, subject, attachments: [] };
    return { type: 'email.received', created_at: new Date().toISOString(), data };
  }

  /** Returns an event about a mail that the stand-in sent. */
  about(type: string, mail: Pick<SentMail, 'id'> & Partial<SentMail>, more: object = {}) {
    const tags = Object.fromEntries((mail.tags ?? []).map(({ name, value }) => [name, value]));
    return {
      type,
      created_at: new Date().toISOString(),
      data: { email_id: mail.id, tags, ...more },
    };
  }

  /** Returns the headers and the body of an event's delivery. */
  signed(event: unknown, options: Parameters<typeof signedEvent>[2] = {}) {
    return signedEvent(this.secret, event, { prefix: 'svix', ...options });
  }

  close(): void {
    this.#closing.abort();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.#url);
    const key = request.headers['idempotency-key'];
    const call = [request.method, pathname, ...(key === undefined ? [] : [key])].join(' ');
    this.calls.push(call);
    const body = await bodyOf(request);
    if (this.fault(response, call)) return;
    if (call === 'POST /inbox') return this.#write(response, body);
    if (call === 'GET /sent') return say(response, 200, this.sent);
    if (request.headers.authorization !== `Bearer ${this.apiKey}`) {
      return say(response, 401, { statusCode: 401, name: 'invalid_api_key' });
    }
    const mail = this.mails.get(pathname.replace('/emails/receiving/', ''));
    if (request.method === 'GET' && mail) {
      return say(response, 200, { object: 'email', ...mail, cc: [], bcc: [], attachments: [] });
    }
    if (call !== `POST /emails ${String(key)}`) {
      return say(response, 404, { statusCode: 404, name: 'not_found' });
    }
    this.#send(response, call, String(key), body);
  }

  /** Accepts a mail of a developer, and delivers its event. */
  #write(response: ServerResponse, body: unknown): void {
    const { from, to, ...mail } = (body ?? {}) as Record<string, unknown>;
    if (typeof from !== 'string' || typeof to !== 'string') {
      return say(response, 400, { error: 'A mail needs "from" and "to", as JSON' });
    }
    if (this.mails.size + this.sent.length >= MAX_MAILS) {
      return say(response, 503, { error: 'There are too many mails: start again' });
    }
    const event = this.receive({ from, to: [to], ...mail });
    void this.#deliver(event);
    say(response, 202, { id: event.data.email_id, message_id: event.data.message_id });
  }

  async #deliver(event: unknown): Promise<void> {
    const { webhookUrl } = this.#options;
    if (webhookUrl === undefined) return;
    await deliverEvent(webhookUrl, this.signed(event), this.#closing.signal);
  }

  #send(response: ServerResponse, call: string, key: string, mail: unknown): void {
    const body = JSON.stringify(mail);
    const known = this.#byKey.get(key);
    if (known && known.body !== body) {
      return say(response, 409, { statusCode: 409, name: 'invalid_idempotent_request' });
    }
    const id = known?.id ?? randomUUID();
    if (!known) {
      this.#byKey.set(key, { body, id });
      this.sent.push({ ...(mail as Omit<SentMail, 'id'>), id }); // as the platform sends mails
    }
    if (!this.loss(response, call)) say(response, 200, { id });
  }
}

/** Reads a body of JSON; a page of another site cannot send one. */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  if (request.headers['content-type'] !== 'application/json') return undefined;
  return json(request).catch(() => undefined);
}

export function say(response: ServerResponse, status: number, answer: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}
