// Runs docker-compose.yml as processes of this machine, and runs the tour: npm run rehearse -- --check
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { cacheAgentImage } from '../dev/agent-image/build-openclaw.js';
import { StartFailure } from '../dev/failure.js';
import { obtainIcecast } from '../dev/radio/icecast.js';
import { onNpmEnd } from '../dev/processes/npm-end.js';
import { run } from '../dev/processes/run.js';
import { requireMachine } from '../dev/rehearsal/machine.js';
import { say, step } from '../dev/report.js';
import { builtProgram, projectRoot } from '../dev/root.js';
import { readSettings } from '../dev/settings.js';
import { obtainHaproxy } from '../dev/test-programs.js';
import { findTemporalCli } from '../dev/temporal/temporal-binary.js';
import { runScript } from '../src/run-script.js';
import { findCompose } from './compose-loader.js';

const BUILD_MS = 5 * 60_000;

/** Namespaces of its own: nothing of the rehearsal is reached from outside, and all of it ends with its first process. */
const APART = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];

/** The shell is the namespace's first process, which collects the ended ones. */
const FIRST = ['sh', '-c', '"$@"; exit $?', 'sh'];

await runScript(main, StartFailure);

async function main(): Promise<void> {
  if (!process.argv.includes('--check')) {
    throw new StartFailure('Use: npm run rehearse -- --check');
  }
  await requireMachine();
  const settings = readSettings(process.env);
  const { cacheDir } = settings.process;
  // Everything that needs the network comes first: the rehearsal itself has none.
  const compose = await findCompose(cacheDir);
  const temporalCli = await findTemporalCli(settings);
  const icecast2 = await obtainIcecast({ manage: true });
  const haproxy = await obtainHaproxy();
  if (haproxy === undefined) {
    throw new StartFailure('HAProxy is not installed: install the package haproxy.');
  }
  const programs = { temporal: temporalCli, icecast2, haproxy };
  const { runtimeVersion: version } = settings.agents;
  await cacheAgentImage({ version, cacheDir, log: say });
  await step('Building the production programs', () =>
    run(process.execPath, [path.join('scripts', 'build.mjs')], {
      cwd: projectRoot,
      timeout: BUILD_MS,
    }),
  );
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-rehearsal-'));
  await chmod(folder, 0o711);
  try {
    process.exitCode = await rehearse(JSON.stringify({ folder, compose, programs }));
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Runs the rehearsal apart from this machine. @returns its exit code. */
async function rehearse(parts: string): Promise<number> {
  const inside = [
    process.execPath,
    '--enable-source-maps',
    builtProgram('scripts', 'rehearse-inside.js'),
  ];
  const child = spawn('unshare', [...APART, ...FIRST, ...inside, parts], {
    // Signals of the terminal reach only this process, and the rehearsal ends when its channel closes.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const stop = () => {
    if (child.connected) child.disconnect();
    else child.kill('SIGKILL');
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  onNpmEnd(stop);
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
