import type { Database } from '../../platform/database/database.js';
import { UnavailableError } from '../../lib/errors.js';
import { tokenHash } from '../../platform/secrets/token-hash.js';
import { verifyEventToken, type EventTrust } from './event-tokens.js';

/** How the accounts of an event are found: by the subject's id first, or by its address alone. */
export type EventMatching = 'subject' | 'email';

/** Takes what the identity provider tells of accounts. */
export class SecurityEvents {
  readonly #database: Database;
  readonly #trust: EventTrust | undefined;

  /** @param trust undefined where there is no identity provider. */
  constructor(database: Database, trust: EventTrust | undefined) {
    this.#database = database;
    this.#trust = trust;
  }

  get isConfigured(): boolean {
    return this.#trust !== undefined;
  }

  /**
   * Checks a token and writes down what it tells: that will be applied, whatever ends now. One that came
   * before changes nothing.
   *
   * @throws InvalidEventError, KeysUnavailableError, UnavailableError without an identity provider.
   */
  async receive(token: string, matching: EventMatching): Promise<void> {
    if (!this.#trust) throw new UnavailableError('There is no identity provider');
    const { jti, issuedAt, events } = await verifyEventToken(token, this.#trust);
    await this.#database.asPlatform().query(
      `INSERT INTO risc_events (id, issuer, matching, events, happened_at)
       VALUES ($id, $issuer, $matching, $events, $happenedAt) ON CONFLICT (id) DO NOTHING`,
      {
        id: tokenHash(jti),
        issuer: this.#trust.issuer,
        matching,
        events: JSON.stringify(events),
        happenedAt: happenedAt(issuedAt),
      },
    );
  }
}

/** Senders count whole seconds: within one of them what comes first has happened first. */
function happenedAt(issuedAt: number | undefined): Date {
  const endOfSecond = issuedAt === undefined ? Infinity : Math.floor(issuedAt) * 1_000 + 999;
  return new Date(Math.min(endOfSecond, Date.now()));
}
