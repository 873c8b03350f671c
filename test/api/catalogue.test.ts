import { expect, test } from 'vitest';
import * as z from 'zod';
import { allDocuments } from '../support/documents.js';

/** The endpoints of the contract, by their sections: listener, methods, paths. */
const CONTRACT: readonly (readonly [listener: string, methods: string, paths: string])[] = [
  // Accounts and sign-in.
  ['web', 'POST', '/api/register /api/auth/login /api/auth/signout /api/wallet-auth'],
  ['web', 'GET', '/api/auth/session /api/auth/github /api/auth/google /api/auth/google/callback'],
  ['web', 'GET POST', '/api/auth/nonce /api/auth/farcaster/verify /api/auth/farcaster/refresh'],
  ['web', 'GET POST', '/api/auth/token-gating/verify'],
  ['web', 'GET POST PATCH', '/api/settings'],
  ['web', 'POST', '/api/settings/password /api/auth/forgot-password /api/auth/reset-password'],
  // Security events, the x402 gateway, the summarizer.
  ['web', 'GET POST', '/api/security/risc /api/x402'],
  ['web', 'POST', '/api/auth/google/risc'],
  ['summarizer', 'GET', '/ /health'],
  ['summarizer', 'POST', '/api/summarize /api/extract'],
  // API keys, demo chat.
  ['web', 'GET POST', '/api/keys /api/demo/chat'],
  ['web', 'GET DELETE', '/api/keys/{id}'],
  ['web', 'POST', '/api/keys/validate'],
  ['backend', 'POST', '/api/validate-key'],
  // Agents.
  ['backend', 'GET POST', '/api/agents /api/agents/clone'],
  ['web', 'GET', '/api/agents'],
  ['backend web', 'GET PUT DELETE', '/api/agents/{id}'],
  ['web', 'GET POST', '/api/agents/provision /api/agents/clone'],
  // AI.
  ['backend', 'GET', '/api/ai/health /api/ai/models /api/ai/models/{provider}'],
  ['backend', 'POST', '/api/ai/models/select /api/ai/chat /api/ai/estimate-cost'],
  // Wallets and payment sessions.
  ['web', 'GET POST', '/api/wallet /api/wallet/walletprov /api/wallet/top-up'],
  ['web', 'GET', '/api/wallet/address'],
  ['web', 'POST', '/api/wallet/create'],
  ['web', 'GET POST DELETE', '/api/wallet/sessions'],
  // The bus, events, wallets and splits of agents.
  ['backend', 'GET POST', '/api/underground/events'],
  ['backend', 'POST', '/api/underground/bus/send /api/underground/wallets'],
  ['backend', 'POST', '/api/underground/splits'],
  ['backend', 'GET', '/api/underground/wallets/{address}/balance'],
  // Health, heartbeats, installations.
  ['web', 'GET', '/api/health'],
  ['backend', 'GET', '/health'],
  ['web', 'GET POST DELETE', '/api/heartbeat'],
  ['backend', 'POST', '/api/heartbeat /api/register-home /api/register-link'],
  ['backend', 'GET', '/api/installations'],
  // Usage, cost, files.
  ['web', 'GET', '/api/dashboard/cost'],
  ['backend', 'GET', '/api/usage/summary /api/usage/by-agent/{agentId} /api/usage/by-model'],
  ['backend', 'GET', '/api/usage/daily /api/usage/tools'],
  ['backend', 'GET', '/api/browse/tree /api/browse/read /api/browse/git-status'],
  ['backend', 'GET', '/api/browse/git-diff /api/browse/git-log'],
  ['backend', 'POST', '/api/browse/write /api/browse/git-sync'],
  // Further endpoints.
  ['web', 'GET POST', '/api/v1/gateway /api/chat /api/memory /api/skills /api/agent /api/billing'],
  ['web', 'GET PUT', '/api/agents/{id}/config'],
  ['backend', 'GET', '/api/agents/{id}/messages /api/agents/{id}/stats /api/agents/{id}/token'],
  ['backend', 'GET', '/api/agents/{id}/verification'],
  ['web', 'GET POST DELETE', '/api/agents/{id}/verify'],
  ['backend web', 'POST', '/api/agents/{id}/start /api/agents/{id}/stop /api/agents/{id}/restart'],
  ['backend web', 'POST', '/api/agents/{id}/update /api/agents/{id}/repair'],
  ['backend web', 'POST', '/api/agents/{id}/reset-memory'],
  ['web', 'GET', '/api/instance/{userId} /api/instance/{userId}/stats'],
  ['web', 'GET', '/api/metrics /api/credits /api/models'],
  ['web', 'POST', '/api/skills/{name} /api/provision'],
  ['web', 'GET POST', '/api/skills/booking-settlement /api/skills/instant-split'],
  ['backend', 'POST', '/api/subscriptions/deploy /api/deployments'],
  ['web', 'GET POST PUT DELETE', '/api/scheduled-tasks'],
  ['web', 'GET', '/api/payproc/checkout /api/payproc/credits'],
  ['web', 'POST', '/api/payproc/storage-upgrade'],
  ['backend', 'GET', '/api/metrics/{userId}/historical /api/metrics/{userId}/performance'],
  ['backend', 'GET', '/api/metrics/{userId}/summary'],
  ['backend', 'GET POST', '/api/hostmcp/health /api/hostmcp/info /api/hostmcp/setup'],
  ['backend', 'GET POST', '/api/hostmcp/tools /api/hostmcp/examples /api/hostmcp/docs'],
  ['backend', 'GET POST', '/api/hostmcp/github'],
  ['backend', 'POST', '/api/hostmcp/validate-config'],
  ['backend', 'GET', '/api/runtime/version /api/runtime/instances'],
  ['backend', 'GET', '/api/runtime/instances/{id}/stats'],
  ['web', 'GET', '/api/radio/live'],
  ['web', 'GET POST', '/api/radio/streams'],
  ['web', 'POST', '/api/generate-video /api/webhooks/video /api/webhooks/email'],
  ['web', 'GET', '/api/mission-control/fleet/graph /api/mission-control/fleet/traces'],
  ['web', 'GET', '/api/mission-control/fleet/costs /api/mission-control/fleet/bookings'],
  ['backend', 'GET', '/api/logs/{agentId}/stream /api/logs/{agentId}/history'],
  ['backend', 'GET', '/api/logs/{agentId}/active'],
  ['backend', 'POST', '/api/logs/{agentId}/stop'],
  ['web', 'GET POST PUT', '/api/swarms'],
  ['web', 'GET', '/api/colony/status /api/datafeeds'],
  ['backend', 'POST', '/api/invite/generate /api/invite/validate'],
];

const documented = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

test('the OpenAPI documents have every endpoint of the contract', async () => {
  const documents = await allDocuments();
  const found = new Set(
    Object.entries(documents).flatMap(([listener, document]) =>
      Object.entries(documented.parse(document).paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${listener}: ${method.toUpperCase()} ${path}`),
      ),
    ),
  );
  const wanted = CONTRACT.flatMap(([listeners, methods, paths]) =>
    listeners
      .split(' ')
      .flatMap((listener) =>
        methods
          .split(' ')
          .flatMap((method) => paths.split(' ').map((path) => `${listener}: ${method} ${path}`)),
      ),
  );
  expect(wanted.length).toBeGreaterThan(150);
  expect(wanted.filter((each) => !found.has(each))).toEqual([]);
});
