import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findProgram } from '../../dev/processes/find-program.js';
import { freePort } from '../../dev/ports.js';
import { projectRoot } from '../../dev/root.js';
import { startServer, type Gateway } from './gateway.js';
import { AgainstMissing, installedOnce, pipInstall } from './install.js';

const NAME = 'LiteLLM';
const SOURCES = path.join(projectRoot, 'bench', 'against');
const REQUIREMENTS = path.join(SOURCES, 'litellm-requirements.txt');
const CALLBACK = 'litellm_usage';
const MASTER_KEY = 'sk-bench-master';
const MODEL = 'gpt-4o-mini';

/**
 * Starts LiteLLM's proxy with one worker, its default. Its usage log is a callback that writes the tokens
 * and cost of each answer to a file.
 *
 * @throws AgainstMissing if it cannot be installed or does not start.
 */
export async function startLiteLlm(
  providerUrl: string,
  cacheDir: string,
  folder: string,
  atEnd: (cleanup: () => Promise<void>) => void,
): Promise<Gateway> {
  const python = (await findProgram('python3')) ?? (await findProgram('python'));
  if (python === undefined) throw new AgainstMissing(`${NAME} needs Python, which is not here.`);
  const packages = await installed(python, cacheDir);
  const home = path.join(folder, 'litellm');
  await mkdir(home);
  await copyFile(path.join(SOURCES, `${CALLBACK}.py`), path.join(home, `${CALLBACK}.py`));
  const config = path.join(home, 'config.yaml');
  await writeFile(config, JSON.stringify(configOf(providerUrl))); // JSON is YAML
  const port = await freePort();
  const pid = await startServer(
    {
      name: NAME,
      command: python,
      args: [
        ...['-c', 'from litellm import run_server; run_server()'],
        ...['--config', config, '--host', '127.0.0.1', '--port', String(port)],
        ...['--num_workers', '1', '--telemetry', 'False'],
      ],
      cwd: home,
      env: {
        ...withoutDatabase(process.env),
        PYTHONPATH: packages,
        BENCH_USAGE_LOG: path.join(home, 'usage.jsonl'),
        LITELLM_LOG: 'ERROR',
        LITELLM_MODE: 'PRODUCTION',
        // Without this, LiteLLM downloads its prices from the internet.
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      },
      runDir: path.join(folder, 'run'),
    },
    `http://127.0.0.1:${port}/health/liveliness`,
    atEnd,
  );
  return {
    name: NAME,
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    model: MODEL,
    keys: [MASTER_KEY],
    headers: {},
    pids: { [NAME]: pid },
  };
}

/** LiteLLM would use the platform's database as its own. */
const withoutDatabase = ({ DATABASE_URL: _ours, ...env }: NodeJS.ProcessEnv) => env;

const configOf = (providerUrl: string) => ({
  model_list: [
    {
      model_name: MODEL,
      litellm_params: { model: `openai/${MODEL}`, api_base: providerUrl, api_key: 'sk-bench' },
    },
  ],
  general_settings: { master_key: MASTER_KEY },
  litellm_settings: { callbacks: `${CALLBACK}.usage_log`, telemetry: false },
});

/**
 * Installs LiteLLM into the cache.
 *
 * @returns the folder of its packages.
 */
async function installed(python: string, cacheDir: string): Promise<string> {
  const pinned = (await readFile(REQUIREMENTS, 'utf8')).match(/==([\d.]+)/)?.[1] ?? '';
  const what = `Installing ${NAME} ${pinned}, 700 MB`;
  return installedOnce(cacheDir, `litellm-${pinned}`, what, (fresh) =>
    pipInstall(NAME, python, fresh, ['-r', REQUIREMENTS]),
  );
}
