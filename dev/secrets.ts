import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StartFailure } from './failure.js';

/** What the first start makes up, and every later one uses again. */
export interface Secrets {
  readonly internalApiKey: string;
  /** 32 bytes in base64. */
  readonly encryptionKey: string;
  readonly postgresPassword: string;
  readonly ownerPassword: string;
  readonly servingPassword: string;
}

/** Reads `secrets.json` of the data folder; makes it, readable by its owner alone, when missing. */
export function loadSecrets(dataDir: string): Secrets {
  const file = path.join(dataDir, 'secrets.json');
  if (existsSync(file)) return readSecrets(file);
  const secrets: Secrets = {
    internalApiKey: randomBytes(32).toString('base64url'),
    encryptionKey: randomBytes(32).toString('base64'),
    postgresPassword: randomBytes(24).toString('base64url'),
    ownerPassword: randomBytes(24).toString('base64url'),
    servingPassword: randomBytes(24).toString('base64url'),
  };
  writeFileSync(`${file}.new`, `${JSON.stringify(secrets, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return secrets;
}

function readSecrets(file: string): Secrets {
  const damaged = `${file} is damaged: restore it, or delete DATA_DIR to begin anew.`;
  let kept: Partial<Record<string, unknown>>;
  try {
    kept = JSON.parse(readFileSync(file, 'utf8')) as typeof kept;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new StartFailure(damaged); // without the cause: it could quote a secret
  }
  const read = (name: keyof Secrets): string => {
    const value = kept[name];
    if (typeof value !== 'string' || value === '') throw new StartFailure(damaged);
    return value;
  };
  return {
    internalApiKey: read('internalApiKey'),
    encryptionKey: read('encryptionKey'),
    postgresPassword: read('postgresPassword'),
    ownerPassword: read('ownerPassword'),
    servingPassword: read('servingPassword'),
  };
}
