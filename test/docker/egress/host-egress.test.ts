import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DockerUnavailableError } from '../../../src/docker/containers/container-errors.js';
import type { EgressProbe } from '../../../src/docker/egress/agent-egress.js';
import { HelperFailedError } from '../../../src/docker/egress/helper-containers.js';
import {
  HostEgress,
  NetworkOpenError,
  type EgressState,
} from '../../../src/docker/egress/host-egress.js';
import { keptLog } from '../../support/platform-environment.js';

const WELL: EgressProbe = { reached: [], reachesAi: true, hasIpv6: false };

let stop: AbortController;
beforeEach(() => {
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
});

/** Starts a host whose probes have these outcomes in turn; the last one repeats. */
function hostThat(
  outcomes: readonly (EgressProbe | undefined | Error)[],
  { guarded = true, required = false } = {},
) {
  const proofs: boolean[] = [];
  const reported: EgressState[] = [];
  const release = vi.fn(() => Promise.resolve(true));
  const host = new HostEgress({
    egress: {
      hold(prove) {
        const outcome = outcomes[Math.min(proofs.length, outcomes.length - 1)];
        proofs.push(prove);
        return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      },
      release,
    },
    guarded,
    required,
    log: keptLog().log,
    times: { check: 20, firstPause: 10, lastPause: 20, firstOutcome: 200 },
    onChange: (state) => reported.push(state),
  });
  return { host, proofs, reported, release, keeping: host.keep(stop.signal) };
}

test('a verified network is guarded, and starts do not wait', async () => {
  const { host, proofs, reported } = hostThat([WELL], { required: true });
  expect(host.state).toMatchObject({ status: 'unknown', refuses: true });
  await host.mayStart();
  expect(host.state).toEqual({ status: 'guarded', reason: null, refuses: false });
  expect(proofs).toEqual([true]);
  expect(reported).toHaveLength(1);
});

test.each([
  [{ ...WELL, reached: ['10.0.0.4'] }, 'agents still reach 10.0.0.4'],
  [{ ...WELL, hasIpv6: true }, 'agents have addresses in IPv6'],
  [new HelperFailedError('no such table'), 'no such table'],
])(
  'a failed verification is open, and production refuses to start agents',
  async (outcome, reason) => {
    const { host } = hostThat([outcome], { required: true });
    await expect(host.mayStart()).rejects.toThrow(NetworkOpenError);
    expect(host.state).toEqual({ status: 'open', reason, refuses: true });
    const { host: elsewhere } = hostThat([outcome]);
    await elsewhere.mayStart();
    expect(elsewhere.state).toEqual({ status: 'open', reason, refuses: false });
  },
);

test(
  'an unreachable AI listener is reported and keeps the network guarded',
  { tags: 'attack' },
  async () => {
    const { host } = hostThat([{ ...WELL, reachesAi: false }]);
    await host.mayStart();
    expect(host.state).toMatchObject({
      status: 'guarded',
      reason: 'agents do not reach the AI listener',
    });
  },
);

test('an unavailable engine is probed again, and the state is unknown until then', async () => {
  const away = new DockerUnavailableError('away');
  const { host, proofs } = hostThat([away, away, WELL]);
  await vi.waitUntil(() => proofs.length === 1, 20_000);
  await vi.waitUntil(() => host.state.reason === 'away', 20_000);
  expect(host.state.status).toBe('unknown');
  await vi.waitUntil(() => host.state.status === 'guarded', 20_000);
  expect(proofs.slice(0, 3)).toEqual([true, true, true]);
});

test('starts on a host of unknown state share one wait', async () => {
  const away = new DockerUnavailableError('away');
  const { host } = hostThat([away]);
  const { host: strict } = hostThat([away], { required: true });
  const began = performance.now();
  await host.mayStart();
  const [waited, again] = [performance.now() - began, performance.now()];
  for (let start = 0; start < 10; start++) await host.mayStart();
  expect(performance.now() - again).toBeLessThan(waited);
  await expect(strict.mayStart()).rejects.toThrow(NetworkOpenError);
});

test('a guarded network stays guarded while the engine is unavailable', async () => {
  const { host, proofs } = hostThat([WELL, undefined, new DockerUnavailableError('away')]);
  await vi.waitUntil(() => host.state.reason === 'not checked: away', 20_000);
  expect(host.state).toMatchObject({ status: 'guarded', refuses: false });
  expect(proofs.slice(0, 3)).toEqual([true, false, false]);
});

test('a guarded network is verified again when the engine returns', async () => {
  const { host, proofs } = hostThat([WELL, undefined]);
  await vi.waitUntil(() => proofs.length > 1, 20_000);
  expect(proofs.includes(true, 1)).toBe(false);
  host.dockerIsBack();
  await vi.waitUntil(() => proofs.includes(true, 1), 20_000);
});

test('a check that fails is followed by a verification, because it may have set the rules again', async () => {
  const fault = { ...WELL, reached: ['10.0.0.4'] };
  const { host, proofs } = hostThat([WELL, new HelperFailedError('probe failed'), fault]);
  await vi.waitUntil(() => host.state.status === 'open', 20_000);
  expect(proofs.slice(0, 3)).toEqual([true, false, true]);
});

test('an operator who guards the networks by other means is trusted', async () => {
  const { host, proofs } = hostThat([WELL], { guarded: false });
  await host.mayStart();
  expect(host.state).toEqual({ status: 'open', reason: 'AGENT_EGRESS=open', refuses: false });
  expect(proofs).toEqual([]);
});

test('a worker that ends removes its rules', async () => {
  const { host, release, keeping } = hostThat([WELL]);
  await host.mayStart();
  stop.abort();
  await keeping;
  expect(release).toHaveBeenCalledOnce();
});
