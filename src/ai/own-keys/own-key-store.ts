import { requireOpenCredential } from '../../platform/audit/added-by.js';
import { ofUser, recordAudit, type RequestOrigin } from '../../platform/audit/audit.js';
import type { Statements, TenantDatabase } from '../../platform/database/database.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { BadRequestError, UnavailableError } from '../../lib/errors.js';
import { requestList } from '../models/request-list.js';
import { isProviderName, type ProviderName, type Providers } from '../completion/provider-names.js';
import { ownKeyContext, withOwnKey } from './own-keys.js';

const TIMEOUT_MS = 5_000;

/** 400: a provider rejects the caller's own key. */
export class OwnKeyRefusedError extends BadRequestError {
  override readonly name = 'OwnKeyRefusedError';

  constructor(provider: ProviderName) {
    super(
      `The AI provider ${provider} refuses your own key, or its account has no credit: replace the key`,
      'PROVIDER_KEY_REFUSED',
      { provider },
    );
  }
}

export interface NewOwnKey {
  readonly provider: ProviderName;
  readonly apiKey: string;
}

/**
 * Stores a user's key of a provider, in place of an earlier one, once the provider has accepted the key.
 * @throws OwnKeyRefusedError; UnavailableError if the provider does not answer; UnauthorizedError when the session
 * has ended.
 */
export async function enableOwnKey(
  {
    providers,
    secrets,
    tenant,
  }: { tenant: TenantDatabase; secrets: SecretBox; providers: Providers },
  { sessionId, userId }: { readonly userId: string; readonly sessionId: string },
  { apiKey, provider }: NewOwnKey,
  origin: RequestOrigin,
): Promise<void> {
  const { state } = await requestList(
    provider,
    withOwnKey(providers, provider, apiKey),
    TIMEOUT_MS,
  );
  if (state === 'key_refused') throw new OwnKeyRefusedError(provider);
  if (state === 'silent') {
    throw new UnavailableError(`The AI provider ${provider} does not answer: retry later`);
  }
  const sealed = secrets.seal(apiKey, ownKeyContext(userId, provider));
  await tenant.transaction(async (db) => {
    // The session may have ended while the provider was called.
    const addedBy = await requireOpenCredential(db, userId, { sessionId });
    await db.query(
      `INSERT INTO provider_keys (user_id, provider, sealed_key, added_by, created_at)
       VALUES ($userId, $provider, $sealed, $addedBy, now())
       ON CONFLICT (user_id, provider) DO UPDATE
         SET sealed_key = excluded.sealed_key, added_by = excluded.added_by,
             created_at = excluded.created_at, suspended_at = NULL`,
      { userId, provider, sealed, addedBy },
    );
    const about = { subject: provider };
    await recordAudit(db, ofUser(userId, 'provider-key.enable', origin, about));
  });
}

/** Deletes a user's key of a provider, or of all. */
export async function disableOwnKeys(
  tenant: TenantDatabase,
  userId: string,
  provider: ProviderName | undefined,
  origin: RequestOrigin,
): Promise<void> {
  await tenant.transaction(async (db) => {
    const gone = await db.query<{ provider: string }>(
      `DELETE FROM provider_keys
        WHERE user_id = $userId AND ($provider::text IS NULL OR provider = $provider)
        RETURNING provider`,
      { userId, provider: provider ?? null },
    );
    for (const { provider: subject } of gone) {
      await recordAudit(db, ofUser(userId, 'provider-key.disable', origin, { subject }));
    }
  });
}

/** Lists the providers of a user's keys that are in use. */
export async function listOwnKeys(db: Statements, userId: string): Promise<ProviderName[]> {
  const rows = await db.query<{ provider: string }>(
    `SELECT provider FROM provider_keys WHERE user_id = $userId AND suspended_at IS NULL
      ORDER BY provider`,
    { userId },
  );
  return rows.map(({ provider }) => provider).filter(isProviderName);
}
