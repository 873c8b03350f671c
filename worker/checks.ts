import type { ConnectionLike } from '@temporalio/client';
import type { DockerHost } from '../src/docker/containers/docker-host.js';
import type { ChainSettings } from '../src/money/chain/settings.js';
import { configuredChains } from '../src/money/payments/chains.js';
import { CheckFailedError, type Check } from '../src/platform/operators/readiness.js';
import { awayError, checkNamespace, type TemporalPlace } from '../temporal/start-check.js';
import type { Polling } from './polling.js';
import type { HostLease } from './report-host.js';

/** Makes the check that the node of the platform's own chain answers. Its address may hold a key. */
export function nodeCheck(settings: ChainSettings): Check {
  const [{ chainId, node }] = configuredChains(settings);
  return async () => {
    try {
      await node.read((client) => client.getBlockNumber({ cacheTime: 0 }));
    } catch (cause) {
      throw new CheckFailedError(`The node of chain ${chainId} does not answer`, { cause });
    }
  };
}

/** Makes the check that Temporal answers and that this process polls it. */
export function pollingCheck(
  connected: () => ConnectionLike | undefined,
  place: TemporalPlace,
  polling: Polling,
): Check {
  return async () => {
    const connection = connected();
    if (!connection) throw awayError(place);
    await checkNamespace(connection, place);
    polling.require();
  };
}

/** Makes the checks that this host's Docker answers and has the host's name. */
export function hostChecks(
  id: string,
  docker: Pick<DockerHost, 'available'>,
  lease: Pick<HostLease, 'isHeld'>,
) {
  return {
    async docker() {
      if (!(await docker.available())) throw new CheckFailedError('Docker does not answer');
    },
    lease() {
      if (lease.isHeld) return;
      throw new CheckFailedError(`This Docker does not have the host's name "${id}"`);
    },
  } satisfies Record<string, Check>;
}
