import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JWK } from 'jose';

/** State of the stand-ins that is kept over restarts, so that accounts stay linked to them. */
export interface KeptAccounts {
  /** Ports on loopback. */
  readonly ports: StandInPorts;
  /** The private key with which the identity provider signs its security events. */
  readonly eventKey: JWK;
}

export interface StandInPorts {
  readonly mail: number;
  readonly identityProvider: number;
  readonly codeHost: number;
}

const fileIn = (dataDir: string) => path.join(dataDir, 'dev-accounts.json');

/** Reads the kept state. @returns undefined if no stand-ins have run yet. */
export function readKept(dataDir: string): KeptAccounts | undefined {
  const file = fileIn(dataDir);
  if (!existsSync(file)) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as KeptAccounts; // Written below.
}

export function keep(dataDir: string, kept: KeptAccounts): void {
  writeFileSync(fileIn(dataDir), `${JSON.stringify(kept)}\n`, { mode: 0o600 });
}
