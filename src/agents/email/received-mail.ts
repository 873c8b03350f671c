import * as z from 'zod';
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import { blocksOf } from '../../pages/blocks.js';
import { plainText } from '../../pages/markdown.js';
import { parseHtml } from '../../pages/parse-html.js';
import { collapsed, cut } from '../../pages/plain-text.js';
import { addressOf } from './mailbox.js';
import { cutToBytes } from './mail-text.js';
import type { MailHeaders } from './sender-proof.js';

/** Maximum bytes of a mail's text that an agent reads. */
export const MAX_TEXT_BYTES = 100_000;

/** Maximum number of letters of HTML that are converted: styles and layout are most of it. */
const MAX_HTML = 1_000_000;

const MAX_SUBJECT = 300;

/** Maximum number of letters of the ids in `References`: a longer line may be refused. */
const MAX_REFERENCES = 900;

const MESSAGE_ID = /<[^\s<>]{1,250}>/g;

const value = z.union([z.string(), z.array(z.string())]);

/** Fields as an object, or as a list in the order of the mail. */
const fields = z.union([
  z.record(z.string(), value),
  z.array(z.object({ name: z.string(), value: z.string() })),
]);

/** A received mail as the provider returns it. */
export const receivedMail = z.object({
  from: z.string(),
  subject: z.string().nullish(),
  text: z.string().nullish(),
  html: z.string().nullish(),
  message_id: z.string().nullish(),
  headers: fields.nullish(),
});

export type ReceivedMail = z.output<typeof receivedMail>;

/** Ids of a mail and of the thread that it belongs to. */
export interface ThreadIds {
  readonly messageId: string | null;
  /** Ids of earlier mails, the oldest first. */
  readonly earlier: readonly string[];
}

export function headersOf({ headers }: ReceivedMail): MailHeaders {
  const listed = Array.isArray(headers)
    ? headers.map(({ name, value }) => [name, value] as const)
    : Object.entries(headers ?? {});
  const found = new Map<string, string[]>();
  for (const [name, values] of listed) {
    const key = name.trim().toLowerCase();
    found.set(key, [...(found.get(key) ?? []), values].flat());
  }
  return found;
}

/** Returns the only sender of a mail; undefined if there is none, or several, or the fields contradict. */
export function senderOf({ from }: ReceivedMail, headers: MailHeaders): string | undefined {
  const senders = new Set([from, ...(headers.get('from') ?? [])].map(addressOf));
  const [sender] = senders;
  return senders.size === 1 ? sender : undefined;
}

const LISTED = ['bulk', 'junk', 'list', 'auto_reply'];

/** Reports whether no person wrote a mail (RFC 3834). An answer to such a mail could begin a loop. */
export function isAutomatic(headers: MailHeaders): boolean {
  const all = (name: string) =>
    (headers.get(name) ?? []).map(
      (each) =>
        each
          .trim()
          .toLowerCase()
          .split(/[\s;(]/, 1)[0] ?? '',
    );
  return (
    all('auto-submitted').some((kind) => kind !== 'no') ||
    all('precedence').some((kind) => LISTED.includes(kind)) ||
    all('return-path').includes('<>')
  );
}

export function threadOf(mail: ReceivedMail, headers: MailHeaders): ThreadIds {
  const idsIn = (texts: readonly string[]) => texts.join(' ').match(MESSAGE_ID) ?? [];
  const [messageId = null] = idsIn([mail.message_id ?? '']);
  const references = idsIn(headers.get('references') ?? []);
  const earlier = references.length > 0 ? references : idsIn(headers.get('in-reply-to') ?? []);
  return { messageId, earlier: shortened(earlier) };
}

/** Returns the first id of a thread, and its last ones. */
function shortened([first, ...others]: readonly string[]): string[] {
  if (first === undefined) return [];
  const kept: string[] = [];
  let letters = first.length;
  for (const id of others.toReversed()) {
    letters += id.length + 1;
    if (letters > MAX_REFERENCES) break;
    kept.unshift(id);
  }
  return [first, ...kept];
}

export const subjectOf = ({ subject }: ReceivedMail): string =>
  cut(collapsed(sanitizeForJsonb(subject ?? '')), MAX_SUBJECT);

/** Returns a mail's text, or its HTML as text. @throws TooComplexError */
export function textOf({ html, text }: ReceivedMail): string {
  const whole = text?.trim() || plainText(blocksOf(parseHtml(cut(html ?? '', MAX_HTML))));
  return cutToBytes(sanitizeForJsonb(whole), MAX_TEXT_BYTES).trim();
}
