import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

/** Name of the mail server that receives for the stub. */
export const AUTHSERV_ID = 'mx.resend.test';

export const EMAIL_DOMAIN = 'agents.example.com';

/** A mail that the stub sent. */
export interface SentMail {
  readonly id: string;
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tags: readonly { readonly name: string; readonly value: string }[];
}

/** A mail that the stub received, in the API's format. */
export interface StoredMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
  readonly message_id: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** Takes the place of an answer; returns false for the usual answer. */
type Fault = (response: ServerResponse, call: string) => boolean;

/** A loopback stand-in of Resend in its wire format. */
export class ResendStub {
  readonly mails = new Map<string, StoredMail>();
  readonly sent: SentMail[] = [];
  /** All calls, as `GET /emails/receiving/<id>` and `POST /emails <key>`. */
  readonly calls: string[] = [];
  readonly apiKey = `re_${randomBytes(16).toString('hex')}`;
  readonly secret = `whsec_${randomBytes(24).toString('base64')}`;
  /** Before the call has its effect. */
  fault: Fault = () => false;
  /** After the call had its effect, in place of its answer. */
  loss: Fault = () => false;
  readonly #byKey = new Map<string, { readonly body: string; readonly id: string }>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  #url = '';

  static async open(): Promise<ResendStub> {
    const stub = new ResendStub();
    await once(stub.#server.listen(0, '127.0.0.1'), 'listening');
    const { port } = stub.#server.address() as AddressInfo; // TCP: always an object
    stub.#url = `http://127.0.0.1:${port}`;
    return stub;
  }

  get env(): Record<string, string> {
    return {
      EMAIL_API_URL: this.#url,
      EMAIL_API_KEY: this.apiKey,
      EMAIL_WEBHOOK_SECRET: this.secret,
      EMAIL_DOMAIN,
      EMAIL_AUTHSERV_ID: AUTHSERV_ID,
    };
  }

  /** Receives a mail, and returns its event. */
  receive(mail: Partial<StoredMail> & Pick<StoredMail, 'from' | 'to'>) {
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

  /** Returns an event about a mail that the stub sent. */
  about(type: string, mail: Pick<SentMail, 'id'> & Partial<SentMail>, more: object = {}) {
    const tags = Object.fromEntries((mail.tags ?? []).map(({ name, value }) => [name, value]));
    return {
      type,
      created_at: new Date().toISOString(),
      data: { email_id: mail.id, tags, ...more },
    };
  }

  /** Returns the headers and the body of an event's delivery. */
  signed(event: unknown, { at = new Date(), id = `msg_${randomUUID()}`, prefix = 'svix' } = {}) {
    const body = JSON.stringify(event);
    const headers = {
      'content-type': 'application/json',
      [`${prefix}-id`]: id,
      [`${prefix}-timestamp`]: String(Math.floor(at.getTime() / 1_000)),
      [`${prefix}-signature`]: new Webhook(this.secret).sign(id, at, body),
    };
    return { headers, body };
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.#url);
    const key = request.headers['idempotency-key'];
    const call = [request.method, pathname, ...(key === undefined ? [] : [key])].join(' ');
    this.calls.push(call);
    const body = request.method === 'POST' ? await json(request) : undefined;
    if (this.fault(response, call)) return;
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

export function say(response: ServerResponse, status: number, answer: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}
