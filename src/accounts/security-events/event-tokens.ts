import { compactVerify, decodeProtectedHeader, errors } from 'jose';
import { BadRequestError } from '../../lib/errors.js';
import { isObject, tryParseJson, type JsonObject } from '../../lib/json.js';
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import type { ReportedEvent } from '../../types/security-events.js';
import { UnknownKeyError, type ProviderKeys } from './provider-keys.js';

/** Error codes for a token (RFC 8935). */
type EventFault =
  | 'invalid_request'
  | 'invalid_issuer'
  | 'invalid_audience'
  | 'invalid_key'
  | 'authentication_failed';

/** 400: an invalid token; `err` is the reason. */
export class InvalidEventError extends BadRequestError {
  override readonly name = 'InvalidEventError';

  constructor(
    readonly err: EventFault,
    message: string,
  ) {
    super(message, undefined, { err });
  }
}

/** The content of a token whose issuer, audience and signature are verified. */
export interface VerifiedEventToken {
  readonly jti: string;
  /** Time of issue by the provider, in seconds since 1970. */
  readonly issuedAt: number;
  readonly events: readonly ReportedEvent[];
}

/** The trusted sender, and the audience. */
export interface EventTrust {
  /** Without a slash at its end. */
  readonly issuer: string;
  readonly clientIds: readonly string[];
  readonly keys: ProviderKeys;
  /** Days for which received tokens are remembered; older tokens are refused, because they could act twice. */
  readonly retentionDays: number;
}

/** Maximum number of characters of a token's `jti`. */
const MAX_JTI_LENGTH = 512;

const DAY_S = 24 * 60 * 60;

const ALGORITHMS = ['RS256', 'ES256'];

const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/**
 * Verifies a security event token (RFC 8417) in the specified order; keys are fetched only if issuer and
 * audience match. `exp` is ignored: a late event is still true while a repetition would be noticed.
 * @throws InvalidEventError, KeysUnavailableError
 */
export async function verifyEventToken(
  token: string,
  { issuer, clientIds, keys, retentionDays }: EventTrust,
): Promise<VerifiedEventToken> {
  const { header, claims } = decode(token);
  if (withoutSlash(claims.iss) !== issuer) {
    throw new InvalidEventError('invalid_issuer', 'The token has another issuer than configured');
  }
  if (![claims.aud].flat().some((each) => clientIds.some((id) => id === each))) {
    throw new InvalidEventError(
      'invalid_audience',
      'The token has another audience: register the client id',
    );
  }
  const { alg = '', kid } = header;
  if (!ALGORITHMS.includes(alg)) {
    throw new InvalidEventError(
      'authentication_failed',
      'The token has an unsupported signature algorithm',
    );
  }
  if (typeof kid !== 'string' || kid === '') {
    throw new InvalidEventError('invalid_key', 'The token has no key id');
  }
  try {
    await compactVerify(token, (shown) => keys.keyOf(shown), { algorithms: ALGORITHMS });
  } catch (error) {
    if (error instanceof UnknownKeyError) {
      throw new InvalidEventError(
        'invalid_key',
        'The token has a key id that the issuer does not publish',
      );
    }
    if (error instanceof errors.JOSEError) {
      throw new InvalidEventError('authentication_failed', 'The signature is invalid');
    }
    throw error;
  }
  const content = contentOf(claims, issuer);
  if (content.issuedAt < Date.now() / 1_000 - retentionDays * DAY_S) {
    throw new InvalidEventError(
      'invalid_request',
      `The token is too old: its iat is more than ${retentionDays} days ago`,
    );
  }
  return content;
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

const notAToken = () => new InvalidEventError('invalid_request', 'The body must be a signed token');

function contentOf(claims: JsonObject, issuer: string): VerifiedEventToken {
  const { jti, iat, events } = claims;
  if (typeof jti !== 'string' || jti === '') {
    throw new InvalidEventError('invalid_request', 'The token has no jti');
  }
  if ([...jti].length > MAX_JTI_LENGTH || sanitizeForJsonb(jti) !== jti) {
    throw new InvalidEventError(
      'invalid_request',
      `The jti of the token must be at most ${MAX_JTI_LENGTH} valid characters`,
    );
  }
  if (typeof iat !== 'number' || iat < 0) {
    throw new InvalidEventError('invalid_request', 'The token has no iat, its time of issue');
  }
  if (!isObject(events) || Object.keys(events).length === 0) {
    throw new InvalidEventError('invalid_request', 'The token has no events');
  }
  return {
    jti,
    issuedAt: iat,
    events: Object.entries(events).map(([type, event]) =>
      reportedEvent(type, isObject(event) ? event : {}, { claims, issuer }),
    ),
  };
}

function reportedEvent(
  type: string,
  { reason, subject }: JsonObject,
  { claims, issuer }: { readonly claims: JsonObject; readonly issuer: string },
): ReportedEvent {
  const { token, token_identifier_alg: by } = isObject(subject) ? subject : {};
  return {
    type: sanitizeForJsonb(type),
    ...subjectOf([subject, claims.sub_id, { sub: claims.sub }], issuer),
    ...textual({ reason }),
    ...(typeof token === 'string' &&
      typeof by === 'string' && {
        token: { by: sanitizeForJsonb(by), value: sanitizeForJsonb(token) },
      }),
  };
}

/**
 * Returns the id and the address of a subject. RISC has the subject in the event, SSF 1.0 in the token's
 * `sub_id`, and a plain token in its `sub`: the first with an id or an address counts.
 */
function subjectOf(
  subjects: readonly unknown[],
  issuer: string,
): Pick<ReportedEvent, 'email' | 'sub'> {
  for (const subject of subjects) {
    const identifiers = identifiersOf(subject).filter(({ email, sub }) => email ?? sub);
    if (identifiers.length === 0) continue;
    // Ids of other issuers do not match any account.
    const own = identifiers.filter(({ iss }) => iss === undefined || withoutSlash(iss) === issuer);
    let found: Pick<ReportedEvent, 'email' | 'sub'> = {};
    for (const { email, sub } of own) found = { ...textual({ sub, email }), ...found };
    return found;
  }
  return {};
}

/** Maximum number of identifiers read of one subject with aliases (RFC 9493). */
const MAX_IDENTIFIERS = 20;

/** Returns the identifiers of a subject: its aliases, its user if it is a complex subject, or itself. */
function identifiersOf(subject: unknown): readonly JsonObject[] {
  if (!isObject(subject)) return [];
  const own = isObject(subject.user) ? subject.user : subject;
  const { identifiers } = own;
  return Array.isArray(identifiers)
    ? identifiers.slice(0, MAX_IDENTIFIERS).filter(isObject)
    : [own];
}

/** Returns the values that are non-empty text. */
function textual<Name extends string>(
  values: Record<Name, unknown>,
): Partial<Record<Name, string>> {
  const texts: Partial<Record<Name, string>> = {};
  for (const name in values) {
    const value = values[name];
    if (typeof value === 'string' && value !== '') texts[name] = sanitizeForJsonb(value);
  }
  return texts;
}

function withoutSlash(text: unknown): string | undefined {
  return typeof text === 'string' ? text.replace(/\/$/, '') : undefined;
}
