import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, importJWK, SignJWT, type CryptoKey, type JWK } from 'jose';
import { EVENT_TYPES } from '../../src/accounts/security-events/event-types.js';

/** The subject of an event, in Google's format. */
export type EventSubject =
  | { readonly sub: string; readonly email?: string }
  | { readonly sub?: undefined; readonly email: string };

/** A token's claims, before they are signed. */
export type EventClaims = Readonly<Record<string, unknown>>;

/** A key with which an identity provider signs its security events. */
export class EventSigner {
  constructor(
    readonly alg: 'RS256' | 'ES256',
    readonly kid: string,
    readonly privateKey: CryptoKey,
    /** The public part. */
    readonly published: JWK,
  ) {}

  static async create(
    alg: EventSigner['alg'] = 'RS256',
    kid: string = randomUUID(),
  ): Promise<EventSigner> {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    const published = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
    return new EventSigner(alg, kid, privateKey, published);
  }

  /** Imports a key. @param key in the format of `exported`. */
  static async of(key: JWK): Promise<EventSigner> {
    const { d, p, q, dp, dq, qi, ...published } = key;
    const alg = key.alg === 'ES256' ? 'ES256' : 'RS256';
    const privateKey = await importJWK(key, alg);
    if (privateKey instanceof Uint8Array) throw new TypeError('a shared secret cannot sign events');
    return new EventSigner(alg, key.kid ?? '', privateKey, published);
  }

  /** Exports the key with its private part; only for a key that was created here. */
  async exported(): Promise<JWK> {
    return { ...(await exportJWK(this.privateKey)), ...this.published };
  }

  sign(claims: EventClaims): Promise<string> {
    return new SignJWT(claims)
      .setProtectedHeader({ alg: this.alg, kid: this.kid, typ: 'secevent+jwt' })
      .sign(this.privateKey);
  }
}

/** Returns the claims of a token with one event. The slash at the end of the issuer is Google's. */
export function eventClaims(event: {
  readonly issuer: string;
  readonly audience: string;
  readonly type: keyof typeof EVENT_TYPES;
  readonly subject: EventSubject;
  /** Further members, such as `reason`. */
  readonly more?: Readonly<Record<string, unknown>>;
}): EventClaims {
  const { audience, issuer, more, subject, type } = event;
  const iss = `${issuer}/`;
  const reported = {
    subject: {
      subject_type: subject.sub === undefined ? 'email' : 'iss-sub',
      ...(subject.sub !== undefined && { iss }),
      ...subject,
    },
    ...more,
  };
  return {
    iss,
    aud: audience,
    iat: Math.floor(Date.now() / 1_000),
    jti: randomUUID(),
    events: { [EVENT_TYPES[type]]: reported },
  };
}
