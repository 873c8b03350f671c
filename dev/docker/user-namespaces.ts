import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../failure.js';
import { findProgram } from '../processes/find-program.js';

/** With these Docker makes a user whose subordinate ids containers get, where there is none. */
const PROGRAMS = ['useradd', 'usermod'];

/** What Docker, within its folder, calls the data of containers that have one range of ids. */
const REMAPPED = /^\d+\.\d+$/;

/** How the engine of a data folder runs containers; `kept` when it has data that are reached in no other way. */
export type UserNamespaces =
  | { readonly on: true; readonly kept: boolean }
  | { readonly on: false; readonly why: string };

/**
 * Whether containers get a namespace of users: root and the users in them are then nobody on this machine.
 * Docker keeps the data of both kinds apart, so what there is of either decides.
 *
 * @throws StartFailure when there are data of containers with one, and none can be had any more.
 */
export async function chooseUserNamespaces(dataDir: string): Promise<UserNamespaces> {
  if (existsSync(path.join(dataDir, 'volumes'))) {
    return { on: false, why: `${dataDir} has data of an engine without them` };
  }
  const kept = (await remappedData(dataDir)).length > 0;
  const obstacle = await obstacleTo(dataDir);
  if (obstacle === undefined) return { on: true, kept };
  if (kept) {
    throw new StartFailure(`${dataDir} has data of user namespaces, but ${obstacle}.`);
  }
  return { on: false, why: obstacle };
}

/** The folders in which an engine of this data folder may have written something down. */
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
  if (Number(most) === 0) return 'this kernel gives none';
  const ids = await readFile('/proc/self/uid_map', 'utf8');
  if (!/^\s*0\s+0\s+4294967295\s*$/.test(ids)) return 'this machine is in one itself';
  const programs = await Promise.all(PROGRAMS.map(findProgram));
  if (programs.includes(undefined)) return `${PROGRAMS.join(' and ')} are not on this machine`;
  // Their root is somebody else, and has to come through.
  for (let folder = path.resolve(dataDir); folder !== path.dirname(folder);) {
    folder = path.dirname(folder);
    const found = await stat(folder).catch(() => undefined); // still to be made
    if (found && (found.mode & 0o001) === 0) return `${folder} is closed to others`;
  }
  return undefined;
}
