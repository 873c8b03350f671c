import * as z from 'zod';
import { ServiceError } from '../../lib/errors.js';
import { tryParseJson } from '../../lib/json.js';
import { boundedRequest, ResponseTooLargeError, textOf } from '../../platform/http/strict-call.js';
import { receivedMail, type ReceivedMail } from './received-mail.js';

const CALL_MS = 20_000;

/**
 * Maximum bytes of an answer; text and HTML of a mail have a few hundred kB, without attachments and images.
 */
const MAX_BYTES = 8 * 1024 * 1024;

/** Statuses that a repetition does not change: the request itself is refused. */
const FINAL = new Set([400, 404, 405, 410, 413, 422]);

/** Names of a 409 for a key that was used for another mail, as opposed to one that is being sent. */
const OTHER_MAIL = 'invalid_idempotent_request';

/**
 * 502: the e-mail provider refused a call, or did not answer. Names only the status, not the answer's
 * text.
 */
export class EmailProviderError extends ServiceError {
  override readonly name = 'EmailProviderError';

  constructor(
    message: string,
    /** True if another attempt would be refused as well. */
    readonly isFinal: boolean,
    options?: ErrorOptions,
  ) {
    super(502, message, undefined, {}, options);
  }
}

export interface OutgoingMail {
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Repeated in events about the mail. */
  readonly tag: string;
}

export interface ResendOptions {
  readonly apiUrl: string;
  readonly apiKey: string | undefined;
}

const sent = z.object({ id: z.string().min(1).max(255) });

const refusal = z.object({ name: z.string() });

/** The API of Resend, which receives and sends the e-mails of agents. */
export class Resend {
  readonly #options: ResendOptions;

  constructor(options: ResendOptions) {
    this.#options = options;
  }

  /** Returns a received mail, with its text and header fields. @throws EmailProviderError */
  async received(id: string, signal: AbortSignal): Promise<ReceivedMail> {
    // Images as references: by default they are part of the HTML.
    const path = `/emails/receiving/${encodeURIComponent(id)}?html_format=cid`;
    return readAs(receivedMail, await this.#call(path, {}, signal));
  }

  /** Sends a mail, once for a key within a day, and returns its id. @throws EmailProviderError */
  async send(
    { tag, to, ...mail }: OutgoingMail,
    idempotencyKey: string,
    signal: AbortSignal,
  ): Promise<string> {
    const body = { ...mail, to: [to], tags: [{ name: TAG, value: tag }] };
    const headers = { 'idempotency-key': idempotencyKey };
    return readAs(sent, await this.#call('/emails', { body, headers }, signal)).id;
  }

  async #call(
    path: string,
    { headers, ...call }: { readonly body?: object; readonly headers?: Record<string, string> },
    signal: AbortSignal,
  ): Promise<unknown> {
    const { apiKey, apiUrl } = this.#options;
    if (apiKey === undefined) {
      throw new EmailProviderError('EMAIL_API_KEY is missing: no e-mail is read or sent', false);
    }
    const { body, status } = await this.#answer({
      ...call,
      url: `${apiUrl}${path}`,
      headers: { ...headers, authorization: `Bearer ${apiKey}` },
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
    });
    if (status >= 200 && status < 300) return body;
    const isOther = status === 409 && refusal.safeParse(body).data?.name === OTHER_MAIL;
    const isFinal = FINAL.has(status) || isOther;
    throw new EmailProviderError(`The e-mail provider answered with status ${status}`, isFinal);
  }

  async #answer(call: Omit<Parameters<typeof boundedRequest>[0], 'accept' | 'maxBytes'>) {
    try {
      const { body, status } = await boundedRequest({
        ...call,
        accept: 'application/json',
        maxBytes: MAX_BYTES,
      });
      return { status, body: body && tryParseJson(await textOf(body)) };
    } catch (cause) {
      if (cause instanceof ResponseTooLargeError) {
        throw new EmailProviderError('The e-mail is too long', true, { cause });
      }
      throw new EmailProviderError('The e-mail provider does not answer', false, { cause });
    }
  }
}

/** Tag that names a mail's row. */
export const TAG = 'email';

function readAs<T>(schema: z.ZodType<T>, answer: unknown): T {
  const read = schema.safeParse(answer);
  if (read.success) return read.data;
  // The answer of a mail that was sent may be lost on the way: the call is repeated under its key.
  throw new EmailProviderError('The e-mail provider sent an invalid answer', false);
}
