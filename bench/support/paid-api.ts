import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { startAnvil } from '../../dev/chain/anvil.js';
import {
  furnish,
  partiesOf,
  withLocalChain,
  type LocalChain,
} from '../../dev/chain/local-chain.js';
import { freePort } from '../../dev/ports.js';
import { builtProgram } from '../../dev/root.js';
import { endChild } from './child.js';
import { startOwnPostgres } from './own-postgres.js';
import { within } from './within.js';

/** Mainnet chain id, as used in production by `npm start`. */
const CHAIN_ID = 4217;
const HOLD_MS = 172_800_000;

const START_TIMEOUT_MS = 120_000;

export interface PaidApi {
  readonly webUrl: string;
  readonly backendUrl: string;
  readonly pid: number;
  /** Database addresses for the owner role and the serving role. */
  readonly ownerUrl: string;
  readonly servingUrl: string;
  readonly chain: LocalChain;
}

/**
 * Starts only the API process, with a database and a chain but without workers and Temporal.
 *
 * @param more variables that differ from this process's environment.
 */
export async function startPaidApi(
  folder: string,
  atEnd: (cleanup: () => Promise<void>) => void,
  more: NodeJS.ProcessEnv = {},
): Promise<PaidApi> {
  const { ownerUrl, servingUrl } = await startOwnPostgres(folder, atEnd);
  const anvil = await startAnvil({
    stateDir: path.join(folder, 'chain'),
    runDir: path.join(folder, 'run'),
    port: await freePort(),
    chainId: CHAIN_ID,
  });
  atEnd(() => anvil.stop());
  const chain = await furnish(
    { rpcUrl: anvil.rpcUrl, chainId: CHAIN_ID, dataDir: folder },
    partiesOf({ treasury: undefined, operator: undefined }),
    { holdMs: HOLD_MS },
  );
  const [web, backend] = [await freePort(), await freePort()];
  const env = withLocalChain(
    {
      ...process.env,
      DATA_DIR: folder,
      HOST: '127.0.0.1',
      WEB_PORT: String(web),
      BACKEND_PORT: String(backend),
      METRICS_PORT: '0',
      BACKEND_URL: 'http://127.0.0.1:1',
      DATABASE_URL: servingUrl,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      INTERNAL_API_KEY: randomBytes(32).toString('base64url'),
      ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      // The benchmark's single client sends more requests than a limit for real clients allows.
      RATE_LIMIT_REQUESTS: '10000000',
      TRUSTED_PROXIES: '127.0.0.1/32',
      MANAGE_DOCKER: 'never',
      AGENT_RUNTIME_IMAGE: 'none',
      ...more,
    },
    chain,
  );
  const log = openSync(path.join(folder, 'api.log'), 'a');
  const child = fork(builtProgram('api', 'main.js'), [], {
    env,
    stdio: ['ignore', log, 'inherit', 'ipc'],
  });
  closeSync(log);
  atEnd(() => endChild('the APIs', child));
  const ready = new Promise<void>((resolve, reject) => {
    child.on('message', (said: object) => {
      if ('ready' in said) resolve();
    });
    child.once('exit', () => reject(new Error('The APIs did not start')));
  });
  await within('the start of the APIs', START_TIMEOUT_MS, ready);
  return {
    webUrl: `http://127.0.0.1:${web}`,
    backendUrl: `http://127.0.0.1:${backend}`,
    pid: child.pid ?? 0,
    ownerUrl,
    servingUrl,
    chain,
  };
}
