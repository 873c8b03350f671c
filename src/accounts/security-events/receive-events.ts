import type { Database } from '../../platform/database/database.js';
import { UnavailableError } from '../../lib/errors.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { verifyEventToken, type EventTrust } from './event-tokens.js';

/** The key to an event's account: the subject's id and then its address, or only its address. */
export type EventMatching = 'subject' | 'email';

export class SecurityEvents {
  readonly #database: Database;
  readonly #trust: EventTrust | undefined;

  /** @param trust undefined without an identity provider. */
  constructor(database: Database, trust: EventTrust | undefined) {
    this.#database = database;
    this.#trust = trust;
  }

  get isConfigured(): boolean {
    return this.#trust !== undefined;
  }

  /** Verifies a token and stores its events. @throws InvalidEventError, KeysUnavailableError */
  async receive(token: string, matching: EventMatching): Promise<void> {
    if (!this.#trust) throw new UnavailableError('No identity provider is configured');
    const { jti, issuedAt, events } = await verifyEventToken(token, this.#trust);
    await this.#database.asPlatform().query(
      `INSERT INTO risc_events (jti, id, issuer, matching, events, happened_at, issued_at)
       VALUES ($jti, $id, $issuer, $matching, $events, $happenedAt, $issuedAt) ON CONFLICT DO NOTHING`,
      {
        jti,
        id: tokenHash(jti),
        issuer: this.#trust.issuer,
        matching,
        events: JSON.stringify(events),
        happenedAt: happenedAt(issuedAt),
        issuedAt: dateOf(issuedAt),
      },
    );
  }
}

/** Returns the end of the second of issue: within a second, the order of arrival counts. */
function happenedAt(issuedAt: number): Date {
  const endOfSecond = Math.floor(issuedAt) * 1_000 + 999;
  return new Date(Math.min(endOfSecond, Date.now()));
}

/** A time that no clock will reach, for tokens that claim one after it. */
const LATEST_MS = Date.UTC(9999, 11, 31);

const dateOf = (seconds: number): Date => new Date(Math.min(seconds * 1_000, LATEST_MS));
