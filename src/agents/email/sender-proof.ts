import { domainOf } from './mailbox.js';
import { withoutComments } from './mail-text.js';

/** Header fields by their names in lower case, each with its values from the top of the mail. */
export type MailHeaders = ReadonlyMap<string, readonly string[]>;

export interface ProofRules {
  /** The server whose results count: the receiving one. */
  readonly authservId: string | undefined;
  /** False if a mail without any results counts as proven, in development. */
  readonly isRequired: boolean;
}

/** The result of one check of a mail. */
interface Result {
  readonly method: string;
  readonly result: string;
  /** Such as `header.d`, in lower case. */
  readonly properties: ReadonlyMap<string, string>;
}

const RESULTS = 'authentication-results';

/** `dkim=pass header.d=example.com`, without comments; the version of the method does not matter. */
const RESULT = /^([a-z\d-]+)(?:\/\d+)?=([a-z]+)(?: (.*))?$/;

/**
 * Reports whether the receiving server found that a mail is from the domain of its `From` (RFC 8601). Only the first
 * results of that server count: a sender can write any below them, and results in any other name.
 */
export function isProven(headers: MailHeaders, sender: string, rules: ProofRules): boolean {
  const fields = headers.get(RESULTS) ?? [];
  if (fields.length === 0) return !rules.isRequired;
  if (rules.authservId === undefined) return false;
  const server = rules.authservId.toLowerCase();
  for (const field of fields) {
    const read = readField(field);
    if (read?.server === server) return provesDomain(read.results, domainOf(sender));
  }
  return false;
}

function provesDomain(results: readonly Result[], domain: string): boolean {
  const dmarc = results.filter(({ method }) => method === 'dmarc');
  if (dmarc.some(({ result }) => result === 'fail')) return false;
  const isOfDomain = ({ properties, result }: Result) =>
    result === 'pass' && (properties.get('header.from') ?? domain) === domain;
  if (dmarc.length > 0 && dmarc.every(isOfDomain)) return true;
  return results.some(({ method, properties, result }) => {
    if (result !== 'pass') return false;
    if (method === 'dkim') return signerOf(properties) === domain;
    return method === 'spf' && domainOf(properties.get('smtp.mailfrom') ?? '') === domain;
  });
}

/** Returns the domain that signed a mail. */
function signerOf(properties: Result['properties']): string | undefined {
  const identity = properties.get('header.i');
  return properties.get('header.d') ?? (identity === undefined ? undefined : domainOf(identity));
}

/** Reads a field; undefined if it is malformed. */
function readField(field: string) {
  // Within a quoted text nothing is a sign of the syntax.
  const plain = withoutComments(field, (text) => text.replace(/[^\w.@+:/-]/g, '_'));
  if (plain === undefined) return undefined;
  const [first = '', ...parts] = plain.toLowerCase().split(';');
  const [server = ''] = first.trim().split(/\s/);
  return { server, results: parts.flatMap((part) => readResult(part) ?? []) };
}

function readResult(part: string): Result | undefined {
  const words = part
    .trim()
    .split(/\s+/)
    .join(' ')
    .replace(/ ?([=/.]) ?/g, '$1');
  const [, method, result, rest = ''] = RESULT.exec(words) ?? [];
  if (method === undefined || result === undefined) return undefined;
  const properties = new Map<string, string>();
  for (const word of rest.split(' ')) {
    const at = word.indexOf('=');
    const name = word.slice(0, Math.max(at, 0));
    // A property that is given twice is none.
    if (at > 0) properties.set(name, properties.has(name) ? '' : word.slice(at + 1));
  }
  return { method, result, properties };
}
