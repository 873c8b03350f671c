import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { freePort } from '../../dev/ports.js';
import { step } from '../../dev/report.js';
import { install, startServer, type Gateway } from './gateway.js';

const NAME = 'Portkey';
const PACKAGE = '@portkey-ai/gateway';
const VERSION = '1.15.2';
/** With later ones, which the package allows, every streamed call fails. */
const OVERRIDES = { '@hono/node-server': '1.13.8' };

/**
 * Portkey's gateway as its package runs it: it asks nobody who calls, and its log of calls is what
 * its console shows, in memory.
 *
 * @throws GatewayMissing where it cannot be installed or does not start.
 */
export async function startPortkey(
  providerUrl: string,
  cacheDir: string,
  folder: string,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<Gateway> {
  const home = path.join(await installed(cacheDir), 'node_modules', PACKAGE);
  const port = await freePort();
  const pid = await startServer(
    {
      name: NAME,
      command: process.execPath,
      args: [path.join(home, 'build', 'start-server.js'), `--port=${port}`],
      cwd: home,
      env: { ...process.env, NODE_ENV: 'production' },
      runDir: path.join(folder, 'run'),
    },
    `http://127.0.0.1:${port}/`,
    atEnd,
  );
  return {
    name: NAME,
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    model: 'gpt-4o-mini',
    keys: ['sk-bench'],
    headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': providerUrl },
    pids: { [NAME]: pid },
  };
}

/** @returns its folder in the cache. */
async function installed(cacheDir: string): Promise<string> {
  const folder = path.join(cacheDir, `portkey-gateway-${VERSION}`);
  if (existsSync(folder)) return folder;
  await mkdir(cacheDir, { recursive: true });
  const fresh = await mkdtemp(path.join(cacheDir, 'npm-'));
  const project = { private: true, overrides: OVERRIDES };
  await writeFile(path.join(fresh, 'package.json'), JSON.stringify(project));
  const options = ['--prefix', fresh, '--ignore-scripts', '--no-audit', '--no-fund'];
  try {
    await step(`Installing ${NAME}'s gateway ${VERSION} (once)`, () =>
      install(NAME, 'npm', ['install', ...options, `${PACKAGE}@${VERSION}`]),
    );
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return folder;
}
