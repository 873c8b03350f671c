import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../failure.js';
import { findProgram } from '../processes/find-program.js';

/** Programs with which Docker makes a missing user for the subordinate ids of containers. */
const PROGRAMS = ['useradd', 'usermod'];

/** The name within Docker's folder of the data of containers that share a range of ids. */
const REMAPPED = /^\d+\.\d+$/;

/**
 * The user namespace mode of a data folder's engine; `kept` if existing data can be reached in no other
 * mode.
 */
export type UserNamespaces =
  | { readonly on: true; readonly kept: boolean }
  | { readonly on: false; readonly why: string };

/**
 * Decides whether containers get a user namespace, in which root and other users are unprivileged on this
 * machine. Docker keeps the data of the two modes apart, so existing data decide.
 *
 * @throws StartFailure when existing data need a user namespace, and none is available any more.
 */
export async function chooseUserNamespaces(dataDir: string): Promise<UserNamespaces> {
  if (existsSync(path.join(dataDir, 'volumes'))) {
    return { on: false, why: `${dataDir} has data of an engine without them` };
  }
  const kept = (await remappedData(dataDir)).length > 0;
  const obstacle = await obstacleTo(dataDir);
  if (obstacle === undefined) return { on: true, kept };
  if (kept) {
    throw new StartFailure(`${dataDir} holds data that need user namespaces, but ${obstacle}.`);
  }
  return { on: false, why: obstacle };
}

/** Returns the folders in which an engine of this data folder may have stored records. */
export async function engineFolders(dataDir: string): Promise<string[]> {
  return [dataDir, ...(await remappedData(dataDir))];
}

async function remappedData(dataDir: string): Promise<string[]> {
  const names = existsSync(dataDir) ? await readdir(dataDir) : [];
  const folders = names
    .filter((name) => REMAPPED.test(name))
    .map((name) => path.join(dataDir, name));
  return folders.filter((folder) => existsSync(path.join(folder, 'volumes')));
}

async function obstacleTo(dataDir: string): Promise<string | undefined> {
  const most = await readFile('/proc/sys/user/max_user_namespaces', 'utf8').catch(() => '0');
  if (Number(most) === 0) return 'this kernel provides none';
  const ids = await readFile('/proc/self/uid_map', 'utf8');
  if (!/^\s*0\s+0\s+4294967295\s*$/.test(ids))
    return 'this machine itself runs in a user namespace';
  const programs = await Promise.all(PROGRAMS.map(findProgram));
  if (programs.includes(undefined)) return `${PROGRAMS.join(' and ')} are not on this machine`;
  // Root in a container is another user on this machine, and must be able to traverse these folders.
  for (let folder = path.resolve(dataDir); folder !== path.dirname(folder);) {
    folder = path.dirname(folder);
    const found = await stat(folder).catch(() => undefined); // Not created yet.
    if (found && (found.mode & 0o001) === 0) return `${folder} is closed to others`;
  }
  return undefined;
}
