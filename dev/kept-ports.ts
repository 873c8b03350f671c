import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from './ports.js';

/** Loopback ports of the servers. */
export interface ServerPorts {
  readonly postgres: number;
  readonly temporal: number;
  readonly temporalUi: number;
  readonly chain: number;
  readonly icecast: number;
}

const PORTS_FILE = 'ports.json';
const USUAL: ServerPorts = {
  postgres: 15432,
  temporal: 7233,
  temporalUi: 8233,
  chain: 8545,
  icecast: 8000,
};

/** Returns the ports of the last start, so that links stay valid; other ports for those now in use. */
export async function chooseServerPorts(dataDir: string): Promise<ServerPorts> {
  const file = path.join(dataDir, PORTS_FILE);
  const wanted = existsSync(file) ? readPorts(file) : USUAL;
  return choosePorts(file, wanted);
}

/**
 * Chooses any free ports for a data folder's first start: several concurrent starts would all choose the usual
 * ports.
 */
export async function chooseUnusualPorts(dataDir: string): Promise<void> {
  mkdirSync(dataDir, { recursive: true });
  await choosePorts(path.join(dataDir, PORTS_FILE), {});
}

/** Returns the ports of the last start. */
export const keptPorts = (dataDir: string): ServerPorts =>
  readPorts(path.join(dataDir, PORTS_FILE));

async function choosePorts(file: string, wanted: Partial<ServerPorts>): Promise<ServerPorts> {
  const ports: ServerPorts = {
    postgres: await freePort(wanted.postgres),
    temporal: await freePort(wanted.temporal),
    temporalUi: await freePort(wanted.temporalUi),
    chain: await freePort(wanted.chain),
    icecast: await freePort(wanted.icecast),
  };
  writeFileSync(file, JSON.stringify(ports));
  return ports;
}

function readPorts(file: string): ServerPorts {
  try {
    return { ...USUAL, ...(JSON.parse(readFileSync(file, 'utf8')) as Partial<ServerPorts>) };
  } catch (error) {
    if (error instanceof SyntaxError) return USUAL; // Truncated by a power failure.
    throw error;
  }
}
