import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { installationOf } from '../src/platform/secrets/key-ring.js';
import { isSet } from './settings.js';
import { StartFailure } from './failure.js';

/** Secrets that the first start generates and every later start reuses. */
export interface Secrets {
  readonly internalApiKey: string;
  /** 32 bytes in base64. */
  readonly encryptionKey: string;
  /** Name of the installation on Docker. */
  readonly installation: string;
  readonly postgresPassword: string;
  readonly ownerPassword: string;
  readonly servingPassword: string;
}

/** Returns the file in a data folder that holds the secrets. */
export const secretsFile = (dataDir: string): string => path.join(dataDir, 'secrets.json');

/** Reads `secrets.json` of the data folder; creates a missing one, readable only by its owner. */
export function loadSecrets(dataDir: string): Secrets {
  const file = secretsFile(dataDir);
  if (existsSync(file)) return readSecrets(file);
  const encryptionKey = randomBytes(32);
  const secrets: Secrets = {
    internalApiKey: randomBytes(32).toString('base64url'),
    encryptionKey: encryptionKey.toString('base64'),
    installation: installationOf(encryptionKey),
    postgresPassword: randomBytes(24).toString('base64url'),
    ownerPassword: randomBytes(24).toString('base64url'),
    servingPassword: randomBytes(24).toString('base64url'),
  };
  writeFileSync(`${file}.new`, `${JSON.stringify(secrets, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return secrets;
}

/** Returns the environment with generated secrets for those not set. */
export function withMadeSecrets(env: NodeJS.ProcessEnv, secrets: Secrets): NodeJS.ProcessEnv {
  const made = { ...env };
  if (!isSet(env, 'INTERNAL_API_KEY')) made.INTERNAL_API_KEY = secrets.internalApiKey;
  // Both of its holders are started with the same environment, so the key is not stored.
  if (!isSet(env, 'SUMMARIZER_KEY')) made.SUMMARIZER_KEY = randomBytes(32).toString('base64url');
  if (!isSet(env, 'ENCRYPTION_KEY')) {
    made.ENCRYPTION_KEY = secrets.encryptionKey;
    if (!isSet(env, 'INSTALLATION_ID')) made.INSTALLATION_ID = secrets.installation;
  }
  return made;
}

function readSecrets(file: string): Secrets {
  const damaged = `${file} is damaged: restore it, or delete DATA_DIR to start over.`;
  let kept: Partial<Record<string, unknown>>;
  try {
    kept = JSON.parse(readFileSync(file, 'utf8')) as typeof kept;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new StartFailure(damaged); // Without the cause, which could quote a secret.
  }
  const read = (name: keyof Secrets): string => {
    const value = kept[name];
    if (typeof value !== 'string' || value === '') throw new StartFailure(damaged);
    return value;
  };
  const encryptionKey = read('encryptionKey');
  return {
    internalApiKey: read('internalApiKey'),
    encryptionKey,
    installation:
      'installation' in kept
        ? read('installation')
        : installationOf(Buffer.from(encryptionKey, 'base64')),
    postgresPassword: read('postgresPassword'),
    ownerPassword: read('ownerPassword'),
    servingPassword: read('servingPassword'),
  };
}
