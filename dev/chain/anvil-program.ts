import { createRequire } from 'node:module';
import { StartFailure } from '../failure.js';

const NAMES: Readonly<Record<string, string>> = { x64: 'amd64' };

/**
 * Returns the program in anvil's npm package, so that it can be stopped without a wrapper process.
 *
 * @throws StartFailure if npm has none for this machine.
 */
export function anvilProgram(): string {
  const require = createRequire(import.meta.url);
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const name = `@foundry-rs/anvil-${process.platform}-${NAMES[process.arch] ?? process.arch}`;
  try {
    const wrapper = require.resolve('@foundry-rs/anvil/package.json');
    return createRequire(wrapper).resolve(`${name}/bin/anvil${suffix}`);
  } catch (cause) {
    throw new StartFailure(
      `There is no anvil for this machine (${name}): set CHAIN_RPC_URL to a node of the chain.`,
      { cause },
    );
  }
}
