import type { ChainSettings } from '../src/money/chain/settings.js';
import { configuredChains } from '../src/money/payments/chains.js';
import { CheckFailedError, type Check } from '../src/platform/operators/readiness.js';

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
