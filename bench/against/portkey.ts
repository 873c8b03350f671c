import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { freePort } from '../../dev/ports.js';
import { startServer, type Gateway } from './gateway.js';
import { installedOnce, npmInstall } from './install.js';

const NAME = 'Portkey';
const PACKAGE = '@portkey-ai/gateway';
const VERSION = '1.15.2';
/** Later versions, which the package allows, break every streamed call. */
const OVERRIDES = { '@hono/node-server': '1.13.8' };

/**
 * Starts Portkey's gateway as its package runs it: without authentication, and with the in-memory call
 * log that its console shows.
 *
 * @throws AgainstMissing if it cannot be installed or does not start.
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

/**
 * Installs Portkey's gateway.
 *
 * @returns its folder in the cache.
 */
function installed(cacheDir: string): Promise<string> {
  const what = `Installing ${NAME}'s gateway ${VERSION}`;
  return installedOnce(cacheDir, `portkey-gateway-${VERSION}`, what, async (fresh) => {
    const project = { private: true, overrides: OVERRIDES };
    await writeFile(path.join(fresh, 'package.json'), JSON.stringify(project));
    await npmInstall(NAME, fresh, [`${PACKAGE}@${VERSION}`]);
  });
}
