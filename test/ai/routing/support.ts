import { selectFrom, type RowOf } from '../../../src/platform/database/schema/table.js';
import { tokenQuotas, usageLogs } from '../../../src/platform/database/tables/usage.js';
import { createBackend } from '../../../api/backend/backend.js';
import { Completions } from '../../../src/ai/routing/completions.js';
import { ProviderHealthCheck } from '../../../src/ai/routing/provider-health.js';
import type { LeftCallBounds } from '../../../src/ai/routing/left-calls.js';
import type { ProviderName } from '../../../src/ai/completion/provider-names.js';
import { ModelDiscovery } from '../../../src/ai/models/discovery.js';
import { NO_PRIVATE_HOSTS } from '../../../src/platform/environment/private-hosts.js';
import { OwnKeys } from '../../../src/ai/own-keys/own-keys.js';
import { Models } from '../../../src/ai/models/models.js';
import { Router } from '../../../src/ai/routing/route.js';
import { call, type Answer } from '../../support/http.js';
import type { TestPlatform, TestUser } from '../../support/platform.js';

/** A separate backend with no recorded provider failures. */
export interface AiBackend {
  readonly url: string;
  /** Sends `POST /api/ai/chat` with the internal key; by default the conversation is "hello". */
  chat(headers: Readonly<Record<string, string>>, body?: object): Promise<Answer>;
  close(): Promise<void>;
}

/** Starts another AI API of a platform, with some of its providers. */
export async function startAi(
  platform: TestPlatform,
  names: readonly ProviderName[],
  options: {
    readonly preferred?: ProviderName;
    readonly timeoutMs?: number;
    readonly left?: Partial<LeftCallBounds>;
  } = {},
): Promise<AiBackend> {
  const { dependencies, log, meter, settings } = platform;
  const { left = {}, preferred = 'openrouter', timeoutMs = 30_000 } = options;
  const providers = Object.fromEntries(names.map((name) => [name, settings.ai.providers[name]]));
  const models = new Models({ ...settings.ai, providers });
  const completions = new Completions({ providers, timeoutMs, meter, log, left });
  const router = new Router(models, providers, preferred);
  const ai = {
    completions,
    router,
    forCaller: () => ({ ownKeys: OwnKeys.none, router }),
    models,
    discovery: new ModelDiscovery({ models, providers, privateHosts: NO_PRIVATE_HOSTS, log }),
    health: new ProviderHealthCheck(providers),
    meter,
    close: () => completions.close(),
  };
  const backend = createBackend({ ...dependencies.backend, ai });
  const { url, close } = await backend.listen('127.0.0.1', 0);
  return {
    url,
    async close() {
      await close();
      await ai.close();
    },
    chat: (headers, body = {}) =>
      call(url, 'POST', '/api/ai/chat', {
        headers: { authorization: `Bearer ${platform.internalKey}`, ...headers },
        body: { messages: [{ role: 'user', content: 'hello' }], ...body },
      }),
  };
}

export const subscribed = (plan: string): Record<string, string> => ({
  'x-user-plan': plan,
  'x-billing-subscription-id': 'sub_1',
});

/** Creates an API key for a user. */
export async function apiKeyOf(platform: TestPlatform, user: TestUser): Promise<string> {
  const made = await platform.web(user, 'POST', '/api/keys', { body: { name: 'test' } });
  return made.body.key;
}

/** Returns the usage rows of a user's calls once all are stored. */
export async function usageOf(platform: TestPlatform, userId: string) {
  await platform.meter.flushed();
  return platform.db
    .asPlatform()
    .query<RowOf<typeof usageLogs>>(
      `${selectFrom(usageLogs)} WHERE user_id = $userId ORDER BY id`,
      { userId },
    );
}

/** Returns a user's tokens of this month: used, and held for calls in flight. */
export async function quotaOf(platform: TestPlatform, userId: string) {
  await platform.meter.flushed();
  const [row] = await platform.db
    .asPlatform()
    .query<RowOf<typeof tokenQuotas>>(`${selectFrom(tokenQuotas)} WHERE user_id = $userId`, {
      userId,
    });
  return { used: Number(row?.used ?? 0), held: Number(row?.held ?? 0) };
}

/** Uses up a user's quota of this month except for `tokens`. */
export async function leave(
  platform: TestPlatform,
  user: TestUser,
  tokens: number,
  limit: number,
): Promise<void> {
  await platform.asOwner(
    `INSERT INTO token_quotas (user_id, month, used, held)
       VALUES ('${user.id}', date_trunc('month', now() AT TIME ZONE 'UTC')::date,
               ${limit - tokens}, 0)
       ON CONFLICT (user_id, month) DO UPDATE SET used = excluded.used`,
  );
}
