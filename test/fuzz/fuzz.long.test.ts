// @module-tag attack
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fuzz } from './fuzz.js';
import { fuzzSite, type FuzzSite } from './site.js';

/**
 * Half of them as declared. `npm run fuzz` asks until its time is up. What has not succeeded by then has
 * some more: eight questions at a time meet what others have left.
 */
const ROUNDS = 10;
const MOST_ROUNDS = 40;
const MINUTES = Number(process.env.FUZZ_MINUTES ?? 0);
const SEED = Number(process.env.FUZZ_SEED ?? 1);

/**
 * What succeeds by luck alone, by a proof that only others or a mail can give, or takes a container, of
 * which none is made here.
 */
const HARD = [
  'web: GET /api/auth/admin',
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
  // For what was paid on a chain, and there is none.
  'web: POST /api/agents/clone',
  'backend: POST /api/agents/clone',
  'web: DELETE /api/settings',
  'web: POST /api/skills/instant-split',
  'web: POST /api/skills/booking-settlement',
  // For credits, which nobody has here.
  'web: POST /api/v1/gateway',
  'backend: POST /api/underground/splits',
  'backend: GET /api/underground/splits/{id}',
  'backend: POST /api/underground/splits/{id}/retry',
  'backend: POST /api/logs/{agentId}/stop',
  // Of a file that is there, and of a repository, which there is none of.
  'web: GET /api/browse/read',
  'web: GET /api/browse/git-diff',
  'web: GET /api/browse/git-log',
  'web: POST /api/browse/git-sync',
  'backend: GET /api/browse/read',
  'backend: GET /api/browse/git-diff',
  'backend: GET /api/browse/git-log',
  'backend: POST /api/browse/git-sync',
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
  'no listener breaks, shows what is another’s, or answers what it does not declare',
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
  (MINUTES + 20) * 60_000, // for what hangs
);
