import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { StartFailure } from './failure.js';
import { loadSecrets } from './secrets.js';

/** An installation made by `npm start` on this machine, with the name that labels its Docker objects. */
export interface Installation {
  readonly name: string;
  readonly dataDir: string;
}

/**
 * Returns the folder of the register: one file for each installation, with its name and data folder. It
 * is outside the data folders, since it must outlast them.
 */
function register(): string {
  const state = process.env.XDG_STATE_HOME || path.join(homedir(), '.local', 'state');
  return path.join(state, 'agent-platform-service', 'installations');
}

/** Records which installation owns a data folder. @param name as stored in that folder. */
export function rememberInstallation(dataDir: string, name: string): void {
  const folder = register();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(path.join(folder, name), path.resolve(dataDir), { mode: 0o600 });
}

/** Returns the installations whose data folder no longer exists, or now belongs to another installation. */
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
    if (error instanceof StartFailure) return false; // Damaged, and perhaps going to be restored.
    throw error;
  }
}
