import { existsSync } from 'node:fs';
import { onNpmEnd } from '../dev/processes/npm-end.js';
import { endLeftovers, killAll } from '../dev/processes/process.js';
import { describeFailure } from '../dev/failure.js';
import { lockDataDir } from '../dev/lock.js';
import { Platform } from '../dev/platform.js';
import { requirePort } from '../dev/ports.js';
import { say } from '../dev/report.js';
import { loadSecrets, secretsFile } from '../dev/secrets.js';
import { makeDataDir, readSettings } from '../dev/settings.js';
import { allSettledOrThrow } from '../src/lib/when-all-ended.js';
import { stopping } from '../dev/processes/stopping.js';
import { summary } from '../dev/summary.js';

/** A second Ctrl-C within this time comes from npm, which forwards the terminal's. */
const SAME_SIGNAL_MS = 1_000;

process.exitCode = await main();
process.exit(); // The tasks that keep the event loop alive were already requested to end.

async function main(): Promise<number> {
  const interrupted = onSignal();
  const cleanups: (() => Promise<void> | void)[] = [];
  let code = 0;
  try {
    await Promise.race([start(cleanups), interrupted]);
    await interrupted;
    say('\nStopping ...');
  } catch (error) {
    if (!stopping.signal.aborted) {
      console.error(describeFailure(error));
      code = 1;
    }
  }
  stopping.abort();
  for (const cleanup of cleanups.reverse()) await cleanup();
  await killAll();
  if (code === 0) say('Stopped.');
  return code;
}

async function start(cleanups: (() => Promise<void> | void)[]): Promise<void> {
  const settings = readSettings(process.env);
  const { dataDir, http, runDir } = settings;
  makeDataDir(dataDir);
  cleanups.push(await lockDataDir(dataDir, http.webUrl));
  if ((await endLeftovers(runDir, ['docker'])).length > 0) {
    say('Ended processes that a killed start had left running.');
  }
  await requirePort('WEB_PORT', http.webPort, http.host);
  await requirePort('BACKEND_PORT', http.backendPort, http.host);
  await requirePort('SUMMARIZER_PORT', http.summarizerPort, http.host);

  const isFirst = !existsSync(secretsFile(dataDir));
  const platform = new Platform(settings, loadSecrets(dataDir), process.env);
  cleanups.push(() => platform.stop());
  const docker = await platform.startServers();
  if (docker.host === undefined) say(`${docker.missing} Until then no agent can be created.`);
  await allSettledOrThrow([
    platform.migrate(),
    docker.host === undefined ? undefined : platform.obtainImages(),
  ]);
  await platform.startServices();
  const ownDocker = docker.host !== undefined && docker.own ? docker.host : undefined;
  const links = await platform.adminLinks();
  if (links !== '') say(links.trim());
  const firstIsAdmin = await platform.awaitsFirstAdmin();
  say(summary(settings, platform.env, { isFirst, ownDocker, firstIsAdmin }));
}

/** Resolves with the first signal to end; a later one kills everything at once. */
function onSignal(): Promise<void> {
  let first: number | undefined;
  return new Promise((resolve) => {
    const receive = () => {
      if (first === undefined) {
        first = performance.now();
        stopping.abort();
        resolve();
      } else if (performance.now() - first > SAME_SIGNAL_MS) {
        say('Killing everything at once.');
        void killAll().then(() => process.exit(1));
      }
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, receive);
    onNpmEnd(() => {
      if (first === undefined) receive();
    });
  });
}
