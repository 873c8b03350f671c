import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { StartFailure } from './failure.js';
import { loadSecrets } from './secrets.js';

/** One that `npm start` has made on this machine, by the name that is on what it has on Docker. */
export interface Installation {
  readonly name: string;
  readonly dataDir: string;
}

/** One file for each, named like it, with its data folder: what that folder holds may go with it. */
function register(): string {
  const state = process.env.XDG_STATE_HOME || path.join(homedir(), '.local', 'state');
  return path.join(state, 'agent-platform-service', 'installations');
}

/** Remembers whose data folder this is. @param name as kept in it. */
export function rememberInstallation(dataDir: string, name: string): void {
  const folder = register();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(path.join(folder, name), path.resolve(dataDir), { mode: 0o600 });
}

/** Those whose data folder is there no more, or holds another one now. */
export function goneInstallations(): Installation[] {
  const folder = register();
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => ({ name, dataDir: readFileSync(path.join(folder, name), 'utf8') }))
    .filter(isGone);
}

export function forgetInstallation(name: string): void {
  rmSync(path.join(register(), name), { force: true });
}

function isGone({ name, dataDir }: Installation): boolean {
  if (!existsSync(path.join(dataDir, 'secrets.json'))) return true;
  try {
    return loadSecrets(dataDir).installation !== name;
  } catch (error) {
    if (error instanceof StartFailure) return false; // damaged, and perhaps to be restored
    throw error;
  }
}
