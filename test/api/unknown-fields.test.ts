import { pino } from 'pino';
import { expect, test } from 'vitest';
import { backendEndpoints } from '../../api/backend/backend.js';
import { formatOf } from '../../api/http/body-format.js';
import type { Endpoint } from '../../api/http/endpoint.js';
import { summarizerEndpoints } from '../../api/summarizer/summarizer.js';
import { webEndpoints } from '../../api/web/web.js';
import { NO_DATABASE } from './http/support.js';
import { databaseAlone } from '../support/dependencies.js';

/** Paths of the contract, whose bodies may have fields of later versions, and of OpenAI's format. */
const OF_CONTRACT: ReadonlySet<string> = new Set([
  '/api/agent',
  '/api/agents',
  '/api/agents/:id',
  '/api/agents/:id/config',
  '/api/agents/clone',
  '/api/agents/provision',
  '/api/ai/chat',
  '/api/ai/estimate-cost',
  '/api/ai/models/select',
  '/api/auth/farcaster/refresh',
  '/api/auth/farcaster/verify',
  '/api/auth/forgot-password',
  '/api/auth/google/risc',
  '/api/auth/login',
  '/api/auth/reset-password',
  '/api/auth/token-gating/verify',
  '/api/billing',
  '/api/browse/git-sync',
  '/api/browse/write',
  '/api/chat',
  '/api/demo/chat',
  '/api/deployments',
  '/api/extract',
  '/api/heartbeat',
  // Messages of JSON-RPC.
  '/api/hostmcp/tools',
  '/api/keys',
  '/api/keys/validate',
  '/api/logs/:agentId/stop',
  '/api/payproc/storage-upgrade',
  '/api/memory',
  // Icecast's form, which has more fields than are read.
  '/api/radio/authorize',
  '/api/register',
  '/api/scheduled-tasks',
  '/api/register-home',
  '/api/register-link',
  '/api/security/risc',
  '/api/settings',
  '/api/settings/password',
  '/api/skills',
  '/api/skills/:name',
  '/api/skills/booking-settlement',
  '/api/skills/instant-split',
  '/api/subscriptions/deploy',
  '/api/summarize',
  '/api/underground/events',
  '/api/underground/splits',
  '/api/underground/wallets',
  '/api/v1/gateway',
  '/api/wallet',
  '/api/wallet-auth',
  '/api/wallet/create',
  '/api/wallet/sessions',
  '/api/wallet/top-up',
  '/api/wallet/walletprov',
  '/api/webhooks/email',
  '/api/webhooks/video',
  '/api/x402',
  '/v1/chat/completions',
]);

const url = 'postgres://nobody@127.0.0.1:1/nothing';

test('every path that the contract does not have refuses unknown fields', async () => {
  const { close, dependencies } = await databaseAlone({ db: NO_DATABASE, url });
  const endpoints: readonly Endpoint[] = [
    ...webEndpoints(dependencies),
    ...backendEndpoints(dependencies),
    ...summarizerEndpoints({
      chain: dependencies.settings.chain,
      http: dependencies.settings.http,
      log: pino({ level: 'silent' }),
      // Only the declarations are read.
      pages: {} as Parameters<typeof summarizerEndpoints>[0]['pages'],
    }),
  ];
  await close();
  const own = endpoints.filter(({ body, path }) => body !== undefined && !OF_CONTRACT.has(path));
  expect(own.length).toBeGreaterThan(10);
  const open = own.filter(({ body }) => {
    const schema = body && formatOf(body).schema;
    const issues = schema?.safeParse({ unknownField: 1 }).error?.issues ?? [];
    return !issues.some(({ code }) => code === 'unrecognized_keys');
  });
  expect(open.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});
