import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JWK } from 'jose';

/** What stays of the stand-ins from one start to the next, so that accounts stay linked to them. */
export interface KeptAccounts {
  /** On loopback. */
  readonly ports: StandInPorts;
  /** By which the identity provider signs its security events, with its secret part. */
  readonly eventKey: JWK;
}

export interface StandInPorts {
  readonly mail: number;
  readonly identityProvider: number;
  readonly codeHost: number;
}

const fileIn = (dataDir: string) => path.join(dataDir, 'dev-accounts.json');

/** @returns undefined where there have been no stand-ins yet. */
export function readKept(dataDir: string): KeptAccounts | undefined {
  const file = fileIn(dataDir);
  if (!existsSync(file)) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as KeptAccounts; // as written below
}

export function keep(dataDir: string, kept: KeptAccounts): void {
  writeFileSync(fileIn(dataDir), `${JSON.stringify(kept)}\n`, { mode: 0o600 });
}
