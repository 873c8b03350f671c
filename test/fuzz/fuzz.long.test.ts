// @module-tag attack
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fuzz } from './fuzz.js';
import { fuzzSite, type FuzzSite } from './site.js';

/**
 * Minimum of rounds; every second one is as declared. `npm run fuzz` runs until its time is up.
 * Unsuccessful operations get up to MOST_ROUNDS, as concurrent requests disturb each other.
 */
const ROUNDS = 10;
const MOST_ROUNDS = 40;
const MINUTES = Number(process.env.FUZZ_MINUTES ?? 0);
const SEED = Number(process.env.FUZZ_SEED ?? 1);

/**
 * Operations that may never succeed here: by chance only, by a proof from a third party or a mail, or
 * with a container, and this test creates none.
 */
const HARD = [
  // Forms, which the fuzzer does not send, and an Icecast that does not run there.
  'backend: POST /api/radio/authorize',
  'web: GET /api/radio/live',
  'web: GET /api/radio/streams',
  'web: POST /api/radio/streams',
  'web: DELETE /api/radio/streams',
  'web: POST /api/auth/admin',
  'web: DELETE /api/auth/sessions/{id}',
  'web: POST /api/settings/password',
  'web: GET /api/auth/google',
  'web: GET /api/auth/google/callback',
  'web: GET /api/auth/github',
  'web: GET /api/auth/github/callback',
  'web: POST /api/settings/identities/google',
  'web: POST /api/settings/identities/github',
  'web: POST /api/settings/identities/wallet',
  'web: POST /api/settings/identities/farcaster',
  'web: DELETE /api/settings/identities/{id}',
  'web: POST /api/wallet-auth',
  'web: GET /api/wallet',
  'web: POST /api/wallet/create',
  'web: POST /api/wallet/sessions',
  'web: GET /api/wallet/sessions',
  'web: DELETE /api/wallet/sessions',
  'backend: GET /api/underground/wallets/{address}/balance',
  'web: GET /api/auth/token-gating/verify',
  'web: POST /api/auth/token-gating/verify',
  'web: POST /api/auth/farcaster/verify',
  'web: POST /api/auth/farcaster/refresh',
  'web: POST /api/auth/reset-password',
  'web: POST /api/auth/verify-email',
  'web: POST /api/keys/validate',
  // Require a payment on a chain; this test has none.
  'web: POST /api/agents/clone',
  'backend: POST /api/agents/clone',
  'web: DELETE /api/settings',
  'web: POST /api/skills/instant-split',
  'web: POST /api/skills/booking-settlement',
  // Require several agents of the caller, each once.
  'web: POST /api/skills/{name}',
  'web: POST /api/swarms',
  'web: PUT /api/swarms',
  // Requires an x402 gateway.
  'web: GET /api/x402',
  'web: POST /api/x402',
  // Require a video provider.
  'web: POST /api/generate-video',
  'web: GET /api/generate-video/{id}/file',
  'web: POST /api/webhooks/video',
  // Require a payment processor.
  'web: GET /api/wallet/top-up',
  'web: POST /api/wallet/top-up',
  'web: GET /api/payproc/credits',
  'web: GET /api/payproc/checkout',
  'web: POST /api/payproc/storage-upgrade',
  // Requires an e-mail provider.
  'web: POST /api/webhooks/email',
  // Require seven valid fields in one request, and a webhook at a public address.
  'backend: POST /api/underground/events',
  'backend: DELETE /api/underground/webhooks/{agentId}',
  // Require credits, which no caller has here.
  'web: POST /api/v1/gateway',
  // Require a message, or the signature of a wallet.
  'backend: POST /api/underground/bus/send',
  'backend: POST /api/underground/bus/sign',
  'backend: GET /api/underground/bus/messages/{messageId}',
  'backend: POST /api/underground/bus/messages/{messageId}/redeliver',
  'agents: POST /v1/bus/messages',
  'backend: POST /api/underground/splits',
  'backend: GET /api/underground/splits/{id}',
  'backend: POST /api/underground/splits/{id}/retry',
  'backend: POST /api/logs/{agentId}/stop',
  // Require a file or a repository in the workspace; neither exists here.
  'web: GET /api/browse/read',
  'web: GET /api/browse/git-diff',
  'web: GET /api/browse/git-log',
  'web: POST /api/browse/git-sync',
  'backend: GET /api/browse/read',
  'backend: GET /api/browse/git-diff',
  'backend: GET /api/browse/git-log',
  'backend: POST /api/browse/git-sync',
  // Requires a message of JSON-RPC.
  'backend: POST /api/hostmcp/tools',
  // Requires an agent that has installed the skill.
  'backend: DELETE /api/agents/{id}/skills/{skill}',
  // Require an agent with a memory; the agents here have never run.
  'web: GET /api/memory',
  'web: POST /api/memory',
  'backend: GET /api/memory',
  'backend: POST /api/memory',
  'backend: DELETE /api/hosts/{id}',
  'web: POST /api/security/risc',
  'web: POST /api/auth/google/risc',
  'agents: POST /v1/chat/completions',
];

let site: FuzzSite;
beforeAll(async () => {
  site = await fuzzSite();
});
afterAll(() => site?.close());

test(
  "no listener breaks, shows another user's data, or sends an undeclared answer",
  async () => {
    const end = performance.now() + MINUTES * 60_000;
    const unlucky = (neverDone: readonly string[]) =>
      neverDone.filter((name) => !HARD.includes(name));
    const { faults, neverDone, requests } = await fuzz(site.targets, {
      seed: SEED,
      beforeRound: site.renew,
      isOver: (rounds, never) =>
        rounds >= (unlucky(never).length === 0 ? ROUNDS : MOST_ROUNDS) && performance.now() >= end,
    });
    expect(faults.join('\n\n')).toBe('');
    expect(unlucky(neverDone)).toEqual([]);
    expect(requests).toBeGreaterThan(1_000);
  },
  (MINUTES + 20) * 60_000, // for requests that hang
);
