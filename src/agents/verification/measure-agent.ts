import type { DockerHost } from '../../docker/containers/docker-host.js';
import {
  gatewayHealth,
  gatewayReady,
  gatewayRefusesStrangers,
} from '../../docker/containers/gateway-probe.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { Check, Measured } from '../../types/verification.js';
import { pause } from '../../lib/pause.js';
import type { Gateway } from '../watchdog/await-ready.js';
import type { ContainerSpecs } from '../operations/container-specs.js';

/** Milliseconds for each probe of the gateway. */
const PROBE_MS = 5_000;

/** Milliseconds for a newly started container to become ready, and between two probes. */
const STARTING_MS = 8_000;
const PAUSE_MS = 500;

export interface Measuring {
  readonly docker: Pick<DockerHost, 'checks'>;
  readonly specs: Pick<ContainerSpecs, 'specOf' | 'gatewayOf'>;
}

/**
 * Measures a running agent on its host. A failed check is part of the result. @throws DockerUnavailableError,
 * DockerRefusedError, AgentGoneError
 */
export async function measureAgent(
  { docker, specs }: Measuring,
  agent: AgentRef,
  signal: AbortSignal,
): Promise<Measured> {
  const spec = await specs.specOf(agent);
  const [{ checks, image }, gateway] = await Promise.all([
    docker.checks.measure(spec),
    gatewayCheck({ ...(await specs.gatewayOf(agent)), signal }),
  ]);
  const { configuration, container, profile } = checks;
  return { checks: [container, profile, configuration, gateway], image };
}

async function gatewayCheck({
  gatewayToken: token,
  hasChannels,
  port,
  signal,
}: Gateway): Promise<Check> {
  const bounds = { timeoutMs: PROBE_MS, signal };
  const { healthy, ready } = await whenStarted(async () => {
    const [{ healthy }, { ready }] = await Promise.all([
      gatewayHealth(port, { ...bounds, token }),
      gatewayReady(port, { ...bounds, token, hasChannels }),
    ]);
    return { healthy, ready };
  }, signal);
  const isGuarded = await gatewayRefusesStrangers(port, bounds);
  const faults = [
    ...(healthy ? [] : ['is not live']),
    ...(ready ? [] : ['is not ready']),
    ...(isGuarded ? [] : ['does not refuse a call without its token']),
  ];
  const ok = faults.length === 0;
  const detail = ok ? 'live, ready, 401 without its token' : `the gateway ${faults.join(', ')}`;
  return { name: 'gateway', ok, detail };
}

interface Probed {
  readonly healthy: boolean;
  readonly ready: boolean;
}

/** Probes a gateway again while it may still be starting, and returns the last result. */
async function whenStarted(probe: () => Promise<Probed>, signal: AbortSignal): Promise<Probed> {
  const end = performance.now() + STARTING_MS;
  for (;;) {
    const probed = await probe();
    const isOver = performance.now() > end || signal.aborted;
    if ((probed.healthy && probed.ready) || isOver) return probed;
    await pause(PAUSE_MS, signal);
  }
}
