import { request } from 'node:http';
import { homedir } from 'node:os';
import path from 'node:path';
import { minimalEnvironment } from '../processes/minimal-environment.js';
import { run } from '../processes/run.js';
const PING_TIMEOUT_MS = 3_000;

/**
 * Returns the address of an engine that answers: of the variable DOCKER_HOST, the usual sockets or the
 * CLI's context.
 */
export async function findDocker(): Promise<string | undefined> {
  // If DOCKER_HOST is set, no other engine is searched.
  const named = process.env.DOCKER_HOST?.trim();
  if (named) return (await answers(named)) ? named : undefined;
  for (const host of usualHosts()) if (await answers(host)) return host;
  const current = await contextHost();
  return current !== undefined && (await answers(current)) ? current : undefined;
}

/** Reports whether a Docker engine answers at this DOCKER_HOST. */
export async function answers(host: string): Promise<boolean> {
  const target = pingTarget(host);
  if (target === undefined) return false;
  return new Promise((resolve) => {
    const ping = request({ ...target, path: '/_ping', timeout: PING_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.on('timeout', () => ping.destroy());
    ping.on('error', () => resolve(false)); // Not listening, or not accessible to this user.
    ping.end();
  });
}

function pingTarget(host: string) {
  if (!URL.canParse(host)) return undefined;
  const url = new URL(host);
  if (url.protocol === 'unix:' || url.protocol === 'npipe:') return { socketPath: url.pathname };
  if (url.protocol === 'tcp:' || url.protocol === 'http:') {
    return { host: url.hostname, port: url.port || 2375 };
  }
  return undefined; // ssh and TLS are left to the CLI.
}

function usualHosts(): string[] {
  if (process.platform === 'win32') return ['npipe:////./pipe/docker_engine'];
  const runtime = process.env.XDG_RUNTIME_DIR;
  const sockets = [
    '/var/run/docker.sock',
    ...(runtime ? [path.join(runtime, 'docker.sock')] : []),
    path.join(homedir(), '.docker', 'run', 'docker.sock'),
    path.join(homedir(), '.docker', 'desktop', 'docker.sock'),
    path.join(homedir(), '.colima', 'default', 'docker.sock'),
    path.join(homedir(), '.orbstack', 'run', 'docker.sock'),
  ];
  return sockets.map((socket) => `unix://${socket}`);
}

async function contextHost(): Promise<string | undefined> {
  try {
    const format = '{{.Endpoints.docker.Host}}';
    const host = await run('docker', ['context', 'inspect', '--format', format], {
      timeout: 5_000,
      env: minimalEnvironment(/^DOCKER_/),
    });
    return host.trim() || undefined;
  } catch {
    return undefined; // No CLI, or a CLI without contexts.
  }
}
