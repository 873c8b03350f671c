import { compactVerify, decodeProtectedHeader, errors } from 'jose';
import { BadRequestError } from '../../lib/errors.js';
import { isObject, tryParseJson, type JsonObject } from '../../lib/json.js';
import { wellFormed } from '../../lib/well-formed.js';
import type { ReportedEvent } from '../../types/security-events.js';
import { UnknownKeyError, type ProviderKeys } from './provider-keys.js';

/** What is wrong with a token, as RFC 8935 names it. */
type EventFault =
  | 'invalid_request'
  | 'invalid_issuer'
  | 'invalid_audience'
  | 'invalid_key'
  | 'authentication_failed';

/** 400: no token that something is done about; `err` says why. */
export class InvalidEventError extends BadRequestError {
  constructor(
    readonly err: EventFault,
    message: string,
  ) {
    super(message, { err });
  }
}

/** A token that is the provider's, and meant for us. */
export interface VerifiedEvents {
  readonly jti: string;
  /** When the provider says that it was issued, in seconds since 1970. */
  readonly issuedAt: number | undefined;
  readonly events: readonly ReportedEvent[];
}

/** Who may send, and whom to. */
export interface EventTrust {
  /** Without a slash at its end. */
  readonly issuer: string;
  readonly clientIds: readonly string[];
  readonly keys: ProviderKeys;
}

const ALGORITHMS = ['RS256', 'ES256'];

const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/**
 * Checks a security event token (RFC 8417) in the order of the specification: issuer, audience, keys, the
 * key's id, signature. Before the first two hold, nobody is asked anything. `exp` is not looked at: an
 * event is as true when it comes late.
 *
 * @throws InvalidEventError, KeysUnavailableError
 */
export async function verifyEventToken(
  token: string,
  { issuer, clientIds, keys }: EventTrust,
): Promise<VerifiedEvents> {
  const { header, claims } = decode(token);
  if (withoutSlash(claims.iss) !== issuer) {
    throw new InvalidEventError('invalid_issuer', 'The token is of another issuer');
  }
  if (![claims.aud].flat().some((each) => clientIds.some((id) => id === each))) {
    throw new InvalidEventError('invalid_audience', 'The token is for another audience');
  }
  const { alg = '', kid } = header;
  if (!ALGORITHMS.includes(alg)) {
    throw new InvalidEventError('authentication_failed', 'The token is not signed as it must be');
  }
  if (typeof kid !== 'string' || kid === '') {
    throw new InvalidEventError('invalid_key', 'The token names no key');
  }
  try {
    await compactVerify(token, (shown) => keys.keyOf(shown), { algorithms: ALGORITHMS });
  } catch (error) {
    if (error instanceof UnknownKeyError) {
      throw new InvalidEventError(
        'invalid_key',
        'The token names a key that the issuer does not have',
      );
    }
    if (error instanceof errors.JOSEError) {
      throw new InvalidEventError('authentication_failed', 'The signature does not hold');
    }
    throw error;
  }
  return contentOf(claims, issuer);
}

function decode(token: string) {
  const payload = token.split('.')[1] ?? '';
  const claims = tryParseJson(Buffer.from(payload, 'base64url').toString());
  if (!COMPACT.test(token) || !isObject(claims)) throw notAToken();
  try {
    return { header: decodeProtectedHeader(token), claims };
  } catch {
    throw notAToken();
  }
}

const notAToken = () => new InvalidEventError('invalid_request', 'The body is not a signed token');

function contentOf(claims: JsonObject, issuer: string): VerifiedEvents {
  const { jti, iat, events } = claims;
  if (typeof jti !== 'string' || jti === '') {
    throw new InvalidEventError('invalid_request', 'The token has no jti');
  }
  if (!isObject(events) || Object.keys(events).length === 0) {
    throw new InvalidEventError('invalid_request', 'The token has no events');
  }
  return {
    jti,
    issuedAt: typeof iat === 'number' && iat >= 0 ? iat : undefined,
    events: Object.entries(events).map(([type, told]) => reportedEvent(type, told, issuer)),
  };
}

function reportedEvent(type: string, told: unknown, issuer: string): ReportedEvent {
  const { reason, subject } = isObject(told) ? told : {};
  const { email, iss, sub, token, token_identifier_alg: by } = isObject(subject) ? subject : {};
  // Ids of another issuer's name nobody here.
  const isTheirs = iss === undefined || withoutSlash(iss) === issuer;
  return {
    type: wellFormed(type),
    ...(isTheirs && textual({ sub, email })),
    ...textual({ reason }),
    ...(typeof token === 'string' &&
      typeof by === 'string' && { token: { by: wellFormed(by), value: wellFormed(token) } }),
  };
}

/** Those that are text. */
function textual<Name extends string>(
  values: Record<Name, unknown>,
): Partial<Record<Name, string>> {
  const texts: Partial<Record<Name, string>> = {};
  for (const name in values) {
    const value = values[name];
    if (typeof value === 'string' && value !== '') texts[name] = wellFormed(value);
  }
  return texts;
}

function withoutSlash(text: unknown): string | undefined {
  return typeof text === 'string' ? text.replace(/\/$/, '') : undefined;
}
