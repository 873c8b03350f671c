import { existsSync } from 'node:fs';
import path from 'node:path';
import { databaseUrl } from '../src/platform/database/roles.js';
import { readLocalChain, withLocalChain } from './chain/local-chain.js';
import { StartFailure } from './failure.js';
import { keptPorts } from './kept-ports.js';
import { OWN_DATABASE } from './own-database.js';
import { loadSecrets, withMadeSecrets } from './secrets.js';
import { isSet, withoutPayer } from './settings.js';

/** Adds the environment of the local chain, if one runs. */
function withChain(env: NodeJS.ProcessEnv, dataDir: string): NodeJS.ProcessEnv {
  const chain = isSet(env, 'CHAIN_RPC_URL') ? undefined : readLocalChain(dataDir);
  return chain ? withLocalChain(env, chain) : env;
}

/**
 * Returns the environment in which `npm start` runs the product with this data folder, for a program
 * beside it.
 *
 * @throws StartFailure if no platform was started with the folder yet.
 */
export function runningEnvironment(dataDir: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (!existsSync(path.join(dataDir, 'secrets.json'))) {
    if (isSet(env, 'DATABASE_URL')) return withoutPayer(env).serving;
    throw new StartFailure(`There is no platform in ${dataDir} yet: create one with npm start.`);
  }
  const secrets = loadSecrets(dataDir);
  const made = withChain(withMadeSecrets(withoutPayer(env).serving, secrets), dataDir);
  if (isSet(env, 'DATABASE_URL')) return made;
  const server = `postgres://127.0.0.1:${keptPorts(dataDir).postgres}`;
  const { database, servingRole } = OWN_DATABASE;
  const url = databaseUrl(server, database, servingRole, secrets.servingPassword);
  return { ...made, DATABASE_URL: url };
}
